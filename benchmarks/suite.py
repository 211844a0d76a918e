"""The benchmarks: each is a function from a run to rows. What each measures: docs/benchmarks.md."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks import alive, dashboard, fleet, models
from benchmarks.entrance import entrance
from benchmarks.machine import memory
from benchmarks.places import Ground, Place
from benchmarks.report import Row

SETTLE_S = 1.0
"""A web server is called idle so long after it has started."""


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    runs: int
    layered: tuple[int, ...]
    raw: int
    chain: int
    pauses: int
    transitions: int
    agents: int
    sessions: int
    trials: int
    commits: int
    kill: int
    busy: int
    waiting: int
    warm: int
    settle: float
    waits: tuple[tuple[str, ...], ...]
    edited: int
    operations: int
    built: tuple[int, ...]
    crowd: tuple[int, int, int]
    """Runs, tasks of each, websockets that watch them."""
    judged: int
    """Steps behind a judgement of being stuck."""
    minds: int
    """Agents that wait for a model."""
    idle_devices: int
    """Idle devices that have dialled in."""
    fleet: tuple[int, int, int]
    """Devices, sessions, tasks of each."""
    graphs: tuple[int, int]
    """Tasks of the graphs that the dashboard shows."""
    views: int
    """How often each is opened."""
    watched: float
    """Seconds for which a page that shows a run is watched."""
    open: float
    """Seconds for which a page stays open."""
    past: int
    """Tasks of the session in whose past moments are looked for; each has four events."""


FULL = Size(
    3, (1000, 10_000), 10_000, 200, 40, 10_000, 200, 200, 40, 200, 1000, 50, 500, 12, 2.0, (("sessions",), ("tasks",)),
    1000, 50, (1000, 10_000), (20, 200, 30), 1000, 500, 1_000,
    (200, 10, 200), (2_000, 10_000), 3, 8.0, 600.0, 12_500,
)  # fmt: skip
SMOKE = Size(
    1,
    (300,),
    1000,
    30,
    5,
    300,
    20,
    10,
    4,
    20,
    300,
    5,
    12,
    2,
    0.2,
    (("sessions", "tasks"),),
    200,
    12,
    (200,),
    (2, 20, 3),
    100,
    50,
    20,
    (20, 3, 20),
    (60, 300),
    1,
    2.0,
    3.0,
    100,
)


class Run:
    """All benchmarks of one database: where, how much, and the raw limits, measured once when first asked for."""

    def __init__(self, ground: Ground, size: Size, rows: Sequence[str] = dashboard.ROWS):
        """`rows`: what is measured of the dashboard."""
        self.ground, self.size, self.rows, self.database = ground, size, rows, ground.database

    def row(self, what: str, value: float, unit: str, **more: Any) -> Row:
        return Row(self.database, what, value, unit, **more)

    def latency(self, what: str, seconds: list[float], target: str = "", beside: str = "") -> Row:
        """The 95th percentile in ms."""
        times = [one * 1000 for one in seconds]
        p95 = statistics.quantiles(times, n=20, method="inclusive")[-1]
        note = f"p50 {statistics.median(times):.1f}, most {max(times):.1f} ms, of {len(times)}{beside and f'; {beside}'}"
        return self.row(f"{what}, p95", p95, "ms", target=target, note=note)

    def median(self, function: str, by: str, settings: dict[str, str] | None = None, **arguments: Any) -> dict:
        """The median run by one of its numbers; each in a place and a process of its own."""
        results = []
        for _ in range(self.size.runs):
            with self.ground.place(**(settings or {})) as place:
                results.append(place.call(function, **arguments))
        return sorted(results, key=lambda result: result[by])[len(results) // 2]

    @cached_property
    def limits(self) -> dict[str, float]:
        """Two workers that only write: tasks/s with two commits a task and grouped, seconds of a hop."""
        with self.ground.place() as place:
            return place.call("raw.measure", tasks=self.size.raw)

    @cached_property
    def same_rows(self) -> float:
        """Tasks/s of one raw writer that writes the rows which the engine wrote."""
        with self.ground.place() as place:
            place.call("graphs.layered", tasks=self.size.layered[-1])
            with self.ground.place(like=place) as copy:
                return copy.call("replay.tasks")["rate"]

    @cached_property
    def same_transitions(self) -> dict[str, float]:
        """Transitions/s of one raw writer, a commit each and a commit for all agents."""
        with self.ground.place() as place:
            return place.call("transitions.raw", count=self.size.transitions, group=self.size.agents)


def limits(run: Run) -> Iterator[Row]:
    yield run.row("raw: two woken workers, two commits a task", run.limits["single"], "tasks/s")
    yield run.row("raw: the same, grouped by 64", run.limits["grouped"], "tasks/s")
    yield run.row("raw: one writer, the engine's own rows", run.same_rows, "tasks/s")
    yield run.row("raw: a hop from worker to worker, with a commit", run.limits["hop"] * 1000, "ms")
    yield run.row("raw: one writer, transitions, a commit each", run.same_transitions["single"], "transitions/s")
    yield run.row("raw: the same, grouped", run.same_transitions["grouped"], "transitions/s")


def layered(run: Run) -> Iterator[Row]:
    bounds = {"two commits": run.limits["single"], "grouped": run.limits["grouped"], "same rows": run.same_rows}
    for tasks in run.size.layered:
        found = run.median("graphs.layered", "wall", tasks=tasks)
        note = (
            f"{found['records']:.1f} records and {found['bytes']:,.0f} bytes a task, {found['commits']} commits,"
            f" {found['cpu'] / tasks * 1000:.3f} ms CPU a task"
        )
        yield run.row(
            f"layered, {tasks:,} no-ops", tasks / found["wall"], "tasks/s", target="layered", limits=bounds, note=note
        )
        yield run.row(f"layered, {tasks:,} no-ops, posting, reading and building included", tasks / found["whole"], "tasks/s")
    tasks = run.size.layered[0]
    found = run.median("graphs.layered", "wall", {"ORRERY_POWER_SAFE": "1"}, tasks=tasks)
    yield run.row(f"layered, {tasks:,} no-ops, power-safe", tasks / found["wall"], "tasks/s")


def chain(run: Run) -> Iterator[Row]:
    found = run.median("graphs.chain", "median", tasks=run.size.chain)
    bound = {"hop": run.limits["hop"] * 1000}
    note = f"p95 {found['p95'] * 1000:.2f} ms, wall a task {found['hop'] * 1000:.2f} ms"
    what = f"chain of {run.size.chain} no-ops, median gap from body to body"
    yield run.row(what, found["median"] * 1000, "ms", target="chain", limits=bound, note=note)


def pauses(run: Run) -> Iterator[Row]:
    found = run.median("graphs.pauses", "wall", tasks=run.size.pauses, seconds=0.01)
    yield run.row(f"chain of {run.size.pauses} tasks of 10 ms", found["wall"], "s", target="pauses" if run.size is FULL else "")


def transitions(run: Run) -> Iterator[Row]:
    size, bound = run.size, run.same_transitions
    one = run.median("transitions.measure", "rate", agents=1, rounds=size.transitions)
    what = f"one agent, {size.transitions:,} transitions, a commit each"
    yield run.row(what, one["rate"], "transitions/s", target="one agent", limits={"same rows": bound["single"]})
    rounds = max(1, 5 * size.transitions // size.agents)
    many = run.median("transitions.measure", "rate", agents=size.agents, rounds=rounds)
    what = f"{size.agents} agents at once"
    yield run.row(what, many["rate"], "transitions/s", target="many agents", limits={"same rows": bound["grouped"]})
    whole = run.median("graphs.sessions", "rate", count=size.sessions, tasks=10)
    yield run.row(f"{size.sessions} sessions at once, the whole engine", whole["rate"], "transitions/s")


def post(run: Run) -> Iterator[Row]:
    trials = run.size.trials
    with run.ground.place() as place, place.process("runners.serve") as runner:
        runner.read()
        yield run.latency("post > first task, session held", place.call("wakeups.alive", trials=trials), "post, alive")
        yield run.latency("post > first task, session given back", place.call("wakeups.asleep", trials=trials), "post, asleep")
        with place.web() as (port, _):
            times = place.call("wakeups.over_http", trials=trials, port=port, token=place.furniture["token"])
        yield run.latency("post > first task, over HTTP", times, "post, alive")


def websocket(run: Run) -> Iterator[Row]:
    with run.ground.place() as place, place.web() as (port, _):
        arguments = {"count": run.size.commits, "port": port, "token": place.furniture["token"]}
        yield run.latency("commit > websocket, idle", place.call("live.commits", **arguments), "websocket")
        with place.process("runners.serve") as runner:
            runner.read()
            place.call("graphs.prepare", tasks=run.size.layered[-1])
            yield run.latency("commit > websocket, beside a run", place.call("live.commits", **arguments), "websocket")


def edits(run: Run) -> Iterator[Row]:
    """Of a graph at rest: nobody else writes."""
    size = run.size
    with run.ground.place() as place:
        found = place.call("edits.measure", tasks=size.edited, operations=size.operations, trials=size.trials)
    what = f"edit of {size.operations} operations on {size.edited:,} tasks"
    yield run.latency(f"{what}: applied", found["applied"], "edit")
    yield run.latency(f"{what}: previewed", found["previewed"], "edit")


def foreign(run: Run) -> Iterator[Row]:
    """With and without another process that edits, in turn, so that both meet the same machine."""
    tasks, alone, beside, waits, refused = run.size.layered[-1], [], [], [], 0
    for _ in range(run.size.runs):
        with run.ground.place() as place:
            alone.append(place.call("graphs.layered", tasks=tasks)["wall"])
        with run.ground.place() as place:
            session = place.call("graphs.prepare", tasks=tasks)
            with place.process("foreign.edits", session=session, tasks=tasks) as editor:
                editor.read()
                beside.append(place.call("graphs.layered", tasks=tasks, session=session)["wall"])
                found = editor.read()
                waits.append(found["took"])
                refused += found["refused"]
    loss = (1 - statistics.median(alone) / statistics.median(beside)) * 100
    count = sum(len(took) for took in waits)
    note = f"{count} edits in {len(beside)} runs, {refused} of them refused"
    yield run.row("20 edits/s during a run: loss of tasks/s", loss, "%", target="foreign, loss", note=note)
    first = max((took[0] for took in waits if took), default=0.0) * 1000
    later = [one * 1000 for took in waits for one in took[1:]] or [0.0]
    note = f"p50 {statistics.median(later):.1f} ms; the first of a process, which reads the graph, at most {first:.0f} ms"
    yield run.row("20 edits/s during a run: longest wait", max(later), "ms", target="foreign, wait", note=note)


def kill(run: Run) -> Iterator[Row]:
    for runners, what in ((2, "another runner lives"), (1, "a new one is started")):
        with run.ground.place() as place:
            found = place.call("kills.measure", tasks=run.size.kill, runners=runners)
        note = f"after {found['before']} of {run.size.kill} bodies; {found['twice']} bodies ran twice; {_verified(found)}"
        yield run.row(f"kill -9, {what}: first body after it", found["first"], "s", target="kill, first", note=note)
        yield run.row(f"kill -9, {what}: finished tasks run again", found["again"], "tasks", target="kill, again")


def masking(run: Run) -> Iterator[Row]:
    """100 known values beside the forms of keys."""
    with run.ground.place() as place:
        found = place.call("masking.measure", tasks=run.size.layered[0])
    of = f"of {found['events']:,} events, {found['bytes'] / found['events']:.0f} bytes each"
    yield run.row("mask, a text without secrets", found["clean"], "MB/s", note=f"made ready in {found['made'] * 1000:.0f} ms")
    yield run.row("mask, event by event", found["each"], "MB/s", note=of)
    yield run.row("mask, a key in each event", found["planted"], "MB/s")
    bound = {"without the mask": found["plain"]}
    yield run.row("events read and encoded for clients", found["masked"], "events/s", limits=bound)


def stuck(run: Run) -> Iterator[Row]:
    """Work that is never stuck, of the dearer kinds; by the processor's time."""
    with run.ground.place() as place:
        found = place.call("stuck.measure", steps=run.size.judged, again=10 * run.size.judged)
    note = f"99 in 100 under {found['p99']:.0f} µs; the shape of an answer of 40 lines {found['shape']:.0f} µs"
    yield run.row(f"judgement of being stuck, {run.size.judged:,} steps behind it, median", found["median"], "µs", note=note)
    yield run.row("memory of a tool loop, as JSON", found["bytes"] / 1000, "kB")
    yield run.row(f"a loop of {10 * run.size.judged:,} rows read again", found["reading"], "s")


