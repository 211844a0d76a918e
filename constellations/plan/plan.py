"""Plan files: YAML or JSON to tasks, dependencies and replan rules in their normal form. Pure.

Every problem is found before any is reported, and each names its line and key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from agents.devices.profiles.ceilings import SESSION_SLOTS
from agents.llm import choices
from constellations import conditions
from constellations.errors import CycleFound, PlanRejected
from constellations.graph import Graph
from constellations.plan import assigning, documents, operations
from constellations.plan.documents import Document, Unreadable
from constellations.plan.fitting import Devices, missing_minds, unknown_devices
from constellations.plan.keys.fields import MAX_NAME
from constellations.plan.operations import MAX_DEPENDENCIES, MAX_TASKS, list_within
from constellations.plan.tasks import (
    DEPENDENCY_DEFAULTS,
    TASK_DEFAULTS,
    given_by,
    read_dependency,
    read_task,
    stray_input,
)
from constellations.plan.values import (
    MAX_ID,
    Finding,
    Hints,
    Misfit,
    Path,
    Reader,
    Row,
    choice_reader,
    findings_under,
    identifier_reader,
    key_text,
    list_reader,
    read_fields,
    text_reader,
    value_kind,
    whole_reader,
)

__all__ = ["TASK_DEFAULTS", "Plan", "absent_tasks", "copied_by", "locate_findings", "parse_plan", "read_value"]

MAX_RULES = 100
MAX_ADDED = 100_000
"""Tasks that rules may add, as far as other rules can name them."""
MAX_PROBLEMS = 1_000
"""Problems that are looked for and reported."""
NOTHING_TO_REPLACE = (
    "replaces is for a task that an edit adds in the place of one that has FAILED or was cancelled; "
    "when a plan begins nothing has: leave it out"
)

WITHIN_A_TASK = documents.MAX_DEPTH - 4
"""How deep a value of a task may be nested: an operation of an edit must be able to say all of it again."""

FENCED = "the ``` lines are no part of a plan: leave them out"


def read_models(value: Any) -> dict[str, str]:
    """Names of model profiles by purpose."""
    for purpose, message in choices.models_problems(value):
        raise Misfit(message, *([purpose] if purpose else []))
    return dict(value)


PLAN_READERS: dict[str, Reader] = {
    "name": text_reader(MAX_NAME),
    "tasks": list_within(MAX_TASKS),
    "dependencies": list_within(MAX_DEPENDENCIES),
    "replan": list_within(MAX_RULES),
    "absent": list_reader(identifier_reader(MAX_ID), MAX_TASKS),
    "models": read_models,
    "start": choice_reader((choices.REVIEW,)),
    "max_concurrent": whole_reader(1, SESSION_SLOTS),
    "assignment": choice_reader(assigning.NAMES),
}


SINGLE = ("name", "models", "start", "max_concurrent", "assignment")
"""Keys of a plan that are not lists of parts."""


@dataclass(slots=True)
class Plan:
    """What a plan says, in normal form (tasks.TASK_DEFAULTS, tasks.DEPENDENCY_DEFAULTS, operations.read_rule).

    `max_concurrent` 0 and `assignment` "" where it says nothing of them.
    """

    name: str = ""
    tasks: list[Row] = field(default_factory=list)
    dependencies: list[Row] = field(default_factory=list)
    rules: list[Row] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    start: str = ""
    max_concurrent: int = 0
    assignment: str = ""


def parse_plan(
    text: str | bytes, source: str = "plan", devices: Devices | None = None, in_words: bool = False,
    profiles: Callable[[], Collection[str]] | None = None,
) -> Plan:  # fmt: skip
    """Raises PlanRejected with every problem; `source` is what its message calls the text.

    With `devices` each task, and each operation of a rule, that asks for one which is not there is a problem, too.
    `in_words`: tasks may say that they are in words alone, as what was imported does. `profiles` gives the names of the model
    profiles, asked only where the plan names one; one that is not there is a problem.
    """
    try:
        document = documents.read_document(text)
    except Unreadable as error:
        lines = (text if isinstance(text, bytes) else text.encode(errors="replace")).split(b"\n", error.line or 0)
        is_fence = error.line is not None and any(
            line.lstrip().startswith(b"```") for line in lines[error.line - 1 : error.line]
        )
        raise PlanRejected([_problem(error.line, error.path, FENCED if is_fence else str(error))], source) from error
    plan, findings = read_value(document.value, in_words)
    findings = [*document.repeated, *findings, *missing_minds(plan.tasks, devices, plan.models.get("device_agent", ""))]
    if devices is not None:
        findings += unknown_devices(plan.tasks, devices)
    if devices is not None and not findings:
        findings += _unknown_devices_of_rules(document.value, devices)
    if profiles is not None and (plan.models or any(task["model"] for task in plan.tasks)):
        findings += _unknown_profiles(plan, profiles())
    if findings:
        raise PlanRejected(locate_findings(document, findings), source)
    return plan


def _unknown_profiles(plan: Plan, known: Collection[str]) -> Iterator[Finding]:
    """Model profiles that the plan or one of its tasks names, and that are not there."""
    yield from ((("models", purpose), message) for purpose, message in choices.unknown_profiles(plan.models, known))
    for number, task in enumerate(plan.tasks):
        if task["model"]:
            yield from (
                (("tasks", number, key), message) for key, message in choices.unknown_profiles({"model": task["model"]}, known)
            )


def _unknown_devices_of_rules(value: Row, devices: Devices) -> Iterator[Finding]:
    """Devices that the rules of a plan, a good one otherwise, ask for. What a placeholder stands for is not known yet."""
    for number, rule in enumerate(value.get("replan") or ()):
        for place, written in enumerate(rule.get("edit") or ()):
            operation = operations.read_operation(operations.fill_rule(written, "task"))
            way: Path = ("replan", number, "edit", place, *operation.place)
            values = operation.values
            rows: list[tuple[Path, Row]] = []
            if operation.op in ("add_task", "update_task") and not operation.findings:
                rows = [((), values["fields"] if "fields" in values else values["task"])]
            elif operation.op == "build_constellation" and not operation.findings:
                rows = [(("tasks", place), entry["task"]) for place, entry in enumerate(values["tasks"])]
            for path, row in rows:
                fields: Row = {key: row.get(key, usual) for key, usual in TASK_DEFAULTS.items()}
                if "{" not in fields["wanted_device"]:
                    wrong = [*unknown_devices([fields], devices), *missing_minds([fields], devices)]
                    yield from (((*way, *path, *found[2:]), message) for found, message in wrong)


def locate_findings(document: Document, findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as problems with their lines, the first MAX_PROBLEMS of them."""
    shown = dict.fromkeys(findings[:MAX_PROBLEMS])
    problems = [_problem(document.line(path), path, message) for path, message in shown]
    problems.sort(key=lambda problem: problem["line"] or 0)
    if len(findings) > MAX_PROBLEMS:
        problems.append(_problem(None, (), f"and more: the first {MAX_PROBLEMS:,} problems are shown"))
    return problems


