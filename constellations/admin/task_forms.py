"""A task as an operator edits it: a few fields in a page of many, all of them on its own page."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms

from constellations.admin.fields import Json, Lines, Prose, Words, spread
from constellations.admin.looks import LOOKS, state_of
from constellations.admin.row_forms import RowForm
from constellations.call_forms import COMMAND
from constellations.forms import ON_LOST, PRIORITIES, TASK_DEFAULTS
from constellations.steps import DEVICE_FIELDS
from constellations.values import Row

CALL = ("command", "tool", "arguments")
"""Fields that say together what a task does."""
SAME = ("name", "description", "priority", "timeout", "deadline", "max_attempts", "backoff", "confirm", "on_lost")
"""Fields of the form that are columns."""
RARE = ("deadline", "backoff", "confirm", "on_lost", "device_type", "capabilities", "tips", "phases")
"""Fields that are only on a task's own page."""


class TaskForm(RowForm):
    """The fields of one task. `row` is the task as it was shown; None for one that is new."""

    kind, name_field, explained = "task", "task_id", True
    fields_of_problems = {"wanted_device": "device", "argv": "arguments", "steps": "phases"}

    task_id = forms.CharField(required=False, label="Task id")
    name = forms.CharField(required=False, strip=False)
    device = forms.CharField(required=False, help_text="Empty: any that fits.")
    priority = forms.TypedChoiceField(choices=list(enumerate(PRIORITIES)), coerce=int)
    timeout = forms.FloatField(required=False, help_text="Seconds one attempt may run.")
    max_attempts = forms.IntegerField(required=False, label="Attempts")
    command = forms.CharField(required=False, strip=False, help_text="As a shell splits it; no shell runs it.")
    tool = forms.CharField(required=False, help_text="Instead of a command.")
    arguments = Json(dict, required=False, help_text="Of the tool: a JSON object.")
    description = Prose(required=False, widget=forms.Textarea(attrs={"rows": 1}))
    deadline = forms.FloatField(required=False, help_text="Seconds from the constellation's creation, waiting included.")
    backoff = forms.FloatField(required=False, help_text="Seconds before the second attempt, then twice as long each time.")
    confirm = forms.BooleanField(required=False, help_text="A person is asked before it begins.")
    on_lost = forms.ChoiceField(choices=[(word, word) for word in ON_LOST], help_text="When nobody knows how an attempt ended.")
    device_type = forms.CharField(required=False)
    capabilities = Words(required=False, help_text="Separated by commas.")
    tips = Lines(required=False, help_text="One a line.")
    phases = Json(list, required=False, label="Steps", help_text="Of a task in steps: JSON, [{description, steps}].")

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        in_steps = self.row is not None and bool(self.row["phases"])
        for name in ("command", "tool", "arguments") if in_steps else ("phases",):
            self.fields.pop(name, None)
        for name, listed in (("device", "devices"), ("tool", "tools")):
            if name in self.fields:
                self.fields[name].widget.attrs["list"] = listed

    @property
    def state(self) -> str:
        """Of the task, as it was shown."""
        return state_of(self.row) if self.row is not None and self.row["state"] else ""

    @property
    def state_word(self) -> str:
        return LOOKS[self.state][0].lower() if self.state else "gone"

    @staticmethod
    def initial_of(row: Row | None) -> Row:
        """What the form shows of a row, or of a task that is to be."""
        row = row or TASK_DEFAULTS
        shown = {name: row[name] for name in ("task_id", *SAME, *DEVICE_FIELDS)}
        shown |= {name: int(value) for name, value in shown.items() if isinstance(value, float) and value.is_integer()}
        shown["device"] = row["wanted_device"]
        shown["capabilities"], shown["tips"] = ", ".join(row["capabilities"]), "\n".join(row["tips"])
        return {**shown, **_call_of(row), "phases": spread(row["phases"]) if row["phases"] else ""}

    def said(self) -> Row:
        """What was changed, in the editor's words."""
        changed = [name for name in self.changed_data if name in self.fields and name not in ("task_id", "DELETE")]
        told = {name: self.cleaned_data[name] for name in changed if name not in CALL}
        return told | self._call() if set(changed) & set(CALL) else told

    def _call(self) -> Row:
        given = {name: self.cleaned_data[name] for name in CALL if self.cleaned_data.get(name)}
        if "tool" in given and "command" not in given and self.row is not None:
            return {"arguments": {}, **given}  # those of the tool before are not this one's
        return given if given or self.row is None else {"command": ""}

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
        for name in RARE:
            self.fields.pop(name, None)


def _call_of(row: Row) -> Row:
    """A command as one line where that says it all, else tool and arguments."""
    nothing = {"command": "", "tool": "", "arguments": ""}
    tool, arguments = row["tool"], row["arguments"]
    if row is TASK_DEFAULTS or row["phases"]:
        return nothing
    if tool == COMMAND and arguments.keys() == {"argv"} and shlex.split(shlex.join(arguments["argv"])) == arguments["argv"]:
        return {**nothing, "command": shlex.join(arguments["argv"])}
    return {**nothing, "tool": tool, "arguments": spread(arguments) if arguments else ""}
