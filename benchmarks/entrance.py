"""The way from a POST to the durable answer, over HTTP, beside the engine alone in the same run: docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.suite import Run

PARTS = (
    # what, from, to
    ("receive and check", "posted", "asked"),
    ("commit of the request", "asked", "accepted"),
    ("until it is noticed, from that commit's beginning", "asked", "noticed"),
    ("read", "noticed", "read"),
    ("until its turn", "read", "decided"),
    ("build", "decided", "built"),
    ("first commit", "built", "first commit"),
    ("run", "first commit", "answer"),
    ("answer seen", "answer", "seen"),
)
"""Where the time goes. The second and the third are of the same time: the runner is nudged before the client is answered."""


def entrance(run: Run) -> Iterator[Row]:
    """In turn with the engine alone, so that both meet the same machine."""
    for tasks in run.size.layered:
        alone, found = [], []
        for _ in range(run.size.runs):
            with run.ground.place() as place:
                alone.append(place.call("graphs.layered", tasks=tasks)["wall"])
            found.append(_over_http(run, tasks))
        what = f"layered, {tasks:,} no-ops, POST over HTTP to the answer"
        wall = statistics.median(one["seen"] - one["posted"] for one in found)
        engine = tasks / statistics.median(alone)
        pairs = sorted(one / (times["seen"] - times["posted"]) for one, times in zip(alone, found, strict=True))
        note = f"the engine alone {engine:,.0f} tasks/s; ratios of the pairs {', '.join(f'{pair:.2f}' for pair in pairs)}"
        target = "entrance" if tasks == run.size.layered[0] else ""
        yield run.row(what, tasks / wall, "tasks/s", target=target, limits={"the engine alone": engine}, note=note)
        parts = {what: statistics.median(one[to] - one[since] for one in found) for what, since, to in PARTS}
        note = ", ".join(f"{what} {seconds * 1000:.1f}" for what, seconds in parts.items())
        yield run.row(f"of it, {tasks:,} no-ops, all but the run", (wall - parts["run"]) * 1000, "ms", note=f"{note} ms")
        for process in ("web", "runner"):
            used = statistics.median(one[process] for one in found)
            yield run.row(f"user CPU of it, {tasks:,} no-ops: {process}", used * 1000, "ms")


def _over_http(run: Run, tasks: int) -> dict[str, float]:
    with run.ground.place() as place, place.process("entrance.serve") as runner, place.web() as (port, web):
        runner.read()
        arguments = {"port": port, "token": place.furniture["token"], "web": web, "runner": runner.pid}
        found = place.call("entrance.measure", tasks=tasks, **arguments)
        return found | runner.read()
