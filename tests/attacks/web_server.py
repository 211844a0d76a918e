"""A web server of our own as a process, for attacks from outside; time limits can be made short."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.agents.api.live_view.test_websocket import database_url
from tests.project.installation import STOP_S

SHORT = """
import sys
from project import web_server
from project.admission import requests as admission
admission.BODY_S = web_server.HEADERS_S = {seconds}
sys.argv[0] = "web_server"
web_server.main()
"""
WAIT_S = 30.0
"""Far above what an answer takes."""


class WebServer:
    """What listens at `port`, its process, and how it is spoken to without a library in between."""

    def __init__(self, port: int, process: subprocess.Popen):
        self.port, self.process = port, process

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def memory_mb(self) -> float:
        """The most that it has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def ask(self, method: str = "GET", path: str = "/health/", body: bytes = b"", **headers: str) -> tuple[int, dict, bytes]:
        client = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            client.request(method, path, body, {"Host": f"localhost:{self.port}", **headers})
            answer = client.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            client.close()


def read_answer(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by lower-case name, and body; until the server closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body


def problem_in(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    """Status and code of an answer that is a problem."""
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    return status, json.loads(body)["code"]


@contextlib.contextmanager
def web_server(
    folder: Path,
    seconds: float | None = None,
    log: str = "web.log",
    listens: socket.socket | None = None,
    **variables: Any,
) -> Iterator[WebServer]:
    """On the test's database. `seconds`: what headers may take, and a body to begin with. It `listens` at a free port."""
    own = {"DATABASE_URL": database_url(), "ORRERY_STATE_DIR": str(folder), "ORRERY_SECRET_KEY": settings.SECRET_KEY}
    program = ["-m", "project.web_server"] if seconds is None else ["-c", SHORT.format(seconds=seconds)]
    with listens or socket.create_server(("127.0.0.1", 0)) as listening, (folder / log).open("wb") as out:
        argv = [sys.executable, *program, "--fd", str(listening.fileno()), "project.asgi:application"]
        process = subprocess.Popen(
            argv, cwd=settings.BASE_DIR, env={**os.environ, **own, **variables}, stdout=out, stderr=out,
            pass_fds=[listening.fileno()],
        )  # fmt: skip
        try:
            server = WebServer(listening.getsockname()[1], process)
            if listens is None:
                server.connect().close()  # it listens already; this waits in its queue
            yield server
        finally:
            process.terminate()
            process.wait(STOP_S)
    said = (folder / log).read_text()
    assert "Traceback" not in said, said
