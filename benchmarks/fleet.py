"""Benchmarks of machines that dial in: how long a call takes, and what idle ones cost. See docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.report import Row

if TYPE_CHECKING:
    from benchmarks.suite import Run

IDLE_S = 30.0
CONNECTIONS = {"ORRERY_CONNECTIONS_PER_ADDRESS": "100000"}
"""All simulated devices come from one address."""


def devices(run: Run) -> Iterator[Row]:
    size = run.size
    with run.ground.place() as place, place.web() as (port, _):
        (token,) = place.call("devices.make", count=1)
        times = place.call("devices.dispatch", port=port, token=token, trials=size.commits)
        yield run.latency("call to a remote device and back, which answers at once", times, "dispatch")
        found = place.call("devices.client", port=port, token=token, trials=size.trials)
        yield run.latency("the same, a client that reads a file", found["read_file"], "dispatch")
        yield run.latency("the same, a client that runs `true`", found["command"])
    with run.ground.place(**CONNECTIONS) as place:
        tokens = place.call("devices.make", count=size.idle_devices)
        with place.web() as (port, web):
            seconds = IDLE_S if size.idle_devices >= 1_000 else 1.0
            found = place.call("devices.idle", port=port, web=web, tokens=tokens, seconds=seconds)
    note = f"{found['before']:.0f} MB before, proportional {found['pss']:.0f} MB; all connected in {found['joined']:.1f} s"
    what = f"{found['connected']:,} idle connected devices: a web process"
    yield run.row(f"{what}, memory", found["rss"], "MB", target="idle devices, memory", note=note)
    yield run.row(f"{what}, of a core", found["core"], "%", target="idle devices, core")
