"""A kill storm against a whole installation: `python -m benchmarks.kill_storm`. See docs/benchmarks.md, "Kill storm".

Ends with 1 where anything is lost, doubled, overlapping or incomplete; never because of how long something took.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.places import DATABASES, ground

GOALS = {"runner": 1.0, "sentinel": 4.0, "main": 4.0, "all": 10.0, "up": 10.0}
"""Seconds without a start, at most, by kind of kill."""
WEB_GOAL_S = 3.0


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended then too
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(", ".join(f"{name} {value}" for name, value in machine.shape().items()), highlight=False)
    found = {name: _storm(name, asked, console) for name in (DATABASES if asked.database == "both" else [asked.database])}
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))
    return 1 if any(any(each["wrong"].values()) for each in found.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_storm", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="strikes in all, as many of each kind (%(default)s)")
    parser.add_argument("--tasks", type=int, default=3000, help="commands, each with a lock of its own (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the strikes and the commands' times (%(default)s)")
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="sqlite", help="(%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there too")
    return parser.parse_args()


def _storm(database: str, asked: argparse.Namespace, console: Console) -> dict[str, Any]:
    with ground(database) as prepared, prepared.place(ORRERY_DRAIN_S="30") as place:
        arguments = {"kills": asked.kills, "tasks": asked.tasks, "seed": asked.seed, "token": place.furniture["token"]}
        with place.process("storm.measure", **arguments) as process:
            while "strike" in (said := process.read()):
                line = "{strike}: {kind}, {killed} killed; {gap:.2f} s without a start, {web:.2f} s without the web".format(
                    **said
                )
                console.print(f"{database} {line}", style="dim", highlight=False)
    _show(database, said, console)
    return said


def _show(database: str, found: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{database}: {found['strikes']} kills, {found['tasks']} commands, {found['took']:.0f} s")
    for heading in ("kill", "how many", "longest gap in starts", "goal", "median gap", "longest without the web", "goal"):
        table.add_column(heading, justify="left" if heading == "kill" else "right")
    for kind, of_kind in sorted(found["kinds"].items()):
        gaps, web = of_kind["gaps"], max(of_kind["web"])
        goal = f"{GOALS[kind]:g} s" if kind in GOALS else ""
        row = (str(of_kind["strikes"]), f"{max(gaps):.2f} s", goal, f"{statistics.median(gaps):.2f} s", f"{web:.2f} s")
        table.add_row(kind, *row, f"{WEB_GOAL_S:g} s")
    console.print(table)
    counts = ", ".join(f"{name} {found[name]}" for name in ("completed", "lost attempts", "failed by on_lost"))
    console.print(f"{counts}; wrong: {', '.join(f'{name} {count}' for name, count in found['wrong'].items())}", highlight=False)
    for line in found["findings"]:
        console.print(line, style="red", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
