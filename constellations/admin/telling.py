"""Edits in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

VALUE_LENGTH = 200
"""Characters of a value that is repeated."""
TOLD = 6
"""Changes that a message names."""
SIGNS = {"added": "+", "removed": "−", "updated": "±"}  # noqa: RUF001  a minus sign as wide as the plus


def changes(diff: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each change of a diff as {"change", "sign", "what", "fields": [(name, old, new)]}."""
    return [
        {
            "change": each["change"],
            "sign": SIGNS[each["change"]],
            "what": f"task {each['task']}" if "task" in each else f"dependency {each['dependency']}",
            "fields": [(name, value(old), value(new)) for name, (old, new) in each.get("fields", {}).items()],
        }
        for each in diff
    ]


def sentence(diff: Iterable[Mapping[str, Any]]) -> str:
    """The changes on one line: added task task_005, removed dependency a>b."""
    told = [f"{each['change']} {each['what']}" for each in changes(diff)]
    return ", ".join(told[:TOLD]) + (f" and {len(told) - TOLD} more" if len(told) > TOLD else "")


def edits_since(problems: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[str]:
    """What came before an edit that is stale, with the names of who did it."""
    told = [(each["message"], each.get("author", "")) for each in problems]
    return [names[author] + message.removeprefix(author) if author else message for message, author in told]


def value(what: Any) -> str:
    """A value as a person reads it."""
    if what is None or what in ("", [], {}):
        return "nothing"
    if isinstance(what, float) and what.is_integer():
        what = int(what)
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]} ..."
