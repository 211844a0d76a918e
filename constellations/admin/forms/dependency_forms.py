"""A dependency as an operator edits it."""

from __future__ import annotations

from typing import Any

from django import forms

from constellations.admin.forms.fields import form_field, with_fields
from constellations.admin.forms.row_forms import RowForm
from constellations.plan.keys.fields import CHANGEABLE, DEPENDENCY
from constellations.plan.tasks import DEPENDENCY_DEFAULTS
from constellations.plan.values import Row


@with_fields({field.key: form_field(field) for field in DEPENDENCY if field.key in CHANGEABLE})
class DependencyForm(RowForm):
    """The fields of one dependency; its ends are given once, when it is new. With a condition it is CONDITIONAL."""

    kind, name_field = "dependency", "dependency_id"
    fields_of_problems = {"from": "upstream", "to": "downstream"}

    dependency_id = forms.CharField(required=False, widget=forms.HiddenInput)
    upstream = forms.CharField(required=False, label="From")
    downstream = forms.CharField(required=False, label="To")

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for name in ("upstream", "downstream"):
            self.fields[name].widget.attrs["list"] = "task-ids"
            if self.row is not None:
                del self.fields[name]

    @staticmethod
    def initial_of(row: Row | None) -> Row:
        row = row or DEPENDENCY_DEFAULTS
        return {"upstream": row["from"], "downstream": row["to"], **row}

    def said(self) -> Row:
        """What was changed, in the editor's words."""
        return {name: self.cleaned_data[name] for name in self.changed_data if name in CHANGEABLE}

    def operations(self) -> list[Row]:
        if self.row is None:
            ends = {"from": self.cleaned_data["upstream"], "to": self.cleaned_data["downstream"]}
            kind = {} if self.cleaned_data["condition"] else {"type": self.cleaned_data["type"]}
            return [] if self.goes else [{"op": "add_dependency", "parameters": {**ends, **kind, **self.said()}}]
        if self.goes:
            return [{"op": "remove_dependency", "parameters": {"dependency_id": self.called}}]
        said = self.said()
        return [{"op": "update_dependency", "parameters": {"dependency_id": self.called, **said}}] if said else []
