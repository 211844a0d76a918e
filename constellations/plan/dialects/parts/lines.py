"""Dependencies of another dialect as dependencies of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constellations import conditions
from constellations.errors import ConditionRejected
from constellations.plan.dialects.parts.translation import Piece, Translation, translate_piece
from constellations.plan.dialects.vocabulary import Dialect
from constellations.plan.values import Path, Row


def translate_dependency(
    to: Translation, dialect: Dialect, value: Mapping[str, Any], place: Path, written: Path, key: str = ""
) -> Row:
    """A dependency of a plan."""
    made = translate_piece(to, dialect.dependency, value, place, written)
    words = {word.plan: word.key for word in dialect.dependency.words}
    if "dependency_id" in words:
        made.name_by_key("dependency_id", words["dependency_id"], key)
    for end in ("from", "to"):
        if value.get(words[end]) is None:
            made.find(f"a dependency needs `{words[end]}`")
    written_condition = made.said.pop("condition", None)
    held = made.extension(dialect.dependency.extension)
    if "type" not in made.said:
        conditional = dialect.condition == "condition" and written_condition
        made.said["type"] = "CONDITIONAL" if conditional else dialect.default_type
    _condition(made, dialect, written_condition, held)
    return made.said


def _condition(made: Piece, dialect: Dialect, text: Any, held: Row) -> None:
    """An expression stays a condition; prose is a description, and then a CONDITIONAL dependency lacks its condition.

    A word or a value by itself is a condition where there has to be one, and prose anywhere else.
    """
    said, key = made.said, dialect.condition
    fault = condition_fault(text)
    if text is not None and not isinstance(text, str):
        made.say("condition", text, key)
    elif said["type"] == "CONDITIONAL" and "condition" not in held:
        if fault:
            ends = f"{said.get('from', '?')} > {said.get('to', '?')} is conditional"
            give = f"give an expression over the result of {said.get('from', 'its upstream task')}"
            prose = f"{ends}, and its condition is prose; {give} ({fault})"
            made.find(prose if text else f"{ends} and has no condition; {give}", key)
            said["type"] = dialect.default_type
        else:
            made.say("condition", text, key)
    elif text and not fault and key == "condition" and "condition" not in held and conditions.is_calculation(text):
        made.say("condition", text, key)
    elif text and "description" not in held and text != held.get("condition"):
        made.say("description", text, key)


def condition_fault(text: Any) -> str:
    """Why a text is no condition; empty for one that is."""
    if not text or not isinstance(text, str):
        return "there is none"
    try:
        conditions.check_condition(text)
    except ConditionRejected as error:
        return str(error)
    return ""
