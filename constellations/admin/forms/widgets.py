"""Fields of forms as HTML without templates: a page has up to a thousand of them, and each would be a template of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.forms import BoundField
from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe


class PlainRenderer(DjangoTemplates):
    """Draws inputs, texts and choices itself, and everything else as Django does."""

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> str:
        draw = DRAWN.get(template_name)
        return draw(context["widget"]) if draw else super().render(template_name, context, request)


def _input(widget: Mapping[str, Any]) -> SafeString:
    value = "" if widget["value"] is None else f' value="{escape(widget["value"])}"'
    return mark_safe(f'<input type="{widget["type"]}" name="{escape(widget["name"])}"{value}{_attributes(widget)}>')


def _textarea(widget: Mapping[str, Any]) -> SafeString:
    # A browser leaves out the line end that a text begins with.
    return mark_safe(
        f'<textarea name="{escape(widget["name"])}"{_attributes(widget)}>\n{escape(widget["value"] or "")}</textarea>'
    )


def _select(widget: Mapping[str, Any]) -> SafeString:
    options = "".join(
        f'<option value="{escape(option["value"])}"{" selected" * option["selected"]}>{escape(option["label"])}</option>'
        for _, group, _ in widget["optgroups"]
        for option in group
    )
    return mark_safe(f'<select name="{escape(widget["name"])}"{_attributes(widget)}>{options}</select>')


def _attributes(widget: Mapping[str, Any]) -> str:
    given = ((name, value) for name, value in widget["attrs"].items() if value is not False and value is not None)
    return "".join(f" {name}" if value is True else f' {name}="{escape(value)}"' for name, value in given)


DRAWN = {
    **{f"django/forms/widgets/{kind}.html": _input for kind in ("input", "text", "number", "hidden", "checkbox")},
    "django/forms/widgets/textarea.html": _textarea,
    "django/forms/widgets/select.html": _select,
}


def field_html(field: BoundField, explained: bool) -> str:
    """A field with its label, what is wrong with it, and, where it is to be `explained`, what it is for."""
    wrong = field.errors
    told = f'<span class="help">{escape(field.help_text)}</span>' if explained and field.help_text else ""
    return (
        f'<div class="o-field o-{field.name}{" errors" if wrong else ""}"><label for="{field.id_for_label}">'
        f"{escape(field.label)}</label>{field.as_widget()}{wrong.render() if wrong else ''}{told}</div>"
    )
