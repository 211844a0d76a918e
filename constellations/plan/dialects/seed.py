"""The dialect of the seeds: `device`, `from`, `to`, `type`, `condition`, actions as {tool, parameters}. Pure."""

from __future__ import annotations

from constellations.machines import CONSTELLATION, TASK
from constellations.plan.dialects.vocabulary import ACTIONS, EXTENSION, Dialect, Part, Word, actions, any_case, as_written
from constellations.plan.fields import DEPENDENCY_TYPES, PRIORITIES
from constellations.plan.values import Row, mapping

TOLD = {key: as_written for key in ("result", "error", "started_at", "ended_at")}
"""What became of a task: read past."""


def told(row: Row) -> Row:
    written = {"status": row["state"], **{key: row.get(key) for key in TOLD}}
    return {key: value for key, value in written.items() if value not in (None, "")}


SEED = Dialect(
    name="seed",
    document=Part(
        words=(Word("name", "name"),),
        others={
            "tasks": as_written, "dependencies": as_written, "state": any_case(CONSTELLATION.states), EXTENSION: mapping,
        },
    ),
    task=Part(
        words=(
            Word("task_id", "task_id", always=True),
            Word("name", "name", always=True),
            Word("description", "description"),
            Word("device", "device", "wanted_device"),
            Word("tips", "tips"),
            Word("priority", "priority", read=any_case(PRIORITIES), write=lambda place: PRIORITIES[place]),
        ),
        others={"status": any_case(TASK.states), **TOLD, ACTIONS: actions, EXTENSION: mapping},
    ),
    dependency=Part(
        words=(
            Word("from", "from", always=True),
            Word("to", "to", always=True),
            Word("type", "type", read=any_case(DEPENDENCY_TYPES), always=True),
            Word("condition", "condition"),
        ),
        others={EXTENSION: mapping},
    ),
    action=("tool", "parameters"),
    actions=(ACTIONS,),
    condition="condition",
    default_type="SUCCESS_ONLY",
    told=told,
)  # fmt: skip
