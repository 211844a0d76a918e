"""What agents answer: a constellation, or the actions that edit one. An edit of any dialect as operations of ours. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from constellations.plan import operations
from constellations.plan.dialects.parts import lines, tasks
from constellations.plan.dialects.parts.constellation import named_neighbours, translate_document
from constellations.plan.dialects.parts.recipes import Recipes
from constellations.plan.dialects.parts.translation import Translation, translate_piece
from constellations.plan.dialects.recognition import ENVELOPE, FOREIGN, KNOWN, ORRERY, is_envelope
from constellations.plan.dialects.vocabulary import Dialect
from constellations.plan.values import Path, Row, did_you_mean, value_kind

ACTIONS = ("actions", "action")
"""Keys of an answer whose values edit a constellation."""
SPOKEN = {"tool": "seed", "function": "galaxy"}
"""The dialect of an operation, by the key of its name, where its parameters fit several."""
BUILT = ("config", "constellation")
"""Parameters of `build_constellation` that may hold what is to be built."""
CLEARS = ("clear", "clear_existing")


@dataclass(slots=True)
class TranslatedEdit:
    """Operations in our words, what the answer thought, and where each part was written: below (number of the operation,)."""

    operations: list[Row] = field(default_factory=list)
    thought: str = ""
    to: Translation = field(default_factory=Translation)


def is_answer(value: Any) -> bool:
    """Whether it is what an agent answers, whatever it holds."""
    return isinstance(value, Mapping) and "tasks" not in value and any(key in value for key in ("thought", "status", *ACTIONS))


def is_edit(value: Any) -> bool:
    """Whether it edits a constellation and is none: an answer with actions, a list of operations, or one operation."""
    if isinstance(value, list):
        return any(map(_is_operation, value))
    if is_answer(value) and not is_envelope(value):
        return any(value.get(key) for key in ACTIONS)
    return _is_operation(value)


def _is_operation(value: Any) -> bool:
    return isinstance(value, Mapping) and "tasks" not in value and operations.split_operation(value).name in operations.READERS


def read_edit(value: Any, dialect: str, recipes: Recipes) -> TranslatedEdit:
    """The operations of an edit; what is wrong with it is among the findings of `to`.

    An empty `dialect` is told by the keys of each operation.
    """
    found = TranslatedEdit(to=Translation(recipes=recipes))
    if is_answer(value):
        found.thought = value["thought"] if isinstance(value.get("thought"), str) else ""
        find_flaws(found.to, value)
    for written, action in _actions(found.to, value):
        _Reader(found, dialect).read(action, written)
    return found


def find_flaws(to: Translation, answer: Mapping[str, Any]) -> None:
    """What keeps an answer from being carried out."""
    for key in answer:
        if key not in ENVELOPE:
            to.findings.append(((key,), f"there is no key {key} here{did_you_mean(str(key), ENVELOPE)}"))
    for key in ("status", "state"):
        if isinstance(answer.get(key), str) and answer[key].upper() == "FAIL":
            give = "to have it all the same, give what it holds without this key"
            to.findings.append(((key,), f"the agent says FAIL: what it gives is not to be carried out; {give}"))


def _actions(to: Translation, value: Any) -> list[tuple[Path, Any]]:
    """Each action and where it is."""
    if isinstance(value, list):
        return [((place,), each) for place, each in enumerate(value)]
    if not is_answer(value):
        return [((), value)]
    keys = [key for key in ACTIONS if value.get(key)]
    if len(keys) > 1:
        to.findings.append(((keys[1],), f"the edit is in {keys[0]} already; give one of the two"))
    held = value[keys[0]]
    if isinstance(held, Mapping):
        return [((keys[0],), held)]
    if not isinstance(held, list):
        to.findings.append(((keys[0],), f"must be a list of operations, not {value_kind(held)}"))
        return []
    return [((keys[0], place), each) for place, each in enumerate(held)]


class _Reader:
    """Reads one action after the other into `found`."""

    def __init__(self, found: TranslatedEdit, dialect: str):
        self.found, self.to, self.dialect = found, found.to, dialect

    def read(self, action: Any, written: Path) -> None:
        if isinstance(action, Mapping) and "function" in action:
            action = {key: value for key, value in action.items() if key not in FOREIGN["galaxy"].of_action}
        form = operations.split_operation(action)
        if form.findings:
            self.to.findings += [((*written, *path), message) for path, message in form.findings]
            return
        place, at = (len(self.found.operations),), (*written, *form.place)
        name = self.dialect or _dialect_of(action, form)
        if name == ORRERY or not isinstance(form.parameters, Mapping):
            self.to.origins[place] = at
            self._put(form.op, form.parameters)
            return
        given = {key: value for key, value in form.parameters.items() if value is not None}
        translated = TRANSLATED.get(form.op)
        self._put(form.op, translated(self.to, FOREIGN[name], given, place, at) if translated else given)
        self.to.origins.setdefault(place, at)
        if form.op == "add_task":
            dialect, own = FOREIGN[name], given.get("task_id")
            for key, other, is_upstream in named_neighbours(dialect, given):
                self.to.origins[(len(self.found.operations),)] = (*at, key)
                upstream, downstream = (other, own) if is_upstream else (own, other)
                self._put("add_dependency", {"from": upstream, "to": downstream, "type": dialect.default_type})

    def _put(self, op: Any, parameters: Any) -> None:
        self.found.operations.append({"op": op, "parameters": parameters})


def _dialect_of(action: Any, form: operations.WrittenOperation) -> str:
    """The one that its form speaks, if that has all of its words; else one that has."""
    spoken = next((name for key, name in SPOKEN.items() if key in action), ORRERY)
    kind = "task" if form.name.endswith("_task") else "dependency"
    if not form.name.endswith(("_task", "_dependency")) or not isinstance(form.parameters, Mapping):
        return spoken
    named = {key for key in form.parameters if any(key in known[kind] for known in KNOWN.values())} - {"dependency_id"}
    fitting = [name for name, known in KNOWN.items() if named <= known[kind]]
    return spoken if spoken in fitting or not fitting else fitting[0]


NOT_EDITED = {
    **dict.fromkeys(("status", "result", "error"), "is not edited; it follows from what happens"),
    **dict.fromkeys(("dependencies", "dependents"), "are edited by add_dependency and remove_dependency"),
}
"""What documents say of a task and is read past there, by what is said of it in an update."""


def _task_fields(to: Translation, dialect: Dialect, given: Row, place: Path, written: Path) -> Row:
    to.findings += [((*written, key), f"{key} {message}") for key, message in NOT_EDITED.items() if key in given]
    return tasks.translate_fields(to, dialect, given, place, written).said


def _dependency(to: Translation, dialect: Dialect, given: Row, place: Path, written: Path) -> Row:
    # Galaxy's editor calls a line's id as we do, and its documents do not.
    named = next((word.key for word in dialect.dependency.words if word.plan == "dependency_id"), "dependency_id")
    renamed = {named if key == "dependency_id" else key: value for key, value in given.items()}
    return lines.translate_dependency(to, dialect, renamed, place, written)


def _named_dependency(to: Translation, dialect: Dialect, given: Row, place: Path, written: Path) -> Row:
    """The words that name a dependency, and those that change it: prose in a condition's place describes it."""
    own_id = given.get("dependency_id")
    fields = {key: value for key, value in given.items() if key != "dependency_id"}
    made = translate_piece(to, dialect.dependency, fields, place, written)
    if own_id is not None:
        made.say("dependency_id", own_id, "dependency_id")
    condition = made.said.get("condition")
    if dialect.condition != "condition" and isinstance(condition, str) and lines.condition_fault(condition):
        del made.said["condition"]
        made.say("description", condition, dialect.condition)
    made.extension(dialect.dependency.extension)
    return made.said


def _built(to: Translation, dialect: Dialect, given: Row, place: Path, written: Path) -> Row:
    """What a constellation is to be built of, which may stand in a parameter of its own."""
    held = next((key for key in BUILT if key in given), "")
    around: Path = (held,) if held else ()
    inner = translate_document(
        given[held] if held else {key: given[key] for key in given if key not in CLEARS}, dialect, to.recipes
    )
    to.origins |= {(*place, *path): (*written, *around, *origin) for path, origin in inner.origins.items() if path}
    to.findings += [((*written, *around, *path), message) for path, message in inner.findings]
    said = {key: inner.value[key] for key in ("tasks", "dependencies") if key in inner.value}
    clears = [given[key] for key in CLEARS if key in given]
    return said | ({"clear": clears[0]} if clears else {})


TRANSLATED: dict[Any, Any] = {
    "build_constellation": _built,
    "add_task": tasks.translate_task,
    "update_task": _task_fields,
    "add_dependency": _dependency,
    "remove_dependency": _named_dependency,
    "update_dependency": _named_dependency,
}
"""How the parameters of an operation become ours; those of the others are named alike."""
