"""Scripts in templates: a module is asked for together with all that it imports, in one wave instead of one for each depth."""

from __future__ import annotations

import re
from functools import cache
from posixpath import dirname, join, normpath
from typing import Any

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from frontend.static_files import find_file

IMPORT = re.compile(r"""^(?:import|export)\b[^"';]*["'](\.[^"']+)["']""", re.MULTILINE)
"""A static import of another module, by its path from this one: the only kind that ours have."""
ASKED_FOR = "modules_asked_for"

register = template.Library()


def modules_under(name: str) -> list[str]:
    """A module and all that it imports, directly or through others, by name."""
    return _modules_under(name) if settings.DEBUG else _modules_of_release(name)


@cache
def _modules_of_release(name: str) -> list[str]:
    return _modules_under(name)


def _modules_under(name: str) -> list[str]:
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here in found or (file := find_file(here)) is None:
            continue
        found[here] = None
        waiting += [normpath(join(dirname(here), path)) for path in IMPORT.findall(file.read_text())]
    return list(found)


@register.simple_tag(takes_context=True)
def module(context: template.RequestContext, name: str) -> SafeString:
    """The script `name`, and before it a `modulepreload` of each module under it that the page has not asked for yet."""
    asked: set[str] = _page(context).setdefault(ASKED_FOR, set())
    fresh = [each for each in modules_under(name) if each not in asked]
    asked.update(fresh)
    preloads = format_html_join("\n", '<link rel="modulepreload" href="{}">', ((static(each),) for each in fresh))
    return format_html('{}\n<script type="module" src="{}"></script>', preloads, static(name))


def _page(context: template.RequestContext) -> dict[str, Any]:
    """What lasts as long as the page is rendered, in every block of it."""
    return context.dicts[0]
