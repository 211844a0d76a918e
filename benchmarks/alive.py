"""Benchmarks of agents that are told something while they work, and of agents that wait. See docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.suite import Run

RUNNERS = 2
AT_ONCE = 8
"""As benchmarks.inside.walls has it."""
HELD = ("tasks", "threads", "slots")


def commands(run: Run) -> Iterator[Row]:
    size = run.size
    with run.ground.place() as place, place.process("runners.serve") as runner:
        runner.read()
        times = place.call("commands.measure", trials=size.trials, others=size.busy)
    yield run.latency(f"cancel > process gone, actor cancelled, {size.busy} busy sessions", times["cancel"], "cancel")
    yield run.latency("pause: end of the call in flight > paused", times["pause"])


def walls(run: Run) -> Iterator[Row]:
    """A command alone and several at once, behind each kind of walls that holds here, and the difference to none."""
    with run.ground.place() as place:
        found = place.call("walls.measure", trials=run.size.busy * 2)
    bare = found["none"]
    for kind, row in found.items():
        note = f"first byte after {row['first']:.1f} ms, {row['rate']:.0f} commands/s of {AT_ONCE} at once"
        if row is bare:
            yield run.row("a command without walls", row["whole"], "ms", note=note)
            continue
        first = row["first"] - bare["first"]
        note = f"first byte {first:.1f} ms later; {note}; {row['memory']:.1f} MB in front of it, proportional"
        yield run.row(f"a command behind {kind}: what that adds", row["whole"] - bare["whole"], "ms", target="walls", note=note)


def waiting(run: Run) -> Iterator[Row]:
    """In processes of their own: what the first five hundred leave behind would be there for the others."""
    count = run.size.waiting
    found = {kind: both for kinds in run.size.waits for kind, both in _measured(run, kinds).items()}
    for kind, what in (("sessions", f"{count} sessions that wait"), ("tasks", f"{count} tasks of one session that wait")):
        before, after = found[kind]
        note = (
            f"from {before['pss']:.0f} to {after['pss']:.0f} MB proportional: {RUNNERS} runners, a web process with a client;"
            f" {after['sessions']} sessions in memory"
        )
        yield run.row(f"{what}: memory", after["pss"] - before["pss"], "MB", target="waiting, memory", note=note)
        note = ", ".join(f"{name} {before[name]} > {after[name]}" for name in HELD)
        held = sum(after[name] - before[name] for name in HELD)
        yield run.row(f"{what}: asyncio tasks, threads and slots", held, "", target="waiting, held", note=note)


def neighbours(run: Run) -> Iterator[Row]:
    """One task of somebody else's, while many run plans and watch them."""
    size = run.size
    runs, tasks, views = size.crowd
    with ExitStack() as stack:
        place = stack.enter_context(run.ground.place())
        runners = [stack.enter_context(place.process("runners.serve")) for _ in range(RUNNERS)]
        port, _ = stack.enter_context(place.web())
        for runner in runners:
            runner.read()
        alone = place.call("neighbours.alone", trials=size.trials)
        others = {"port": port, "token": place.furniture["token"], "runs": runs, "tasks": tasks, "views": views}
        neighbour = stack.enter_context(place.process("neighbours.beside", runs=runs))
        neighbour.read()
        crowd = stack.enter_context(place.process("neighbours.crowd", **others))
        crowd.read()
        took = crowd.read()
        beside = neighbour.result()
    yield run.latency("post > first task of a new session, alone", alone)
    what = f"post > first task beside {runs} runs of {tasks} tasks and {views} websockets"
    yield run.latency(what, beside)
    note = f"{max(beside) / max(alone):.1f} times the longest alone; the runs took {took:.1f} s"
    yield run.row("longest wait of that task", max(beside), "s", target="neighbour" if runs > 2 else "", note=note)


def _measured(run: Run, kinds: tuple[str, ...]) -> dict:
    with ExitStack() as stack:
        place = stack.enter_context(run.ground.place())
        runners = [stack.enter_context(place.process("runners.serve")) for _ in range(RUNNERS)]
        port, web = stack.enter_context(place.web())
        for runner in runners:
            runner.read()
        pids, token, size = [runner.pid for runner in runners], place.furniture["token"], run.size
        return place.call(
            "waiting.measure", kinds=kinds, runners=pids, web=web, port=port, token=token,
            count=size.waiting, warm=size.warm, settle=size.settle,
        )  # fmt: skip