def _verified(found: dict) -> str:
    return f"verify: {'; '.join(found['findings'])}" if found["findings"] else "verify finds nothing"


def memory_taken(run: Run) -> Iterator[Row]:
    tasks = run.size.layered[-1]
    with run.ground.place() as place:
        with place.process("runners.serve") as runner:
            runner.read()
            found = place.call("memory.watch", pid=runner.pid, tasks=tasks)
        note = f"proportional {found['pss']:.0f} MB"
        yield run.row(f"memory of a runner, {tasks:,} tasks, peak", found["rss"], "MB", target="memory, runner", note=note)
        yield _idle_web(run, place)


def _idle_web(run: Run, place: Place) -> Row:
    with place.web() as (_, pid):
        time.sleep(SETTLE_S)
        rss, pss = memory(pid)
    return run.row("memory of an idle web process", rss, "MB", target="memory, web", note=f"proportional {pss:.0f} MB")


def large_edits(run: Run) -> Iterator[Row]:
    """Of a small graph at rest; others wait for most of the time, on SQLite whoever else writes."""
    for tasks in run.size.built:
        for shape in ("chain", "star"):
            with run.ground.place() as place:
                found = place.call("edits.build", tasks=tasks, shape=shape)
            then = f"undone in {found['undone']:.2f} s, made again in {found['redone']:.2f} s"
            note = f"at most {found['locked']:.2f} s of it under the lock; {then}"
            yield run.row(f"edit that adds {tasks:,} tasks as a {shape}", found["made"], "s", note=note)


