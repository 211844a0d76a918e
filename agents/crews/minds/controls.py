"""What a model may want besides the tools of its device: the tools by which it steers itself, and the steps that these are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.crews.script import Step
from agents.devices.profiles.platforms import PLATFORMS
from agents.gates.approvals import APPROVAL_S, WAIT_S
from agents.llm.exchange import OfferedTool

LONGEST_WAIT_S = 7 * 24 * 3_600.0
"""That a model may wait in one call."""
TEXT = 20_000
"""Characters of a question, a reason, an instruction."""
NAME = 80
"""Characters of a name."""
PHASES = 100
"""Of one agent."""
OPTIONS = 20
"""Answers that a question offers."""

Make = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Control:
    """A tool of a mind: what it is offered as, and the step that a call of it is."""

    offered: OfferedTool
    make: Make


CONTROLS: dict[str, Control] = {}
"""By name."""


def _object(required: tuple[str, ...] = (), *, properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**(properties or {}), **more},
        "required": list(required),
        "additionalProperties": False,
    }


def _text(about: str = "", most: int = TEXT) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, **({"description": about} if about else {})}


def _seconds(about: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S, "description": about}


def _register(name: str, description: str, parameters: dict[str, Any]) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        CONTROLS[name] = Control(OfferedTool(name, description, parameters), make)
        return make

    return register


@_register("finish", "The task is done. This ends your work.", _object(("result",), result={"description": "Any JSON value."}))
def _finish(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "finish", "result": given["result"]}


@_register("fail", "The task cannot be done. This ends your work.", _object(("reason",), reason=_text("Why, for a person.")))
def _fail(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "fail", "reason": given["reason"]}


@_register(
    "ask",
    "Ask a person, and wait for the answer. Ask only what nothing here can tell you.",
    _object(
        ("question",), question=_text(),
        options={"type": "array", "items": _text(most=200), "maxItems": OPTIONS, "description": "Answers to choose from."},
    ),
)  # fmt: skip
def _ask(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "ask", "question": given["question"], "options": given.get("options", []), "timeout": APPROVAL_S}


@_register(
    "confirm",
    "Have a person approve one call of a tool; it is made exactly so when they do. If they refuse, the task has failed.",
    _object(
        ("tool", "arguments", "why"), tool=_text("The tool to call.", NAME),
        arguments={"type": "object", "description": "Its arguments."}, why=_text("What the person has to know."),
    ),
)  # fmt: skip
def _confirm(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**call_step(given["tool"], given["arguments"]), "gate": given["why"]}


WAIT = {
    "seconds": _seconds("How long; with `for`, at most (60 unless given)."),
    "for": _text("What has to be reported.", 500),
}


@_register("wait", "Wait for a time, or until somebody outside reports that something has happened.", _object(properties=WAIT))
def _wait(given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("for"):
        return {"do": "wait", "seconds": None, "for": given["for"], "timeout": given.get("seconds", WAIT_S)}
    return {"do": "wait", "seconds": given.get("seconds", WAIT_S), "for": "", "timeout": None}


@_register("observe", "Look at what you work on: the workspace and the system of your device, or the page it shows.", _object())
def _observe(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "observe"}


@_register(
    "delegate",
    "Have another agent do a part of the task, on your device unless you say another one. It sees the blackboard; its result, "
    "or why there is none, comes back to you.",
    _object(
        ("name", "instruction"), name=_text("What the agent is called.", NAME), instruction=_text("What it has to do."),
        device=_text("The name of another device.", NAME), platform={"enum": list(PLATFORMS), "description": "Of its device."},
        capabilities={"type": "array", "items": _text(most=NAME), "maxItems": OPTIONS, "description": "Of its device."},
        app=_text("The page of a browser that it is held to.", NAME),
        visual={"type": "boolean", "description": "False: its looks at that page have no pictures."},
        on_lost={"enum": ["retry", "fail"], "description": "When its device is lost: wait for it, or end (unless given)."},
    ),
)  # fmt: skip
def _delegate(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "delegate", **given}


@_register(
    "start_phase",
    "Begin the next phase of your work, or the present one anew with `restart`. It completes the phase before.",
    _object(
        ("n", "description"), n={"type": "integer", "minimum": 1, "maximum": PHASES}, description=_text(most=500),
        expected_duration=_seconds("Seconds that it is expected to take."),
        total={"type": "integer", "minimum": 1, "maximum": PHASES, "description": "How many phases there will be."},
        restart={"type": "boolean"},
    ),
)  # fmt: skip
def _start_phase(given: Mapping[str, Any]) -> dict[str, Any]:
    usual = {"expected_duration": None, "total": given["n"], "restart": False}
    return {"do": "start_phase", **usual, **given}


@_register(
    "complete_phase",
    "End the present phase.",
    _object(outcome={"enum": ["success", "completed_with_issues"], "description": "By its tests and blockers unless given."}),
)
def _complete_phase(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "complete_phase", "outcome": given.get("outcome", "")}


@_register(
    "save",
    "Put a value on the blackboard, which all agents of this task see.",
    _object(("key", "value"), key=_text(most=NAME), value={"description": "Any JSON value."}),
)
def _save(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"do": "save", "key": given["key"], "value": given["value"]}


COMMAND_S = 600.0
"""Time of a command that a model chose; it is told when that is over."""


def call_step(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a device's tool as a step of a plan: what it brings, whatever that is, goes back to the model."""
    return {
        "do": "call", "tool": tool, "arguments": dict(arguments), "kind": "", "expect": {},
        "timeout": COMMAND_S if tool == "command" else None, "tries": 1, "every": 0.0, "recover": [], "writes": "",
        "confirm": False, "if": "",
    }  # fmt: skip


def finished(step: dict[str, Any], call_id: str, tool: str) -> Step:
    """A step with what every step of a mind has: which call it answers, and that its failure is the model's to judge."""
    return {"save": "", "on_failure": "continue", **step, "call_id": call_id, "called": tool}
