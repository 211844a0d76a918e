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
from agents.gates.unasked import LOOKS
from agents.llm.conversation import Message, Text, ToolCall
from agents.llm.exchange import OfferedTool
from agents.minds.untrusted import quote_untrusted
from agents.tools.catalogue import SCHEMAS, TOOLS
from agents.tools.namespaces import OFFERED, has_own_tools_only, tools_of, wire_name
from agents.tools.tame import split_descriptions

CALLS = 16
"""Calls of one answer."""
NOT_OFFERED = ("noop", *LOOKS)
"""Tools of devices that no model is offered: one does nothing, and to look is a tool of the mind itself."""
MISTAKES = 3
"""Wrong arguments that one message names."""
SAID = 2_000
"""Characters of what a tool server says of a tool."""
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


@dataclass(frozen=True, slots=True)
class ServerTool(OfferedTool):
    """A tool of a tool server, by a name that every provider takes; `whole_name` is that of plans."""

    whole_name: str = ""


def offered_tools(depth: int, device: Mapping[str, Any], only: Sequence[str] = ()) -> dict[str, OfferedTool]:
    """What an agent so many delegations below its host may call, by name: the tools of its device, and those of a mind.

    `only`: the tools of its device that its app offers; empty for all.
    """
    found: dict[str, OfferedTool] = {}
    if not has_own_tools_only(device):
        found = {
            name: OfferedTool(name, _first_words(TOOLS[name].__doc__ or ""), SCHEMAS[name])
            for name in sorted(TOOLS)
            if name in SCHEMAS and name not in NOT_OFFERED and (not only or name in only)
        }
    else:
        own = [tool for tool in tools_of(device) if tool["name"] not in LOOKS and (not only or tool["name"] in only)]
        served = [_server_tool(tool, device) for tool in own]
        found = {tool.name: tool for tool in served}
    found |= {name: control.offered for name, control in CONTROLS.items()}
    if depth >= DELEGATIONS:
        del found["delegate"]
    return found


def _server_tool(tool: Mapping[str, Any], device: Mapping[str, Any]) -> ServerTool:
    """All that a server says of it, and of its arguments, stands between marks in its description. Our own words do not."""
    if device.get("kind") in OFFERED:
        return ServerTool(wire_name(tool["name"]), tool["description"], tool["arguments"], tool["name"])
    parameters, said = split_descriptions(tool["arguments"])
    words = quote_untrusted(f"tool server {device['name']}", "\n".join([tool["description"], *said]), SAID)
    return ServerTool(wire_name(tool["name"]), words, parameters, tool["name"])


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
        return finished(call_step(_whole_name(call.tool, offered), arguments), call.id, call.tool)
    if call.tool == "confirm":
        if arguments["tool"] in CONTROLS:
            raise NotOffered(f"confirm: {arguments['tool']} is no tool of the device, and needs nobody's leave")
        _check(arguments["tool"], arguments["arguments"], offered)
        arguments = {**arguments, "tool": _whole_name(arguments["tool"], offered)}
    return finished(control.make(arguments), call.id, call.tool)


def _whole_name(tool: str, offered: Mapping[str, OfferedTool]) -> str:
    """The name that plans and policies have for a tool."""
    found = offered[tool]
    return found.whole_name if isinstance(found, ServerTool) else tool


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
