"""The forms of one page, and the one edit that a save of it makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django import forms

from agents.errors import AgentsError
from agents.models import Device
from agents.reads.authors import names_of
from agents.tools.catalogue import TOOLS
from constellations.admin.forms.dependency_forms import DependencyForm
from constellations.admin.forms.fields import ProseField
from constellations.admin.forms.row_forms import RowForm, Rows, rows_formset
from constellations.admin.forms.task_forms import ShortTaskForm, TaskForm
from constellations.admin.shown import ShownRows, rows_shown_at
from constellations.errors import EditRefused, StaleEdit
from constellations.models import Constellation, Edit
from constellations.plan.plain_text import sentences
from constellations.plan.values import Row
from constellations.services.edits import REASON_LENGTH, edit_apply
from constellations.services.preview import edit_preview

SUGGESTED = 200
"""Devices, and tasks, that are offered while somebody types a name."""
ORDER = ("remove_dependency", "remove_task", "add_task", "update_task", "update_dependency", "add_dependency")
"""What goes makes room for what comes, and what is tied together is there before."""
TASKS, DEPENDENCIES = "tasks", "dependencies"
CHANGES = 200
"""Changes that a preview lists."""

ShortRows, FullRows, DependencyRows = rows_formset(ShortTaskForm), rows_formset(TaskForm), rows_formset(DependencyForm)

Made = TypeVar("Made")


class ReasonForm(forms.Form):
    """What an edit says of itself. `onto` is set by whoever has read what others changed meanwhile."""

    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    onto = forms.IntegerField(min_value=1, required=False, widget=forms.HiddenInput)
    reason = ProseField(
        required=False, label="Why", max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 1}),
        help_text="Kept with the edit, for whoever reads its history.",
    )  # fmt: skip


class Sheet:
    """Tasks and dependencies of one constellation as forms. `full`: every field of a task, not only the usual ones."""

    def __init__(self, shown: ShownRows, data: Mapping[str, Any] | None = None, *, full: bool = False):
        self.shown, self.data = shown, data
        rows = FullRows if full else ShortRows
        self.reason = ReasonForm(data, initial={"version": shown.version})
        self.tasks = rows(shown.tasks, data=data, prefix=TASKS)
        self.dependencies = DependencyRows(shown.dependencies, data=data, prefix=DEPENDENCIES)
        self.full, self.stale = full, 0
        self.preview: Row | None = None
        self.looked_ahead = False

    @classmethod
    def posted(cls, constellation: Constellation, data: Mapping[str, Any], *, full: bool = False) -> Sheet:
        """The page as it was sent, beside the rows as they were when it was made."""
        said = data.get("version", "")
        version = int(said) if said.isascii() and said.isdigit() and len(said) < 9 else constellation.version
        tasks = (FullRows if full else ShortRows).names_in(data, TASKS)
        dependencies = DependencyRows.names_in(data, DEPENDENCIES)
        return cls(rows_shown_at(constellation, version, set(tasks), set(dependencies)), data, full=full)

    @property
    def devices(self) -> list[str]:
        return list(Device.objects.order_by("name").values_list("name", flat=True)[:SUGGESTED])

    @property
    def task_ids(self) -> list[str]:
        ends = [end for row in self.shown.dependencies.values() for end in (row["from"], row["to"])]
        return list(dict.fromkeys([*self.shown.tasks, *ends]))[:SUGGESTED]

    @property
    def tools(self) -> list[str]:
        """The tools there are."""
        return sorted(TOOLS)

    def is_valid(self) -> bool:
        return all([self.reason.is_valid(), self.tasks.is_valid(), self.dependencies.is_valid()])

    def operations(self) -> list[tuple[Row, RowForm]]:
        """The edit, and the form that each operation comes from."""
        rows = [form for form in (*self.tasks.forms, *self.dependencies.forms) if form.row is not None or form.has_changed()]
        found = [(operation, form) for form in rows for operation in form.operations()]
        return sorted(found, key=lambda each: ORDER.index(each[0]["op"]))

    def save(self, author: str) -> tuple[Edit | None, bool] | None:
        """Make the edit: (its row, whether this changed anything); None when nothing is to be done or something is wrong.

        What is wrong is then told by the forms.
        """
        return self._with_operations(lambda operations: self._apply(operations, author))

    def look_ahead(self) -> None:
        """Keep in `preview` what a save would change, and what would follow."""
        self.looked_ahead = True
        self.preview = self._with_operations(lambda operations: edit_preview(self.shown.constellation.pk, operations))

    def _with_operations(self, act: Callable[[list[Row]], Made]) -> Made | None:
        if not self.is_valid():
            return None
        found = self.operations()
        try:
            return act([operation for operation, _ in found]) if found else None
        except AgentsError as error:
            self.take(error, [form for _, form in found])
            return None

    def _apply(self, operations: list[Row], author: str) -> tuple[Edit | None, bool]:
        said = self.reason.cleaned_data
        based_on = said["onto"] or said["version"]
        # The same save sent twice is one edit; another one is another, also from a page that was gone back to.
        sent = json.dumps([author, based_on, operations], sort_keys=True)
        edit_id = f"admin-{hashlib.sha256(sent.encode()).hexdigest()[:24]}"
        return edit_apply(
            self.shown.constellation.pk, operations, author=author, reason=said["reason"], edit_id=edit_id, based_on=based_on
        )

    @property
    def all_rows(self) -> tuple[Rows, Rows]:
        return self.tasks, self.dependencies

    @property
    def previewed(self) -> list[Row]:
        """What a save would change, in words."""
        return sentences.describe_changes(self.preview["diff"][:CHANGES]) if self.preview else []

    @property
    def has_errors(self) -> bool:
        wrong = any(form.errors for form in (self.reason, *self.tasks.forms, *self.dependencies.forms))
        return wrong or any(rows.is_bound and rows.non_form_errors() for rows in self.all_rows)

    def take(self, error: AgentsError, forms_of_operations: list[RowForm]) -> None:
        """Put what the editor says where it belongs."""
        others: list[Row] = [{"operation": None, "message": str(error)}]
        problems = error.problems if isinstance(error, EditRefused | StaleEdit) else others
        if isinstance(error, StaleEdit):
            self.stale = error.members["version"]
        since = [each for each in problems if "operation" not in each]
        for message in sentences.edits_since(since, names_of(each.get("author", "") for each in since)):
            self.reason.add_error(None, message)
        # What does not clash whoever saves on top of the newest version has to know of, too.
        clashing = {each.get("version") for each in since}
        others_since = [each for each in error.members.get("between", ()) if each["version"] not in clashing]
        for each in sentences.describe_edits(others_since):
            self.reason.add_error(None, f"also since: {each}")
        for problem in [each for each in problems if "operation" in each]:
            number = problem["operation"]
            if number is None:
                self.reason.add_error(None, problem["message"])
            else:
                forms_of_operations[number - 1].take(problem["field"], problem["message"])
