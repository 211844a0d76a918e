"""A constellation's graph read from its rows, as it is at this moment, and kept for the next edit of the same process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from django.db import connection

from agents import ids
from agents.errors import NoSuchSession
from agents.streams.door import Door, door
from agents.streams.fold import changes_between, consistent_read, stream_head
from agents.streams.garbage import note_rows_made, nothing_collected
from agents.streams.tables import fold_rows
from constellations.errors import ConstellationsError, NoSuchConstellation
from constellations.live.live import LiveGraph
from constellations.live.row_types import ConstellationRow

EVENTS_BEHIND = 1_000
EVENTS_A_TASK = 2
"""A graph that was read so many events ago, or so many for each of its tasks, is followed up; an older one is read anew."""
EVENTS_UNDER_LOCK = 50
CATCH_UPS = 4
"""A graph is followed up before the lock is taken, so often at most, unless so few events are left to be read under it."""
OF_A_GRAPH = ("constellation", "task", "dependency")
"""Tables of which a graph is made."""
KEPT_GRAPHS = 4
KEPT_TASKS = 12_000
"""Graphs that a process keeps between edits, and tasks in all of them: about 4 kB each."""


@dataclass(frozen=True)
class GraphReadAhead:
    """A graph, and the head of its session's stream when it was read; None: not both at one moment."""

    live: LiveGraph
    head: int | None


class KeptGraphs:
    """Graphs of the last edits. Whoever edits takes a graph out, so that no two threads have the same one."""

    def __init__(self) -> None:
        self._graphs: OrderedDict[int, GraphReadAhead] = OrderedDict()
        self._lock = Lock()

    def take(self, constellation_id: int) -> GraphReadAhead | None:
        with self._lock:
            return self._graphs.pop(constellation_id, None)

    def put(self, ahead: GraphReadAhead) -> None:
        """Keep it; those used longest ago go when there are too many."""
        with self._lock:
            self._graphs[ahead.live.constellation["id"]] = ahead
            while len(self._graphs) > KEPT_GRAPHS or sum(len(kept.live.nodes) for kept in self._graphs.values()) > KEPT_TASKS:
                _, oldest = self._graphs.popitem(last=False)
                oldest.live.release()


KEPT = KeptGraphs()


@contextmanager
def graph_opened(constellation_id: int, by: str, request_id: str = "") -> Iterator[tuple[Door, LiveGraph]]:
    """The newest graph under its session's lock, for one change. Raises NoSuchConstellation.

    It is read before the lock is taken, so that nobody waits meanwhile, or is the one of this process's last edit, followed up.
    """
    stream = ids.stream_of(constellation_id)
    opened: Door | None = None
    live: LiveGraph | None = None
    try:
        ahead = read_ahead(constellation_id)
        with door(stream, by, request_id) as opened:
            live = newest_graph(opened, ahead)
            yield opened, live
    except NoSuchSession as error:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}") from error
    except ConstellationsError:
        if opened is not None and live is not None and not opened.turn.events:  # refused before anything was done to it
            _keep(live, opened.head)
        raise
    _keep(live, opened.head + len(opened.turn.events))


def read_ahead(constellation_id: int) -> GraphReadAhead:
    """The graph before its lock is taken, so that nobody waits while it is read. Raises as read_graph, and NoSuchSession."""
    stream = ids.stream_of(constellation_id)
    seen = stream_head(stream)
    if connection.in_atomic_block:
        return GraphReadAhead(read_graph(constellation_id), None)
    kept = KEPT.take(constellation_id)
    if kept is None or not _is_of(kept, constellation_id, seen):
        kept, seen = _read(constellation_id, stream), stream_head(stream)
    return _caught_up(kept, stream, seen)


def _read(constellation_id: int, stream: int) -> GraphReadAhead:
    with consistent_read():
        seen = stream_head(stream)
        return GraphReadAhead(read_graph(constellation_id), seen)


def _caught_up(ahead: GraphReadAhead, stream: int, seen: int) -> GraphReadAhead:
    """While a graph is read a runner goes on; the next look finds less that is new.

    Events up to a head are there when the head is, and never change: they need not be read at one moment with it.
    """
    for _ in range(CATCH_UPS):
        missed = seen - (ahead.head or 0)
        if missed <= EVENTS_UNDER_LOCK:
            break
        if missed > _far(ahead.live):
            ahead.live.release()
            ahead = _read(ahead.live.constellation["id"], stream)
        else:
            ahead = GraphReadAhead(_brought_to(ahead, stream, seen), seen)
        seen = stream_head(stream)
    return ahead


def _far(live: LiveGraph) -> int:
    """Events after which a graph is read anew rather than followed."""
    return max(EVENTS_BEHIND, EVENTS_A_TASK * len(live.nodes))


def newest_graph(opened: Door, ahead: GraphReadAhead) -> LiveGraph:
    """The graph under the lock: what was read ahead, with what has happened since."""
    return _brought_to(ahead, opened.stream, opened.head)


def _keep(live: LiveGraph, seen: int) -> None:
    """Unless the change is part of a larger transaction, which may come to nothing."""
    if not connection.in_atomic_block:
        KEPT.put(GraphReadAhead(live, seen))


def _is_of(kept: GraphReadAhead, constellation_id: int, seen: int) -> bool:
    """Whether a kept graph is of the constellation that has this id now: a database may have been put back."""
    found: list[ConstellationRow] = fold_rows("constellation", "id = %s", constellation_id)
    same = bool(found) and found[0]["created_at"] == kept.live.constellation["created_at"]
    return same and kept.head is not None and kept.head <= seen


def _brought_to(ahead: GraphReadAhead, stream: int, seen: int) -> LiveGraph:
    live = ahead.live
    missed = 0 if ahead.head is None else seen - ahead.head
    if ahead.head is None or missed > _far(live):
        live.release()
        return read_graph(live.constellation["id"])
    if missed:
        with nothing_collected():
            live.catch_up(changes_between(stream, ahead.head, seen, OF_A_GRAPH))
    return live


def graph_copied(constellation_id: int) -> LiveGraph:
    """The newest graph for somebody who spoils it: of the one that is kept, or is kept from now on, a copy.

    Call it inside `consistent_read`. Raises NoSuchConstellation.
    """
    if connection.in_atomic_block:
        return read_graph(constellation_id)
    stream = ids.stream_of(constellation_id)
    try:
        seen = stream_head(stream)
    except NoSuchSession as error:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}") from error
    kept = KEPT.take(constellation_id)
    if kept is None or not _is_of(kept, constellation_id, seen):
        kept = GraphReadAhead(read_graph(constellation_id), seen)
    live = _brought_to(kept, stream, seen)
    with nothing_collected():
        copied = live.copy()
    _keep(live, seen)
    return copied


def read_graph(constellation_id: int) -> LiveGraph:
    """The graph by itself: nobody is told what becomes ready in it. Raises NoSuchConstellation.

    Read it inside a door to change it, inside `consistent_read` to look at it.
    """
    found: list[ConstellationRow] = fold_rows("constellation", "id = %s", constellation_id)
    if not found:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}")
    live = LiveGraph(found[0], lambda node: None)  # the session's owner notices by itself that the head has moved
    of_it = "constellation_id = %s"
    with nothing_collected():
        live.load(fold_rows("task", of_it, constellation_id), fold_rows("dependency", of_it, constellation_id))
        note_rows_made(len(live.nodes))
    return live
