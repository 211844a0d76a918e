"""What was once in a constellation: every edit that added or removed something names it, in what it found or in what it left.

It is asked where a removal names what is not there, so it may take its time; it may be asked in a runner's loop too, where
Django's own queries are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection

from agents.streams.statements import current_store, raw_cursor

NAMED = {
    "sqlite": "SELECT EXISTS (SELECT 1 FROM constellations_edit AS edit, json_each(edit.before, %s) AS each "
    "WHERE edit.constellation_id = %s AND each.key = %s)",
    "postgresql": "SELECT EXISTS (SELECT 1 FROM constellations_edit AS edit, jsonb_object_keys(edit.before #> %s) AS name "
    "WHERE edit.constellation_id = %s AND name = %s)",
}  # fmt: skip
"""Whether an edit changed what has a name: a task or a dependency by its id."""
TIED = {
    "sqlite": "SELECT EXISTS (SELECT 1 FROM constellations_edit AS edit, json_each(edit.{found}, '$.dependencies') AS each "
    "WHERE edit.constellation_id = %s AND json_extract(each.value, '$.from') = %s AND json_extract(each.value, '$.to') = %s)",
    "postgresql": "SELECT EXISTS (SELECT 1 FROM constellations_edit AS edit, jsonb_each(edit.{found} -> 'dependencies') AS each"
    " WHERE edit.constellation_id = %s AND each.value ->> 'from' = %s AND each.value ->> 'to' = %s)",
}  # fmt: skip
"""Whether an edit changed a dependency between two tasks, as it `found` it (before) or left it (after)."""
PLACES = {"sqlite": {part: f"$.{part}" for part in ("tasks", "dependencies")}}
"""How a part of an edit's rows is addressed; otherwise as {part}."""


def was_there(constellation_id: int, which: Mapping[str, str]) -> bool:
    """Whether a task ({task_id}) or a dependency ({dependency_id}, or {from, to}) was in the constellation at some time."""
    if "task_id" in which:
        return _named(constellation_id, "tasks", which["task_id"])
    if "dependency_id" in which:
        return _named(constellation_id, "dependencies", which["dependency_id"])
    ends = (constellation_id, which["from"], which["to"])
    return any(_asked(TIED[connection.vendor].format(found=found), ends) for found in ("before", "after"))


def _named(constellation_id: int, part: str, name: str) -> bool:
    place = PLACES.get(connection.vendor, {}).get(part, f"{{{part}}}")
    return _asked(NAMED[connection.vendor], (place, constellation_id, name))


def _asked(statement: str, parameters: tuple[Any, ...]) -> bool:
    return bool(current_store().execute(raw_cursor(), statement, parameters).fetchone()[0])
