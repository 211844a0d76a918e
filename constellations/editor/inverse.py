"""The operations that take an edit back, from what it recorded and what is there now. Pure.

Only what is still as the edit left it is taken back: what somebody changed since would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from constellations.editor.draft import Snapshot
from constellations.errors import UndoRefused
from constellations.plan.keys.fields import CHANGEABLE, STORED
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, TASK_DEFAULTS
from constellations.plan.values import Row

CALL = ("tool", "arguments", "phases")
"""Fields of a task that say together what it does."""
Change = tuple[str, Row | None, Row | None]
SHOWN = 20
"""Things changed since that one sentence names."""


def inverse_operations(before: Mapping[str, Row], after: Mapping[str, Row], snapshot: Snapshot) -> list[Row]:
    """Operations that lead from `snapshot` to what was there before the edit; none where that is so already.

    Raises UndoRefused, naming everything that was changed again since.
    """
    tasks = list(_undone(before["tasks"], after["tasks"], snapshot.tasks, TASK_DEFAULTS))
    dependencies = list(_undone(before["dependencies"], after["dependencies"], snapshot.dependencies, DEPENDENCY_DEFAULTS))
    if faults := [*_faults("task", tasks), *_faults("dependency", dependencies), *_tied(tasks, after, snapshot)]:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise UndoRefused(
            f"cannot undo: {'; '.join(faults[:SHOWN])}{more}", [{"key": "", "message": fault} for fault in faults]
        )
    operations = [_op("remove_dependency", dependency_id=name) for name, old, _ in dependencies if old is None]
    operations += [_op("remove_task", task_id=name) for name, old, _ in tasks if old is None]
    operations += [_task(old, new) for _, old, new in tasks if old is not None]
    return operations + [_dependency(old, new) for _, old, new in dependencies if old is not None]


def _undone(
    before: Row, after: Row, rows: Mapping[str, Mapping[str, Any]], defaults: Row
) -> Iterator[tuple[str, Row | None, Row | None]]:
    """What is to be taken back: (name, row before the edit, row there now). What is so already is left out."""
    for name, was in before.items():
        old, new, there = _whole(was, defaults), _whole(after[name], defaults), rows.get(name)
        now = None if there is None else {key: there[key] for key in defaults}
        if old is not None and new is not None and now is not None:
            fields = [key for key in old if old[key] != new[key]]
            if all(now[key] == old[key] for key in fields):
                continue
            kept = all(now[key] == new[key] for key in fields)
            yield name, {**now, **{key: old[key] for key in fields}} if kept else _CHANGED, now
        elif now != old:
            yield name, old if now == new else _CHANGED, now


def _whole(row: Row | None, defaults: Row) -> Row | None:
    """A row that was recorded before there was a column, with what the column had then."""
    return None if row is None else {**defaults, **row}


_CHANGED: Row = {}
"""Stands for the row before an edit that was overtaken by another."""


def _faults(kind: str, found: list[Change]) -> Iterator[str]:
    for name, old, now in found:
        if old is _CHANGED:
            yield f"the {kind} {name} was {'removed' if now is None else 'changed again'} since"


def _tied(tasks: list[Change], after: Mapping[str, Row], snapshot: Snapshot) -> Iterator[str]:
    """Dependencies that others have tied to a task that would go."""
    going = {name for name, old, _ in tasks if old is None}
    if not going:
        return
    for name, row in snapshot.dependencies.items():
        ends = going & {row["from"], row["to"]}
        if ends and after["dependencies"].get(name) is None:
            yield f"the dependency {name} was tied to {', '.join(sorted(ends))} since"


def _task(old: Row, now: Row | None) -> Row:
    if now is None:
        return _op("add_task", **_in_words(old, old))
    fields = [key for key in old if old[key] != now[key]]
    if any(key in CALL for key in fields):
        fields = [key for key in old if key in fields or key in CALL]
    return _op("update_task", task_id=old["task_id"], **_in_words(old, fields))


def _in_words(row: Row, columns: Iterable[str]) -> Row:
    return {STORED[key].key: row[key] for key in columns}


def _dependency(old: Row, now: Row | None) -> Row:
    if now is None:
        return _op("add_dependency", **old)
    fields = {key: old[key] for key in CHANGEABLE if old[key] != now[key]}
    if "type" in fields or "condition" in fields:
        fields |= {"type": old["type"], "condition": old["condition"]}
    return _op("update_dependency", dependency_id=old["dependency_id"], **fields)


def _op(op: str, /, **parameters: Any) -> Row:
    return {"op": op, "parameters": parameters}
