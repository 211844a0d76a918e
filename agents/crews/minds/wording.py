"""What a model is told: the system prompt, the task, and what came of its calls. Pure but for the files of the templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.crews.minds.mission import Mission
from agents.llm.conversation import Message, Part, Text, ToolResult
from agents.masks.values import mask_text
from agents.minds.question import SystemPrompt
from agents.minds.templates import load_template
from agents.minds.untrusted import RULE, cut_text, quote_untrusted
from agents.tools.calls import Outcome

HERE = Path(__file__).parent
DESCRIPTION = 20_000
"""Characters of a task's description that its agent is told."""
RESULT = 8_000
"""Characters of one result, of a tool or of a task before."""
ERROR = 2_000
"""Characters of an error."""
UPSTREAM = 20
"""Tasks before this one whose results are told."""
ALL_RESULTS = 40_000
"""Characters of the results of all tasks before."""
BOARD = 8_000
"""Characters of the blackboard."""
GO_ON = "Go on. Call a tool; or end your work with finish(result) or fail(reason)."
"""What a model is told that said something and called nothing."""
DEVICE = ("name", "type", "platform", "os", "capabilities", "labels")
"""What a model is told of its device."""


def system_prompt(mission: Mission, device: Mapping[str, Any]) -> SystemPrompt:
    template = load_template(HERE / "system.txt")
    schema = json.dumps(mission.result_schema, ensure_ascii=False) if mission.result_schema else ""
    values = {
        "rule": RULE,
        "result": f"- The result must follow this JSON Schema: {schema}" if schema else "",
        "device": json.dumps({key: device[key] for key in DEVICE if device.get(key)}, ensure_ascii=False, default=str),
    }
    return SystemPrompt(mask_text(template.render(values)), template.version)


def task_message(mission: Mission, instruction: str, board: Mapping[str, Any]) -> Message:
    """The task as an agent is told it first; `instruction` is that of an agent that another one has delegated to."""
    shown = mission.upstream[:UPSTREAM]
    upstream = "".join(_upstream_text(row, min(RESULT, ALL_RESULTS // len(shown))) for row in shown)
    earlier = "".join(
        f"Attempt {row['number']} ended: {row['outcome']}. {_quoted('error', row['error'])}\n" for row in mission.earlier
    )
    values = {
        "name": instruction or mission.name,
        "description": "" if instruction else f"\n{cut_text(mission.description, DESCRIPTION)}\n",
        "tips": "" if instruction else "".join(f"- {tip}\n" for tip in mission.tips),
        "upstream": f"\nResults of the tasks before:\n{upstream}" if upstream else "",
        "earlier": f"\nThe task was tried before:\n{earlier}" if earlier else "",
        "blackboard": f"\nOn the blackboard:\n{quote_untrusted('blackboard', _json(board), BOARD)}\n" if board else "",
    }
    return _user(load_template(HERE / "task.txt").render(values).strip())


def _upstream_text(row: Mapping[str, Any], room: int) -> str:
    said = _json(row["result"]) if row["result"] is not None else row["error"]
    shown = quote_untrusted(row["task_id"], said, room) if said else "nothing"
    return f"{row['task_id']} ({row['name']}), {row['state']}: {shown}\n"


def _quoted(source: str, text: str) -> str:
    return quote_untrusted(source, text, ERROR) if text else ""


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _user(text: str) -> Message:
    return Message("user", (Text(mask_text(text)),))


def outcome_text(outcome: Outcome, wrong: str) -> str:
    """What a call has brought, as its model reads it: the error, the exit code, what was printed, or the result."""
    parts = [f"error: {wrong[:ERROR]}"] if wrong else []
    if outcome.exit_code is not None:
        parts.append(f"exit code {outcome.exit_code}")
    found = outcome.result if isinstance(outcome.result, Mapping) and outcome.exit_code is None else None
    if found is not None and isinstance(found.get("content"), str):  # a file is read as it stands
        told = {key: value for key, value in found.items() if key != "content"}
        parts += [_json(told), found["content"]]
    elif outcome.text:
        parts.append(outcome.text)
    elif outcome.result is not None:
        parts.append(_json(outcome.result))
    return "\n".join(parts) or "done; nothing was printed"


def is_part(outcome: Outcome) -> bool:
    """Whether a tool has answered with a part, and there is more: the beginning of a file, or a piece of it."""
    found = outcome.result if isinstance(outcome.result, Mapping) else {}
    content, offset, size = (found.get(key) for key in ("content", "offset", "size"))
    return isinstance(content, str) and isinstance(offset, int) and isinstance(size, int) and offset + len(content) < size


def kept_result(call_id: str, tool: str, text: str, *, failed: bool, trusted: bool) -> dict[str, Any]:
    """A result as it is kept until the model is told: masked, cut, and between marks unless it is our own word."""
    masked = mask_text(text)
    quoted = cut_text(masked, RESULT) if trusted else quote_untrusted(tool, masked, RESULT)
    return {"call_id": call_id, "tool": tool, "text": quoted, "failed": failed}


def told_message(results: Sequence[Mapping[str, Any]], heard: Sequence[str], request: str = "") -> list[Message]:
    """What comes into the conversation next: results of calls, then what others said, then what is asked for."""
    parts: list[Part] = [ToolResult(**row) for row in results]
    parts += [Text(mask_text(cut_text(said, RESULT))) for said in heard]
    if request:
        parts.append(Text(request))
    return [Message("user", tuple(parts))] if parts else []


def summary_request() -> str:
    return load_template(HERE / "summary.txt").render({}).strip()
