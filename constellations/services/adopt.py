"""Interactions about a graph that is there: it is reopened, or forked from a moment in its stream.

See docs/engine.md, "How work begins, and begins again". Reading and checking happen here, in a thread or a request;
`constellations.runs.begin` makes of it what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from agents import ids
from agents.clock import now_iso
from agents.models import Event
from agents.streams.fold import events_since
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.command import artifacts_folder
from constellations.editor import editor
from constellations.editor.draft import normal_task
from constellations.editor.replacing import ENDED_BADLY, replacements_of
from constellations.errors import NotForked, NotReopened
from constellations.limits import FORK, REOPEN
from constellations.live.kept import read_graph
from constellations.live.live import LiveGraph
from constellations.live.row_types import ConstellationRow
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation
from constellations.plan.tasks import DEPENDENCY_DEFAULTS
from constellations.services import mending
from constellations.services.gates.keeping import watched_now
from constellations.services.gates.openings import with_gates

FORK_EVENTS = 500_000
"""Events of a stream that a fork reads at most."""
KEPT = ("COMPLETED", "FAILED")
"""States that a fork takes over: what had ended by itself."""
CARRIED = ("state", "reason", "result", "error", "error_kind", "accepted", "started_at", "ended_at", "untold")
GRAPH = ("constellation", "task", "dependency")

Rows = dict[str, dict[int, Fields]]


@dataclass(frozen=True)
class FollowUp:
    """What is wanted of the graph: an edit, made on version `based_on`, and tasks that begin again.

    `changes` is what the edit does.
    """

    operations: Sequence[Any] = ()
    retry: Sequence[str] = ()
    reason: str = ""
    based_on: int | None = None
    changes: editor.Changes | None = None


@dataclass(frozen=True)
class ReopenedGraph:
    """A graph that has ended, as it is, and what is wanted of it."""

    live: LiveGraph
    follow_up: FollowUp


@dataclass(frozen=True)
class ForkedGraph:
    """A graph as it was at `seq`: the fields of its constellation and the changes that build it anew."""

    fields: Fields
    built: editor.Changes
    follow_up: FollowUp


def is_about(payload: Fields) -> bool:
    """Whether a payload is about a graph that is there."""
    return REOPEN in payload or FORK in payload


def prepare_follow_up(payload: Fields, by: str) -> ReopenedGraph | ForkedGraph:
    """Read and check what `by` wants; raises NotReopened, NotForked, NotRetried, EditRefused, GateKept, NoSuchConstellation."""
    return read_reopened(payload[REOPEN], by) if REOPEN in payload else _forked(payload[FORK], by)


@dataclass(frozen=True)
class CheckedFollowUp:
    """A payload about a graph that is there, which can begin as that graph is now."""

    payload: Fields

    def name(self) -> str:
        """Its graph has the name, in a session that is there."""
        return ""

    def runs_commands(self) -> bool:
        """The graph may hold commands; nobody looks."""
        return True

    def refuse_for(self, owner: int) -> None:
        """Its tasks are those of a graph that is there; none gets a device that its session's owner may not use."""

    def lets_unasked(self) -> str:
        """Its tasks are those of a graph that is there."""
        return ""

    def keep(self, interaction: int) -> None:
        """Nothing is written down: when its turn comes, the graph may be another one."""


# Reopening


def read_reopened(asked: Fields, by: str) -> ReopenedGraph:
    """Raises as `prepare_follow_up` does."""
    live = read_graph(asked["constellation"])
    state, name = live.constellation["state"], _name(live.constellation)
    if state not in CLOSED:
        other = "was cancelled, and stays so; fork it" if state == "CANCELLED" else "has not ended; edit it as it is"
        raise NotReopened(f"{name} {other}")
    follow_up = _read_follow_up(live, asked, by)
    if not follow_up.changes and not follow_up.retry:
        raise NotReopened(f"{name}: nothing to do: name tasks to retry, or give operations that change something")
    return ReopenedGraph(live, follow_up)


