"""The application as a server sees it: static files, requests on a few threads."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.staticfiles import finders

from project.asgi import RequestThreads, Static, application, requests

DEADLINE_S = 30
"""Far above what an answer takes, on a busy machine too."""


async def get(path, method="GET", app=application, body=b"", client="127.0.0.1", host_instead="localhost", **headers):
    """(status, headers, body)"""
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"host", host_instead.encode()), *sent], "scheme": "http", "client": (client, 1),
    }  # fmt: skip
    exchange = ApplicationCommunicator(app, scope)
    await exchange.send_input({"type": "http.request", "body": body})
    start = await exchange.receive_output(DEADLINE_S)
    received, more = b"", True
    while more:
        piece = await exchange.receive_output(DEADLINE_S)
        received, more = received + piece["body"], piece.get("more_body", False)
    await exchange.wait(DEADLINE_S)
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, received


async def test_a_static_file_comes_from_its_app_when_it_was_not_collected():
    status, headers, body = await get("/static/admin/css/base.css")
    assert status == 200
    assert headers["content-type"].startswith("text/css")
    assert b"body" in body


async def test_a_static_file_that_did_not_change_is_not_sent_again():
    _, headers, _ = await get("/static/admin/css/base.css")
    status, _, body = await get("/static/admin/css/base.css", if_none_match=headers["etag"])
    assert (status, body) == (304, b"")


async def test_collected_files_are_served_where_no_app_has_them(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "admin/css").mkdir(parents=True)
    for name in ("base.css", "own.css"):
        (tmp_path / "admin/css" / name).write_text("collected")
    found, status = Static().lookup_path("admin/css/own.css")
    assert (found, status.st_size) == (str(tmp_path / "admin/css/own.css"), len("collected"))
    found, status = Static().lookup_path("admin/css/base.css")
    assert (found, status.st_size > 1_000) == (finders.find("admin/css/base.css"), True)


@pytest.mark.parametrize("path", ["nothing.css", "../settings.py", "../../etc/passwd", "/etc/passwd", "admin", "a\x00b", ""])
async def test_nothing_else_is_served_as_a_static_file(path):
    assert (await get(f"/static/{path}"))[0] == 404


async def test_a_static_file_cannot_be_posted_to():
    assert (await get("/static/admin/css/base.css", "POST"))[0] == 405


@pytest.fixture
async def closed_requests():
    yield
    await requests.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("closed_requests")
async def test_other_addresses_are_djangos():
    status, headers, body = await get("/health/")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert b'"database": "ok"' in body


async def test_requests_share_a_few_threads_that_stay():
    names, together = set(), asyncio.Barrier(4)

    async def remember(scope, receive, send):
        await together.wait()
        names.add(await sync_to_async(threading.get_ident)())

    shared = RequestThreads(remember, threads=2)
    for _ in range(2):
        await asyncio.gather(*(shared({}, None, None) for _ in range(4)))
    assert len(names) == 2
    assert set(shared._busy.values()) == {0}
