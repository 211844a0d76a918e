"""The check for vulnerable libraries, against a service of our own that knows one, none, or does not answer."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.live, pytest.mark.one_database]

FLAW = {
    "id": "PYSEC-2026-999", "summary": "made up", "aliases": [],
    "affected": [
        {
            "package": {"name": "django", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}],
        }
    ],
}  # fmt: skip


class Osv(ThreadingHTTPServer):
    """As much of OSV as pip-audit asks for; `asked` has the libraries it was asked about."""

    def __init__(self, flaws: dict[str, dict], status: int = 200):
        super().__init__(("127.0.0.1", 0), Answer)
        self.flaws, self.status, self.asked = flaws, status, {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1/query"


class Answer(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["package"]["name"]
        self.server.asked[name] = asked["version"]
        found = self.server.flaws.get(name)
        body = json.dumps({"vulns": [found]} if found else {}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def osv(request) -> Iterator[Osv]:
    server = Osv(**request.param)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def audit(url: str, known: Path | None = None) -> tuple[int, str, str]:
    path = known or ROOT / ".ci" / "known_vulnerabilities.txt"
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit.py", path, url], capture_output=True, text=True, timeout=170, check=False
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("osv", [{"flaws": {}}], indirect=True)
def test_every_pinned_library_is_asked_about(osv):
    status, said, _ = audit(osv.url)
    assert (status, said.startswith("vulnerable libraries: 0 findings in ")) == (0, True), said
    files = ("requirements.txt", "requirements-browsers.txt", "requirements-dev.txt", "examples/requirements.txt")
    pinned = re.findall(r"(?m)^([\w.-]+)(?:\[\w+\])?==(\S+)", "\n".join((ROOT / name).read_text() for name in files))
    assert len(pinned) > 80
    assert {name: version for name, version in osv.asked.items()} == {
        re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pinned
    }  # fmt: skip


@pytest.mark.parametrize("osv", [{"flaws": {"django": FLAW}}], indirect=True)
def test_a_vulnerable_library_fails_until_somebody_accepts_it_and_again_when_that_is_over(osv, tmp_path):
    status, said, why = audit(osv.url)
    assert (status, "1 findings" in said) == (1, True)
    assert re.fullmatch(r"django [\d.]+: PYSEC-2026-999, mended by 99.1", why)
    known = tmp_path / "known"
    known.write_text("# why\nPYSEC-2026-999 9999-12-31 what it needs is not reached here\n")
    assert audit(osv.url, known)[0] == 0
    known.write_text("PYSEC-2026-999 2026-01-01 what it needs is not reached here\n")
    assert audit(osv.url, known)[0] == 1


def test_a_service_that_does_not_answer_is_said_and_fails_nothing():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    status, said, _ = audit(f"http://127.0.0.1:{port}/v1/query")
    assert status == 0
    assert said.startswith("vulnerable libraries: not checked: ")


@pytest.mark.parametrize("osv", [{"flaws": {}, "status": 503}], indirect=True)
def test_a_service_that_is_broken_is_said_too(osv):
    status, said, _ = audit(osv.url)
    assert (status, said.startswith("vulnerable libraries: not checked: ")) == (0, True), said


@pytest.mark.parametrize("line", ["PYSEC-2026-999", "PYSEC-2026-999 soon because", "PYSEC-2026-999 2026-12-31"])
def test_an_acceptance_has_a_date_and_a_reason(tmp_path, line):
    known = tmp_path / "known"
    known.write_text(f"{line}\n")
    status, _, why = audit("http://127.0.0.1:9/", known)
    assert (status, "line 1 is not ID UNTIL REASON" in why) == (1, True)
