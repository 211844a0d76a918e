"""One reader for all live views: gapless, bounded, woken by nudges, and not dependent on them."""

import asyncio
import threading

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection

from agents import ids
from agents.models import Event
from agents.services import sessions
from agents.streams import nudges
from agents.streams import tail as tails
from agents.streams.fold import events_since, stream_head
from agents.streams.tail import EncodedEvent, StreamMemory, StreamTail, read_events, tail
from tests.agents.conftest import record

pytestmark = pytest.mark.usefixtures("closed_connections")
DEADLINE_S = 30


def encoded(*seqs, size=10):
    return [EncodedEvent(seq, b"x" * size) for seq in seqs]


def seqs(events):
    return [event.seq for event in events]


# the memory of one stream, without a database


def test_a_memory_gives_what_follows_a_seq():
    memory = StreamMemory(head=4)
    memory.add(encoded(5, 6, 7), room=1000)
    assert memory.head == 7
    assert seqs(memory.after(4, 10, 1000)) == [5, 6, 7]
    assert seqs(memory.after(5, 1, 1000)) == [6]
    assert memory.after(3, 10, 1000) is None


def test_a_memory_without_events_sends_its_reader_to_the_database():
    assert StreamMemory(head=9).after(3, 10, 1000) is None


def test_a_memory_is_bounded_by_bytes_and_by_events(monkeypatch):
    memory = StreamMemory(head=0)
    memory.add(encoded(*range(1, 11)), room=35)
    assert (seqs(memory.events), memory.size) == ([8, 9, 10], 30)
    monkeypatch.setattr(tails, "READ_EVENTS", 2)
    memory.add(encoded(11), room=1000)
    assert (seqs(memory.events), memory.size) == ([10, 11], 20)


def test_one_event_larger_than_the_room_is_kept_and_given():
    memory = StreamMemory(head=0)
    memory.add(encoded(1, size=5000), room=100)
    assert seqs(memory.after(0, 10, 100)) == [1]


def test_a_batch_is_bounded_by_bytes():
    memory = StreamMemory(head=0)
    memory.add(encoded(1, 2, 3), room=1000)
    assert seqs(memory.after(0, 10, 25)) == [1, 2]


# with a database, from several threads


@pytest.fixture
def stream(transactional_db, operator):
    return sessions.session_create(operator, by="system").pk


@sync_to_async
def write(stream, count=1, **data):
    for _ in range(count):
        record(stream, **data)


async def collect(stream, seq, until):
    """Everything after `seq` up to `until`, in batches as they come."""
    found = []
    while not found or found[-1].seq < until:
        found += await tail().after(stream, found[-1].seq if found else seq)
    return found


async def within(work):
    async with asyncio.timeout(DEADLINE_S):
        return await work


def tail_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tail")]


async def ended():
    """The tail has stopped, because nobody follows any more, and its thread with it."""
    await asyncio.wait({tail()._task}, timeout=DEADLINE_S)
    for thread in tail_threads():
        await asyncio.to_thread(thread.join, DEADLINE_S)
    assert tail()._task.done()
    assert not tail_threads()


@pytest.mark.django_db(transaction=True)
def test_a_read_is_bounded_by_bytes_and_by_events_but_never_empty(stream):
    for _ in range(5):
        record(stream, text="x" * 1000)
    assert seqs(read_events(stream, 0)) == [1, 2, 3, 4, 5, 6]
    assert seqs(read_events(stream, 1, events=2)) == [2, 3]
    assert seqs(read_events(stream, 1, size=2500)) == [2, 3]
    assert seqs(read_events(stream, 1, size=10)) == [2]
    assert orjson.loads(read_events(stream, 1)[0].json)["data"]["text"] == "x" * 1000


@pytest.mark.django_db(transaction=True)
def test_of_what_an_event_adds_a_few_rows_are_told_and_how_many_more_there_are(stream):
    record(stream)
    Event.objects.filter(pk=ids.row_id(stream, 2)).update(
        data={"add": {"task": [{"id": key} for key in range(5)], "dependency": [{"id": 1}]}, "text": "built"}
    )
    record(stream, text="after it")
    found = [read_events(stream, 1)[0], *read_events(stream, 1, most_rows=2)]
    whole, cut, after = (orjson.loads(event.json) for event in found)
    assert "left_out" not in whole
    assert len(whole["data"]["add"]["task"]) == 5
    assert cut["data"] == {"add": {"task": [{"id": 0}, {"id": 1}], "dependency": [{"id": 1}]}, "text": "built"}
    assert cut["left_out"] == {"task": 3}
    assert "left_out" not in after
    assert {key: cut[key] for key in ("seq", "type", "at", "by")} == {key: whole[key] for key in ("seq", "type", "at", "by")}


