"""Which attempts need a crew, and what such a crew is to do.

An attempt is worked on by a crew (agents.crews) when its task is in steps, waits for a person's approval, or makes a call that
a policy has something to say about. Every other attempt is one plain call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from agents.crews.members.assignment import Assignment
from agents.crews.minds.mission import Mission
from agents.crews.platforms import look_tool
from agents.crews.script import call_of
from agents.gates.gate import Gate
from agents.gates.judging import act_on
from agents.gates.policies import Judgement, Site, concerns_call, judge_act
from agents.llm.profiles import choose_profiles
from agents.progress.settings import Settings
from agents.streams.row_types import LiveDevice
from agents.streams.tables import fold_rows
from agents.tools.catalogue import PATHS
from agents.tools.namespaces import has_own_tools_only
from constellations import conditions
from constellations.live.row_types import AttemptRow, TaskRow
from constellations.plan.keys.calls import INSTRUCTION, STEPS, delegated_elsewhere
from constellations.plan.script import calls_of, rule_of, script_of
from constellations.runs.attempts.fleet import TaskFleet
from constellations.runs.attempts.inputs import inputs_of
from constellations.runs.context import Context, Start

PURPOSE = "device_agent"
"""What the models of such agents are asked for."""
EARLIER = 3
"""Earlier attempts that an agent is told of, the latest."""


def needs_crew(context: Context, task: TaskRow, device: LiveDevice) -> bool:
    """Whether a task is more than one plain call."""
    if task["tool"] in (STEPS, INSTRUCTION) or task["confirm"] or has_own_tools_only(device):
        return True
    if task["chosen"] and _judge_chosen(task, device).decision != "allow":
        return True
    if not (context.policies or task["policies"]):
        return False
    if task["tool"] in PATHS:  # a path that is judged: the call has to be held to where it led
        rules, site = [*context.policies, *map(rule_of, task["policies"])], Site.of(device)
        if any(rule.pattern and concerns_call(rule, task["tool"], site) for rule in rules):
            return True
    return _judge_call(context, task, task["tool"], task["arguments"], device).decision != "allow"


def make_assignment(context: Context, start: Start) -> Assignment:
    """What the crew of an attempt is to do, and where."""
    task = start.node.row
    device = context.devices[start.attempt["device_id"]]
    return Assignment(
        stream=context.stream, interaction=context.interaction["id"], attempt=start.attempt, device=device, task=task["id"],
        title=task["name"] or task["task_id"], scope=context.scope, inherits=context.inherits, script=script_of(task),
        plain=task["tool"] not in (STEPS, INSTRUCTION), is_gated=_is_gated(context, task, device),
        timeout=task["timeout"], on_lost=task["on_lost"],
        settings=Settings.of({**settings.PROGRESS, **task["progress"]}),
        accepted=task["accepted"], has_arbiter=bool(settings.STUCK_ARBITER), own=[rule_of(row) for row in task["policies"]],
        unasked=task["unasked"], is_chosen=task["chosen"],
        rules=lambda: context.policies, holds=lambda condition, value: conditions.evaluate_condition(condition, value, {}),
        mission=_mission_of(context, start) if _says_words(task) else None, is_in_words=task["tool"] == INSTRUCTION,
        inputs=inputs_of(context, task, device) if task["inputs"] else (), outputs=task["outputs"],
        fleet=TaskFleet(context, task), resumes=_resumed_by(start, device),
    )  # fmt: skip


def _says_words(task: TaskRow) -> bool:
    """Whether somebody is told in words what to do: who has the task, or a coding agent to which a step delegates a part."""
    return task["tool"] == INSTRUCTION or any(step.get("instruction") for _, step in delegated_elsewhere(task))


def _resumed_by(start: Start, device: LiveDevice) -> int:
    """On a browser the host of the attempt before this one, whose pages are opened again if a call was lost; else 0."""
    if device["kind"] != "browser" or start.attempt["number"] == 1:
        return 0
    task, number = start.node.row["id"], start.attempt["number"] - 1
    before: list[AttemptRow] = fold_rows("attempt", "task_id = %s AND number = %s", task, number)
    return before[0]["agent_id"] if before else 0


def _mission_of(context: Context, start: Start) -> Mission:
    """What the agents of a task in words are told."""
    node, task, number = start.node, start.node.row, start.attempt["number"]
    upstream = [edge.up.row for edge in node.incoming if edge.up.ended]
    tried: list[AttemptRow] = fold_rows("attempt", "task_id = %s AND number < %s", task["id"], number) if number > 1 else []
    session = fold_rows("session", "id = %s", context.stream)
    wanted = (task["model"], context.constellation["model_profiles"].get(PURPOSE, ""))
    own = session[0]["model_profiles"].get(PURPOSE, "") if session else ""
    return Mission(
        profiles=lambda: choose_profiles(context.profiles, PURPOSE, *wanted, own),
        name=task["name"] or task["task_id"], description=task["description"], tips=task["tips"],
        upstream=[_told(row, "task_id", "name", "state", "result", "error") for row in upstream],
        earlier=[_told(row, "number", "outcome", "error") for row in tried[-EARLIER:]],
        result_schema=task["result_schema"],
    )  # fmt: skip


def _told(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: row[key] for key in keys}


def _judge_chosen(task: TaskRow, device: LiveDevice) -> Judgement:
    """What is to be done about the one call of a task that a model chose, as far as no policy has a say in it."""
    own = [rule_of(row) for row in task["policies"]]
    gate = Gate(device, list, own, asks=task["confirm"], is_one_call=True, unasked=task["unasked"])
    return gate.judge_chosen(gate.describe_call(task["tool"], task["arguments"], is_chosen=True))


def _is_gated(context: Context, task: TaskRow, device: LiveDevice) -> bool:
    """Whether a person is asked before anything is done: the plan says so, or a policy calls one of its calls critical."""
    if task["confirm"]:
        return True
    steps, look = calls_of(script_of(task)), look_tool(device["platform"])
    judged = [_judge_call(context, task, *call_of(step, look), device, step.get("writes", "")) for step in steps]
    return any(each.decision == "ask" and each.critical for each in judged)


def _judge_call(
    context: Context, task: TaskRow, tool: str, arguments: Mapping[str, Any], device: LiveDevice, writes: str = ""
) -> Judgement:  # fmt: skip
    own = [rule_of(row) for row in task["policies"]]
    return judge_act(context.policies, own, act_on(device, tool, arguments, writes), Site.of(device))
