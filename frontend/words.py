"""What pages and docs/machines.md say about a machine's table, read from the table itself. Pure."""

from __future__ import annotations

from agents.machines import ACTOR, ANY, DEVICE, DEVICE_AGENT, TOOL_LOOP, Machine, Row
from agents.machines.machine import Facts
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT, TASK

MACHINES: tuple[Machine, ...] = (ACTOR, CONSTELLATION_AGENT, DEVICE_AGENT, TOOL_LOOP, TASK, CONSTELLATION, DEVICE)
"""In the order in which docs/machines.md numbers them."""

LINES: dict[str, tuple[str, str]] = {
    "actor": (
        "Actor",
        "One incarnation of a session: takes interactions one after the other, commands at any time.",
    ),
    "constellation_agent": (
        "Constellation agent",
        "Answers one interaction: makes the constellation, edits it as tasks end, says when all is done.",
    ),
    "device_agent": ("Device agent", "Works on one attempt of a task on one device, step by step, or waits for something."),
    "tool_loop": ("Tool loop", "Prompt, answer, tool and progress check inside a device agent; notices when it is stuck."),
    "task": ("Task", "A node of the graph: waits for its dependencies, runs in attempts, ends, and may be taken up again."),
    "device": ("Device", "Where tasks run: whether it can be reached, and whether it takes new work."),
    "constellation": ("Constellation", "The graph of tasks as a whole: built, carried out, paused, closed, reopened."),
}
"""Title and one line of each machine."""

ANY_STATE = "Any state"
"""How a diagram calls the source of a row that leaves every state which is not terminal."""


def machine_title(machine: Machine) -> str:
    return LINES[machine.name][0]


def machine_line(machine: Machine) -> str:
    return LINES[machine.name][1]


def guard_words(guard: Facts) -> str:
    """`attempts_left, not skipped, on_lost = retry`; empty where the row has no guard."""
    return ", ".join(_fact_words(fact, value) for fact, value in guard.items())


def _fact_words(fact: str, value: object) -> str:
    if isinstance(value, bool):
        return fact if value else f"not {fact}"
    return f"{fact} = {value}"


def edge_label(row: Row) -> tuple[str, str]:
    """Event and guard of an edge. A guard that asks for the very state the edge leads to goes without saying."""
    return row.event, ", ".join(_fact_words(fact, value) for fact, value in row.guard.items() if value != row.target)


def source_name(row: Row) -> str:
    return ANY_STATE if row.source == ANY else row.source


def labelled_edges(machine: Machine) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Labels by (source, target): rows that lead the same way are one edge. `Any` is a source of its own."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in machine.rows:
        found.setdefault((source_name(row), row.target), []).append(edge_label(row))
    return found
