"""The dialect of the seeds: `device`, `from`, `to`, `type`, `condition`, actions as {tool, parameters}. Pure."""

from __future__ import annotations

from constellations.machines import CONSTELLATION, TASK
from constellations.plan.dialects.vocabulary import (
    ACTIONS,
    EXTENSION,
    Dialect,
    DialectPart,
    DialectWord,
    actions,
    any_case,
    as_written,
)
from constellations.plan.keys.fields import DEPENDENCY_TYPES, PRIORITIES
from constellations.plan.values import Row, read_mapping

TOLD = {key: as_written for key in ("result", "error", "started_at", "ended_at")}
"""What became of a task: read past."""


def told_state(row: Row) -> Row:
    written = {"status": row["state"], **{key: row.get(key) for key in TOLD}}
    return {key: value for key, value in written.items() if value not in (None, "")}


SEED = Dialect(
    name="seed",
    document=DialectPart(
        words=(DialectWord("name", "name"),),
        others={
            "tasks": as_written, "dependencies": as_written, "state": any_case(CONSTELLATION.states), EXTENSION: read_mapping,
        },
    ),
    task=DialectPart(
        words=(
            DialectWord("task_id", "task_id", always=True),
            DialectWord("name", "name", always=True),
            DialectWord("description", "description"),
            DialectWord("device", "device", "wanted_device"),
            DialectWord("tips", "tips"),
            DialectWord("priority", "priority", read=any_case(PRIORITIES), write=lambda place: PRIORITIES[place]),
        ),
        others={"status": any_case(TASK.states), **TOLD, ACTIONS: actions, EXTENSION: read_mapping},
    ),
    dependency=DialectPart(
        words=(
            DialectWord("from", "from", always=True),
            DialectWord("to", "to", always=True),
            DialectWord("type", "type", read=any_case(DEPENDENCY_TYPES), always=True),
            DialectWord("condition", "condition"),
        ),
        others={EXTENSION: read_mapping},
    ),
    action=("tool", "parameters"),
    actions=(ACTIONS,),
    condition="condition",
    default_type="SUCCESS_ONLY",
    told=told_state,
)  # fmt: skip
