"""The one write path: gapless streams, rows that equal the fold, all or nothing."""

import threading

import pytest
from django.db import IntegrityError, connections, transaction

from agents import ids
from agents.errors import NoSuchSession, StreamFull
from agents.machines.machine import Machine, Row
from agents.models import Device, Event, InboxItem, Session, Stream, Transition
from agents.services import sessions
from agents.streams import statements, tables
from agents.streams.door import door, write_batches
from agents.streams.fold import (
    FoldError,
    apply_event,
    changes_between,
    condense_changes,
    events_since,
    fold_events,
    read_rows,
    stream_snapshot,
)
from agents.streams.turn import Batch, PendingEvent, Turn
from agents.streams.verify import verify_database
from tests.constellations.runs.test_run import noop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "first", by="user:1")


def ping(session, client_id="") -> InboxItem:
    return sessions.request_submit(session.pk, "ping", client_id, {}, by="user:1")[0]


def test_a_session_is_its_stream_and_its_first_event(session):
    events = events_since(session.pk, 0)
    assert [(event["seq"], event["type"]) for event in events] == [(1, "session_created")]
    assert events[0]["data"]["add"]["session"][0]["title"] == "first"
    assert Stream.objects.get(pk=session.pk).head == 1


def test_folding_a_stream_gives_exactly_its_rows(session):
    for n in range(5):
        ping(session, f"p{n}")
    folded = fold_events(events_since(session.pk, 0))
    stored = {name: rows for name, rows in read_rows(session.pk).items() if rows}
    assert folded == stored


def test_a_snapshot_carries_the_head_it_belongs_to(session):
    ping(session)
    taken = stream_snapshot(session.pk)
    assert taken["seq"] == 2
    assert len(taken["rows"]["inbox"]) == 1


def test_events_are_read_from_a_seq_on_and_bounded(session):
    for n in range(6):
        ping(session, f"p{n}")
    assert [event["seq"] for event in events_since(session.pk, 3, limit=2)] == [4, 5]
    assert events_since(session.pk, 7) == []


def test_changes_between_two_moments_are_what_the_events_did_to_those_tables(engine, device):
    found = engine.carry_out({"tasks": [noop("a", {"n": 1}), noop("b", after=["a"]), noop("c", after=["b"])]})
    edited, stored = ("task", "constellation"), read_rows(found.session_id)
    events = events_since(found.session_id, 0)
    for cut in range(len(events)):
        rows = fold_events(events[:cut])
        changes = list(changes_between(found.session_id, cut, len(events), edited))
        for data in changes:
            apply_event(data, rows)
        assert [rows[name] for name in edited] == [stored[name] for name in edited]
    built = next(event["seq"] for event in events if event["type"] == "constellation_built")
    (fields,) = changes_between(found.session_id, built + 1, len(events), edited)
    assert {name: set(rows) for name, rows in fields["set"].items()} == {name: set(stored[name]) for name in edited}


def test_fields_that_are_set_before_a_row_goes_are_told_before_it():
    told = [{"set": {"task": {"1": {"n": 1, "m": 1}}}}, {"set": {"task": {"1": {"n": 2}}, "agent": {"5": {"n": 1}}}}]
    gone, after = {"del": {"task": [1]}}, {"set": {"task": {"2": {"n": 3}}}}
    assert list(condense_changes([*told, gone, after], ["task"])) == [{"set": {"task": {"1": {"n": 2, "m": 1}}}}, gone, after]
    assert list(condense_changes([{"set": {"agent": {"5": {"n": 1}}}}, {"add": {"agent": [{"id": 6}]}}], ["task"])) == []


def test_an_error_inside_a_door_writes_nothing(session):
    def rename_and_break() -> None:
        with door(session.pk, "user:1") as opened:
            opened.turn.record("renamed", set={"session": {str(session.pk): {"title": "second"}}})
            raise RuntimeError("halfway")

    before = read_rows(session.pk)
    with pytest.raises(RuntimeError, match="halfway"):
        rename_and_break()
    assert read_rows(session.pk) == before
    assert Stream.objects.get(pk=session.pk).head == 1


