"""A model's answer as values: found in its text, checked in its form, refused with what is wrong and where. Pure.

What the plan or the actions mean is for the plan's reader and the editor; here is only whether they are there in the form that
those take.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from constellations.errors import ConstellationsError, in_short
from constellations.plan.documents import MAX_DEPTH, value_flaws
from constellations.plan.values import key_text, value_kind
from constellations.prompts.extraction import NoObject, find_object

ANSWER = 1_000_000
"""Characters of an answer that are read."""
SAID = 20_000
"""Characters of an observation or a thought that are kept."""
ACTIONS = 1_000
"""Actions of one answer."""
PROBLEMS = 50
"""Problems that are told of one answer."""
STATUS = "status"
"""The key that every answer has."""
STATUSES = ("CONTINUE", "FINISH", "FAIL", "START")
AS_TEXT = (
    "arguments", "dependencies", "parameters", "phases", "policies", "progress", "result_schema", "steps", "tasks", "unasked",
)  # fmt: skip
"""Keys whose object or list may come as its JSON text: some providers hold a model to a form that leaves it no other way."""


class AnswerUnusable(ConstellationsError):
    """The model's answer is not in the form that was asked for.

    Each of `problems` is {"field": "actions[0].tool", "message": "..."}, and of an action `operation` beside it, from 1.
    """

    code = "answer_unusable"

    def __init__(self, problems: list[dict[str, Any]]):
        super().__init__(f"answer: {in_short([_line_of(problem) for problem in problems])}", problems)


@dataclass(frozen=True)
class Answer:
    """What a model decided.

    `plan` is creation's constellation {name?, tasks, dependencies}, None where it gives none; `actions` are editing's,
    [{"tool", "parameters"}] as `dispatcher.execute_commands` takes them; `result` is a direct answer, or the summary.
    """

    observation: str = ""
    thought: str = ""
    status: str = "CONTINUE"
    plan: dict[str, Any] | None = None
    actions: list[dict[str, Any]] = field(default_factory=list)
    result: Any = None


def read_object(text: str) -> dict[str, Any]:
    """The JSON object of an answer, its parts that came as JSON text read; raises AnswerUnusable."""
    if len(text) > ANSWER:
        raise AnswerUnusable([problem("", f"it has {len(text):,} characters; {ANSWER:,} are read")])
    try:
        found = find_object(text, STATUS)
    except NoObject as error:
        raise AnswerUnusable([problem("", str(error))]) from error
    found = dict(_with_texts_read(found, 0))
    if flaws := list(islice(value_flaws(found), PROBLEMS)):
        raise AnswerUnusable([problem(key_text(path), message) for path, message in flaws])
    return found


def read_common(found: Mapping[str, Any], keys: tuple[str, ...], problems: list[dict[str, Any]]) -> Answer:
    """What the answers of all modes have; adds what is wrong to `problems`. `keys` are those that such an answer may have."""
    problems += [
        problem(str(key)[:80], f"there is no such key in an answer; there are {', '.join(keys)}")
        for key in found
        if key not in keys
    ]
    return Answer(
        observation=_read_words(found, "observation", problems), thought=_read_words(found, "thought", problems),
        status=_read_status(found.get(STATUS), problems), result=found.get("result"),
    )  # fmt: skip


def problem(place: str, message: str, operation: int | None = None) -> dict[str, Any]:
    """One entry of `AnswerUnusable.problems`; `operation` counts from 1."""
    numbered = {} if operation is None else {"operation": operation}
    return {**numbered, "field": place, "message": message}


def _read_words(found: Mapping[str, Any], key: str, problems: list[dict[str, Any]]) -> str:
    said = found.get(key)
    if said is None or isinstance(said, str):
        return (said or "")[:SAID]
    problems.append(problem(key, f"must be text, not {value_kind(said)}"))
    return ""


def _read_status(said: Any, problems: list[dict[str, Any]]) -> str:
    status = said.strip().upper() if isinstance(said, str) else ""
    if status in STATUSES:
        return status
    shown = repr(said[:40]) if isinstance(said, str) else value_kind(said)
    problems.append(problem(STATUS, f"must be one of {', '.join(STATUSES)}, not {shown}"))
    return ""


def _with_texts_read(value: Any, depth: int) -> Any:
    """`value` with the keys of AS_TEXT read where they are JSON text; what cannot be read stays for its reader to refuse."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_with_texts_read(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _with_texts_read(_read_text(each) if key in AS_TEXT and isinstance(each, str) else each, depth + 1)
        for key, each in value.items()
    }


def _read_text(text: str) -> Any:
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict | list) or found is None else text


def _line_of(told: Mapping[str, Any]) -> str:
    where = f"action {told['operation']}, " if "operation" in told else ""
    place = f"{told['field']}: " if told["field"] else ""
    return f"{where}{place}{told['message']}"
