"""What a tool server offers, as the row of its device holds it, and how that differs from what was accepted. Pure.

A definition is pinned by the digest of all that the server says of the tool; what is kept of it is bounded and masked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.progress.digests import canonical_json
from agents.tools.namespaces import is_namespaced
from agents.tools.tame import tame_schema

MOST = 100
"""Tools of one server."""
DESCRIPTION = 2_000
"""Characters of a description."""
DEFINITION = 20_000
"""Characters of one tool's arguments, as JSON..."""
ALL = 300_000
"""...and of all that is kept of all of them."""
NAMED = 5
"""Tools that a reason names."""


@dataclass(frozen=True)
class Offer:
    """`tools` as a device has them; `left_out` says why others are none of them, by their names."""

    tools: tuple[dict[str, Any], ...]
    left_out: Mapping[str, str]


def make_offer(namespace: str, listed: Iterable[Mapping[str, Any]], mask: Callable[[str], str]) -> Offer:
    """From definitions as the protocol has them: name, description, inputSchema and whatever else is said of each."""
    tools: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    room = ALL
    for defined in listed:
        name = f"{namespace}.{defined['name']}"
        tool = {
            "name": name, "description": mask(str(defined.get("description") or ""))[:DESCRIPTION],
            "arguments": tame_schema(defined.get("inputSchema")), "digest": digest_of(defined),
        }  # fmt: skip
        size = len(canonical_json(tool))
        if not is_namespaced(name) or any(each["name"] == name for each in tools):
            left_out[name[:200]] = "its name cannot be used here, or is given twice"
        elif len(canonical_json(tool["arguments"])) > DEFINITION:
            left_out[name] = f"its arguments have more than {DEFINITION:,} characters"
        elif len(tools) >= MOST or size > room:
            left_out[name] = f"there are more than {MOST}, or they say too much"
        else:
            tools.append(tool)
            room -= size
    return Offer(tuple(sorted(tools, key=lambda tool: str(tool["name"]))), dict(list(left_out.items())[:MOST]))


def digest_of(defined: Mapping[str, Any]) -> str:
    """What stands for the whole of a definition."""
    return hashlib.sha256(canonical_json(dict(defined)).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_all(tools: Sequence[Mapping[str, Any]]) -> str:
    """What stands for all tools of a device: who accepts them says which they have seen."""
    return hashlib.sha256(canonical_json([[tool["name"], tool["digest"]] for tool in tools]).encode()).hexdigest()


def find_changes(pinned: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names by what has become of them since: `changed`, `added`, `removed`; without those of which there is none."""
    before = {tool["name"]: tool["digest"] for tool in pinned}
    now = {tool["name"]: tool["digest"] for tool in found}
    changes = {
        "changed": sorted(name for name in before.keys() & now.keys() if before[name] != now[name]),
        "added": sorted(now.keys() - before.keys()),
        "removed": sorted(before.keys() - now.keys()),
    }
    return {how: names for how, names in changes.items() if names}


def changes_text(changes: Mapping[str, Sequence[str]]) -> str:
    """The same in words."""
    told = (
        f"{how}: {', '.join(names[:NAMED])}" + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        for how, names in changes.items()
    )
    return "its tools are not those that were accepted (" + "; ".join(told) + "); an admin looks at them and accepts them"