def test_what_the_database_refuses_when_a_door_closes_is_told_and_writes_nothing(session):
    def open_it_twice() -> None:
        with door(session.pk, "user:1") as opened:
            row = {"id": session.pk, "owner_id": session.owner_id, "title": "again", "created_at": opened.turn.at}
            opened.turn.record("session_created", add={"session": [row]})

    before = read_rows(session.pk)
    with pytest.raises(IntegrityError):
        open_it_twice()
    assert read_rows(session.pk) == before
    assert len(events_since(session.pk, 0)) == Stream.objects.get(pk=session.pk).head == 1
    ping(session)
    assert Stream.objects.get(pk=session.pk).head == 2


def test_a_door_to_nowhere_names_the_session(db):
    with pytest.raises(NoSuchSession, match="no session 4711"), door(4711, "user:1"):
        pass


def test_a_row_changed_twice_in_one_batch_is_written_once_with_the_last_value(session):
    with door(session.pk, "user:1") as opened:
        for title in ("second", "third"):
            opened.turn.record("renamed", set={"session": {str(session.pk): {"title": title}}})
    assert Session.objects.get().title == "third"
    assert list(verify_database()) == []


def test_a_row_added_and_removed_in_one_batch_leaves_nothing(session):
    with door(session.pk, "user:1") as opened:
        row = {
            "id": opened.take(),
            "session_id": session.pk,
            "client_id": "x",
            "kind": "ping",
            "by": "u",
            "created_at": opened.turn.at,
        }
        opened.turn.record("in", add={"inbox": [row]})
        opened.turn.record("out", delete={"inbox": [row["id"]]})
    assert InboxItem.objects.count() == 0
    assert list(verify_database()) == []


def test_times_texts_and_json_come_back_as_they_were_written(session):
    payload = {"text": "grün \u2028 '\"", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}
    with door(session.pk, "user:1") as opened:
        row = {
            "id": opened.take(), "session_id": session.pk, "client_id": "x", "kind": "ping", "by": "u",
            "payload": payload, "created_at": "2026-01-01T00:00:00.000000Z", "ended_at": "2026-01-01T00:00:00.000001Z",
        }  # fmt: skip
        opened.turn.record("in", add={"inbox": [row]})
    stored = read_rows(session.pk)["inbox"][str(row["id"])]
    assert (stored["payload"], stored["created_at"], stored["ended_at"]) == (payload, row["created_at"], row["ended_at"])
    item = InboxItem.objects.get()
    assert item.payload == payload
    assert item.ended_at.microsecond == 1
    assert InboxItem.objects.filter(ended_at__gt=item.created_at).exists()


