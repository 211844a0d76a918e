"""What replan rules may read of a task's error: `error.kind` and `error.text`. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from constellations.conditions import condition_parts
from constellations.plan.values import did_you_mean

DECISIONS = ("timeout", "lost", "deadline", "stuck", "denied", "rejected", "expired")
"""Kinds that are the reason for which the task itself has FAILED."""
FAULTS = ("missing", "permission", "bad_arguments", "rate_limit", "server_error", "connection_lost", "broken")
"""Kinds that are those of the last attempt's error (agents.crews.ways), where it could not do its work."""
EXIT_CODE, OTHER = "exit_code", "failed"
"""A command ended with another exit code than 0; anything else."""
ERROR_KINDS = (EXIT_CODE, *DECISIONS, *FAULTS, OTHER)
ERROR = "error"
"""What the error is called in a rule's condition."""
KEYS = ("kind", "text")


def error_of(task: Mapping[str, Any]) -> dict[str, str]:
    """{"kind": one of ERROR_KINDS, "text": what is known of it}; both empty for a task that has not FAILED."""
    if task["state"] != "FAILED":
        return dict.fromkeys(KEYS, "")
    reason, fault = task["reason"].partition(":")[0], task.get("error_kind", "")
    kind = reason if reason in DECISIONS else fault if fault in (EXIT_CODE, *FAULTS) else OTHER
    return {"kind": kind, "text": task["error"] or task["reason"]}


def slips_in(condition: str) -> Iterator[str]:
    """What a good condition says of an error that no error has; raises ConditionRejected."""
    nodes = list(condition_parts(condition))
    by_part = {id(node.value) for node in nodes if isinstance(node, ast.Attribute | ast.Subscript)}
    for node in nodes:
        part = _part_of_error(node)
        if part is not None and part not in KEYS:
            yield f"an error has no {part}{did_you_mean(part, KEYS)}"
        elif _is_error(node) and id(node) not in by_part:
            yield f"`{ERROR}` by itself is no text; write {' or '.join(f'{ERROR}.{key}' for key in KEYS)}"
        elif isinstance(node, ast.Compare) and "kind" in map(_part_of_error, (node.left, *node.comparators)):
            for text in _texts_in(node):
                if text not in ERROR_KINDS:
                    yield f"there is no kind of error '{text}'{did_you_mean(text, ERROR_KINDS)}"


def _is_error(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == ERROR


def _part_of_error(node: ast.AST) -> str | None:
    """What is read of the error: `kind` in error.kind and in error['kind']; None where it is something else, or calculated."""
    if isinstance(node, ast.Attribute) and _is_error(node.value):
        return node.attr
    if isinstance(node, ast.Subscript) and _is_error(node.value) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return None


def _texts_in(comparison: ast.Compare) -> Iterator[str]:
    """Texts with which it compares, by themselves or in a list."""
    for side in (comparison.left, *comparison.comparators):
        for node in side.elts if isinstance(side, ast.List | ast.Tuple) else (side,):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
