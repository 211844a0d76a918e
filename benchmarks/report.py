"""Rows of results, what they should be, and the table."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

TARGETS = {
    # name: (SQLite, PostgreSQL), the goals in the row's unit
    "layered": (6_000, 3_000),
    "chain": (0.3, 1.0),
    "pauses": (0.45, 0.5),
    "one agent": (5_000, 900),
    "many agents": (25_000, 12_000),
    "post, alive": (50, 50),
    "post, asleep": (300, 300),
    "entrance": (5_000, 2_500),
    "websocket": (20, 5),
    "edit": (50, 60),
    "foreign, loss": (15, 20),
    "foreign, wait": (50, 50),
    "kill, again": (0, 0),
    "kill, first": (0.6, 0.7),
    "memory, runner": (150, 150),
    "memory, web": (110, 110),
    "cancel": (200, 200),
    "walls": (15, 15),
    "waiting, memory": (50, 50),
    "waiting, held": (0, 0),
    "neighbour": (1, 1),
    "minds": (2.6, 4),
    "minds, HTTP": (4.5, 6),
    "minds, memory": (450, 450),
    "minds, sessions": (1.5, 1.5),
    "first token": (30, 30),
    "dispatch": (20, 20),
    "idle devices, memory": (200, 200),
    "idle devices, core": (5, 5),
    "shown": (1_000, 1_000),
    "shown, large": (2_500, 2_500),
    "longest": (100, 100),
    "frames": (33, 33),
    "pixels": (50, 50),
    "pixels, full speed": (150, 150),
    "heap": (1, 1),
    "snapshot": (2, 2),
    "static": (0, 0),
    "seek": (100, 100),
    "table": (33, 33),
}
BEFORE = {
    # name: what it was when the goals were set, on two cores and SQLite
    "shown": "2,100 to 2,800",
    "shown, large": "2,600 to 4,400",
    "longest": "1,560",
    "frames": "100 to 173",
    "pixels": "60",
    "pixels, full speed": "2,030",
    "snapshot": "17.4",
    "static": "46",
    "table": "129 to 394",
}
RATES = ("/s",)
"""Units in which more is better."""


@dataclass
class Row:
    """One measured number. `limits` are raw ones of the same run, in the row's unit; `target` names a goal of TARGETS."""

    database: str
    what: str
    value: float
    unit: str
    target: str = ""
    limits: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def goal(self) -> float | None:
        return TARGETS[self.target][self.database != "sqlite"] if self.target else None

    def ratios(self) -> dict[str, float]:
        """How near to each limit: 1 is as fast as it."""
        more = self.unit.endswith(RATES)
        return {name: self.value / limit if more else limit / self.value for name, limit in self.limits.items()}

    def as_json(self) -> dict:
        return {**vars(self), "goal": self.goal, "ratios": self.ratios()}


def show(rows: list[Row], console: Console) -> None:
    table = Table()
    for heading, justify in (("", "left"), ("database", "left"), ("measured", "right"), ("goal", "right")):
        table.add_column(heading, justify=justify)
    table.add_column("of the raw limit")
    table.add_column("beside")
    for row in rows:
        goal = "" if row.goal is None else number(row.goal)
        ratios = ", ".join(f"{ratio:.3f} {name}" for name, ratio in row.ratios().items())
        table.add_row(row.what, row.database, f"{number(row.value)} {row.unit}", goal, ratios, row.note)
    console.print(table)


def show_goals(rows: list[Row], console: Console) -> None:
    """What it was when the goals were set, the goals, what is reached, and whether that meets the goal before it is rounded."""
    table = Table()
    table.add_column("what")
    for heading in ("now", "goal", "reached"):
        table.add_column(heading, justify="right")
    table.add_column("met")
    table.add_column("beside")
    for row in rows:
        goal = "" if row.goal is None else number(row.goal)
        is_met = "" if row.goal is None else "yes" if row.value <= row.goal else "no"
        what, reached = f"{row.what} ({row.database})", f"{number(row.value)} {row.unit}"
        table.add_row(what, BEFORE.get(row.target, ""), goal, reached, is_met, row.note)
    console.print(table)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
