"""What a task is given: the artifacts that its `inputs` name, looked up when its attempt begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.gates.judging import act_on
from agents.gates.policies import Rule, Site, judge_act
from agents.streams.row_types import ArtifactRow, LiveDevice
from agents.streams.tables import fold_rows
from constellations.live.row_types import AttemptRow, ConstellationRow, TaskRow
from constellations.plan.script import rule_of
from constellations.runs.context import Context

WRITE = "write_file"
"""The tool by whose policies inputs are judged."""
Input = dict[str, Any]
"""As agents.artifacts.workspace takes it: {path, sha256, size} or {path, missing}."""


def inputs_of(context: Context, task: TaskRow, device: LiveDevice) -> list[Input]:
    """The inputs of a task on a device, each with what it is or why there is none."""
    found = [_find_input(context, path, *_parted(written)) for path, written in sorted(task["inputs"].items())]
    own = [rule_of(row) for row in task["policies"]]
    return [_judged(each, context.policies, own, device) for each in found] if context.policies or own else found


def _judged(told: Input, rules: Sequence[Rule], own: Sequence[Rule], device: LiveDevice) -> Input:
    """An input is written by nobody's call, so whatever policies do not plainly allow a call to write is not placed."""
    act = act_on(device, WRITE, {"path": told["path"], "content": ""})
    if judge_act(rules, own, act, Site.of(device)).decision == "allow":
        return told
    return {"path": told["path"], "missing": f"a policy of {WRITE} lets nothing be written there unasked"}


def _parted(written: str) -> tuple[str, str]:
    """`task#name`, taken apart; without a task it was uploaded."""
    task, _, name = written.partition("#")
    return task, name


def _find_input(context: Context, path: str, task: str, name: str) -> Input:
    if not task:
        uploaded = fold_rows("artifact", "session_id = %s AND kind = %s AND name = %s", context.stream, "upload", name)
        return _told(path, uploaded, f"nobody has uploaded {name} to the session")
    known: Mapping[str, Any] | None = context.constellation
    while known is not None:
        found: list[TaskRow] = fold_rows("task", "constellation_id = %s AND task_id = %s", known["id"], task)
        if not found:
            return {"path": path, "missing": f"there is no task {task}, whose output {name} it wants"}
        attempts: list[AttemptRow] = fold_rows("attempt", "task_id = %s AND ended_at IS NOT NULL", found[0]["id"])
        if attempts:
            kept = fold_rows("artifact", "attempt_id = %s AND name = %s", attempts[-1]["id"], name)
            return _told(path, kept, f"the last attempt of {task} has kept no output {name}")
        known = _source_of(known, found[0])
    return {"path": path, "missing": f"the task {task}, whose output {name} it wants, has made no attempt"}


def _source_of(known: Mapping[str, Any], task: TaskRow) -> Mapping[str, Any] | None:
    """The constellation that a fork took a task over from, which it has not tried itself."""
    if known["forked_from_id"] is None or task["state"] in ("PENDING", "RUNNING"):
        return None
    sources: list[ConstellationRow] = fold_rows("constellation", "id = %s", known["forked_from_id"])
    return sources[0] if sources else None


def _told(path: str, found: list[ArtifactRow], missing: str) -> Input:
    """The newest of the artifacts, if there is one and its content was not removed."""
    if not found:
        return {"path": path, "missing": missing}
    newest = found[-1]
    if newest["removed_at"] is not None:
        return {"path": path, "missing": f"{newest['name']} was removed from the store on {newest['removed_at'][:10]}"}
    return {"path": path, "name": newest["name"], "sha256": newest["sha256"], "size": newest["size"]}
