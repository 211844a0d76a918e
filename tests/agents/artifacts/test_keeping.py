"""Keeping a content: what it is called and said to be, by digest, within its limit, claimed before it is there."""

from __future__ import annotations

import hashlib
import io
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.artifacts.checking import verify_store
from agents.artifacts.keeping import keep_artifact
from agents.artifacts.opening import open_store
from agents.artifacts.recording import record_artifacts
from agents.artifacts.results import fit_result
from agents.artifacts.store import ArtifactRefused, ArtifactTooLarge
from agents.engine.bodies.outcomes import OutcomeFile, outcomes_path, read_outcomes
from agents.models import Artifact, StoredContent
from agents.streams.door import door
from agents.streams.verify import verify_database
from agents.tools.calls import Outcome
from tests.agents.conftest import add_artifacts

pytestmark = pytest.mark.django_db(transaction=True)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_what_refers_to_a_content_says_all_of_it():
    kept = keep_artifact(b"hello", name="notes/a.txt")
    assert kept == {
        "name": "notes/a.txt", "kind": "file", "media_type": "text/plain", "size": 5,
        "sha256": hashlib.sha256(b"hello").hexdigest(),
    }  # fmt: skip
    assert b"".join(open_store().read(kept["sha256"])) == b"hello"
    assert StoredContent.objects.get().size == 5


def test_a_file_and_pieces_are_the_same_as_bytes():
    kept = [keep_artifact(each, name="a") for each in (b"abc", io.BytesIO(b"abc"), iter([b"a", b"bc"]))]
    assert kept[0] == kept[1] == kept[2]
    assert StoredContent.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "name", "said", "kind"),
    [
        (PNG, "page.html", "image/png", "picture"),
        (b"\xff\xd8\xff\xe0", "x", "image/jpeg", "picture"),
        (b"<html><script>", "x.png", "text/plain", "file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", "x.svg", "text/plain", "file"),
        ("grüße".encode()[:3], "x", "text/plain", "file"),
        (b"\x00\x01", "x.txt", "application/octet-stream", "file"),
        (b"", "x.txt", "application/octet-stream", "file"),
    ],
)
def test_a_content_is_what_it_is_whatever_it_is_called(content, name, said, kind):
    kept = keep_artifact(content, name=name)
    assert (kept["media_type"], kept["kind"]) == (said, kind)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a\nb", "a\0b", "\ud800", "x" * 501])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(ArtifactRefused):
        keep_artifact(b"x", name=name)
    assert list(open_store().contents()) == []


def test_a_content_of_another_digest_is_refused():
    with pytest.raises(ArtifactRefused, match="was announced"):
        keep_artifact(b"x", name="x", sha256="0" * 64)
    assert list(open_store().contents()) == []
    assert not StoredContent.objects.exists()


def test_a_large_one_is_refused_by_name(settings):
    settings.ARTIFACT_BYTES = 10
    with pytest.raises(ArtifactTooLarge, match="big: it has more than 10 bytes"):
        keep_artifact(b"x" * 11, name="big", most=100)
    with pytest.raises(ArtifactTooLarge, match="more than 3 bytes"):
        keep_artifact(b"x" * 4, name="big", most=3)


def test_a_row_comes_with_the_turn_and_only_what_refers_to_a_content(session):
    kept = keep_artifact(b"hello", name="a.txt")
    foreign = [{**kept, "kind": "program"}, {**kept, "sha256": "../../x"}, {"name": "nothing"}]
    with door(session.pk, "system") as opened:
        record_artifacts(opened.turn, session.pk, [kept, *foreign], attempt=7, call=8)
    row = Artifact.objects.get()
    assert (row.attempt_id, row.call_id, row.name, row.sha256) == (7, 8, "a.txt", kept["sha256"])
    assert list(verify_database()) == []


def test_verify_reads_every_content(session, state_dir):
    add_artifacts(session, b"whole", b"damaged", b"missing")
    whole, damaged, missing = Artifact.objects.order_by("id").values_list("sha256", flat=True)
    assert list(verify_store()) == []
    (state_dir / "store" / damaged[:2] / damaged).write_bytes(b"dAmaged")
    open_store().remove(missing)
    StoredContent.objects.filter(pk=whole).delete()
    said = "\n".join(verify_store())
    assert f"the store's content {damaged} is not what it was" in said
    assert f"the store has no content {missing}" in said
    assert f"the content {whole} of the store is in no table" in said
    with pytest.raises(CommandError, match="3 findings"):
        call_command("verify", "--artifacts", stdout=StringIO())


def test_what_refers_to_a_content_survives_a_killed_runner_in_its_file(tmp_path):
    kept = keep_artifact(b"hello", name="a.txt")
    file = OutcomeFile(tmp_path, 1)
    file.add(7, Outcome("completed", artifacts=[kept]))
    file.flush()
    file.close()
    assert read_outcomes(outcomes_path(tmp_path, 1))[7].artifacts == [kept]


async def test_a_result_is_cut_only_where_a_row_cannot_have_it():
    small, medium, large = "x" * 1_000, "x" * 100_000, "ü" * 200_000
    assert await fit_result(small) == (small, None)
    fitted, kept = await fit_result(medium)
    assert (fitted, kept["size"]) == (medium, 100_002)
    fitted, kept = await fit_result(large)
    assert fitted == {
        "artifact": "result.json", "sha256": kept["sha256"], "size": 400_002, "beginning": '"' + "ü" * 3_999,
    }  # fmt: skip
    unfit = {1, 2}
    assert await fit_result(unfit) == (unfit, None)
