"""What is decided and not yet written: kept over a refusal, forgotten where the rows are read anew."""

import pytest

from agents.engine.drives.pending import Pending, Precedence
from agents.streams.turn import Batch, PendingEvent, SlotDemand, Turn

AT = "2026-01-01T00:00:00.000000Z"


def fresh_turn():
    return Turn(AT, "system", lambda: 1)


def changing(table, key, **fields):
    return PendingEvent("changed", {"set": {table: {key: fields}}}, "system", AT)


def test_a_refused_batch_is_decided_again_but_for_what_it_only_offered():
    pending = Pending()
    event, starts = changing("task", "1", state="COMPLETED"), {5: [changing("task", "2", state="RUNNING")]}
    wants = {5: SlotDemand(), 6: SlotDemand(waiting=2)}
    pending.keep(Batch(1, 0, events=[event], frees={5: 1}, starts=starts, wants=wants))
    turn = fresh_turn()
    pending.move_into(turn)
    assert (turn.events, turn.frees, turn.starts, turn.wants) == ([event], {5: 1}, {}, {5: SlotDemand()})
    again = fresh_turn()
    pending.move_into(again)
    assert (again.events, again.frees, again.wants) == ([], {}, {})


def test_a_note_outlives_that_the_rows_are_read_anew_and_nothing_else_does():
    pending = Pending()
    pending.keep(Batch(1, 0, events=[changing("task", "1", state="COMPLETED")], frees={5: 1}))
    pending.interrupts.append(9)
    pending.note("outage", cause="gone")
    pending.forget()
    turn = fresh_turn()
    pending.move_into(turn)
    assert ([event.type for event in turn.events], turn.frees, pending.interrupts) == (["outage"], {}, [])


@pytest.mark.parametrize(
    ("data", "touched"),
    [
        ({"set": {"task": {"1": {"state": "CANCELLED"}}}}, True),
        ({"del": {"task": [1]}}, True),
        ({"set": {"task": {"2": {"state": "CANCELLED"}}}}, False),
        ({"set": {"inbox": {"1": {"state": "done"}}}}, False),
        ({"add": {"task": [{"id": 1}]}}, False),
    ],
)
def test_who_changes_the_same_row_touches_what_is_kept(data, touched):
    pending = Pending()
    assert not pending.is_touched_by([{"data": data}])
    pending.keep(Batch(1, 0, events=[changing("task", "1", state="COMPLETED")]))
    assert pending.is_touched_by([{"data": {}}, {"data": data}]) == touched


def test_who_came_second_asks_for_the_lock_before_deciding_about_everything():
    precedence = Precedence()
    precedence.begin(locked=False)
    assert precedence.may_decide_of_all()
    precedence.came_second()
    assert (precedence.may_decide_of_all(), precedence.wants_lock) == (False, True)
    precedence.begin(locked=True)
    assert (precedence.may_decide_of_all(), precedence.wants_lock) == (True, False)


def test_it_asks_until_everything_there_is_has_been_decided_about():
    precedence = Precedence()
    precedence.came_second()
    precedence.came_first()
    precedence.begin(locked=False)
    assert not precedence.may_decide_of_all()
    precedence.of_all = True
    precedence.came_first()
    assert (precedence.may_decide_of_all(), precedence.of_all) == (True, False)
