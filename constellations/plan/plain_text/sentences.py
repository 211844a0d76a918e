"""Edits in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

VALUE_LENGTH = 200
"""Characters of a value that is repeated."""
TOLD = 6
"""Changes that a message names."""
VERSIONS = 3
"""Edits that a message names in short."""
SIGNS = {"added": "+", "removed": "−", "updated": "±"}  # noqa: RUF001  a minus sign as wide as the plus


def describe_changes(diff: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each change of a diff as {"change", "sign", "what", "fields": [(name, old, new)]}."""
    return [
        {
            "change": each["change"],
            "sign": SIGNS[each["change"]],
            "what": _named(each),
            "fields": [(name, value_text(old), value_text(new)) for name, (old, new) in each.get("fields", {}).items()],
        }
        for each in diff
    ]


def changes_sentence(diff: Iterable[Mapping[str, Any]]) -> str:
    """The changes on one line: added task task_005, removed dependency a>b."""
    told = [f"{each['change']} {each['what']}" for each in describe_changes(diff)]
    return ", ".join(told[:TOLD]) + (f" and {len(told) - TOLD} more" if len(told) > TOLD else "")


def changes_summary(diff: Sequence[Mapping[str, Any]]) -> str:
    """The same with the fields that were changed: updated task train (timeout)."""
    fields = [f" ({', '.join(each['fields'])})" if each.get("fields") else "" for each in diff[:TOLD]]
    told = [f"{each['change']} {_named(each)}{changed}" for each, changed in zip(diff, fields, strict=False)]
    return ", ".join(told) + (f" and {len(diff) - TOLD} more" if len(diff) > TOLD else "")


def _named(change: Mapping[str, Any]) -> str:
    if "task" not in change:
        return f"dependency {change['dependency']}"
    return f"task {change['task']}" + (f" in the place of {change['replaces']}" if change.get("replaces") else "")


def left_behind(diff: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the tasks that an edit adds in the place of others could not take over: a>b stays, as b already runs."""
    stays = (line for each in diff for line in each.get("stays", {}).items())
    return [f"{dependency} stays as it is: {why}" for dependency, why in stays]


def edits_since(problems: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[str]:
    """What came before an edit that is stale, with the names of who did it."""
    told = [(each["message"], each.get("author", "")) for each in problems]
    return [names[author] + message.removeprefix(author) if author else message for message, author in told]


def describe_edits(between: Sequence[Mapping[str, Any]], total: int = 0) -> list[str]:
    """Edits as `standing.edits_between` gives them, each in words: version 2 by ada (updated task train (timeout)).

    Of `total` edits those that are not in `between` are counted at the end.
    """
    told = [f"version {each['version']} by {each['author_name']} ({each['changes']})" for each in between]
    return told + ([f"{total - len(told):,} more edits"] if total > len(told) else [])


def versions_sentence(between: Sequence[Mapping[str, Any]], total: int) -> str:
    """The first of `total` edits with who made them: version 2 by ada, version 3 by bob and 4 more. Empty for none."""
    told = [f"version {each['version']} by {each['author_name']}" for each in between[:VERSIONS]]
    if not told:
        return f"{total:,} edit{'s' if total > 1 else ''}" if total else ""
    return ", ".join(told) + (f" and {total - len(told):,} more" if total > len(told) else "")


def value_text(what: Any) -> str:
    """A value as a person reads it."""
    if what is None or what in ("", [], {}):
        return "nothing"
    if isinstance(what, float) and what.is_integer():
        what = int(what)
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]} ..."
