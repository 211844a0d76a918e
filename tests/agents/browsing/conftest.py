"""Sites on ports of their own, and a browser's connection that may go to those a test allows."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest

from agents.browsing.browser import open_browser
from agents.tools.calls import Call, Outcome

Page = tuple[int, dict[str, str], bytes]


class Web:
    """A server on 127.0.0.1. `pages` are what it gives by path, `asked` the paths that it was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                web.asked.append(self.path)
                cookie = self.headers.get("Cookie", "")
                status, headers, body = web.pages.get(self.path.partition("?")[0], (404, {}, b"<p>none</p>"))
                body = body.replace(b"COOKIE", cookie.encode())
                self.send_response(status)
                for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def show(self, path: str, body: str, status: int = 200, **headers: str) -> str:
        """Serve a page; its address."""
        self.pages[path] = status, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode()
        return self.address + path

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.stop()


@pytest.fixture
def other() -> Iterator[Web]:
    """A second one, which no test allows."""
    made = Web()
    yield made
    made.stop()


def device_row(*allow: str, **more) -> dict:
    return {"id": 77 << 24, "name": "window", "connection": {"allow": list(allow)}, "limits": {}, **more}


class Window:
    """A browser's connection, called by hand. `noted` are the events that its calls tell."""

    def __init__(self, opened):
        self.connection, self.facts, self.tools = opened.connection, opened.facts, opened.tools
        self.noted: list[tuple[str, dict]] = []
        self._keys = count(1_000)

    async def __call__(self, tool: str, /, attempt: int = 1, app: dict | None = None, **arguments) -> Outcome:
        call = Call(
            attempt=attempt, session=1, tool=f"browser.{tool}", arguments=arguments, device={"name": "window"}, timeout=None,
            key=next(self._keys), app=app or {}, note=lambda event, **data: self.noted.append((event, data)),
        )  # fmt: skip
        return await self.connection.call(call)


@pytest.fixture
async def open_window(state_dir) -> AsyncIterator[Callable]:
    """A function that opens a browser with an allow-list."""
    opened = []

    async def make(*allow: str, **more) -> Window:
        row = device_row(*allow, **{"id": 77 + len(opened) << 24, **more})  # each a device, as that has one browser at a time
        window = Window(await open_browser(row))
        opened.append(window)
        return window

    yield make
    for window in opened:
        await window.connection.close()
