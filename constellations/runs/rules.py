"""Which replan rules fire when tasks have ended. Pure: what their operations do is the editor's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constellations.conditions import evaluate_condition
from constellations.editor.draft import is_skipped
from constellations.errors import ConditionUnknown
from constellations.plan.error_kinds import ERROR, error_of
from constellations.plan.operations import deed_of, filled

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


def match(
    rules: Sequence[Mapping[str, Any]], fired: Mapping[str, int], ended: Iterable[Ended], results: Mapping[str, Any]
) -> tuple[list[Firing], list[str]]:
    """The rules (normal form: operations.rule) that tasks which have `ended` make fire, each at most its `times` in all.

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
            if count.get(rule["name"], 0) < rule.get("times", 1) and _concerns(rule["when"], task):
                try:
                    if _holds(rule["when"].get("condition", ""), task, results):
                        count[rule["name"]] = count.get(rule["name"], 0) + 1
                        firings.append(_firing(index, rule, task))
                except ConditionUnknown as error:
                    notes.append(f"rule {rule['name']} after {task['task_id']}: {error}")
    return firings, notes


def _concerns(when: Mapping[str, Any], task: Ended) -> bool:
    wanted = when.get("task")
    names = (task["task_id"], *task.get("stands_for", ()))
    named = not wanted or any(name == wanted if isinstance(wanted, str) else name in wanted for name in names)
    return named and when["event"] in _events(task)


def _events(task: Ended) -> tuple[str, ...]:
    """What a rule may call the end of a task."""
    if not is_skipped(task):
        return "task_ended", SINGLE_EVENTS.get(task["state"], "")
    return "task_ended", "task_skipped", *(("condition_failed",) if task.get("condition_failed") else ())


def _holds(condition: str, task: Ended, results: Mapping[str, Any]) -> bool:
    beside = {ERROR: error_of(task)} if ERROR in condition else {}
    return not condition or evaluate_condition(condition, task["result"], results, beside)


def _firing(index: int, rule: Mapping[str, Any], task: Ended) -> Firing:
    ended = task["task_id"], task.get("device", "")
    reason = filled(rule.get("fail", ""), *ended) or rule.get("reason") or f"{rule['name']}: {ended[0]} is {task['state']}"
    return Firing(rule["name"], index, ended[0], reason, filled(list(rule["edit"]), *ended), deed_of(rule))
