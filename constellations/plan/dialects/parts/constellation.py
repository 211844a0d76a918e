"""A constellation of another dialect as the value of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constellations.plan.dialects.parts import lines, tasks
from constellations.plan.dialects.parts.recipes import Recipes
from constellations.plan.dialects.parts.translation import Translation, translate_piece
from constellations.plan.dialects.recognition import is_envelope, list_entries
from constellations.plan.dialects.vocabulary import Dialect
from constellations.plan.operations import MAX_DEPENDENCIES, MAX_TASKS
from constellations.plan.values import Path, Row, value_kind

HELD = {"tasks": tasks.translate_task, "dependencies": lines.translate_dependency}
LIMITS = {"tasks": MAX_TASKS, "dependencies": MAX_DEPENDENCIES}


def translate_document(value: Any, dialect: Dialect, recipes: Recipes | None = None) -> Translation:
    """The plan that a document is, less what is wrong with it; that is among the findings. Actions may name `recipes`."""
    to = Translation(recipes=recipes or {})
    written: Path = ()
    if is_envelope(value):
        value, written = value["constellation"], ("constellation",)
    if not isinstance(value, Mapping):
        to.findings.append((written, f"a constellation is an object with tasks, not {value_kind(value)}"))
        return to
    made = translate_piece(to, dialect.document, value, (), written)
    for name in HELD:
        parts = made.fields.get(name)
        made.say(name, _parts(to, dialect, name, parts, (*written, name)), name)
    if made.said["tasks"]:
        made.said["dependencies"] += _named_in_tasks(to, dialect, made.said, made.fields["tasks"], (*written, "tasks"))
    made.extension(dialect.document.extension)
    to.value = made.said
    return to


def _parts(to: Translation, dialect: Dialect, name: str, parts: Any, written: Path) -> list[Row]:
    if parts is not None and not isinstance(parts, list | Mapping):
        to.findings.append((written, f"must be a list or an object by id, not {value_kind(parts)}"))
    elif parts is not None and len(parts) > LIMITS[name]:
        to.findings.append((written, f"has {len(parts):,} items; {LIMITS[name]:,} are allowed"))
        return []
    rows: list[Any] = []
    for number, (key, part) in enumerate(list_entries(parts)):
        place, at = (name, number), (*written, key)
        if isinstance(part, Mapping):
            rows.append(HELD[name](to, dialect, part, place, at, key if isinstance(key, str) else ""))
        else:
            to.origins[place] = at
            rows.append(part)
    return rows


def _named_in_tasks(to: Translation, dialect: Dialect, said: Row, parts: Any, written: Path) -> list[Row]:
    """Dependencies that tasks name and that stand nowhere else, of the default type."""
    known = [(row.get("from"), row.get("to")) for row in said["dependencies"] if isinstance(row, Mapping)]
    there = {ends for ends in known if all(isinstance(end, str) for end in ends)}
    rows: list[Row] = []
    for (place, part), row in zip(list_entries(parts), said["tasks"], strict=True):
        for key, other, upstream in named_neighbours(dialect, part):
            own = row.get("task_id")
            ends = (other, own) if upstream else (own, other)
            if isinstance(own, str) and ends not in there:
                there.add(ends)
                to.origins["dependencies", len(said["dependencies"]) + len(rows)] = (*written, place, key)
                rows.append({"from": ends[0], "to": ends[1], "type": dialect.default_type})
    return rows


def named_neighbours(dialect: Dialect, part: Any) -> list[tuple[str, str, bool]]:
    """(key, id, whether it is upstream) of the tasks that a task names."""
    found = []
    for key, upstream in (("dependencies", True), ("dependents", False)):
        ids = part.get(key) if isinstance(part, Mapping) and key in dialect.task.readers else None
        found += [(key, other, upstream) for other in (ids if isinstance(ids, list) else ()) if isinstance(other, str)]
    return found
