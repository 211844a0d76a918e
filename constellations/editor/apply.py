"""The seven operations, each carried out on a draft or refused. Pure.

Adding what is there as it is there, and removing what is gone, changes nothing; only tasks that have not started, and the
dependencies into them, may change (docs/editing.md, "An edit"). What several operations refuse alike is said in `draft`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from constellations import conditions
from constellations.editor.draft import (
    EditDraft,
    OperationRefused,
    changed_keys,
    may_change,
    normal_dependency,
    normal_task,
    why_not,
)
from constellations.editor.replacing import inherit_dependents
from constellations.plan import tasks as plan_tasks
from constellations.plan.fitting import CALL_FIELDS, DEVICE_FIELDS, missing_mind, server_call_flaws, unknown_device
from constellations.plan.keys import calls
from constellations.plan.keys.fields import CHANGEABLE, STORED
from constellations.plan.tasks import DEPENDENCY_DEFAULTS
from constellations.plan.values import Row, did_you_mean, key_text


def _add_task(draft: EditDraft, values: Row) -> None:
    if "copy" in values:
        _copy_task(draft, values)
        return
    row = values["task"]
    there = draft.tasks.get(row["task_id"])
    if there is not None and (different := changed_keys(there, row)):
        raise OperationRefused(f"there is a task {row['task_id']} already, and it differs in {', '.join(different)}", "task_id")
    if there is None:
        if row["tool"] == plan_tasks.IN_WORDS and not draft.in_words:
            raise OperationRefused(calls.NEEDS_DOING, "tool")
        _check_devices(draft, row)
        _check_mind(draft, row)
        draft.put_task(row)
        if row["replaces"]:
            inherit_dependents(draft, row)
    for place, upstream in enumerate(values["after"]):
        dependency, _ = plan_tasks.read_dependency({"from": upstream, "to": row["task_id"]})
        _add_dependency(draft, {"dependency": dependency}, {"from": f"after[{place}]"})


def _copy_task(draft: EditDraft, values: Row) -> None:
    """Another task like one that is there, whatever has become of that one, with what the operation says otherwise.

    Without `after` it waits for what the other one waits for. A deadline counts from the constellation's beginning and may be
    over, so it is not copied; a name is, unless it is but the task's id.
    """
    source, task_id = draft.task(values["copy"], "copy"), values["task"]["task_id"]
    name = task_id if source["name"] == source["task_id"] else source["name"]
    own = {"task_id": task_id, "name": name, "deadline": None, "replaces": ""}
    row = _with_fields(normal_task(source) | own, values["fields"])
    _add_task(draft, {"task": row, "after": values["after"] or ()})
    if values["after"] is not None:
        return
    for upstream in draft.graph.upstream(values["copy"]):
        line = draft.dependencies[draft.edge_there(str(upstream), values["copy"])]
        ends = {"dependency_id": f"{upstream}>{task_id}", "to": task_id}
        _add_dependency(draft, {"dependency": {**normal_dependency(line), **ends}}, {"to": "copy"})


def _remove_task(draft: EditDraft, values: Row) -> None:
    task_id = values["task_id"]
    if draft.tasks.get(task_id) is None:
        draft.missing_task(task_id)
        return
    draft.require_editable(task_id, "task_id")
    draft.require_untried(task_id, "task_id")
    for downstream in draft.graph.downstream(task_id):
        draft.require_editable(str(downstream), "task_id", f"{task_id} cannot go: {downstream} waited for it, and ")
    for upstream in draft.graph.upstream(task_id):
        draft.drop_dependency(draft.edge_there(str(upstream), task_id))
    for downstream in draft.graph.downstream(task_id):
        draft.drop_dependency(draft.edge_there(task_id, str(downstream)))
    draft.drop_task(task_id)


def _update_task(draft: EditDraft, values: Row) -> None:
    task_id = values["task_id"]
    row = draft.task(task_id, "task_id")
    new = _with_fields(normal_task(row), values["fields"])
    different = changed_keys(row, new)
    if not different:
        return
    if "replaces" in different:
        message = f"replaces is for new tasks, which then take over what waits for the old one; {task_id} is there already"
        raise OperationRefused(message, "replaces")
    draft.require_editable(task_id, "task_id")
    if new["tool"] == plan_tasks.IN_WORDS != row["tool"] and not draft.in_words:
        raise OperationRefused(calls.NEEDS_DOING, "tool")
    if any(key in DEVICE_FIELDS for key in different):
        _check_devices(draft, new)
    elif any(key in CALL_FIELDS for key in different):
        _check_server_calls(draft, new)
    if new["tool"] == calls.INSTRUCTION and {"tool", "model"} & set(different):
        _check_mind(draft, new)
    draft.put_task(new)


def _with_fields(row: Row, fields: Row) -> Row:
    """A task with other fields; what it does is then still whole. Another tool has arguments of its own, and a device that it
    is not to run on is no longer the one that it asks for.
    """
    new = row | fields
    if new["tool"] != row["tool"] and "arguments" not in fields:
        new["arguments"] = {}
    if "wanted_device" not in fields and new["wanted_device"] in fields.get("not_device", ()):
        new["wanted_device"] = ""
    if new["tool"] == plan_tasks.IN_WORDS and new["arguments"]:
        raise OperationRefused(
            f"{row['task_id']} is in words alone, and has no arguments; give them with a tool, or give it a command",
            "arguments",
        )
    if new["tool"] == calls.COMMAND and not new["arguments"].get("argv"):
        raise OperationRefused("a command needs its argument list; give it as command", "command")
    if new["tool"] == calls.STEPS and not new["phases"]:
        raise OperationRefused("a task in steps needs steps; or give it a command or a tool", "steps")
    if new["tool"] == calls.STEPS and new["arguments"]:
        raise OperationRefused("a task in steps has no arguments of its own; each of its steps has", "arguments")
    is_called_otherwise = (new["tool"], new["arguments"]) != (row["tool"], row["arguments"])
    if new["tool"] == calls.INSTRUCTION and new["arguments"]:
        raise OperationRefused(f"{row['task_id']} is in words, and has no arguments", "arguments")
    if new["tool"] not in (calls.STEPS, calls.INSTRUCTION, plan_tasks.IN_WORDS) and is_called_otherwise:
        for path, message in calls.call_findings("task", new["tool"], new["arguments"]):
            raise OperationRefused(message, key_text(path))
    return new


def _add_dependency(draft: EditDraft, values: Row, fields: Mapping[str, str] | None = None) -> None:
    """`fields` says what the operation calls a field, where it is another name."""
    row = values["dependency"]
    called = {"from": "from", "to": "to", **(fields or {})}
    for end in ("from", "to"):
        draft.task(row[end], called[end])
    if row["from"] == row["to"]:
        raise OperationRefused(f"{row['from']} would wait for itself", called["from"])
    if _is_there(draft, row, called):
        return
    draft.require_editable(row["to"], called["to"])
    _check_reads(draft, row)
    draft.put_dependency(row)


def _is_there(draft: EditDraft, row: Row, called: Mapping[str, str]) -> bool:
    """Whether the dependency is there as it is given; an OperationRefused when there is another in its place."""
    there = draft.dependencies.get(row["dependency_id"])
    if there is None:
        name = draft.edge(row["from"], row["to"])
        there = draft.dependencies[name] if name else None
    if there is None:
        return False
    if row["dependency_id"] == f"{row['from']}>{row['to']}":
        row = {**row, "dependency_id": there["dependency_id"]}
    different = changed_keys(there, row, DEPENDENCY_DEFAULTS)
    if different:
        said = f"there is a dependency {there['dependency_id']} already, and it differs in {', '.join(different)}"
        raise OperationRefused(said, called["from"] if called["from"] != "from" else "dependency_id")
    return True


def _remove_dependency(draft: EditDraft, values: Row) -> None:
    name = draft.find(values["which"])
    if name is None:
        draft.missing_dependency(values["which"])
        return
    draft.require_editable(draft.dependencies[name]["to"], "to")
    draft.drop_dependency(name)


def _update_dependency(draft: EditDraft, values: Row) -> None:
    which = values["which"]
    name = draft.find(which)
    if name is None:
        named = which.get("dependency_id")
        hint = did_you_mean(named, draft.dependencies) if named else ""
        raise OperationRefused(f"there is no dependency {named or which['from'] + '>' + which['to']}{hint}", "dependency_id")
    row = draft.dependencies[name]
    new = normal_dependency(row) | values["fields"]
    if not changed_keys(row, new, DEPENDENCY_DEFAULTS):
        return
    draft.require_editable(row["to"], "to")
    for path, message in plan_tasks.dependency_findings(new):
        raise OperationRefused(message, key_text(path))
    _check_reads(draft, new)
    draft.put_dependency(new)


def _build_constellation(draft: EditDraft, values: Row) -> None:
    """The tasks and dependencies given, in place of what may still change (clear) or in addition to it.

    What has started stays, listed or not; where it is listed otherwise than it is, the refusal names the fields.
    """
    listed = [entry["task"]["task_id"] for entry in values["tasks"]]
    if len(set(listed)) < len(listed):
        twice = next(task_id for task_id, count in Counter(listed).items() if count > 1)
        raise OperationRefused(f"the task {twice} is there twice", "tasks")
    if values["clear"]:
        _clear(draft, set(listed), {(row["from"], row["to"]) for _, row in _listed_dependencies(values)})
    for number, entry in enumerate(values["tasks"]):
        _at(f"tasks[{number}]", _put_task, draft, entry["task"])
    seen: set[tuple[str, str]] = set()
    for place, row in _listed_dependencies(values):
        if (row["from"], row["to"]) in seen:
            raise OperationRefused(f"{row['to']} waits for {row['from']} already", place)
        seen.add((row["from"], row["to"]))
        _at(place, _put_dependency, draft, row)


def _at(place: str, step: Callable[..., None], *arguments: Any) -> None:
    """A step of an operation whose refusal names its place in it."""
    try:
        step(*arguments)
    except OperationRefused as refusal:
        field = f"{place}.{refusal.field}" if refusal.field else place
        raise OperationRefused(str(refusal), field, refusal.conflict) from refusal


def _listed_dependencies(values: Row) -> Iterator[tuple[str, Row]]:
    """Where each dependency of the operation is written, and its normal form."""
    for number, entry in enumerate(values["tasks"]):
        for place, upstream in enumerate(entry["after"]):
            yield (
                f"tasks[{number}].after[{place}]",
                plan_tasks.read_dependency({"from": upstream, "to": entry["task"]["task_id"]})[0],
            )
    for number, entry in enumerate(values["dependencies"]):
        yield f"dependencies[{number}]", entry["dependency"]


def _clear(draft: EditDraft, listed: set[str], listed_edges: set[tuple[str, str]]) -> None:
    """Removes what is not listed and may go; what has started stays as it is, and so does what led to it."""
    # Tasks that have been attempted or have ended by themselves, and all that these waited for, however far back.
    stays = {key for key, row in draft.snapshot.tasks.items() if not may_change(row) or row.get("attempt", 0)}
    ahead = [key for key in stays if key in draft.graph]
    while ahead:
        above = [str(key) for key in draft.graph.upstream(ahead.pop()) if key not in stays]
        stays.update(above)
        ahead += above
    for key, row in list(draft.dependencies.items()):
        if row is None or (row["from"], row["to"]) in listed_edges:
            continue
        if row["to"] not in stays or (row["to"] in listed and _may_change(draft, row["to"])):
            draft.drop_dependency(key)
    for task_id in [task_id for task_id, row in draft.tasks.items() if row is not None]:
        if task_id not in listed and task_id not in stays:
            _remove_task(draft, {"task_id": task_id})


def _may_change(draft: EditDraft, task_id: str) -> bool:
    row = draft.snapshot.tasks.get(task_id)
    return row is None or may_change(row)


def _put_task(draft: EditDraft, row: Row) -> None:
    there = draft.tasks.get(row["task_id"])
    if there is None:
        _add_task(draft, {"task": row, "after": ()})
        return
    row = {**row, "replaces": row["replaces"] or there["replaces"]}  # what it took over when it was new it has
    different = changed_keys(there, row)
    if different and not _may_change(draft, row["task_id"]):
        is_command = row["tool"] == calls.COMMAND
        words = {"phases": "steps", **(dict.fromkeys(("tool", "arguments"), calls.COMMAND) if is_command else {})}
        _refuse_other(why_not(there), "it", [words.get(key) or STORED[key].key for key in different])
    fields = {key: value for key, value in row.items() if key != "task_id"}
    _update_task(draft, {"task_id": row["task_id"], "fields": fields})


def _refuse_other(why: str, which: str, names: list[str]) -> NoReturn:
    named = ", ".join(dict.fromkeys(names))
    raise OperationRefused(
        f"{why}, and what is listed differs from {which} in {named}: list it as it is, or leave it out", names[0], conflict=True
    )


def _put_dependency(draft: EditDraft, row: Row) -> None:
    name = draft.edge(row["from"], row["to"])
    if not _may_change(draft, row["to"]):
        why = why_not(draft.snapshot.tasks[row["to"]])
        if name is None:
            raise OperationRefused(f"{why}, and it did not wait for {row['from']}: leave that out", "from", conflict=True)
        if row["dependency_id"] == f"{row['from']}>{row['to']}":
            row = {**row, "dependency_id": name}
        if different := changed_keys(draft.dependencies[name], row, DEPENDENCY_DEFAULTS):
            _refuse_other(why, f"the dependency {name}", different)
    if name is not None and row["dependency_id"] in (name, f"{row['from']}>{row['to']}"):
        fields = {key: row[key] for key in CHANGEABLE}
        _update_dependency(draft, {"which": {"dependency_id": name}, "fields": fields})
        return
    if name is not None:
        _remove_dependency(draft, {"which": {"dependency_id": name}})
    _add_dependency(draft, {"dependency": row})


# What the snapshot and the devices have to say


def _check_devices(draft: EditDraft, row: Row) -> None:
    """Every device named exists, and some device fits what is asked for."""
    if wrong := unknown_device(row, draft.devices):
        raise OperationRefused(wrong[1], wrong[0])
    _check_server_calls(draft, row)
    if row["wanted_device"] in row["not_device"]:
        said = f"{row['task_id']} is to run on {row['wanted_device']}, and not_device says that it must not"
        raise OperationRefused(said, "device")


def _check_server_calls(draft: EditDraft, row: Row) -> None:
    """What it calls of tool servers is offered, and called as it is offered."""
    for path, message in server_call_flaws(row, draft.devices):
        raise OperationRefused(message, key_text(path))


def _check_mind(draft: EditDraft, row: Row) -> None:
    """A task in words has a model that can carry it out."""
    if wrong := missing_mind(row, draft.devices):
        raise OperationRefused(wrong[1], wrong[0])


def _check_reads(draft: EditDraft, row: Row) -> None:
    """A condition's results['...'] name tasks that are there."""
    if "results" not in row["condition"]:
        return
    for task_id in sorted(conditions.tasks_read_by(row["condition"])):
        draft.task(task_id, "condition")


APPLY: dict[str, Callable[[EditDraft, Row], None]] = {
    "build_constellation": _build_constellation,
    "add_task": _add_task,
    "remove_task": _remove_task,
    "update_task": _update_task,
    "add_dependency": _add_dependency,
    "remove_dependency": _remove_dependency,
    "update_dependency": _update_dependency,
}