def _problem(line: int | None, path: Path, message: str) -> dict[str, Any]:
    return {"line": line, "key": key_text(path), "message": message}


def read_value(value: Any, in_words: bool = False) -> tuple[Plan, list[Finding]]:
    """The plan that a value is, as far as it is one, and everything that keeps it from being one."""
    if value is None:
        return Plan(), [((), "the plan is empty: give it a list of tasks")]
    if not isinstance(value, dict):
        said = "; what is said in words is a request" if isinstance(value, str) else ""
        return Plan(), [((), f"a plan is an object with a list of tasks, not {value_kind(value)}{said}")]
    fields, found = read_fields(value, PLAN_READERS)
    findings = [*documents.value_flaws(value), *found]
    if not fields.get("tasks") and not any(path == ("tasks",) for path, _ in findings):
        findings.append((("tasks",), "a plan needs at least one task"))
    kept: dict[str, Any] = {key: fields[key] for key in SINGLE if key in fields}
    plan = Plan(**kept)
    findings += islice(_parts(plan, fields, in_words), MAX_PROBLEMS + 1)
    if not findings:
        deep = (  # an edit has to be able to say it again
            documents.value_flaws(row[key], ("tasks", number, key), WITHIN_A_TASK)
            for number, row in enumerate(plan.tasks)
            for key in ("arguments", "phases")
            if row[key]
        )
        findings += islice(chain.from_iterable(deep), MAX_PROBLEMS + 1)
    return plan, findings


