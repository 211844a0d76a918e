"""A constellation's graph read from its rows, as it is at this moment."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from agents import ids
from agents.records import Door
from agents.replay import consistent_read, events_since, head
from agents.storage import cursor, store
from agents.tables import TABLES, Fields
from constellations.errors import NoSuchConstellation
from constellations.live import LiveGraph, Node

EVENTS_BEHIND = 1_000
"""A graph that was read so many events ago is followed up; an older one is read anew."""


@dataclass(frozen=True)
class Ahead:
    """A graph, and the head of its session's stream when it was read; None: not both at one moment."""

    live: LiveGraph
    head: int | None


def read_ahead(constellation_id: int) -> Ahead:
    """The graph before its lock is taken, so that nobody waits while it is read. Raises as read_graph, and NoSuchSession."""
    stream, within = ids.stream_of(constellation_id), connection.in_atomic_block
    with consistent_read():
        seen = head(stream)
        return Ahead(read_graph(constellation_id), None if within else seen)


def newest(opened: Door, ahead: Ahead) -> LiveGraph:
    """The graph under the lock: what was read ahead, with what has happened since."""
    missed = 0 if ahead.head is None else opened.head - ahead.head
    if ahead.head is None or missed > EVENTS_BEHIND:
        return read_graph(ahead.live.constellation["id"])
    if missed:
        ahead.live.take_up(event["data"] for event in events_since(opened.stream, ahead.head, missed))
    return ahead.live


def read_graph(constellation_id: int) -> LiveGraph:
    """The graph by itself: nobody is told what becomes ready in it. Raises NoSuchConstellation.

    Read it inside a door to change it, inside `consistent_read` to look at it.
    """
    found = rows("constellation", "id = %s", constellation_id)
    if not found:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}")
    live = LiveGraph(found[0], _tell_nobody)
    of_it = "constellation_id = %s"
    live.load(rows("task", of_it, constellation_id), rows("dependency", of_it, constellation_id))
    return live


def rows(table: str, where: str, *parameters: int) -> list[Fields]:
    """Rows of the fold, oldest first."""
    known = TABLES[table]
    names = [name for name, _ in known.columns]
    found = store().select(cursor(), known.db_table, known.columns, where, parameters)
    return [dict(zip(names, row, strict=True)) for row in found]


def _tell_nobody(node: Node) -> None:
    """The session's owner notices by itself that the head has moved."""
