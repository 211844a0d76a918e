"""docs/machines.md: every machine's table as a person reads it. Pure: machines in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.machines import Machine
from frontend import words

HEAD = """\
# The state machines

Written by `manage.py machine_docs` from the tables in `agents/machines/` and `constellations/machines/`;
a test keeps it current.

A row says: in state *from*, on *event*, when every fact of the *guard* has its value, go to *to*. An event without a row
is refused and changes nothing. *Any state* is every state that is not terminal and has no row of its own for the event.
*Effects* are what the caller acts upon once the transition is committed. The seeds' round is an interaction, their
subtask a task.
"""


def machines_document(machines: Iterable[Machine]) -> str:
    """The whole page, ending with a newline."""
    sections = (machine_section(machine, number) for number, machine in enumerate(machines, start=1))
    return "\n".join([HEAD, *sections])


def machine_section(machine: Machine, number: int) -> str:
    """One machine: diagram, states, facts, rows."""
    marks = (frozenset({machine.initial}), machine.terminal, machine.round_end, machine.subtask_end)
    states = ([f"`{state}`", *("yes" if state in marked else "" for marked in marks)] for state in machine.states)
    parts = [
        f"## {number}. {words.machine_title(machine)}",
        f"`{machine.name}`: {words.machine_line(machine)}",
        "\n".join(mermaid_diagram(machine)),
        "\n".join(_table(("state", "initial", "terminal", "round_end", "subtask_end"), states)),
    ]
    if machine.facts:
        facts = ([f"`{fact}`", ", ".join(f"`{value}`" for value in domain)] for fact, domain in machine.facts.items())
        parts.append("\n".join(_table(("fact", "values"), facts)))
    rows = (
        [
            words.source_name(row), f"`{row.event}`", words.guard_words(row.guard), row.target,
            ", ".join(f"`{effect}`" for effect in row.effects), row.note,
        ]
        for row in machine.rows
    )  # fmt: skip
    parts.append("\n".join(_table(("from", "event", "guard", "to", "effects", "note"), rows)))
    return "\n\n".join(parts) + "\n"


def mermaid_diagram(machine: Machine) -> Iterator[str]:
    """A fenced mermaid diagram; rows that lead the same way share an edge."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    found = words.labelled_edges(machine)
    if any(source == words.ANY_STATE for source, _ in found):
        yield f'    state "{words.ANY_STATE}" as Any'
    yield f"    [*] --> {machine.initial}"
    for (source, target), labels in found.items():
        said = ", ".join(f"{event} [{guard}]" if guard else event for event, guard in labels)
        yield f"    {'Any' if source == words.ANY_STATE else source} --> {target}: {said}"
    for state in sorted(machine.terminal):
        yield f"    {state} --> [*]"
    yield "```"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield _line(names)
    yield "|" + "---|" * len(names)
    for row in rows:
        yield _line(row)


def _line(cells: Iterable[str]) -> str:
    """A line of a table; a bar inside a cell would end the cell."""
    return "|" + "|".join(f" {cell.replace('|', chr(92) + '|')} " if cell else " " for cell in cells) + "|"
