"""Artifacts against whoever sends much, is slow, or wants another's: a real web server, bounded memory, nothing left behind."""

from __future__ import annotations

import hashlib
import json
from http.client import HTTPConnection

import pytest

from agents.models import Artifact
from agents.services import sessions
from tests.agents.conftest import make_token
from tests.attacks.web_server import WAIT_S, problem_in, web_server
from tests.conftest import person

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

PIECE = bytes(range(256)) * 4096
LARGE_MB = 90
ROOM_MB = 60
"""What the server may grow by: what its first requests import, and pieces on their way."""


@pytest.fixture(scope="module")
def server(django_db_setup, tmp_path_factory):
    with web_server(tmp_path_factory.mktemp("artifacts")) as found:
        yield found


@pytest.fixture
def asked(operator):
    """The address of a session's artifacts, and headers of its owner."""
    session = sessions.session_create(operator, "mine", by="system")
    headers = {"Authorization": f"Bearer {make_token(operator, 'read', 'operate')[1]}"}
    return f"/api/sessions/{session.pk}/artifacts/", headers


def send(server, address: str, headers: dict, megabytes: int) -> tuple[int, dict]:
    """Upload so many, piece by piece."""
    client = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S * 4)
    length = {"Content-Length": str(megabytes << 20), "Content-Type": "application/octet-stream", "Host": "localhost"}
    try:
        client.request("POST", address, (PIECE for _ in range(megabytes)), {**headers, **length})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


def receive(server, address: str, headers: dict) -> str:
    """The digest of what is downloaded."""
    client = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S * 4)
    digest = hashlib.sha256()
    try:
        client.request("GET", address, headers={**headers, "Host": "localhost"})
        answer = client.getresponse()
        assert answer.status == 200
        while piece := answer.read(1 << 20):
            digest.update(piece)
        return digest.hexdigest()
    finally:
        client.close()


def test_a_large_artifact_goes_in_and_out_and_is_never_in_memory(server, asked):
    address, headers = asked
    server.ask(path=address, **headers)
    before = server.memory_mb()
    status, row = send(server, f"{address}?name=large.bin", headers, LARGE_MB)
    assert (status, row["size"]) == (201, LARGE_MB << 20), row
    wanted = hashlib.sha256(PIECE * LARGE_MB).hexdigest()
    assert row["sha256"] == wanted
    assert receive(server, row["content"], headers) == wanted
    assert server.memory_mb() - before < ROOM_MB


def test_an_upload_beyond_its_limit_is_refused_as_it_comes(server, asked):
    address, headers = asked
    body = b"x" * 10
    told = {**headers, "Content-Type": "application/octet-stream", "Content-Length": str(200 << 20)}
    assert problem_in(server.ask("POST", f"{address}?name=x", body, **told)) == (413, "body_too_large")
    assert not Artifact.objects.exists()


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(server, asked, operator):
    address, headers = asked
    with server.connect() as client:
        lines = [f"POST {address}?name=x HTTP/1.1", "Host: localhost", "Content-Type: application/octet-stream"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        client.sendall("\r\n".join([*lines, "Content-Length: 1000000", "", ""]).encode() + PIECE[:1000])
    assert server.ask(path=address, **headers)[0] == 200
    assert not Artifact.objects.exists()


@pytest.mark.parametrize("name", ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "a%0d%0aSet-Cookie:%20x=1", "%ff"])
def test_a_name_that_climbs_or_breaks_a_header_is_refused(server, asked, name):
    address, headers = asked
    status, answer_headers, _ = server.ask(
        "POST", f"{address}?name={name}", b"x", **headers, **{"Content-Type": "application/octet-stream"}
    )
    assert status == (400 if name != "%ff" else 201)
    assert "set-cookie" not in answer_headers


def test_a_name_of_any_letters_is_a_good_header(server, asked):
    address, headers = asked
    kind = {"Content-Type": "application/octet-stream"}
    _, _, made = server.ask("POST", f"{address}?name=gr%C3%BC%C3%9Fe%20%22x%22%3B.txt", b"hello", **headers, **kind)
    status, told, body = server.ask(path=json.loads(made)["content"], **headers)
    assert (status, body) == (200, b"hello")
    assert told["content-disposition"] == "attachment; filename*=utf-8''gr%C3%BC%C3%9Fe%20%22x%22%3B.txt"


def test_anothers_artifact_is_not_there_whatever_its_id(server, asked):
    address, headers = asked
    kind = {"Content-Type": "application/octet-stream"}
    _, _, made = server.ask("POST", f"{address}?name=a", b"mine", **headers, **kind)
    stranger = {"Authorization": f"Bearer {make_token(person('stranger', 'operator'), 'read', 'operate')[1]}"}
    content = json.loads(made)["content"]
    for path in (content, content.replace("/content/", "/"), address):
        assert problem_in(server.ask(path=path, **stranger)) == (404, "not_found")
    assert server.ask("POST", f"{address}?name=a", b"x", **stranger, **kind)[0] == 404
    assert server.ask(path=content)[0] == 401
