"""Which dialect a document is in, by its keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constellations.plan import plan, tasks
from constellations.plan.dialects.galaxy import GALAXY
from constellations.plan.dialects.seed import SEED
from constellations.plan.dialects.vocabulary import Dialect
from constellations.plan.values import Path, key_text

ORRERY = "orrery"
STATES = "states"
"""What a plan of ours is exported with and is no part of a plan: how far it has come."""
FOREIGN: dict[str, Dialect] = {dialect.name: dialect for dialect in (SEED, GALAXY)}
NAMES = (ORRERY, *FOREIGN)

ENVELOPE = {"observation", "thought", "status", "state", "constellation", "action", "actions", "result", "results"}
"""Keys of an agent's answer."""

KNOWN: dict[str, dict[str, frozenset[str]]] = {
    ORRERY: {
        "document": frozenset((*plan.PLAN_READERS, STATES)),
        "task": frozenset(tasks.ADD_READERS),
        "dependency": frozenset(tasks.DEPENDENCY_READERS),
        "action": frozenset(),
    }
} | {
    name: {
        "document": frozenset(dialect.document.readers),
        "task": frozenset(dialect.task.readers),
        "dependency": frozenset(dialect.dependency.readers),
        "action": frozenset(dialect.action_readers),
    }
    for name, dialect in FOREIGN.items()
}


class Unrecognised(ValueError):
    """The keys fit no dialect, or several."""


def is_envelope(value: Any) -> bool:
    """Whether it is an agent's answer with a constellation in it, and no constellation itself."""
    return isinstance(value, Mapping) and value.get("constellation") not in (None, "") and "tasks" not in value


def recognise_dialect(value: Any) -> str:
    """The only dialect that has all keys of the document which any dialect has; raises Unrecognised."""
    if not isinstance(value, Mapping):
        return ORRERY
    fitting = set(NAMES)
    first: dict[frozenset[str], Path] = {}
    for path, owners in _evidence(value):
        if len(owners) < len(NAMES):
            first.setdefault(owners, path)
            fitting &= owners
    if len(fitting) == 1:
        return fitting.pop()
    if fitting:
        fits = " or ".join(name for name in NAMES if name in fitting)
        raise Unrecognised(f"its keys are those of {fits}; say which dialect it is")
    told = ", ".join(f"{key_text(path)} is {' or '.join(sorted(owners))}" for owners, path in first.items())
    raise Unrecognised(f"its keys are of several dialects: {told}; say which it is")


def _evidence(value: Mapping[str, Any]) -> Iterator[tuple[Path, frozenset[str]]]:
    """Each key that a dialect has, and the dialects that have it."""
    path: Path = ()
    if is_envelope(value):
        yield ("constellation",), frozenset(FOREIGN)
        path, value = ("constellation",), value["constellation"]
    yield from _keys("document", value, path)
    for kind, name in (("task", "tasks"), ("dependency", "dependencies")):
        parts = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(parts, Mapping):
            yield (*path, name), frozenset(name for name, dialect in FOREIGN.items() if dialect.keyed)
        for place, part in list_entries(parts):
            yield from _keys(kind, part, (*path, name, place))
            actions = part.get("actions") if isinstance(part, Mapping) else None
            for number, action in list_entries(actions if isinstance(actions, list) else None):
                yield from _keys("action", action, (*path, name, place, "actions", number))


def _keys(kind: str, part: Any, path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    for key in part if isinstance(part, Mapping) else ():
        owners = frozenset(name for name in NAMES if key in KNOWN[name][kind])
        if owners:
            yield (*path, key), owners


def list_entries(parts: Any) -> Iterator[tuple[str | int, Any]]:
    """The parts of a list by place, or of an object by key."""
    if isinstance(parts, Mapping):
        yield from parts.items()
    elif isinstance(parts, list):
        yield from enumerate(parts)