def _parts(plan: Plan, fields: Row, in_words: bool) -> Iterator[Finding]:
    """Reads all of a plan into `plan`; it is complete when this has ended without a finding."""
    edges = _Edges(plan.dependencies)
    yield from _read_tasks(plan, edges, fields.get("tasks", []), in_words)
    for number, value in enumerate(fields.get("dependencies", [])):
        row, found = read_dependency(value)
        yield from findings_under(("dependencies", number), found)
        if row["from"] and row["to"]:
            edges.add(row, ("dependencies", number))
    yield from edges.check([task["task_id"] for task in plan.tasks])
    if edges.graph is not None:
        yield from _stray_inputs(plan.tasks, edges.graph)
    for number, task in enumerate(plan.tasks):
        if task["replaces"]:  # when a plan begins, nothing has ended that it could stand in for
            yield ("tasks", number, "replaces"), NOTHING_TO_REPLACE
    names: set[str] = set()
    for number, value in enumerate(fields.get("replan", [])):
        rule, found = operations.read_rule(value, number)
        yield from findings_under(("replan", number), found)
        if rule["name"] in names:
            yield ("replan", number, "name"), f"there is a rule called {rule['name']} already"
        names.add(rule["name"])
        plan.rules.append(rule)
    yield from _strangers(plan, edges, set(fields.get("absent", ())))


def _read_tasks(plan: Plan, edges: _Edges, written: Iterable[Any], in_words: bool) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for number, value in enumerate(written):
        row, after, found = read_task(value, in_words)
        yield from findings_under(("tasks", number), found)
        plan.tasks.append(row)
        task_id = row["task_id"]
        if task_id and first.setdefault(task_id, number) != number:
            yield (
                ("tasks", number, "task_id"),
                f"there is a task {task_id} already, tasks[{first[task_id]}]: give one of them another id",
            )
        for place, upstream in enumerate(after if task_id else ()):
            ends = {"dependency_id": f"{upstream}>{task_id}", "from": upstream, "to": task_id}
            edges.add({**DEPENDENCY_DEFAULTS, **ends}, ("tasks", number, "after", place))


@dataclass(slots=True)
class _Edges:
    """The dependencies of a plan and where each is written."""

    rows: list[Row]
    paths: list[Path] = field(default_factory=list)
    graph: Graph | None = None
    """Once `check` has found no cycle."""

    def add(self, row: Row, path: Path) -> None:
        self.rows.append(row)
        self.paths.append(path)

    def check(self, task_ids: list[str]) -> Iterator[Finding]:
        """Ends that do not exist, self-loops, repetitions, cycles."""
        known = set(task_ids)
        hint = Hints(known)
        good: dict[tuple[str, str], Path] = {}
        names: set[str] = set()
        for row, path in zip(self.rows, self.paths, strict=True):
            ends = row["from"], row["to"]
            missing = [end for end in ends if end not in known]
            if ends[0] == ends[1]:
                yield path, f"{ends[0]} would wait for itself: take it out"
            elif missing:
                yield path, f"there is no task {missing[0]}{hint(missing[0])}"
            elif ends in good:
                yield path, f"{row['to']} waits for {row['from']} already"
            elif row["dependency_id"] in names:
                yield path, f"there is a dependency {row['dependency_id']} already"
            else:
                good[ends] = path
            names.add(row["dependency_id"])
        try:
            self.graph = Graph.build(task_ids, good)
        except CycleFound as error:  # told at whichever of its dependencies is written last
            members = set(zip(error.path, error.path[1:], strict=False))
            last = [path for ends, path in good.items() if ends in members][-1]
            yield last, f"{error}; take one of these dependencies out"


