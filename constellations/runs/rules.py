"""Which replan rules fire when tasks have ended. Pure: what their operations do is the editor's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constellations.conditions import evaluate_condition
from constellations.editor.draft import is_skipped
from constellations.errors import ConditionUnknown
from constellations.plan.error_kinds import ERROR, error_of
from constellations.plan.operations import deed_of, fill_rule

Ended = Mapping[str, Any]

SINGLE_EVENTS = {"COMPLETED": "task_completed", "FAILED": "task_failed"}


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that applies because `task_id` ended. `index` is the rule's place in the plan, from 0.

    `does` is one of operations.DEEDS. Its operations, and the reason for which it calls the run a failure, name that task where
    they are written with `{task}`, and its device where they are written with `{device}`.
    """

    rule: str
    index: int
    task_id: str
    reason: str
    operations: list[dict[str, Any]]
    does: str = "edit"


def match_rules(
    rules: Sequence[Mapping[str, Any]], fired: Mapping[str, int], ended: Iterable[Ended], results: Mapping[str, Any]
) -> tuple[list[Firing], list[str]]:
    """The rules (normal form: operations.read_rule) that tasks which have `ended` make fire, each at most its `times` in all.

    Firings come in the order in which the tasks ended, then that of the rules. A condition that is neither true nor false
    does not fire; it is in the second list, as a sentence.
    `fired` counts earlier firings by the rule's name and is not changed. An ended task has task_id, state, reason, result,
    error, error_kind, the name of its device, condition_failed where it was skipped, and in `stands_for` the tasks that it
    replaces: a rule about one of those is about it, too.
    """
    firings: list[Firing] = []
    notes: list[str] = []
    if not rules:
        return firings, notes
    count = dict(fired)
    for task in ended:
        for index, rule in enumerate(rules):
            name, when = rule["name"], rule["when"]
            if count.get(name, 0) >= rule.get("times", 1) or not _concerns(when, task):
                continue
            condition = when.get("condition", "")
            beside = {ERROR: error_of(task)} if ERROR in condition else {}
            try:
                if condition and not evaluate_condition(condition, task["result"], results, beside):
                    continue
            except ConditionUnknown as error:
                notes.append(f"rule {name} after {task['task_id']}: {error}")
                continue
            count[name] = count.get(name, 0) + 1
            task_id, device = task["task_id"], task.get("device", "")
            usual = rule.get("reason") or f"{name}: {task_id} is {task['state']}"
            reason = fill_rule(rule.get("fail", ""), task_id, device) or usual
            edit = fill_rule(list(rule["edit"]), task_id, device)
            firings.append(Firing(name, index, task_id, reason, edit, deed_of(rule)))
    return firings, notes


def _concerns(when: Mapping[str, Any], task: Ended) -> bool:
    """Whether a rule is about this task, or one that it replaces, and about an end of this kind."""
    wanted = when.get("task")
    names = (task["task_id"], *task.get("stands_for", ()))
    if wanted and not any(name == wanted if isinstance(wanted, str) else name in wanted for name in names):
        return False
    if not is_skipped(task):
        return when["event"] in ("task_ended", SINGLE_EVENTS.get(task["state"], ""))
    return when["event"] in ("task_ended", "task_skipped", *(("condition_failed",) if task.get("condition_failed") else ()))