def test_what_is_sent_is_what_is_read(stream):
    record(stream, text='Zürich "\\" \u2028', nothing=None, rows=[{"b": 1.5, "a": [True, {}]}])
    sent = read_events(stream, 0)
    assert [orjson.loads(event.json) for event in sent] == events_since(stream, 0)
    assert [event.type for event in sent] == [event["type"] for event in events_since(stream, 0)]
    assert all(event.json == orjson.dumps(orjson.loads(event.json)) for event in sent)


async def test_a_follower_gets_events_as_they_are_committed(stream):
    with tail().follow(stream, 1):
        for seq in (2, 3):
            waiting = asyncio.create_task(tail().after(stream, seq - 1))
            await write(stream)
            assert seqs(await within(waiting)) == [seq]
    await ended()


async def test_a_lost_nudge_costs_one_look_and_no_event(stream, monkeypatch):
    monkeypatch.setattr(nudges, "send_nudge", lambda heads: None)
    with tail().follow(stream, 1):
        await write(stream, 3)
        assert seqs(await within(collect(stream, 1, 4))) == [2, 3, 4]
    await ended()


async def test_a_doubled_or_false_nudge_does_no_harm(stream):
    with tail().follow(stream, 1):
        await sync_to_async(nudges.send_nudge)({stream: 1, stream + 1: 7})
        await sync_to_async(nudges.send_nudge)({stream: 99})
        await write(stream, 2)
        await sync_to_async(nudges.send_nudge)({stream: 3})
        assert seqs(await within(collect(stream, 1, 3))) == [2, 3]
    await ended()


async def test_followers_at_different_places_get_the_same_gapless_stream(stream):
    await write(stream, 5)
    with tail().follow(stream, 6):
        places = (0, 3, 6)
        waiting = [asyncio.create_task(collect(stream, seq, 1206)) for seq in places]
        await write(stream, 1200)
        for seq, found in zip(places, await asyncio.gather(*waiting), strict=True):
            assert seqs(found) == list(range(seq + 1, 1207))
    await ended()


async def test_a_hundred_followers_cost_one_read_of_an_event_and_one_thread(stream, monkeypatch):
    reads = []
    monkeypatch.setattr(tails, "read_events", lambda *arguments: reads.append(arguments) or read_events(*arguments))
    with tail().follow(stream, 1):
        waiting = [asyncio.create_task(tail().after(stream, 1)) for _ in range(100)]
        await write(stream)
        assert {tuple(seqs(found)) for found in await within(asyncio.gather(*waiting))} == {(2,)}
        assert len(reads) == 1
        assert len(tail_threads()) == 1
    await ended()


async def test_a_lost_database_is_asked_again_with_a_new_connection(stream, monkeypatch):
    failures = [OperationalError("gone"), OperationalError("still gone")]
    connections = []

    def unreliable(*arguments):
        connection.ensure_connection()
        connections.append(connection.connection)
        if failures:
            raise failures.pop()
        return read_events(*arguments)

    monkeypatch.setattr(tails, "read_events", unreliable)
    with tail().follow(stream, 1):
        await write(stream)
        assert seqs(await within(tail().after(stream, 1))) == [2]
    await ended()
    assert len({id(each) for each in connections[:3]}) == 3


async def test_the_tail_holds_no_transaction_open(stream):
    states = []
    with tail().follow(stream, 1):
        await write(stream)
        await within(tail().after(stream, 1))
        thread = tail()._thread
        states.append(
            await asyncio.wrap_future(thread.submit(lambda: (connection.in_atomic_block, connection.get_autocommit())))
        )
        raw = await asyncio.wrap_future(thread.submit(lambda: connection.connection))
        open_transaction = raw.in_transaction if connection.vendor == "sqlite" else raw.info.transaction_status
        assert not open_transaction
    assert states == [(False, True)]
    await ended()


async def test_the_tail_stops_with_its_last_follower_and_starts_again(stream):
    for _ in range(2):
        with tail().follow(stream, 1), tail().follow(stream, 1):
            await write(stream)
            await within(tail().after(stream, await sync_to_async(stream_head)(stream) - 1))
        await ended()
        assert tail()._streams == {}
        assert not list(nudges.listeners_dir().iterdir())


async def test_followers_of_a_tail_that_breaks_are_told(stream, monkeypatch):
    async def broken(self):
        raise RuntimeError("a bug")

    monkeypatch.setattr(StreamTail, "_take_up", broken)
    with tail().follow(stream, 1):
        with pytest.raises(tails.TailEnded):
            await within(tail().after(stream, 1))
        task = tail()._task
    assert isinstance(task.exception(), RuntimeError)


async def test_one_who_comes_while_the_tail_ends_waits_without_holding_up_the_loop(stream):
    """The end of a run wakes whoever follows by then: also somebody who has come for the next run."""
    with tail().follow(stream, 1):
        tail()._wake_all()
        assert not tail()._streams[stream].moved.is_set()
        waiting = asyncio.create_task(tail().after(stream, 1))
        await asyncio.sleep(0)
        assert not waiting.done()
        await write(stream)
        assert seqs(await within(waiting)) == [2]
    await ended()
