"""The constellation as a prompt shows it: each task with what may be done with it, and the results that others need.

A graph that does not fit is summed up: what the events are about and what stands beside it is shown in full, then what may
still be changed, then the rest, as far as there is room; of what is left out, the numbers by state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any

from constellations.editor.draft import may_change
from constellations.plan.keys.calls import COMMAND
from constellations.plan.keys.fields import PRIORITIES
from constellations.prompts.quoting import json_line, quote, quote_lines, shorten, text_of
from constellations.prompts.scene import Scene

TASKS = 60_000
"""Characters of all tasks together."""
RESULTS = 24_000
"""Characters of all results together, and..."""
RESULT = 4_000
"""...of one."""
LEAST_RESULT = 200
"""Characters: where less room is left, a result is named and not shown."""
LINE = 4_000
"""Characters of one task's line; what it does is cut so that it fits."""
TEXT = 1_000
"""Characters of a description or a command."""
UPSTREAM = 50
"""Dependencies of one task that are shown."""
LEFT_OUT = 100
"""Ids of tasks that are named of those that have no line."""

Row = Mapping[str, Any]


def render_constellation(scene: Scene) -> str:
    """Name, state, numbers, a line for each task that is shown, and the results that are needed."""
    if scene.constellation is None:
        return "There is no constellation yet."
    row, counts = scene.constellation, Counter(task["state"] for task in scene.tasks)
    named = {key: row[key] for key in ("name", "state", "version") if row.get(key) not in (None, "")}
    numbers = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    upstream = _by_downstream(scene.dependencies)
    lines, left = _lines(scene, upstream)
    if left:
        ids = ", ".join(task["task_id"] for task in left[:LEFT_OUT])
        states = Counter(f"{mark_of(task)} {task['state']}" for task in left)
        told = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        lines.append(f"{len(left):,} tasks are left out here ({told}); the first of them: {ids}")
    shown = quote_lines("constellation", [json_line({**named, "tasks": len(scene.tasks)}), *lines])
    return "\n".join([f"Tasks by state: {numbers or 'none'}.", shown, *render_results(scene)])


def mark_of(task: Row) -> str:
    """Whether an edit may change a task."""
    return "modifiable" if may_change(task) else "read-only"


