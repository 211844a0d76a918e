"""What is shown in the place of a secret does not come back as if it were a value. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.masks.masking import is_hidden
from constellations.errors import EditRefused
from constellations.plan.documents import MAX_DEPTH, Path
from constellations.plan.values import key_text

SHOWN = 20
"""Places that one refusal names."""


def refuse_hidden(operations: Sequence[Any]) -> None:
    """Raise EditRefused where an operation would write a mask: the secret that it stands for would be lost."""
    problems: list[dict[str, Any]] = []
    for number, operation in enumerate(operations, 1):
        parameters = operation.get("parameters", {}) if isinstance(operation, Mapping) else getattr(operation, "parameters", {})
        op = operation.get("op", "") if isinstance(operation, Mapping) else getattr(operation, "op", "")
        for path in _places(parameters, ()):
            problems.append({"operation": number, "op": str(op), "field": key_text(path), "message": MESSAGE})
    if problems:
        raise EditRefused(problems[:SHOWN])


MESSAGE = "holds what is shown in the place of a secret; leave it out, so that it stays, or write it anew"


def _places(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, str):
        if is_hidden(value):
            yield path
    elif len(path) <= MAX_DEPTH and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, (*path, str(key)))
    elif len(path) <= MAX_DEPTH and isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _places(inner, (*path, place))
