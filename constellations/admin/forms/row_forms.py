"""What the rows of a page have in common: what was shown, what is said of it, and where a problem belongs."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django import forms
from django.utils.safestring import SafeString, mark_safe

from agents.masks.values import mask_value
from constellations.admin.forms.widgets import PlainRenderer, field_html
from constellations.plan.keys.fields import MAX_DEPENDENCY_ID
from constellations.plan.values import Row

ROWS = 200
"""Rows of one kind that a page takes, those that an operator adds included."""


class RowForm(forms.Form):
    """One row of a page. `row` is what was shown, None where the operator adds it; `missing` one that was not there."""

    default_renderer = PlainRenderer
    kind: ClassVar[str]
    name_field: ClassVar[str]
    fields_of_problems: ClassVar[dict[str, str]] = {}
    """Fields of the form by what the editor calls them, where that differs."""

    def __init__(self, *args: Any, row: Row | None = None, missing: str = "", **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.row, self.missing = row, missing
        if row is not None:
            self.fields[self.name_field].widget = forms.HiddenInput()

    @staticmethod
    def initial_of(row: Row | None) -> Row:
        """What the form shows of a row, or of one that is to be."""
        return dict(row or {})

    def operations(self) -> list[Row]:
        """What the editor is to do: none for a row as it was."""
        return []

    explained: ClassVar[bool] = False
    """Whether each field says what it is for."""

    @property
    def fields_html(self) -> SafeString:
        """All fields but the one to remove the row with."""
        hidden = "".join(field.as_widget() for field in self.hidden_fields())
        shown = [field_html(field, self.explained) for field in self.visible_fields() if field.name != "DELETE"]
        return mark_safe(f'{hidden}<div class="o-fields">{"".join(shown)}</div>')

    @property
    def called(self) -> str:
        return str((self.cleaned_data if self.row is None else self.row)[self.name_field])

    @property
    def goes(self) -> bool:
        return bool(self.cleaned_data.get("DELETE"))

    def clean(self) -> Row:
        if self.missing:
            self.add_error(None, f"There was no {self.kind} {self.missing[:80]} on this page.")
        return self.cleaned_data

    def take(self, field: str, message: str) -> None:
        """Shows a problem that the editor found, at the field it is about."""
        steps = field.replace("[", ".").split(".")
        known = [self.fields_of_problems.get(step, step) for step in steps]
        found = next((name for name in known if name in self.fields and not self.fields[name].widget.is_hidden), None)
        if found is None and "arguments" in steps and "command" in self.fields:
            found = "command"
        self.add_error(found, f"{field}: {message}" if len(steps) > 1 else message)


class Rows(forms.BaseFormSet):  # type: ignore[type-arg]  # Django's takes no types while it runs
    """The rows of one kind of a page: those that were shown, by name, then those that are new."""

    def __init__(self, rows: dict[str, Row], *args: Any, **kwargs: Any):
        self.rows = rows
        self.names = self.names_in(kwargs.get("data"), kwargs["prefix"]) if kwargs.get("data") is not None else list(rows)
        # As the page shows them: what comes back so was not changed.
        initial = [mask_value(self.form.initial_of(rows.get(name))) for name in self.names]
        super().__init__(*args, **{**kwargs, "initial": initial})

    @classmethod
    def names_in(cls, data: Any, prefix: str) -> list[str]:
        """Names of the rows that a page says it was shown with."""
        count = data.get(f"{prefix}-INITIAL_FORMS", "")
        count = min(int(count[:6]), ROWS) if count.isascii() and count.isdigit() else 0
        given = (data.get(f"{prefix}-{number}-{cls.form.name_field}", "") for number in range(count))
        return [name[:MAX_DEPENDENCY_ID].replace("\x00", "") for name in given]

    def get_form_kwargs(self, index: int | None) -> dict[str, Any]:
        if index is None or index >= len(self.names):
            return {"initial": self.form.initial_of(None)}
        name = self.names[index]
        return {"row": self.rows.get(name), "missing": "" if name in self.rows else name or "without a name"}


def rows_formset(form: type[RowForm]) -> type[Rows]:
    """The rows of a kind; a page offers to add to them and to remove them."""
    limits: dict[str, Any] = {"max_num": ROWS, "absolute_max": ROWS + 1, "validate_max": True}
    made: Any = forms.formset_factory(form, formset=Rows, extra=0, can_delete=True, **limits)
    return cast(type[Rows], made)
