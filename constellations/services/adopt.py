"""Interactions about a graph that is there: it is reopened, or forked from a moment in its stream.

See docs/engine.md, "How work begins, and begins again". Reading and checking happen here, in a thread or a request;
`constellations.runs.begin` makes of it what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from agents import ids
from agents.clock import now_iso
from agents.models import Event
from agents.streams.fold import events_since
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.command import artifacts
from constellations.editor import editor
from constellations.editor.draft import normal_task
from constellations.editor.replacing import ENDED_BADLY, replaced
from constellations.errors import NotForked, NotReopened
from constellations.limits import FORK, REOPEN
from constellations.live.kept import read_graph
from constellations.live.live import LiveGraph
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation
from constellations.plan.tasks import DEPENDENCY_DEFAULTS
from constellations.services import mending
from constellations.services.gate_keeping import watched_now
from constellations.services.gates import with_gates

FORK_EVENTS = 500_000
"""Events of a stream that a fork reads at most."""
KEPT = ("COMPLETED", "FAILED")
"""States that a fork takes over: what had ended by itself."""
CARRIED = ("state", "reason", "result", "error", "error_kind", "accepted", "started_at", "ended_at", "untold")
GRAPH = ("constellation", "task", "dependency")

Rows = dict[str, dict[int, Fields]]


@dataclass(frozen=True)
class Wishes:
    """What is wanted of the graph: an edit, made on version `based_on`, and tasks that begin again.

    `changes` is what the edit does.
    """

    operations: Sequence[Any] = ()
    retry: Sequence[str] = ()
    reason: str = ""
    based_on: int | None = None
    changes: editor.Changes | None = None


@dataclass(frozen=True)
class Reopened:
    """A graph that has ended, as it is, and what is wanted of it."""

    live: LiveGraph
    wishes: Wishes


@dataclass(frozen=True)
class Forked:
    """A graph as it was at `seq`: the fields of its constellation and the changes that build it anew."""

    fields: Fields
    built: editor.Changes
    wishes: Wishes


def is_about(payload: Fields) -> bool:
    """Whether a payload is about a graph that is there."""
    return REOPEN in payload or FORK in payload


def prepare(payload: Fields, by: str) -> Reopened | Forked:
    """Read and check what `by` wants; raises NotReopened, NotForked, NotRetried, EditRefused, GateKept, NoSuchConstellation."""
    return reopened(payload[REOPEN], by) if REOPEN in payload else _forked(payload[FORK], by)


# Reopening


def reopened(asked: Fields, by: str) -> Reopened:
    """Raises as `prepare` does."""
    live = read_graph(asked["constellation"])
    state, name = live.constellation["state"], _name(live.constellation)
    if state not in CLOSED:
        other = "was cancelled, and stays so; fork it" if state == "CANCELLED" else "has not ended; edit it as it is"
        raise NotReopened(f"{name} {other}")
    wishes = _wishes(live, asked, by)
    if not wishes.changes and not wishes.retry:
        raise NotReopened(f"{name}: nothing to do: name tasks to retry, or give operations that change something")
    return Reopened(live, wishes)


def _wishes(live: LiveGraph, asked: Fields, by: str) -> Wishes:
    operations, retry = asked.get("operations", []), asked.get("retry", [])
    based_on = asked.get("based_on")
    changes = mending.changes_of(live, operations, retry, watched_now(), by, based_on=based_on)
    return Wishes(operations, retry, asked.get("reason", ""), based_on, changes)


def _name(constellation: Fields) -> str:
    return constellation["name"] or f"constellation {constellation['id']}"


# Forking


def _forked(asked: Fields, by: str) -> Forked:
    key, seq = asked["constellation"], asked["seq"]
    rows = graph_at(key, seq)
    source = rows["constellation"][key] | {"gates": Constellation.objects.values_list("gates", flat=True).get(pk=key)}
    tasks, gated = rows["task"].values(), frozenset(source["gates"])
    others = replaced(tasks)
    built = editor.Changes(
        added_tasks=[
            with_gates(_task(row, row["task_id"] in others, f"taken over from {key} at {seq}"), gated) for row in tasks
        ],
        added_dependencies=list(_dependencies(rows)),
    )
    live = _rehearsed(source, built)
    wishes = _wishes(live, asked, by)
    if not (live.open or live.news or wishes.changes or wishes.retry):
        raise NotForked(f"{_name(source)} at {seq}: all its tasks had ended; name tasks to retry, or give operations")
    fields = {"name": source["name"], "rules": source["rules"], "fired": source["fired"], "gates": source["gates"]}
    return Forked({**fields, "forked_from_id": key, "forked_at": seq}, built, wishes)


def _task(row: Fields, is_replaced: bool, reason: str) -> Fields:
    """What a fork's task begins with. `reason` says of one that had ended where it comes from, unless it has another.

    One that another task replaces stays as it ended, however that was: the other one does its work.
    """
    stays = row["state"] in KEPT or (is_replaced and row["state"] in ENDED_BADLY)
    kept = {name: row[name] for name in CARRIED} if stays else {"accepted": row["accepted"]}
    if "reason" in kept:
        kept["reason"] = kept["reason"] or reason
    return {**normal_task(row), **kept}


def _dependencies(rows: Rows) -> Iterator[Fields]:
    for row in rows["dependency"].values():
        ends = {end: rows["task"][row[column]]["task_id"] for end, column in (("from", "upstream_id"), ("to", "downstream_id"))}
        yield {**{name: row[name] for name in DEPENDENCY_DEFAULTS if name not in ends}, **ends}


def _rehearsed(source: Fields, built: editor.Changes) -> LiveGraph:
    """The fork in memory, as it will begin."""
    numbers = count(1)
    turn = Turn(now_iso(), FORK, lambda: next(numbers))
    row = {**source, "state": "EXECUTING", "version": 1, "added": 0, "created_at": turn.at}
    live = LiveGraph(row, lambda node: None)
    fill(live, turn, built)
    return live


def fill(live: LiveGraph, turn: Turn, built: editor.Changes) -> None:
    """Build a fork: what can never start is skipped from the beginning."""
    live.build(turn, built)
    live.evaluate(turn, [key for key, node in live.nodes.items() if not node.ended])


def hand_down_files(constellation_id: int) -> None:
    """Let a fork that has run nothing on this host have the files it inherits, before it is forked in turn."""
    line = [constellation_id]
    while (source := _forked_from(line[-1])) is not None:
        line.append(source)
    for heir, source in zip(line[-2::-1], line[:0:-1], strict=True):
        artifacts(str(heir), str(source))


def _forked_from(constellation_id: int) -> int | None:
    return Constellation.objects.values_list("forked_from_id", flat=True).get(pk=constellation_id)


def graph_at(constellation_id: int, seq: int) -> Rows:
    """Rows of the graph by table and id, as they were after event `seq` of its session; raises NotForked.

    An edit that this event is part of is there as a whole.
    """
    stream = ids.stream_of(constellation_id)
    begun = _created_at(stream, constellation_id)
    if begun is None or seq < begun:
        raise NotForked(
            f"constellation {constellation_id} was not there at event {seq}" + (f"; it began at event {begun}" if begun else "")
        )
    if seq - begun > FORK_EVENTS:
        raise NotForked(f"constellation {constellation_id} began at event {begun}; a fork reads at most {FORK_EVENTS:,} events")
    rows: Rows = {name: {} for name in GRAPH}
    for data in _between(stream, begun - 1, _edit_ends_at(stream, seq)):
        _take_up(rows, data, constellation_id)
    if not rows["task"] or rows["constellation"][constellation_id]["state"] in ("CREATED", "READY"):
        raise NotForked(f"constellation {constellation_id} was only being built at {seq}")
    return rows


def _created_at(stream: int, constellation_id: int) -> int | None:
    """The seq of the event that made it."""
    low, high = ids.row_range(stream)
    made = Event.objects.filter(id__gte=low, id__lt=high, type="constellation_created").order_by("id")
    for seq, data in made.values_list("seq", "data"):
        if any(row["id"] == constellation_id for row in data["add"]["constellation"]):
            return seq
    return None


def _edit_ends_at(stream: int, seq: int) -> int:
    """The last event of the edit that event `seq` is part of: its additions follow in pieces. Otherwise `seq`."""
    last = seq
    while page := events_since(stream, last - 1):  # the one itself, or the last piece so far, and what follows
        for event in page:
            if event["type"] != "edited" or (event["seq"] > seq and "author" in event["data"]):
                return last
            last = event["seq"]
        if len(page) == 1:
            return last
    return last


def _between(stream: int, after: int, last: int) -> Iterator[Fields]:
    """What the events after `after` say, up to `last`; raises NotForked when the stream does not reach so far."""
    while after < last:
        page = events_since(stream, after)
        if not page:
            raise NotForked(f"the stream ends at {after}; there is no event {last} yet")
        yield from (event["data"] for event in page if event["seq"] <= last)
        after = page[-1]["seq"]


def _take_up(rows: Rows, data: Fields, constellation_id: int) -> None:
    """One event's changes to the rows of this graph."""
    for name in GRAPH:
        known = rows[name]
        for row in data.get("add", {}).get(name, ()):
            if constellation_id == row["id" if name == "constellation" else "constellation_id"]:
                known[row["id"]] = TABLES[name].whole(row)
        for key, fields in data.get("set", {}).get(name, {}).items():
            if int(key) in known:
                known[int(key)].update(fields)
        for key in data.get("del", {}).get(name, ()):
            known.pop(key, None)