def _stray_inputs(tasks: Sequence[Row], graph: Graph) -> Iterator[Finding]:
    """Inputs that need not be there when their task begins: outputs of a task that it does not wait for, or of none."""
    wanted = {row["task_id"]: dict.fromkeys(given_by(row)) for row in tasks if row["inputs"] and row["task_id"]}
    bits = {other: 1 << place for place, other in enumerate(dict.fromkeys(chain.from_iterable(wanted.values())))}
    above: dict[str, int] = {}  # of each task the bits of those it waits for: a plan may have 10,000 of both
    for task_id in map(str, graph.topological_order() if bits else ()):
        above[task_id] = 0
        for before in map(str, graph.upstream(task_id)):
            above[task_id] |= above[before] | bits.get(before, 0)
    for number, row in enumerate(tasks):
        for other in wanted.get(row["task_id"], ()):
            if not above.get(row["task_id"], 0) & bits[other]:
                yield ("tasks", number, "inputs"), stray_input(row["task_id"], other, is_there=other in graph)


def _strangers(plan: Plan, edges: _Edges, away: set[str]) -> Iterator[Finding]:
    """Tasks that conditions and rules name and that neither the plan nor a rule adds; `away` are those that rules may name."""
    known = {task["task_id"] for task in plan.tasks}
    hint = Hints(known)
    for row, path in zip(edges.rows, edges.paths, strict=True):
        yield from _unknown_reads(row["condition"], known, (*path, "condition"), hint)
    known |= away | _added(plan.rules, frozenset(known))
    for number, rule in enumerate(plan.rules):
        path = ("replan", number, "when")
        for task_id in rule["when"]["task"]:
            if task_id not in known:
                yield (*path, "task"), f"there is no task {task_id}{hint(task_id)}"
        yield from _unknown_reads(rule["when"]["condition"], known, (*path, "condition"), hint)
        for place, source in copied_by(rule):
            if source not in known:
                yield ("replan", number, "edit", place, "add_task", "copy"), f"there is no task {source}{hint(source)}"


def copied_by(rule: Row) -> Iterator[tuple[int, str]]:
    """(place in the rule's edit, id of a task that is copied there); what any task may be is not among them."""
    for place, operation in enumerate(rule["edit"]):
        source = operation["parameters"].get("copy") if isinstance(operation["parameters"], dict) else None
        if operation["op"] == "add_task" and isinstance(source, str):
            ended = rule["when"]["task"] or ([] if operations.ENDED_TASK in source else [""])
            yield from ((place, named) for named in dict.fromkeys(operations.fill_rule(source, task_id) for task_id in ended))


def _unknown_reads(condition: str, known: set[str], path: Path, hint: Hints) -> Iterator[Finding]:
    for task_id in sorted(_reads(condition) - known):
        yield path, f"it reads the result of {task_id}, and there is no such task{hint(task_id)}"


def _reads(condition: str) -> set[str]:
    return conditions.tasks_read_by(condition) if "results" in condition else set()


def absent_tasks(plan: Plan) -> list[str]:
    """Ids that a good plan's rules wait for, read or copy, though no task has them: those have gone, or are to come."""
    planned = {task["task_id"] for task in plan.tasks}
    named: set[str] = set()
    for rule in plan.rules:
        named |= {*rule["when"]["task"], *_reads(rule["when"]["condition"]), *(source for _, source in copied_by(rule))}
    return sorted(named - planned - _added(plan.rules, planned))


def _added(rules: Iterable[Row], planned: Collection[str]) -> set[str]:
    return set(islice(_ids_added(rules, planned), MAX_ADDED))


def _ids_added(rules: Iterable[Row], planned: Collection[str]) -> Iterator[str]:
    """Ids of the tasks that rules may add; a rule that names no tasks may fire for any that is planned."""
    for rule, operation in ((each, operation) for each in rules for operation in each["edit"]):
        parameters = operation["parameters"]
        if operation["op"] == "add_task" and isinstance(parameters, dict):
            written = str(parameters.get("task_id", ""))
            ended = rule["when"]["task"] or planned if operations.ENDED_TASK in written else [""]
            yield from (operations.fill_rule(written, task_id) for task_id in ended)
        elif operation["op"] == "build_constellation" and isinstance(parameters, dict):
            tasks = parameters.get("tasks")
            yield from (str(task.get("task_id")) for task in tasks or () if isinstance(task, dict))
