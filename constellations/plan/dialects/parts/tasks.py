"""Tasks of another dialect as tasks of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constellations.plan.dialects.parts import recipes, shell
from constellations.plan.dialects.parts.translation import WORDS_FOR_DOING, Piece, Translation, translate_piece
from constellations.plan.dialects.vocabulary import ACTIONS, EXTENSION, Dialect
from constellations.plan.tasks import IN_WORDS
from constellations.plan.values import Path, Row, did_you_mean, findings_under, key_text, read_fields


def translate_task(
    to: Translation, dialect: Dialect, value: Mapping[str, Any], place: Path, written: Path, key: str = ""
) -> Row:
    """A task of a plan. `key`: under which it stands, where tasks stand under keys."""
    made = translate_fields(to, dialect, value, place, written, key)
    if not any(word in made.said for word in WORDS_FOR_DOING):
        # Where actions are wrong that has been said, and the plan's reading has nothing to add.
        made.said["tool"] = "noop" if _ways(value, dialect) else IN_WORDS
    return made.said


def translate_fields(
    to: Translation, dialect: Dialect, value: Mapping[str, Any], place: Path, written: Path, key: str = ""
) -> Piece:
    """What is said of a task, in the words of a plan."""
    made = translate_piece(to, dialect.task, value, place, written)
    made.name_by_key("task_id", "task_id", key)
    # What Galaxy says twice, and what it expects, which is for whoever does the work.
    told, again = made.said.get("description"), made.fields.get("task_description")
    if again is not None and told is not None and again != told:
        made.find("description and task_description are the same thing, and differ here", "task_description")
    elif again is not None:
        made.say("description", again, "task_description")
    if expected := made.fields.get("expected_output_type"):
        tips = made.said.get("tips", [])
        made.said["tips"] = [*tips, f"Expected output: {expected}"] if isinstance(tips, list) else tips
    _act(made, dialect)
    way = dialect.task.extension
    made.extension(way)
    # What stands around an extension in a task is data that its work would need, and nothing here would read it.
    for key in made.fields.get(str(way[0]), {}) if len(way) > 1 else ():
        if key not in (EXTENSION, ACTIONS):
            made.find(f"there is no key {key} here{did_you_mean(str(key), (EXTENSION, ACTIONS))}", way[0], key)
    return made


def _act(made: Piece, dialect: Dialect) -> None:
    """One action is the task's call; several are its steps."""
    calls = [(call, path) for call, path in _calls(made, dialect) if call]
    if len(calls) == 1:
        made.said = calls[0][0] | {key: value for key, value in made.said.items() if key not in ("tool", "arguments")}
    elif calls:
        made.said["phases"] = [{"steps": [call for call, _ in calls]}]
    for place, (call, path) in enumerate(calls):
        at: Path = () if len(calls) == 1 else ("phases", 0, "steps", place)
        made.to.origins[*made.place, *at] = (*made.written, *(path if at else ()))
        for word, key in zip(("tool", "arguments"), dialect.action, strict=True):
            made.to.origins[*made.place, *at, word] = (*made.written, *path, key)
        if "timeout" in call and (at or made.said["timeout"] is call["timeout"]):
            made.to.origins[*made.place, *at, "timeout"] = (*made.written, *path, dialect.action[1], "timeout")


def _calls(made: Piece, dialect: Dialect) -> Iterator[tuple[Row, Path]]:
    """Each action as {tool, arguments} and where it is; empty where it is none."""
    ways = _ways(made.fields, dialect)
    if len(ways) > 1:
        made.find(f"a task has its {ACTIONS} in one place; here they are in {ACTIONS} and {key_text(dialect.actions)}", ACTIONS)
    for way in ways[:1]:
        written = _at(made.fields, way)
        if not isinstance(written, list):
            made.find("must be a list", *way)
            continue
        for place, action in enumerate(written):
            yield _call(made, dialect, action, (*way, place)), (*way, place)


def _ways(value: Mapping[str, Any], dialect: Dialect) -> list[Path]:
    """Where a task has actions."""
    return [way for way in dict.fromkeys(((ACTIONS,), dialect.actions)) if _at(value, way)]


def _at(fields: Mapping[str, Any], way: Path) -> Any:
    held: Any = fields
    for step in way:
        held = held.get(step) if isinstance(held, Mapping) else None
    return held


def _call(made: Piece, dialect: Dialect, action: Any, path: Path) -> Row:
    given, found = read_fields(action, dialect.action_readers)
    made.to.findings += findings_under((*made.written, *path), found)
    tool, arguments = (given.get(key) for key in dialect.action)
    if tool is None:
        if not found:
            made.find(f"an action needs a {dialect.action[0]}", *path)
        return {}
    named = recipes.call_of_recipe(made.to.recipes, made.said.get("device"), tool, arguments or {})
    if named is None and not found:
        named = shell.translate_call(tool, arguments or {})
    call, flaws = named or ({"tool": tool, "arguments": arguments}, [])
    made.to.findings += findings_under((*made.written, *path, dialect.action[1]), flaws)
    return call if not call or call["arguments"] not in ({}, None) else {"tool": tool}
