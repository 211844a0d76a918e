"""Form fields for the keys of a plan; lists and objects are texts there."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

from django import forms
from django.core.exceptions import ValidationError

from agents.api.parsers import each_key_once
from constellations.plan import documents
from constellations.plan.keys.kinds import Field, Shape
from constellations.plan.values import key_text

FLAWS = 3
"""That one field tells of."""
FormClass = TypeVar("FormClass", bound=type[forms.Form])
CALLED: dict[type, str] = {dict: "an object: {...}", list: "a list: [...]"}


class ProseField(forms.CharField):
    """Text of several lines. A browser sends other line ends than it was given; that is no change."""

    def __init__(self, **kwargs: Any):
        kwargs.setdefault("widget", forms.Textarea(attrs={"rows": 2}))
        super().__init__(strip=False, **kwargs)

    def to_python(self, value: Any) -> Any:
        return (super().to_python(value) or "").replace("\r\n", "\n")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed((initial or "").replace("\r\n", "\n"), data)


class JsonField(ProseField):
    """JSON of one kind, dict or list; empty is an empty one."""

    def __init__(self, kind: type, **kwargs: Any):
        self.kind = kind
        super().__init__(widget=forms.Textarea(attrs={"rows": 1, "class": "code", "spellcheck": "false"}), **kwargs)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            found = json.loads(text, parse_constant=_refuse, object_pairs_hook=each_key_once) if text.strip() else self.kind()
        except ValueError as error:
            said = str(error)
            if isinstance(error, json.JSONDecodeError):
                said = f"{error.msg.lower()}, line {error.lineno}, column {error.colno}"
            raise ValidationError(f"This is no JSON: {said}.") from error
        except RecursionError as error:
            raise ValidationError("This is nested too deeply.") from error
        if not isinstance(found, self.kind):
            raise ValidationError(f"This must be {CALLED[self.kind]}.")
        if flaws := list(islice(documents.value_flaws(found), FLAWS)):
            raise ValidationError([f"{key_text(path) or 'Here'}: {message}." for path, message in flaws])
        return found


class WordsField(forms.CharField):
    """A list of words with commas between them."""

    def clean(self, value: Any) -> list[str]:
        return [word.strip() for word in super().clean(value).split(",") if word.strip()]


class LinesField(ProseField):
    """A list of texts, one a line."""

    def clean(self, value: Any) -> list[str]:
        return [line.strip() for line in super().clean(value).splitlines() if line.strip()]


def spread_json(value: Any) -> str:
    """JSON as the forms show it: short things on one line."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= SHORT else json.dumps(value, ensure_ascii=False, indent=2)


SHORT = 60
"""Characters of JSON on one line."""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def form_field(field: Field) -> forms.Field:
    """The form field of a key."""
    choices = [(word, word.replace("_", " ").capitalize() if word.isupper() else word) for word in field.takes.choices]
    said: dict[str, Any] = {"label": field.label or None, "help_text": field.hint or field.about}
    match field.takes.shape:
        case Shape.PLACE:
            return forms.TypedChoiceField(choices=list(enumerate(field.takes.choices)), coerce=int, **said)
        case Shape.CHOICE:
            return forms.ChoiceField(choices=choices, **said)
        case Shape.FLAG:
            return forms.BooleanField(required=False, **said)
        case Shape.COUNT:
            return forms.IntegerField(required=False, **said)
        case Shape.NUMBER:
            return forms.FloatField(required=False, **said)
        case Shape.NAMES:
            return WordsField(required=False, **with_way(said, "Separated by commas."))
        case Shape.TEXTS:
            return LinesField(required=False, **with_way(said, "One a line."))
        case Shape.LIST | Shape.OBJECT:
            return JsonField(type(field.default), required=False, **said)
        case Shape.PROSE:
            return ProseField(required=False, widget=forms.Textarea(attrs={"rows": 1}), **said)
        case _:
            return forms.CharField(required=False, strip=field.takes.shape is Shape.ID, **said)


def with_fields(fields: dict[str, forms.Field]) -> Callable[[FormClass], FormClass]:
    """Gives a form fields that are not written down in its class."""

    def give(form: FormClass) -> FormClass:
        form.base_fields = form.declared_fields = {**form.declared_fields, **fields}
        return form

    return give


def with_way(said: dict[str, Any], way: str) -> dict[str, Any]:
    """Help that also says how a list is written."""
    return said | {"help_text": f"{said['help_text']} {way}".strip()}


def form_value(field: Field, value: Any) -> Any:
    """What a form shows of a value."""
    match field.takes.shape:
        case Shape.NAMES:
            return ", ".join(value)
        case Shape.TEXTS:
            return "\n".join(value)
        case Shape.LIST | Shape.OBJECT:
            return spread_json(value) if value else ""
        case _:
            return int(value) if isinstance(value, float) and value.is_integer() else value
