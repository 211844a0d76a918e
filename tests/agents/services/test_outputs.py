"""Long outputs: whole in the store, their beginnings and ends in rows, read as one and masked alike."""

from __future__ import annotations

import pytest
from django.utils import timezone

from agents.artifacts.opening import open_store
from agents.masks import values
from agents.models import Artifact, Output
from agents.reads import printed as reading
from agents.reads.printed import REMOVED, printed_characters, printed_piece, printed_pieces, printed_tail
from agents.services.artifacts import artifact_remove
from agents.services.outputs import keep_long_output, keep_long_outputs
from agents.streams.verify import verify_database
from constellations.models import Attempt, Task
from constellations.reads import output_search
from tests.agents.conftest import Rest
from tests.constellations.api.test_api import add_attempts, printed
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.django_db(transaction=True)]

SECRET = "hunter2-hunter2-4711"
LINES = "".join(f"line {number:05} of what was printed, ünd more\n" for number in range(2_000))
TEXT = LINES[:40_000] + SECRET + LINES[40_000:]


@pytest.fixture(autouse=True)
def small(settings, monkeypatch):
    settings.OUTPUT_ROWS = 10_000
    monkeypatch.setenv("ORRERY_SECRET_HUNTER", SECRET)
    monkeypatch.setattr(values, "_KNOWN", values._Known())


@pytest.fixture
def attempt(session, device):
    plant(session, noop("a"))
    made = add_attempts(session, Task.objects.get(task_id="a").pk, device)[0]
    printed(made, *(TEXT[at : at + 997] for at in range(0, len(TEXT), 997)))
    return made


def masked() -> str:
    return TEXT.replace(SECRET, "•" * len(SECRET))


def test_a_long_output_is_whole_in_the_store_and_masked(attempt):
    assert keep_long_output(attempt)
    artifact = Artifact.objects.get()
    assert (artifact.kind, artifact.name, artifact.media_type) == ("output", "output.txt", "text/plain")
    assert b"".join(open_store().read(artifact.sha256)).decode() == masked()
    assert not [finding for finding in verify_database() if "artifact" in finding]


def test_rows_keep_the_beginning_and_the_end_and_every_piece_reads_as_before(attempt):
    before = [printed_piece(attempt, at, at + 5_000) for at in range(0, len(TEXT), 5_000)]
    tail = printed_tail(attempt, 3_000)
    keep_long_output(attempt)
    left = sum(len(row.text) for row in Output.objects.filter(attempt_id=attempt))
    assert 10_000 <= left < 13_000
    assert [printed_piece(attempt, at, at + 5_000) for at in range(0, len(TEXT), 5_000)] == before
    assert "".join(before) == masked()
    assert printed_tail(attempt, 3_000) == tail
    assert printed_characters(attempt) == len(TEXT)
    assert "".join(text for _, text in printed_pieces(attempt)) == masked()


def test_it_is_kept_once_and_a_short_one_never(attempt, settings):
    assert keep_long_output(attempt)
    assert not keep_long_output(attempt)
    assert Artifact.objects.count() == 1
    settings.OUTPUT_ROWS = len(TEXT)
    Artifact.objects.all().delete()
    assert not keep_long_output(attempt)


def test_the_job_looks_at_attempts_that_have_just_ended(attempt):
    Attempt.objects.update(ended_at=None)
    assert keep_long_outputs(600.0) == 0
    Attempt.objects.filter(pk=attempt).update(ended_at=timezone.now())
    assert keep_long_outputs(600.0) == 1


def test_what_was_let_go_leaves_a_word_in_its_place(attempt):
    keep_long_output(attempt)
    artifact_remove(Artifact.objects.get().pk, by="system")
    whole = "".join(text for _, text in printed_pieces(attempt))
    assert len(whole) == len(TEXT)
    assert REMOVED in whole
    assert printed_piece(attempt, 0, 100) == TEXT[:100]
    assert len(printed_piece(attempt, 30_000, 31_000)) == 1_000


def search(operator, session, text: str, **more) -> dict:
    answer = Rest(operator).get(f"/api/sessions/{session.pk}/search/", text=text, **more)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_search_finds_what_stands_across_pieces_and_shows_where(attempt, session, operator, is_kept, monkeypatch):
    monkeypatch.setattr(reading, "PIECE_CHARACTERS", 1_000)
    if is_kept:
        keep_long_output(attempt)
    (hit,) = search(operator, session, "LINE 01234 of")["hits"]
    assert (hit["attempt"], hit["task_id"], hit["number"]) == (attempt, "a", 1)
    assert hit["offset"] == masked().index("line 01234 of")
    assert "line 01233" in hit["excerpt"]
    found = search(operator, session, "ünd more")
    assert len(found["hits"]) == 10
    assert found["next"] is None


def test_a_search_finds_no_secret_and_shows_none(attempt, session, operator):
    assert search(operator, session, SECRET)["hits"] == []
    assert search(operator, session, SECRET[:6])["hits"] == []
    (hit,) = search(operator, session, "•" * len(SECRET))["hits"]
    assert SECRET[:6] not in hit["excerpt"]


def test_a_search_goes_on_where_its_bound_was(session, operator, device, monkeypatch):
    monkeypatch.setattr(output_search, "SEARCHED_CHARACTERS", 5)
    plant(session, noop("b"))
    first, second = add_attempts(session, Task.objects.get(task_id="b").pk, device, 2)
    printed(first, "needle one")
    printed(second, "needle two")
    found = search(operator, session, "needle")
    assert [hit["attempt"] for hit in found["hits"]] == [second]
    found = search(operator, session, "needle", before=found["next"])
    assert ([hit["attempt"] for hit in found["hits"]], found["next"]) == ([first], None)


@pytest.mark.parametrize("text", ["", "x" * 201])
def test_a_search_needs_a_text(session, operator, text):
    assert Rest(operator).get(f"/api/sessions/{session.pk}/search/", text=text).status_code == 400
