"""The machine engine: a machine is a tuple of rows and one pure function, `step`.

The table is the only place where a transition is defined; docs/machines.md, history, diagrams, the database's
check constraint and the exhaustive tests are derived from it. Pure: no clock, no I/O, no Django.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

ANY = "Any"
"""Source of a row that leaves every state that is not terminal and has no row of its own for the event."""

Facts = Mapping[str, Any]
NO_FACTS: Facts = MappingProxyType({})


class MachineError(ValueError):
    """A table that contradicts itself; raised when the machine is built, so never while it runs."""


class TransitionNotAllowed(Exception):
    """`{machine}` does not take `{event}` in state {state}."""

    code = "transition_not_allowed"

    def __init__(self, machine: str, state: str, event: str, facts: Facts = NO_FACTS):
        self.machine, self.state, self.event, self.facts = machine, state, event, dict(facts)
        super().__init__(f"{machine} does not take `{event}` in state {state}")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: in `source`, on `event`, when every fact in `guard` has its value, go to `target`.

    `effects` are names the caller acts upon once the transition is committed; `note` is for the reader.
    """

    source: str
    event: str
    target: str
    guard: Facts = field(default_factory=dict)
    effects: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Machine:
    """A validated table.

    `facts` gives the domain of every fact a guard may read, so that a test can walk through all of them. The terminal
    states are those that end a round and a subtask (the seeds' `is_round_end` and `is_subtask_end`).
    """

    name: str
    initial: str
    terminal: frozenset[str]
    rows: tuple[Row, ...]
    facts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    states: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    _moves: Mapping[tuple[str, str], tuple[Row, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        names = [self.initial]
        names += [name for row in self.rows for name in (row.source, row.target) if name != ANY]
        states = tuple(dict.fromkeys(names))
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "events", tuple(dict.fromkeys(row.event for row in self.rows)))
        object.__setattr__(self, "_moves", dict(self._expand()))
        self._validate()

    def _expand(self) -> Iterator[tuple[tuple[str, str], tuple[Row, ...]]]:
        """Rows by (state, event); `Any` stands back where a state has a row of its own."""
        for state, event in product(self.states, self.events):
            own = tuple(row for row in self.rows if row.source == state and row.event == event)
            if not own and state not in self.terminal:
                own = tuple(row for row in self.rows if row.source == ANY and row.event == event)
            if own:
                yield (state, event), own

    def _validate(self) -> None:
        unknown = self.terminal - set(self.states)
        if unknown:
            raise MachineError(f"{self.name}: terminal states {sorted(unknown)} appear in no row")
        for row in self.rows:
            if row.source in self.terminal and row.target in self.terminal:
                raise MachineError(f"{self.name}: a row leads from terminal {row.source} to terminal {row.target}")
            for fact, value in row.guard.items():
                if value not in self.facts.get(fact, ()):
                    raise MachineError(f"{self.name}: guard {fact}={value!r} of {row.source}/{row.event} is outside its domain")
        for (state, event), rows in self._moves.items():
            for facts in self.combinations():
                hits = [row for row in rows if _holds(row.guard, facts)]
                if len(hits) > 1:
                    raise MachineError(f"{self.name}: {state}/{event} has {len(hits)} rows for {facts}")
        reached = {self.initial} | {row.target for row in self.rows}
        lost = set(self.states) - reached
        if lost:
            raise MachineError(f"{self.name}: no row leads to {sorted(lost)}")

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every assignment of the machine's facts."""
        for values in product(*self.facts.values()):
            yield dict(zip(self.facts, values, strict=True))

    def find(self, state: str, event: str, facts: Facts = NO_FACTS) -> Row | None:
        """The one row that `event` takes in `state`, or None."""
        for row in self._moves.get((state, event), ()):
            if _holds(row.guard, facts):
                return row
        return None

    def choices(self, state: str) -> tuple[str, ...]:
        """Events that have a row in `state`: what a button or the API may offer."""
        return tuple(event for event in self.events if (state, event) in self._moves)

    @property
    def round_end(self) -> frozenset[str]:
        """States in which the interaction is over as far as this machine goes."""
        return self.terminal

    @property
    def subtask_end(self) -> frozenset[str]:
        """States in which the task is over as far as this machine goes."""
        return self.terminal

    def is_terminal(self, state: str) -> bool:
        return state in self.terminal


def _holds(guard: Facts, facts: Facts) -> bool:
    return all(facts.get(fact) == value for fact, value in guard.items())


def step(machine: Machine, state: str, event: str, facts: Facts = NO_FACTS) -> tuple[str, tuple[str, ...]]:
    """The next state and the effects of `event` in `state`; raises `TransitionNotAllowed` and changes nothing."""
    row = machine.find(state, event, facts)
    if row is None:
        raise TransitionNotAllowed(machine.name, state, event, facts)
    return row.target, row.effects


MACHINES: dict[str, Machine] = {}


def register_machine(machine: Machine) -> Machine:
    """Make a machine known by its name to history, verification and the API."""
    if MACHINES.setdefault(machine.name, machine) is not machine:
        raise MachineError(f"two machines are called {machine.name}")
    return machine
