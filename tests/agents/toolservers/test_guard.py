"""Where a tool server may be: nowhere inside, whatever a name or a redirect leads to, unless the installation says so."""

import asyncio
import http.server
import socket
import threading

import pytest

from agents.links.kinds import LinkRefused
from agents.toolservers.connections import connection_flaws
from agents.toolservers.opening import open_tool_server

INSIDE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "[::1]",
    "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
]  # fmt: skip


def http_device(url: str) -> dict:
    return {
        "id": 7, "name": "web", "kind": "mcp", "limits": {}, "facts": {}, "tools": [],
        "connection": {"transport": "http", "url": url},
    }  # fmt: skip


def allow(settings, *names: str) -> None:
    settings.TOOL_SERVERS = type(settings.TOOL_SERVERS)(frozenset(names), ())


class Answerer(http.server.BaseHTTPRequestHandler):
    """A server that answers everything with a redirect, or with more than is wanted; it counts who asks."""

    asked: list[str]
    location: str

    def do_POST(self) -> None:
        self.asked.append(self.path)
        if self.location:
            self.send_response(307)
            self.send_header("Location", self.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            with_all = b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * (1 << 20)
            try:
                for _ in range(30):
                    self.wfile.write(with_all)
            except OSError:
                self.asked.append("cut off")

    def log_message(self, *arguments) -> None:
        """Say nothing."""


@pytest.fixture
def answerer():
    """A function that starts such a server; its port, and what it was asked."""
    servers = []

    def start(location: str = "") -> tuple[int, list[str]]:
        asked: list[str] = []
        handler = type("Handler", (Answerer,), {"asked": asked, "location": location})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server.server_port, asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("host", INSIDE)
def test_an_address_inside_is_refused_where_it_is_written(settings, host):
    allow(settings)
    ((key, said),) = connection_flaws({"transport": "http", "url": f"https://{host}/mcp"})
    assert (key, "ORRERY_TOOL_SERVERS" in said) == ("url", True)


def test_http_is_refused_but_for_hosts_that_are_named(settings):
    allow(settings, "tools.internal")
    assert list(connection_flaws({"transport": "http", "url": "http://tools.internal/mcp"})) == []
    ((_, said),) = connection_flaws({"transport": "http", "url": "http://tools.example/mcp"})
    assert said.startswith("has http, by which everything travels in the clear")


@pytest.mark.parametrize("address", ["169.254.169.254", "127.0.0.1", "::ffff:10.0.0.1"])
async def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(settings, monkeypatch, address):
    allow(settings)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    async def look_up(*arguments, **more):
        return [(family, socket.SOCK_STREAM, 6, "", (address, 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    with pytest.raises(LinkRefused, match=f"tools.example is {address}, an address inside; name it in ORRERY_TOOL_SERVERS"):
        await open_tool_server(http_device("https://tools.example/mcp"))


async def test_one_address_inside_among_several_is_enough(settings, monkeypatch):
    allow(settings)

    async def look_up(*arguments, **more):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    with pytest.raises(LinkRefused, match=r"10\.0\.0\.1, an address inside"):
        await open_tool_server(http_device("https://tools.example/mcp"))


async def test_a_name_is_looked_up_once_for_each_connection_and_what_was_looked_at_is_called(settings, monkeypatch, answerer):
    """Each request looks the name up itself and goes to the address that it has looked at: a second answer changes nothing."""
    port, asked = answerer()
    settings.TOOL_SERVERS = type(settings.TOOL_SERVERS)(frozenset(), ())
    monkeypatch.setattr("agents.toolservers.connections.url_flaw", lambda url: "")
    answers = ["127.0.0.1", "169.254.169.254"]

    async def look_up(host, *arguments, **more):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    with pytest.raises(LinkRefused, match=r"tools\.example is 127\.0\.0\.1, an address inside"):
        await open_tool_server(http_device(f"http://tools.example:{port}/mcp"))
    assert asked == []
    with pytest.raises(LinkRefused, match=r"tools\.example is 169\.254\.169\.254, an address inside"):
        await open_tool_server(http_device(f"http://tools.example:{port}/mcp"))


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "//127.0.0.2:1/mcp"])
async def test_a_redirect_elsewhere_is_not_followed(settings, answerer, location):
    allow(settings, "127.0.0.1")
    port, asked = answerer(location)
    with pytest.raises(LinkRefused):
        await open_tool_server(http_device(f"http://127.0.0.1:{port}/mcp"))
    assert set(asked) == {"/mcp"}


async def test_a_redirect_to_a_server_that_would_be_allowed_is_not_followed_either(settings, answerer):
    allow(settings, "127.0.0.1")
    other, reached = answerer()
    port, _ = answerer(f"http://127.0.0.1:{other}/mcp")
    with pytest.raises(LinkRefused):
        await open_tool_server(http_device(f"http://127.0.0.1:{port}/mcp"))
    assert reached == []


async def test_an_answer_without_end_is_cut_off(settings, answerer):
    allow(settings, "127.0.0.1")
    port, asked = answerer()
    with pytest.raises(LinkRefused):
        await open_tool_server(http_device(f"http://127.0.0.1:{port}/mcp") | {"limits": {"output_mb": 1}})
    assert asked[0] == "/mcp"
