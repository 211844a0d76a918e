"""What models say on the way to live views: the first words at once, the rest in a few writes, gone with the end."""

import asyncio

import pytest

from agents.engine.bodies.deltas import FLUSH_S, FORGET_S, SHOWN_CHARACTERS, Deltas
from agents.engine.journal import Journal
from agents.models import ModelDelta

pytestmark = pytest.mark.django_db(transaction=True)
NOW = 1_000.0


@pytest.fixture
def journal():
    journal = Journal()
    yield journal
    journal.close()


def rows():
    return list(ModelDelta.objects.order_by("pk").values_list("call_id", "offset", "kind", "text"))


def test_the_first_words_are_written_at_once_and_the_next_together(journal):
    deltas = Deltas(journal)
    deltas.add(7, 5, "text", "Fet", NOW)
    assert deltas.flush_at == NOW
    asyncio.run(deltas.flush(NOW))
    for text in ("ch, ", "then ", "train."):
        deltas.add(7, 5, "text", text, NOW + 0.001)
    deltas.add(7, 5, "thinking", "hm", NOW + 0.002)
    assert deltas.flush_at == NOW + FLUSH_S
    asyncio.run(deltas.flush(NOW + FLUSH_S))
    assert rows() == [(7, 0, "text", "Fet"), (7, 3, "text", "ch, then train."), (7, 0, "thinking", "hm")]
    assert deltas.tail(5) == "Fetch, then train."


def test_a_call_that_has_ended_leaves_no_rows_and_no_tail(journal):
    deltas = Deltas(journal)
    deltas.add(7, 5, "text", "Yes", NOW)
    deltas.add(8, 6, "text", "No", NOW)
    asyncio.run(deltas.flush(NOW))
    deltas.add(7, 5, "text", ", sir", NOW)
    deltas.end(7)
    assert deltas.flush_at <= NOW + FORGET_S
    asyncio.run(deltas.flush(NOW + FORGET_S))
    assert rows() == [(8, 0, "text", "No")]
    assert (deltas.tail(5), deltas.tail(6)) == ("", "No")


def test_one_that_never_ends_is_shown_up_to_a_bound(journal):
    deltas = Deltas(journal)
    for _ in range(5):
        deltas.add(7, 5, "text", "x" * SHOWN_CHARACTERS, NOW)
        asyncio.run(deltas.flush(NOW))
    assert sum(len(text) for *_, text in rows()) == SHOWN_CHARACTERS


def test_one_that_another_runner_has_begun_goes_on_behind_what_is_known(journal):
    deltas = Deltas(journal)
    deltas.adopt(7, 5)
    deltas.add(7, 5, "text", ", sir", NOW)
    asyncio.run(deltas.flush(NOW))
    assert rows() == [(7, 5, "text", ", sir")]
