"""Artifacts over REST: listed, downloaded as attachments and in ranges, uploaded, kept and let go."""

from __future__ import annotations

import hashlib
import json

import pytest

from agents.artifacts.opening import open_store
from agents.artifacts.store import ContentDamaged
from agents.models import Artifact, Event
from agents.streams.verify import verify_database
from tests.agents.conftest import Rest, add_artifacts
from tests.conftest import person

pytestmark = [pytest.mark.django_db]

SCRIPT = b"<html><script>alert(1)</script>"


@pytest.fixture
def kept(session):
    return Artifact.objects.get(pk=add_artifacts(session, SCRIPT)[0])


def body(answer) -> bytes:
    return b"".join(answer.streaming_content)


def upload(rest, session, content: bytes, query: str = "?name=data.csv", kind="application/octet-stream"):
    address = f"/api/sessions/{session.pk}/artifacts/{query}"
    return rest.client.post(address, content, content_type=kind, headers=rest.headers)


def test_a_content_is_an_attachment_that_no_browser_runs(rest, kept):
    answer = rest.get(f"/api/artifacts/{kept.pk}/content/")
    assert (answer.status_code, body(answer)) == (200, SCRIPT)
    assert answer["Content-Disposition"] == 'attachment; filename="kept-0.txt"'
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("default-src 'none'; sandbox")
    assert answer["Cache-Control"] == "no-store"
    assert answer["Content-Length"] == str(len(SCRIPT))


@pytest.mark.parametrize(
    ("asked", "start", "stop"), [("bytes=0-4", 0, 5), ("bytes=6-", 6, 31), ("bytes=-3", 28, 31), ("bytes=25-99", 25, 31)]
)
def test_a_range_is_a_part(rest, kept, asked, start, stop):
    answer = rest.client.get(f"/api/artifacts/{kept.pk}/content/", headers={"Range": asked})
    assert (answer.status_code, body(answer)) == (206, SCRIPT[start:stop])
    assert answer["Content-Range"] == f"bytes {start}-{stop - 1}/31"
    assert answer["Content-Length"] == str(stop - start)


@pytest.mark.parametrize(("asked", "status"), [("bytes=31-", 416), ("bytes=5-2", 416), ("bytes=a-b", 200), ("lines=1-2", 200)])
def test_a_range_that_is_none(rest, kept, asked, status):
    assert rest.client.get(f"/api/artifacts/{kept.pk}/content/", headers={"Range": asked}).status_code == status


def test_artifacts_are_listed_by_what_they_are(rest, session):
    add_artifacts(session, b"one", b"two", attempt=5)
    add_artifacts(session, b"three", attempt=6)
    listed = rest.get(f"/api/sessions/{session.pk}/artifacts/").json()["results"]
    assert [each["size"] for each in listed] == [5, 3, 3]
    assert listed[0]["content"] == f"/api/artifacts/{listed[0]['id']}/content/"
    assert len(rest.get(f"/api/sessions/{session.pk}/artifacts/", attempt=5).json()["results"]) == 2
    assert rest.get(f"/api/sessions/{session.pk}/artifacts/", kind="output").json()["results"] == []
    assert rest.get(f"/api/sessions/{session.pk}/artifacts/", kind="program").status_code == 400
    assert rest.get(f"/api/sessions/{session.pk}/artifacts/", task=99).json()["results"] == []


def test_what_is_anothers_is_not_there(kept, session):
    rest = Rest(person("other", "operator"))
    for address in (f"/api/artifacts/{kept.pk}/", f"/api/artifacts/{kept.pk}/content/"):
        assert rest.get(address).status_code == 404
    assert rest.get(f"/api/sessions/{session.pk}/artifacts/").status_code == 404
    assert upload(rest, session, b"x").status_code == 404
    assert rest.delete(f"/api/artifacts/{kept.pk}/").status_code == 404


def test_what_is_uploaded_is_there_by_its_name_and_digest(rest, session):
    digest = hashlib.sha256(b"1,2\n").hexdigest()
    made = upload(rest, session, b"1,2\n", f"?name=in/data.csv&sha256={digest}")
    assert made.status_code == 201, made.content
    row = made.json()
    assert (row["name"], row["kind"], row["size"], row["sha256"], row["attempt"]) == ("in/data.csv", "upload", 4, digest, None)
    assert body(rest.get(row["content"])) == b"1,2\n"
    assert list(verify_database()) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [("", "what is it called"), ("?name=../x", "no name of an artifact"), ("?name=x&sha256=00", "was announced"),
     ("?name=x&path=y", "unknown parameter")],
)  # fmt: skip
def test_an_upload_that_cannot_be_is_refused(rest, session, query, said):
    answer = upload(rest, session, b"x", query)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert not Artifact.objects.exists()


def test_an_upload_has_its_limit_and_its_type(rest, session, settings):
    settings.UPLOAD_BYTES = 3
    assert upload(rest, session, b"1234").status_code == 413
    assert upload(rest, session, b"{}", kind="application/json").status_code == 415
    assert upload(rest, session, b"").json()["size"] == 0


def test_one_that_is_let_go_has_a_row_and_no_content(rest, kept):
    assert rest.patch(f"/api/artifacts/{kept.pk}/", {"is_kept": True}).json()["is_kept"] is True
    assert rest.delete(f"/api/artifacts/{kept.pk}/").status_code == 204
    row = rest.get(f"/api/artifacts/{kept.pk}/").json()
    assert row["removed_at"] is not None
    assert row["content"] is None
    assert rest.get(f"/api/artifacts/{kept.pk}/content/").status_code == 410
    assert rest.delete(f"/api/artifacts/{kept.pk}/").status_code == 410
    told = Event.objects.filter(type="artifact_removed").get()
    assert told.by.startswith("user:")
    assert list(verify_database()) == []


def test_a_content_that_is_gone_or_damaged_is_said(rest, kept, state_dir):
    path = state_dir / "store" / kept.sha256[:2] / kept.sha256
    path.write_bytes(SCRIPT[:-1] + b"?")
    with pytest.raises(ContentDamaged):
        body(rest.get(f"/api/artifacts/{kept.pk}/content/"))
    open_store().remove(kept.sha256)
    answer = rest.get(f"/api/artifacts/{kept.pk}/content/")
    assert (answer.status_code, answer.json()["code"]) == (410, "content_missing")


def test_a_body_of_json_changes_nothing_else(rest, kept):
    assert rest.patch(f"/api/artifacts/{kept.pk}/", {"name": "x"}).status_code == 400
    assert rest.patch(f"/api/artifacts/{kept.pk}/", {"is_kept": "yes"}).status_code == 400
    assert json.loads(rest.get(f"/api/artifacts/{kept.pk}/").content)["is_kept"] is False