def _read_follow_up(live: LiveGraph, asked: Fields, by: str) -> FollowUp:
    operations, retry = asked.get("operations", []), asked.get("retry", [])
    based_on = asked.get("based_on")
    changes = mending.decide_mending(live, operations, retry, watched_now(), by, based_on=based_on)
    return FollowUp(operations, retry, asked.get("reason", ""), based_on, changes)


def _name(constellation: Mapping[str, Any]) -> str:
    return constellation["name"] or f"constellation {constellation['id']}"


# Forking


def _forked(asked: Fields, by: str) -> ForkedGraph:
    key, seq = asked["constellation"], asked["seq"]
    rows = graph_at(key, seq)
    source = rows["constellation"][key] | {"gates": Constellation.objects.values_list("gates", flat=True).get(pk=key)}
    tasks, gated = rows["task"], frozenset(source["gates"])
    others = replacements_of(tasks.values())
    built = editor.Changes()
    for row in tasks.values():
        begun = _fork_task(row, row["task_id"] in others, f"taken over from {key} at {seq}")
        built.added_tasks.append(with_gates(begun, gated))
    for row in rows["dependency"].values():
        ends = {"from": tasks[row["upstream_id"]]["task_id"], "to": tasks[row["downstream_id"]]["task_id"]}
        built.added_dependencies.append({name: row[name] for name in DEPENDENCY_DEFAULTS if name not in ends} | ends)
    numbers = count(1)
    turn = Turn(now_iso(), FORK, lambda: next(numbers))  # nobody records it: the fork in memory, as it will begin
    begins = {**source, "state": "EXECUTING", "version": 1, "added": 0, "created_at": turn.at}
    live = LiveGraph(cast(ConstellationRow, begins), lambda node: None)
    fill_fork(live, turn, built)
    follow_up = _read_follow_up(live, asked, by)
    if not (live.open or live.news or follow_up.changes or follow_up.retry):
        raise NotForked(f"{_name(source)} at {seq}: all its tasks had ended; name tasks to retry, or give operations")
    fields = {name: source[name] for name in ("name", "rules", "fired", "gates", "model_profiles")}
    fields |= {name: source[name] for name in ("max_concurrent", "assignment") if name in source}  # those of before have none
    return ForkedGraph({**fields, "forked_from_id": key, "forked_at": seq}, built, follow_up)


def _fork_task(row: Fields, is_replaced: bool, reason: str) -> Fields:
    """What a fork's task begins with. `reason` says of one that had ended where it comes from, unless it has another.

    One that another task replaces stays as it ended, however that was: the other one does its work.
    """
    stays = row["state"] in KEPT or (is_replaced and row["state"] in ENDED_BADLY)
    kept = {name: row[name] for name in CARRIED} if stays else {"accepted": row["accepted"]}
    if "reason" in kept:
        kept["reason"] = kept["reason"] or reason
    return {**normal_task(row), **kept}


def fill_fork(live: LiveGraph, turn: Turn, built: editor.Changes) -> None:
    """Build a fork: what can never start is skipped from the beginning."""
    live.build(turn, built)
    live.evaluate(turn, [key for key, node in live.nodes.items() if not node.ended])


def hand_down_files(constellation_id: int) -> None:
    """Let a fork that has run nothing on this host have the files it inherits, before it is forked in turn."""
    line, source_of = [constellation_id], Constellation.objects.values_list("forked_from_id", flat=True)
    while (source := source_of.get(pk=line[-1])) is not None:
        line.append(source)
    for heir, source in zip(line[-2::-1], line[:0:-1], strict=True):
        artifacts_folder(str(heir), str(source))


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
        _apply_event(rows, data, constellation_id)
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


def _apply_event(rows: Rows, data: Fields, constellation_id: int) -> None:
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