def _by_downstream(dependencies: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for dependency in dependencies:
        found.setdefault(dependency["to"], []).append(dependency)
    return found


def _lines(scene: Scene, upstream: Mapping[str, list[Row]]) -> tuple[list[str], list[Row]]:
    """The lines of the tasks that fit, in the graph's order, and the tasks that do not."""
    room, shown = TASKS, {}
    for place in _by_importance(scene):
        task = scene.tasks[place]
        line = render_task(task, upstream.get(task["task_id"], ()))
        if len(line) >= room:
            break
        shown[place] = line
        room -= len(line) + 1
    left = [task for place, task in enumerate(scene.tasks) if place not in shown] if len(shown) < len(scene.tasks) else []
    return [shown[place] for place in sorted(shown)], left


def _by_importance(scene: Scene) -> Iterator[int]:
    """Places of tasks: those of the events, their neighbours, what may be changed, what runs, what failed, the rest."""
    ended = {event["task_id"] for event in scene.events}
    near = {one["to"] for one in scene.dependencies if one["from"] in ended}
    near |= {one["from"] for one in scene.dependencies if one["to"] in ended}

    ranks: list[list[int]] = [[] for _ in range(6)]
    for place, task in enumerate(scene.tasks):
        ranks[_rank_of(task, ended, near)].append(place)
    return chain.from_iterable(ranks)


def _rank_of(task: Row, ended: Set[str], near: Set[str]) -> int:
    if task["task_id"] in ended:
        return 0
    if task["task_id"] in near:
        return 1
    if may_change(task):
        return 2
    return {"RUNNING": 3, "FAILED": 4}.get(task["state"], 5)


def render_task(task: Row, upstream: Sequence[Row]) -> str:
    """One line: the mark, then the task as JSON."""
    line = f"[{mark_of(task)}] {json_line(describe_task(task, upstream))}"
    if len(line) > LINE:
        brief = {key: task[key] for key in ("task_id", "state")} | {"too_long_to_show": len(line)}
        line = f"[{mark_of(task)}] {json_line(brief)}"
    return line


def describe_task(task: Row, upstream: Sequence[Row]) -> dict[str, Any]:
    """A task in the words of plans, without what is as usual and without its result."""
    name = task.get("name", "")
    after = [describe_dependency(each) for each in upstream[:UPSTREAM]]
    found: dict[str, Any] = {
        "task_id": task["task_id"],
        "state": task["state"],
        "reason": shorten(task.get("reason") or "", TEXT),
        "name": name if name != task["task_id"] else "",
        "description": shorten(task.get("description") or "", TEXT),
        **_doing(task),
        **{
            key: task.get(column)
            for key, column in (
                ("device", "wanted_device"), ("device_type", "device_type"), ("capabilities", "capabilities"),
                ("not_device", "not_device"), ("labels", "labels"), ("timeout", "timeout"), ("deadline", "deadline"),
                ("confirm", "confirm"), ("replaces", "replaces"), ("model", "model"),
            )
        },
        "priority": PRIORITIES[task["priority"]] if task.get("priority", 1) != 1 else "",
        "attempt": task.get("attempt", 0),
        "max_attempts": task["max_attempts"] if task.get("max_attempts", 1) > 1 else 0,
        "after": after,
        "more_after": len(upstream) - UPSTREAM if len(upstream) > UPSTREAM else 0,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value not in ("", [], {}, 0, None, False)}


def describe_dependency(dependency: Row) -> Any:
    """The id of the task that is waited for, or an object where there is more to say."""
    if dependency.get("type", "SUCCESS_ONLY") == "SUCCESS_ONLY":
        return dependency["from"]
    condition = {"condition": shorten(dependency["condition"], TEXT)} if dependency.get("condition") else {}
    return {"from": dependency["from"], "type": dependency["type"], **condition}


def _doing(task: Row) -> dict[str, Any]:
    """What the task does: its command, its tool with what it takes, or how many steps."""
    tool, arguments = task.get("tool", ""), task.get("arguments") or {}
    if task.get("phases"):
        return {"steps": sum(len(phase.get("steps", ())) for phase in task["phases"])}
    if tool == COMMAND:
        return {"command": _in_bounds(arguments.get("command", ""))}
    return {"tool": tool, "arguments": _in_bounds(arguments)}


def _in_bounds(value: Any) -> Any:
    """The value, or the beginning of its text."""
    return value if len(written := text_of(value)) <= TEXT else shorten(written, TEXT)


def render_results(scene: Scene) -> list[str]:
    """Results, and errors, of tasks that no event tells of: first those that tasks need which have not started."""
    told = {event["task_id"] for event in scene.events}
    rows = {task["task_id"]: task for task in scene.tasks}
    to_start = {task["task_id"] for task in scene.tasks if may_change(task)}
    waiting = (one["from"] for one in scene.dependencies if one["to"] in to_start)
    ordered = dict.fromkeys(key for key in chain(waiting, rows) if key in rows and key not in told)
    found = [rows[key] for key in ordered if has_outcome(rows[key])]
    if not found:
        return []
    parts, room, left = ["Results so far:"], RESULTS, 0
    for number, task in enumerate(found):
        if room < LEAST_RESULT:
            left = len(found) - number
            break
        part = render_outcome(task, min(RESULT, room))
        parts.append(part)
        room -= len(part)
    if left:
        parts.append(f"Of {left:,} more tasks the results are not shown.")
    return parts


def has_outcome(task: Row) -> bool:
    """Whether it brought a result, or an error."""
    return task.get("result") is not None or bool(task.get("error"))


def render_outcome(task: Row, budget: int) -> str:
    """What a task brought and why it failed, as untrusted material of at most about `budget` characters in all."""
    source = f"task {task['task_id']}"
    parts = []
    if task.get("result") is not None:
        parts.append(quote(f"{source} result", task["result"], budget if not task.get("error") else budget // 2))
    if task.get("error"):
        parts.append(quote(f"{source} error", task["error"], budget // 2 if parts else budget))
    return "\n".join(parts)
