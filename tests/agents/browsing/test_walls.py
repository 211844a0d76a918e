"""What a page tries in order to get out: chromium itself does the trying, and a server that nobody allowed waits for it."""

import json
import os
import shutil
import socket

import pytest

from agents.devices.host import instance_name, runtime_dir
from agents.devices.processes import list_pids, read_mark

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def refused_in(outcome) -> list[str]:
    return [each["about"] for each in (outcome.result or {}).get("happened", []) if each["kind"] == "refused"]


async def test_what_is_not_allowed_is_not_opened_and_the_session_is_told(open_window, web, other):
    window = await open_window(web.address)
    failed = await window("open", url=other.show("/", "no"))
    why = f"127.0.0.1:{other.port} is not on the allow-list of the device"
    assert (failed.outcome, failed.error_kind, failed.error) == ("failed", "denied", f"{other.address}/ is refused: {why}")
    told = {"attempt_id": 1, "device": "window", "address": f"{other.address}/", "why": why}
    assert (other.asked, window.noted) == ([], [("browsing_refused", told)])


async def test_a_redirect_to_elsewhere_is_refused(open_window, web, other):
    other.show("/", "secret")
    window = await open_window(web.address)
    for status in (301, 302, 303, 307, 308):
        web.show("/go", "", status, Location=other.address + "/")
        failed = await window("open", url=web.address + "/go")
        assert (failed.outcome, failed.error_kind) == ("failed", "denied"), failed
        assert f"127.0.0.1:{other.port} is not on the allow-list" in failed.error
        assert (await window("read")).result["content"] == ""
    assert other.asked == []


TRIES = {
    "picture": "<img src='OTHER/x'>",
    "script": "<script src='OTHER/x'></script>",
    "frame": "<iframe src='OTHER/x'></iframe>",
    "frame of a file": "<iframe src='file:///etc/passwd'></iframe>",
    "fetch": "<script>fetch('OTHER/x', {mode: 'no-cors'}).catch(() => 0)</script>",
    "beacon": "<script>navigator.sendBeacon('OTHER/x', 'a')</script>",
    "websocket": "<script>new WebSocket('ws://127.0.0.1:PORT/x')</script>",
    "worker": "<script>new Worker(URL.createObjectURL(new Blob([\"fetch('OTHER/x')\"])))</script>",
    "redirected picture": "<img src='/go'>",
    "event source": "<script>new EventSource('OTHER/x')</script>",
    "prefetch": "<link rel=prefetch href='OTHER/x'><link rel=preconnect href='OTHER'>",
    "form": "<form action='OTHER/x' method=post id=f></form><script>f.submit()</script>",
    "script's own way": "<script>location = 'OTHER/x'</script>",
    "refresh": "<meta http-equiv=refresh content='0; url=OTHER/x'>",
    "popup": "<script>window.open('OTHER/x')</script>",
    "service worker": "<script>navigator.serviceWorker.register('/sw.js').catch(() => 0)</script>",
}


SILENT = ("service worker", "prefetch", "frame of a file")
"""Chromium does not even try these, or not always."""


async def test_nothing_that_a_page_does_reaches_who_is_not_allowed(open_window, web, other):
    web.show("/go", "", 302, Location=other.address + "/x")
    web.show("/sw.js", f"fetch('{other.address}/x')", Content_Type="text/javascript")
    window = await open_window(web.address)
    for attempt, (name, body) in enumerate(TRIES.items()):
        body = body.replace("OTHER", other.address).replace("PORT", str(other.port))
        web.show("/", f"<title>t</title>{body}<p>here</p>")
        outcomes = [
            await window("open", attempt, url=web.address + "/"),
            await window("wait", attempt, text="here", seconds=1.0),
        ]
        assert other.asked == [], name
        assert name in SILENT or any(map(refused_in, outcomes)), (name, outcomes)


async def test_only_the_web_is_opened(open_window, web):
    window = await open_window(web.address)
    for url in ("file:///etc/passwd", "data:text/html,hi", "chrome://version", "view-source:http://a.example/", "javascript:1"):
        failed = await window("open", url=url)
        assert (failed.outcome, failed.error_kind) == ("failed", "denied")
        assert "are not opened" in failed.error


async def test_a_name_that_leads_inside_is_refused_at_the_address_that_it_has_now(open_window, web, monkeypatch):
    """The name is looked up once, by the gateway, and the connection goes to what it found: no later answer counts."""
    answers = iter(["127.0.0.1", "10.1.2.3", "169.254.169.254"])
    real = socket.getaddrinfo

    def changing(host, port, *more, **options):
        return real(next(answers) if host == "inside.example" else host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    web.show("/", "<p>inside</p>")
    window = await open_window(f"inside.example:{web.port}", web.address)
    url = f"http://inside.example:{web.port}/"
    assert (await window("open", url=url)).outcome == "completed"  # 127.0.0.1 with this port is on the list itself
    for address in ("10.1.2.3", "169.254.169.254"):
        failed = await window("open", url=url)
        assert (failed.error_kind, f"is {address}, which is inside" in failed.error) == ("denied", True), failed
    assert web.asked == ["/"]


async def test_orrerys_own_address_is_refused_though_it_is_on_the_list(open_window, web, other, settings):
    settings.OWN_PORTS = (other.port,)
    (runtime_dir() / "up.json").write_text(json.dumps({"address": f"http://127.0.0.1:{web.port}/"}))
    window = await open_window(web.address, other.address, f"localhost:{web.port}")
    for url in (web.show("/", "api"), other.show("/", "api"), f"http://localhost:{web.port}/"):
        failed = await window("open", url=url)
        assert (failed.error_kind, "is Orrery itself" in failed.error) == ("denied", True), failed
    settings.ALLOWED_HOSTS = ["orrery.example", ".more.example"]
    window = await open_window("orrery.example", "*.more.example")
    for url in ("https://orrery.example/", "http://a.more.example/"):
        assert "is Orrery itself" in (await window("open", url=url)).error
    assert web.asked == other.asked == []


async def test_a_name_is_looked_up_by_nobody_but_the_gateway(open_window, web):
    """Chromium itself finds no host: what got around the gateway would have nowhere to go."""
    window = await open_window(web.address, "nowhere.example")
    failed = await window("open", url="http://nowhere.example/")
    assert (failed.outcome, failed.error_kind) in (("failed", ""), ("failed", "denied"))


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_behind_bubblewrap_it_sees_nobodys_files(open_window, web, settings):
    settings.CONFINEMENT = "auto"
    window = await open_window(web.address)
    assert window.facts["walls"] == "bubblewrap"
    assert (await window("open", url=web.show("/", "<p>here</p>"))).outcome == "completed"
    mark = (f"{instance_name()}-browser", 77 << 24)
    marked = [pid for pid in list_pids() if read_mark(pid) == mark]
    inside = next(pid for pid in marked if os.readlink(f"/proc/{pid}/exe").endswith("chromium"))
    roots = set(os.listdir(f"/proc/{inside}/root"))
    assert {"root", "home", "work", "var", "srv", "opt"} & roots == set()