def work_of_fleet(run: Run) -> Iterator[Row]:
    devices, sessions, tasks = run.size.fleet
    found = run.median("fleet.measure", "wall", devices=devices, sessions=sessions, tasks=tasks)
    count = sessions * tasks
    share = f"worst median wait of a session to the middle one {found['share']:.2f}"
    note = f"{share}, {found['cpu'] / count * 1000:.2f} ms CPU a task"
    what = f"fleet: {devices} devices with 2 slots, {sessions} sessions of {tasks} tasks"
    yield run.row(what, count / found["wall"], "tasks/s", note=note)


BENCHMARKS: dict[str, Callable[[Run], Iterator[Row]]] = {
    "limits": limits,
    "layered": layered,
    "chain": chain,
    "pauses": pauses,
    "transitions": transitions,
    "post": post,
    "entrance": entrance,
    "websocket": websocket,
    "edits": edits,
    "large_edits": large_edits,
    "foreign": foreign,
    "kill": kill,
    "masking": masking,
    "stuck": stuck,
    "memory": memory_taken,
    "commands": alive.commands,
    "walls": alive.walls,
    "waiting": alive.waiting,
    "neighbours": alive.neighbours,
    "models": models.models,
    "devices": fleet.devices,
    "fleet": work_of_fleet,
    "dashboard": dashboard.dashboard,
}
