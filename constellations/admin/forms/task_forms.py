"""A task as an operator edits it: a few fields in a page of many, all of them on its own page."""

from __future__ import annotations

import shlex
from typing import Any

from agents.devices.command_lines import is_split_into, shell_line_of
from constellations.admin.forms.fields import form_field, form_value, with_fields
from constellations.admin.forms.row_forms import RowForm
from constellations.admin.picture import WORDS, shown_state
from constellations.plan.keys.calls import COMMAND
from constellations.plan.keys.fields import TASK
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.plan.values import Row

CALL = ("command", "shell", "tool", "arguments")
"""Fields that say together what a task of one call does."""
WORK = (*CALL, "phases")
"""Fields that say together what a task does."""
USUAL = (
    "task_id", "name", "device", "priority", "timeout", "max_attempts", "command", "shell", "tool", "arguments", "description",
    "replaces",
)  # fmt: skip
"""Keys that are changed most, in the order of the form; the others are only on a task's own page."""
KEYS = {field.key: field for field in TASK if field.key not in ("steps", "after")}
"""The keys of the form: steps are written as phases, and dependencies have forms of their own."""


@with_fields({key: form_field(KEYS[key]) for key in dict.fromkeys((*USUAL, *KEYS))})
class TaskForm(RowForm):
    """The fields of one task. `row` is the task as it was shown; None for one that is new."""

    kind, name_field, explained = "task", "task_id", True
    fields_of_problems = {"wanted_device": "device", "argv": "arguments", "steps": "phases"}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.row is not None:  # only a new task takes something over
            self.fields["replaces"].disabled = True
        for name, listed in (("device", "devices"), ("tool", "tools"), ("replaces", "task-ids")):
            if name in self.fields:
                self.fields[name].widget.attrs["list"] = listed

    @property
    def state(self) -> str:
        """Of the task, as it was shown."""
        return shown_state(self.row) if self.row is not None and self.row["state"] else ""

    @property
    def state_word(self) -> str:
        return WORDS[self.state] if self.state else "gone"

    @staticmethod
    def initial_of(row: Row | None) -> Row:
        """What the form shows of a row, or of a task that is to be."""
        row = row or TASK_DEFAULTS
        shown = {key: form_value(field, row[field.name]) for key, field in KEYS.items() if field.is_stored}
        return {**shown, **_call_of(row)}

    def said(self) -> Row:
        """What was changed, in the editor's words."""
        changed = [name for name in self.changed_data if name in self.fields and name not in ("task_id", "DELETE")]
        told = {name: self.cleaned_data[name] for name in changed if name not in WORK}
        if not set(changed) & set(WORK):
            return told
        # Steps or a call: of one that is to have both the editor says that it cannot.
        call = {name: self.cleaned_data[name] for name in CALL if self.cleaned_data.get(name)}
        if self.cleaned_data.get("phases"):
            return {**told, "phases": self.cleaned_data["phases"], **call}
        if "tool" in call and "command" not in call and self.row is not None:
            return {**told, "arguments": {}, **call}  # those of the tool before are not this one's
        return told | (call if call or self.row is None else {"command": ""})

    def operations(self) -> list[Row]:
        task_id = self.called
        if self.row is None:
            return [] if self.goes else [{"op": "add_task", "parameters": {"task_id": task_id, **self.said()}}]
        if self.goes:
            return [{"op": "remove_task", "parameters": {"task_id": task_id}}]
        said = self.said()
        return [{"op": "update_task", "parameters": {"task_id": task_id, **said}}] if said else []


class ShortTaskForm(TaskForm):
    """The fields that are changed most; the others are on the task's own page."""

    explained = False

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        in_steps = self.row is not None and bool(self.row["phases"])
        for name in (*(KEYS.keys() - USUAL), *(CALL if in_steps else ())):
            self.fields.pop(name, None)


def _call_of(row: Row) -> Row:
    """A command as one line where that says it all, else tool and arguments."""
    nothing = {"command": "", "shell": False, "tool": "", "arguments": ""}
    tool, arguments = row["tool"], row["arguments"]
    if row is TASK_DEFAULTS or row["phases"]:
        return nothing
    if tool == COMMAND and arguments.keys() == {"argv"}:
        argv = arguments["argv"]
        if (line := shell_line_of(argv)) is not None:
            return {**nothing, "command": line, "shell": True}
        if is_split_into(shlex.join(argv), argv):
            return {**nothing, "command": shlex.join(argv)}
    return {**nothing, "tool": tool, "arguments": form_value(KEYS["arguments"], arguments)}