def test_many_writers_leave_a_gapless_stream(session):
    def write_some(name: str) -> None:
        for n in range(20):
            ping(session, f"{name}{n}")
        connections.close_all()

    threads = [threading.Thread(target=write_some, args=(f"w{n}-",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seqs = list(Event.objects.filter(stream=session.pk).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, 82))
    assert list(verify_database()) == []


def batch(session, head: int, token: int | None = None, rows: int = 0) -> Batch:
    event = PendingEvent(
        "renamed", {"set": {"session": {str(session.pk): {"title": "batch"}}}}, "system", "2026-01-01T00:00:00.000000Z"
    )
    return Batch(session.pk, head, token, rows, [event])


def commit(*batches):
    with transaction.atomic():
        return write_batches(statements.current_store(), statements.raw_cursor(), list(batches))


def test_a_batch_on_an_old_head_is_refused_and_writes_nothing(session):
    written, refused = commit(batch(session, head=0))
    assert (written, len(refused)) == ([], 1)
    assert Session.objects.get().title == "first"


def test_a_batch_with_a_stale_fence_is_refused(session):
    Stream.objects.filter(pk=session.pk).update(token=2)
    _, refused = commit(batch(session, head=1, token=1))
    assert len(refused) == 1
    written, _ = commit(batch(session, head=1, token=2))
    assert len(written) == 1


def test_one_refused_batch_does_not_hold_back_the_others(session, operator):
    other = sessions.session_create(operator, "other", by="user:1")
    written, refused = commit(batch(session, head=0), batch(other, head=1))
    assert [b.stream for b in written] == [other.pk]
    assert [b.stream for b in refused] == [session.pk]


def test_a_transition_is_one_event_and_one_row_of_history(session, engine, device):
    engine.carry_out({"tasks": [{"task_id": "a", "tool": "noop"}]}, session)
    events = Event.objects.filter(type="state_changed")
    assert events.count() == Transition.objects.count() > 0
    for event in events:
        row = Transition.objects.get(stream=event.stream_id, seq=event.seq)
        assert (row.machine, row.from_state, row.to_state) == (
            event.data["machine"], event.data["from_state"], event.data["to_state"],
        )  # fmt: skip
        assert row.spent >= 0


def test_a_stream_that_is_full_says_so():
    with pytest.raises(StreamFull, match="session 7 is full"):
        ids.row_id(7, ids.CAPACITY)
    assert ids.row_range(7)[0] < ids.row_id(7, ids.CAPACITY - 1) < ids.row_range(7)[1] < 2**53


def test_an_event_about_a_row_that_is_not_there_breaks_the_fold():
    with pytest.raises(FoldError, match="inbox 5"):
        fold_events([{"data": {"set": {"inbox": {"5": {"state": "done"}}}}}])


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lambda s: Session.objects.filter(pk=s.pk).update(title="changed behind its back"), "title is"),
        (lambda s: Event.objects.filter(stream=s.pk, seq=2).delete(), "event 2 is missing"),
        (lambda s: Stream.objects.filter(pk=s.pk).update(head=9), "its head is 9"),
        (lambda s: InboxItem.objects.filter(session=s).delete(), "in the events and not in the table"),
    ],
)
def test_verify_finds_what_was_changed_behind_the_streams_back(session, spoil, finding):
    ping(session, "a")
    ping(session, "b")
    assert list(verify_database()) == []
    spoil(session)
    assert any(finding in line for line in verify_database())


def test_a_whole_number_in_a_float_column_is_no_difference(engine, device):
    engine.carry_out({"tasks": [{"task_id": "a", "tool": "noop", "timeout": 60}]})
    assert list(verify_database()) == []


def test_verify_finds_a_slot_that_nobody_holds(device):
    Device.objects.filter(pk=device.pk).update(used=2)
    assert any("2 slots are taken, 0 are held" in line for line in verify_database())


def test_a_turn_tells_how_long_a_state_lasted():
    row = {"id": 1, "state": "idle", "entered_at": "2026-01-01T00:00:00.000000Z", "reason": ""}
    turn = Turn("2026-01-01T00:00:02.500000Z", "system", lambda: 1)
    told, changes = turn.step(records_machine(), row, "Pause", reason="tea")
    assert (told["spent"], changes["state"], row["state"], row["reason"]) == (2.5, "paused", "paused", "tea")


def records_machine():
    from agents.machines import ACTOR

    return ACTOR


def test_a_transition_returns_what_its_row_of_the_table_has_carried_out():
    rows = (Row("closed", "push", "open", effects=("ring", "light")), Row("open", "pull", "closed"))
    table = Machine("gate", "closed", frozenset(), rows)
    row = {"id": 1, "state": "closed", "entered_at": "2026-01-01T00:00:00.000000Z", "reason": ""}
    turn = Turn("2026-01-01T00:00:02.500000Z", "system", lambda: 1)
    assert turn.transition(table, "gate", row, "push") == ("ring", "light")
    assert turn.transition(table, "gate", row, "pull") == ()
    assert [event.data["to_state"] for event in turn.events] == ["open", "closed"]


def test_register_table_knows_the_kinds_of_columns():
    kinds = tables.TABLES["task"].kinds
    assert (kinds["id"], kinds["confirm"], kinds["phases"], kinds["started_at"], kinds["timeout"]) == (
        "int", "bool", "json", "time", "float",
    )  # fmt: skip
