"""The dialect of UFO Galaxy: what its TaskConstellation, TaskStar and TaskStarLine write of themselves, and read again. Pure.

Galaxy keeps `task_data` of a task and `metadata` of the others as they are, and forgets keys it does not know: what it has no
words for is in there.
"""

from __future__ import annotations

from typing import Any

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
from constellations.plan.keys.calls import prose
from constellations.plan.keys.fields import DEPENDENCY_TYPES, MAX_ATTEMPTS, PRIORITIES
from constellations.plan.operations import MAX_TASKS
from constellations.plan.values import (
    MAX_ID,
    Misfit,
    Reader,
    Row,
    identifier_reader,
    list_reader,
    quote_value,
    read_mapping,
    value_kind,
    whole_reader,
)

DEVICE_TYPES = ("windows", "macos", "linux", "android", "ios", "web", "api")
ENDS = {"CANCELLED": "failed"}
"""Galaxy has no cancelled constellations; what it does not know it takes for one that was just created."""

TIMES: dict[str, Reader] = dict.fromkeys(
    ("created_at", "updated_at", "execution_start_time", "execution_end_time", "execution_duration"), as_written
)
PAST: dict[str, Reader] = {**TIMES, "result": as_written, "error": as_written, "current_retry": as_written}
EVALUATED: dict[str, Reader] = {
    "created_at": as_written, "updated_at": as_written, "is_satisfied": as_written, "last_evaluation_result": as_written,
    "last_evaluation_time": as_written,
}  # fmt: skip
"""What has happened, when: read past."""

ids = list_reader(identifier_reader(MAX_ID), MAX_TASKS)


def read_galaxy_priority(value: Any) -> str | None:
    """A name, or a number from 1."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 1 <= value <= len(PRIORITIES):
            return PRIORITIES[value - 1]
        raise Misfit(f"is {quote_value(value)}; it must be from 1 (LOW) to {len(PRIORITIES)} (CRITICAL)")
    if not isinstance(value, str):
        raise Misfit(f"must be one of {', '.join(PRIORITIES)} or a number from 1, not {value_kind(value)}")
    return any_case(PRIORITIES)(value)


def read_attempts(value: Any) -> int:
    """`retry_count` counts what comes after the first attempt."""
    return whole_reader(0, MAX_ATTEMPTS - 1)(value) + 1


def device_type(value: str) -> str | None:
    return value if value in DEVICE_TYPES else None


def told_state(row: Row) -> Row:
    return {
        "status": row["state"].lower(), "result": row.get("result"), "error": row.get("error") or None,
        "current_retry": max(0, (row.get("attempt") or 0) - 1), "execution_start_time": row.get("started_at"),
        "execution_end_time": row.get("ended_at"),
    }  # fmt: skip


GALAXY = Dialect(
    name="galaxy",
    document=DialectPart(
        words=(DialectWord("name", "name", always=True),),
        others={
            "tasks": as_written, "dependencies": as_written, "constellation_id": as_written, "llm_source": as_written,
            "state": any_case(CONSTELLATION.states), "metadata": read_mapping, **TIMES,
        },
        extension=("metadata", EXTENSION),
    ),
    task=DialectPart(
        words=(
            DialectWord("task_id", "task_id", always=True),
            DialectWord("name", "name", always=True),
            DialectWord("description", "description", always=True),
            DialectWord("tips", "tips", always=True),
            DialectWord("target_device_id", "device", "wanted_device"),
            DialectWord("device_type", "device_type", read=any_case(DEVICE_TYPES), write=device_type),
            DialectWord("priority", "priority", read=read_galaxy_priority, write=lambda place: place + 1, always=True),
            DialectWord("timeout", "timeout"),
            DialectWord("retry_count", "max_attempts", read=read_attempts, write=lambda count: count - 1, always=True),
        ),
        others={
            "task_description": as_written, "expected_output_type": prose, "status": any_case(TASK.states), **PAST,
            "dependencies": ids, "dependents": ids, ACTIONS: actions, "task_data": read_mapping,
        },
        extension=("task_data", EXTENSION),
    ),
    dependency=DialectPart(
        words=(
            DialectWord("line_id", "dependency_id", always=True),
            DialectWord("from_task_id", "from", always=True),
            DialectWord("to_task_id", "to", always=True),
            DialectWord("dependency_type", "type", read=any_case(DEPENDENCY_TYPES), write=str.lower, always=True),
            DialectWord("condition_description", "condition", always=True),
        ),
        others={"metadata": read_mapping, **EVALUATED},
        extension=("metadata", EXTENSION),
    ),
    action=("function", "arguments"),
    of_action=dict.fromkeys(("status", "result", "target", "action_string", "action_representation"), as_written),
    actions=("task_data", ACTIONS),
    condition="condition_description",
    default_type="UNCONDITIONAL",
    keyed=True,
    names_command="execute_command",
    state=lambda state: ENDS.get(state, state.lower()),
    told=told_state,
)  # fmt: skip
