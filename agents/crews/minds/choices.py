"""An answer of a model as steps: what it wants done, or why it cannot be read so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

from agents.crews.minds.controls import CONTROLS, call_step, finished
from agents.crews.script import DELEGATIONS, Step
from agents.errors import AgentsError
from agents.llm.conversation import Message, Text, ToolCall
from agents.llm.exchange import OfferedTool
from agents.tools.catalogue import SCHEMAS, TOOLS

CALLS = 16
"""Calls of one answer."""
NOT_OFFERED = ("noop", "observe")
"""Tools of devices that no model is offered: one does nothing, one is a tool of the mind itself."""
MISTAKES = 3
"""Wrong arguments that one message names."""
SCHEMA = 2_000
"""Characters of a schema that a message repeats."""
NOT_MADE = "not done: another call of the same answer cannot be read"


@dataclass(frozen=True)
class Choice:
    """What a model wants. `flaws` are there where the answer cannot be used: {call_id, tool, text, failed} for each of its
    calls, and then there are no steps.
    """

    said: str = ""
    steps: Sequence[Step] = ()
    flaws: Sequence[Mapping[str, Any]] = field(default=())

    @property
    def error(self) -> str:
        return "; ".join(flaw["text"] for flaw in self.flaws if flaw["text"] != NOT_MADE)


def offered_tools(depth: int) -> dict[str, OfferedTool]:
    """What an agent so many delegations below its host may call, by name: the tools of its device, and those of a mind."""
    found = {
        name: OfferedTool(name, _first_words(TOOLS[name].__doc__ or ""), SCHEMAS[name])
        for name in sorted(TOOLS)
        if name in SCHEMAS and name not in NOT_OFFERED
    }
    found |= {name: control.offered for name, control in CONTROLS.items()}
    if depth >= DELEGATIONS:
        del found["delegate"]
    return found


def _first_words(text: str) -> str:
    return cleandoc(text).partition("\n\n")[0]


def read_choice(message: Message, offered: Mapping[str, OfferedTool]) -> Choice:
    """What a model's message wants. An answer with one call that cannot be read is used for nothing."""
    said = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if len(calls) > CALLS:
        return Choice(said, flaws=[_flaw(call, f"{len(calls)} calls in one answer; {CALLS} are allowed") for call in calls])
    steps: list[Step] = []
    wrong: dict[int, str] = {}
    for number, call in enumerate(calls):
        try:
            steps.append(_step_of(call, offered))
        except AgentsError as error:
            wrong[number] = str(error)
    if wrong:
        return Choice(said, flaws=[_flaw(call, wrong.get(number, NOT_MADE)) for number, call in enumerate(calls)])
    return Choice(said, steps)


def _flaw(call: ToolCall, text: str) -> dict[str, Any]:
    return {"call_id": call.id, "tool": call.tool, "text": text, "failed": True}


class NotOffered(AgentsError):
    """A model called what it was not offered, or not as it was offered."""

    code = "bad_answer"


def _step_of(call: ToolCall, offered: Mapping[str, OfferedTool]) -> Step:
    """Raises AgentsError with the tool's name and what is wrong."""
    arguments = call.read_arguments()
    _check(call.tool, arguments, offered)
    control = CONTROLS.get(call.tool)
    if control is None:
        return finished(call_step(call.tool, arguments), call.id, call.tool)
    if call.tool == "confirm":
        if arguments["tool"] in CONTROLS:
            raise NotOffered(f"confirm: {arguments['tool']} is no tool of the device, and needs nobody's leave")
        _check(arguments["tool"], arguments["arguments"], offered)
    return finished(control.make(arguments), call.id, call.tool)


def _check(tool: str, arguments: Mapping[str, Any], offered: Mapping[str, OfferedTool]) -> None:
    if tool not in offered:
        raise NotOffered(f"there is no tool {tool[:80]}; there are {', '.join(offered)}")
    if wrong := find_misfit(arguments, offered[tool].parameters):
        schema = json.dumps(offered[tool].parameters, separators=(",", ":"))[:SCHEMA]
        raise NotOffered(f"{tool}: {wrong}. Its arguments: {schema}")


def find_misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Where and why a value does not follow a JSON Schema, empty where it does."""
    from jsonschema import Draft202012Validator  # large, and an agent without a model never needs it

    errors = Draft202012Validator(schema).iter_errors(value)
    told = [
        ": ".join(filter(None, (".".join(map(str, error.absolute_path)), error.message[:200])))
        for _, error in zip(range(MISTAKES), errors, strict=False)
    ]
    return "; ".join(told)
