"""Writing a constellation in any dialect, so that reading it again gives the same. Pure.

What is written in the dialect's words is read as if it came from elsewhere; whatever comes out differently is what the dialect
cannot say, and goes into the extension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from constellations.plan.dialects import plan_words
from constellations.plan.dialects.parts import lines, shell, tasks
from constellations.plan.dialects.parts.translation import Translation
from constellations.plan.dialects.recognition import FOREIGN, NAMES, ORRERY, STATES
from constellations.plan.dialects.vocabulary import Dialect, DialectPart
from constellations.plan.keys.calls import INSTRUCTION
from constellations.plan.keys.step_keys import DEFAULTS
from constellations.plan.plan import Plan, absent_tasks
from constellations.plan.steps import STEPS
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, IN_WORDS, TASK_DEFAULTS, read_dependency, read_task
from constellations.plan.values import Path, Row, did_you_mean

TOLD = ("state", "reason", "result", "error", "attempt", "started_at", "ended_at")
"""What may be told of how far a task has come; times are ISO texts."""


@dataclass(frozen=True, slots=True)
class ToldStates:
    """How far a constellation has come: its state, and by task_id what TOLD names."""

    state: str
    tasks: Mapping[str, Row] = field(default_factory=dict)


def write_document(
    tasks: Iterable[Row],
    dependencies: Iterable[Row],
    rules: Sequence[Row] = (),
    dialect: str = ORRERY,
    name: str = "",
    with_states: ToldStates | None = None,
    models: Mapping[str, str] | None = None,
    max_concurrent: int = 0,
    assignment: str = "",
) -> dict[str, Any]:
    """A JSON document of rows in normal form; `models` are names of profiles by purpose, the rest is as in a Plan.

    Raises ValueError for a dialect that does not exist.
    """
    whole = Plan(
        name, list(tasks), list(dependencies), list(rules), dict(models or {}), max_concurrent=max_concurrent,
        assignment=assignment,
    )  # fmt: skip
    if dialect == ORRERY:
        plan = plan_words.write_plan(whole)
        if with_states is None:
            return plan
        told = {
            task_id: {key: row[key] for key in TOLD if row.get(key) not in (None, "", 0)}
            for task_id, row in with_states.tasks.items()
        }
        return {**plan, STATES: {"state": with_states.state, "tasks": told}}
    if dialect not in FOREIGN:
        raise ValueError(f"there is no dialect {dialect}{did_you_mean(dialect, NAMES)}")
    return _Writer(FOREIGN[dialect], with_states).document(whole)


@dataclass(frozen=True, slots=True)
class _Writer:
    dialect: Dialect
    states: ToldStates | None

    def document(self, whole: Plan) -> dict[str, Any]:
        written = _words(self.dialect.document, {"name": whole.name}, {"name": ""})
        if self.states is not None:
            written["state"] = self.dialect.state(self.states.state)
        written["tasks"] = self._held([(row["task_id"], self.task(row)) for row in whole.tasks])
        lines = [(row["dependency_id"], self.dependency(row)) for row in whole.dependencies]
        written["dependencies"] = self._held(lines)
        extra = {
            "models": whole.models, "max_concurrent": whole.max_concurrent, "assignment": whole.assignment,
            "replan": whole.rules, "absent": absent_tasks(whole),
        }  # fmt: skip
        if said := {key: value for key, value in extra.items() if value}:
            _put(written, self.dialect.document.extension, said)
        return written

    def _held(self, parts: list[tuple[str, Row]]) -> Any:
        return dict(parts) if self.dialect.keyed else [part for _, part in parts]

    def task(self, row: Row) -> Row:
        part = self.dialect.task
        written = _words(part, row, TASK_DEFAULTS)
        (tool, arguments), name, actions = self.dialect.action, self.dialect.names_command, []
        for call in _calls(row):
            line = shell.line_of(call["tool"], call["arguments"])
            if line is None or name not in shell.LINES:
                actions.append({tool: call["tool"], arguments: call["arguments"]})
            else:
                actions.append({tool: name, arguments: {shell.LINES[name]: line}})
        if actions:
            _put(written, self.dialect.actions, actions)
        said, _, _ = read_task(tasks.translate_task(Translation(), self.dialect, written, (), ()), in_words=True)
        if differing := plan_words.differing_keys(said, row):
            _put(written, part.extension, plan_words.write_fields(row, differing))
        states = {} if self.states is None else self.states.tasks
        return written | (self.dialect.told(states[row["task_id"]]) if row["task_id"] in states else {})

    def dependency(self, row: Row) -> Row:
        part = self.dialect.dependency
        written = _words(part, row, DEPENDENCY_DEFAULTS)
        if not row["condition"] and row["description"] and self.dialect.condition != "condition":
            written[self.dialect.condition] = row["description"]
        said, _ = read_dependency(lines.translate_dependency(Translation(), self.dialect, written, (), ()))
        if differing := {key: row[key] for key in DEPENDENCY_DEFAULTS if said[key] != row[key]}:
            _put(written, part.extension, differing)
        return written


def _words(part: DialectPart, row: Row, usual: Row) -> Row:
    """What the dialect has words for; what goes without saying only where it is always said."""
    written: Row = {}
    for word in part.words:
        column = word.column or word.plan
        value = word.write(row[column])
        if value is not None and (word.always or row[column] != usual[column]):
            written[word.key] = value
    return written


def _put(written: Row, way: Path, value: Any) -> None:
    held = written
    for step in way[:-1]:
        held = held.setdefault(str(step), {})
    held[str(way[-1])] = value


def _calls(row: Row) -> list[Row]:
    """The calls that a task is, if it is that and nothing more."""
    if row["tool"] in (IN_WORDS, INSTRUCTION):
        return []
    if row["tool"] != STEPS:
        return [row]
    steps = [step for phase in row["phases"] for step in phase["steps"]]
    usual = DEFAULTS["call"]
    plain = all(
        step["do"] == "call" and all(step[key] == usual[key] for key in usual if key not in ("tool", "arguments"))
        for step in steps
    )
    return steps if plain else []
