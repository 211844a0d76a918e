"""How the terminal shows a run: a bar for each task on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from agents.clock import from_iso
from project.demo.following import Following

COLOURS = {"RUNNING": "cyan", "COMPLETED": "green", "FAILED": "red", "CANCELLED": "yellow"}
NARROW = 60
"""Columns below which a row shows only name, state and time."""
BAR_WIDTH = 16
ROWS_KEPT_FREE = 4
"""Lines of the terminal that the bars leave to the transitions."""

Row = dict[str, Any]


class Progress:
    """Prints lines above the bars of a run. On what is no terminal there are no bars."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.time):
        self.console, self._clock = console, clock
        self._live: Live | None = None

    def say(self, line: str) -> None:
        """A line of its own; long ones are the terminal's to wrap, so that a link stays whole."""
        self.console.print(escape(line), soft_wrap=True, highlight=False)

    def show(self, run: Following) -> None:
        """Draw the bars anew."""
        if not self.console.is_terminal or not run.tasks():
            return
        if self._live is None:
            self._live = Live(console=self.console, auto_refresh=False)
            self._live.start()
        self._live.update(self.table(run), refresh=True)

    def close(self) -> None:
        """Leave the last picture where it is."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def table(self, run: Following) -> Table:
        wide = self.console.width >= NARROW
        table = Table(box=None, pad_edge=False, show_header=False, expand=False)
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
        if wide:
            table.add_column(width=BAR_WIDTH)
        table.add_column(no_wrap=True)
        if wide:
            table.add_column(no_wrap=True, overflow="ellipsis", max_width=16)
        table.add_column(no_wrap=True, justify="right")
        for task in run.tasks()[-max(1, self.console.height - ROWS_KEPT_FREE) :]:
            name = escape(task["name"] or task["task_id"])
            state = f"[{COLOURS.get(task['state'], 'dim')}]{task['state']}[/]"
            elapsed = elapsed_text(task, self._clock())
            if wide:
                table.add_row(name, self._bar(task), state, escape(run.device(task)), elapsed)
            else:
                table.add_row(name, state, elapsed)
        return table

    def _bar(self, task: Row) -> ProgressBar:
        """Full when the task has ended; a command does not say how far it is, so a running one pulses."""
        ended = task["state"] in ("COMPLETED", "FAILED", "CANCELLED")
        colour = COLOURS.get(task["state"], "dim")
        return ProgressBar(
            total=1,
            completed=1 if ended else 0,
            width=BAR_WIDTH,
            pulse=task["state"] == "RUNNING",
            complete_style=colour,
            finished_style=colour,
            animation_time=self._clock(),
        )


def elapsed_text(task: Row, now: float) -> str:
    """Seconds the task has run; empty before its start."""
    if not task["started_at"]:
        return ""
    end = from_iso(task["ended_at"]) if task["ended_at"] else now
    return f"{max(0.0, end - from_iso(task['started_at'])):.1f} s"
