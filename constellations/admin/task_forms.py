"""A task as an operator edits it: a few fields in a page of many, all of them on its own page."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms

from agents.devices.command_lines import is_split_into, line_of
from constellations.admin.fields import Json, Lines, Prose, Words, spread
from constellations.admin.looks import LOOKS, state_of
from constellations.admin.row_forms import RowForm
from constellations.plan.calls import COMMAND
from constellations.plan.fitting import DEVICE_FIELDS
from constellations.plan.guards import DECISIONS, SETTING_READERS
from constellations.plan.tasks import ON_LOST, PRIORITIES, TASK_DEFAULTS
from constellations.plan.values import Row

CALL = ("command", "shell", "tool", "arguments")
"""Fields that say together what a task of one call does."""
WORK = (*CALL, "phases")
"""Fields that say together what a task does."""
SAME = ("name", "description", "priority", "timeout", "deadline", "max_attempts", "backoff", "confirm", "on_lost", "replaces")
"""Fields of the form that are columns."""
GIVEN_AS_JSON = ("phases", "policies", "progress")
"""Columns that are written as JSON."""
RARE = (
    "deadline", "backoff", "confirm", "on_lost", "device_type", "capabilities", "not_device", "tips", "phases", "policies",
    "progress",
)  # fmt: skip
"""Fields that are only on a task's own page."""
POLICIES_HELP = (
    f"Of its calls; they only tighten the installation's: JSON, [{{tool, pattern, decision}}], to {', '.join(DECISIONS)}."
)
PROGRESS_HELP = f"What differs from the settings of the detection: JSON, {{name: value}} of {', '.join(SETTING_READERS)}."


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
    command = Prose(
        required=False, widget=forms.Textarea(attrs={"rows": 1}), help_text="Words as a shell splits them; no shell runs them."
    )
    shell = forms.BooleanField(
        required=False, help_text="A shell runs the command (sh -c), and policies judge it as a shell's."
    )
    tool = forms.CharField(required=False, help_text="Instead of a command.")
    arguments = Json(dict, required=False, help_text="Of the tool: a JSON object.")
    description = Prose(required=False, widget=forms.Textarea(attrs={"rows": 1}))
    deadline = forms.FloatField(required=False, help_text="Seconds from the constellation's creation, waiting included.")
    backoff = forms.FloatField(required=False, help_text="Seconds before the second attempt, then twice as long each time.")
    confirm = forms.BooleanField(required=False, help_text="A person is asked before it begins.")
    on_lost = forms.ChoiceField(choices=[(word, word) for word in ON_LOST], help_text="When nobody knows how an attempt ended.")
    replaces = forms.CharField(required=False, help_text="A task that failed: what waited for it waits for this one.")
    device_type = forms.CharField(required=False)
    capabilities = Words(required=False, help_text="Separated by commas.")
    not_device = Words(required=False, label="Not on", help_text="Devices it must not run on, separated by commas.")
    tips = Lines(required=False, help_text="One a line.")
    phases = Json(
        list, required=False, label="Steps", help_text="Instead of a command or a tool: JSON, [{description, steps}]."
    )
    policies = Json(list, required=False, help_text=POLICIES_HELP)
    progress = Json(dict, required=False, label="When it is stuck", help_text=PROGRESS_HELP)

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
        shown |= {name: ", ".join(row[name]) for name in ("capabilities", "not_device")}
        shown["tips"] = "\n".join(row["tips"])
        return {**shown, **_call_of(row), **{name: spread(row[name]) if row[name] else "" for name in GIVEN_AS_JSON}}

    def said(self) -> Row:
        """What was changed, in the editor's words."""
        changed = [name for name in self.changed_data if name in self.fields and name not in ("task_id", "DELETE")]
        told = {name: self.cleaned_data[name] for name in changed if name not in WORK}
        return told | self._work() if set(changed) & set(WORK) else told

    def _work(self) -> Row:
        """What it does: steps or a call. Of one that is to have both the editor says that it cannot."""
        call = {name: self.cleaned_data[name] for name in CALL if self.cleaned_data.get(name)}
        if self.cleaned_data.get("phases"):
            return {"phases": self.cleaned_data["phases"], **call}
        if "tool" in call and "command" not in call and self.row is not None:
            return {"arguments": {}, **call}  # those of the tool before are not this one's
        return call if call or self.row is None else {"command": ""}

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
        for name in (*RARE, *(CALL if in_steps else ())):
            self.fields.pop(name, None)


def _call_of(row: Row) -> Row:
    """A command as one line where that says it all, else tool and arguments."""
    nothing = {"command": "", "shell": False, "tool": "", "arguments": ""}
    tool, arguments = row["tool"], row["arguments"]
    if row is TASK_DEFAULTS or row["phases"]:
        return nothing
    if tool == COMMAND and arguments.keys() == {"argv"}:
        argv = arguments["argv"]
        if (line := line_of(argv)) is not None:
            return {**nothing, "command": line, "shell": True}
        if is_split_into(shlex.join(argv), argv):
            return {**nothing, "command": shlex.join(argv)}
    return {**nothing, "tool": tool, "arguments": spread(arguments) if arguments else ""}
