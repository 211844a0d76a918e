"""The command: run the benchmarks, print the table. Its exit code says whether they ran, never how fast."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.dashboard import ROWS
from benchmarks.places import DATABASES, BenchmarkFailed, Postgres, ground
from benchmarks.report import Row, show, show_goals
from benchmarks.suite import BENCHMARKS, FULL, SMOKE, Run


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # databases and processes are cleared away then too
    console = Console(width=None if sys.stdout.isatty() else 200)
    shape, rows, broken = machine.shape(), [], []
    console.print(", ".join(f"{name} {value}" for name, value in shape.items()), highlight=False)
    for database in _databases(asked.database, console):
        with ground(database) as prepared:
            _measure(Run(prepared, SMOKE if asked.smoke else FULL, asked.rows), asked.only, rows, broken, console)
    (show_goals if asked.only == ["dashboard"] else show)(rows, console)
    if asked.json:
        asked.json.write_text(json.dumps({"machine": shape, "rows": [row.as_json() for row in rows]}, indent=1))
    for failure in broken:
        console.print(failure, style="red", highlight=False)
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Benchmarks of the engine, see docs/benchmarks.md."
    )
    parser.add_argument("--smoke", action="store_true", help="everything, but tiny: does it run?")
    names = ", ".join(BENCHMARKS)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=_usual(), metavar="NAME", help=names)
    rows = ", ".join(ROWS)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, metavar="ROW", help=f"of the dashboard: {rows}")
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    return parser.parse_args()


def _usual() -> list[str]:
    """All but the page of a session, which needs a browser and ten minutes: it is asked for by name."""
    return [name for name in BENCHMARKS if name != "dashboard"]


def _databases(asked: str, console: Console) -> list[str]:
    """Those asked for; of both, PostgreSQL only where it answers."""
    if asked != "both":
        return [asked]
    if Postgres.is_reachable():
        return list(DATABASES)
    console.print("PostgreSQL does not answer; set POSTGRES_URL to measure it")
    return ["sqlite"]


def _measure(run: Run, names: list[str], rows: list[Row], broken: list[str], console: Console) -> None:
    """Every benchmark of one database; one that cannot be measured does not keep the others from it."""
    for name in names:
        begun = time.monotonic()
        try:
            rows += BENCHMARKS[name](run)
        except BenchmarkFailed as failure:
            broken.append(f"{name} on {run.database}: {failure}")
        console.print(f"{run.database}: {name} took {time.monotonic() - begun:.1f} s", style="dim", highlight=False)


sys.exit(main())
