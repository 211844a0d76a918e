"""Where the whole of a value is that an answer cuts short, and what is said of the cut. Pure.

Whoever reads an answer learns of each value that is not whole in it: how much is shown, how much there is, and where the rest
can be read. An address is a resource of the MCP server, and is read in pieces by its tool `read_value`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

ROOT = "orrery://"


def json_text(value: Any) -> str:
    """A value as JSON, of any numbers: PostgreSQL gives 1e+25 back as a whole number, which is beyond orjson."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def of_constellation(constellation: int, *parts: str) -> str:
    return _address("constellations", str(constellation), *parts)


def of_task(constellation: int, task_id: str, *parts: str) -> str:
    return of_constellation(constellation, "tasks", task_id, *parts)


def of_edit(constellation: int, edit_id: str, part: str) -> str:
    return of_constellation(constellation, "edits", edit_id, part)


def of_approval(approval: int, *parts: str) -> str:
    return _address("approvals", str(approval), *parts)


def of_device(name: str, part: str) -> str:
    return _address("devices", name, part)


def of_interaction(session: int, interaction: int, part: str) -> str:
    return _address("sessions", str(session), "interactions", str(interaction), part)


def _address(*parts: str) -> str:
    """Ids of tasks may have slashes and letters of every script: they are quoted as in any URI."""
    return ROOT + "/".join(quote(part, safe="") for part in parts)


def describe_cut(key: str, shown: int, total: int, unit: str, more: str) -> dict[str, Any]:
    """Of `key` an answer has only `shown` of `total` characters or items; `more` says where, or how, the rest is read."""
    return {"key": key, "shown": shown, "total": total, "unit": unit, "more": more}


def shorten_text(row: dict[str, Any], key: str, limit: int, address: str) -> list[dict[str, Any]]:
    """Keep the first `limit` characters of the text `row[key]`; what is to be said of that, if anything."""
    text = row[key]
    if len(text) <= limit:
        return []
    row[key] = text[:limit]
    return [describe_cut(key, limit, len(text), "characters", address)]


def leave_out(row: dict[str, Any], key: str, limit: int, address: str) -> list[dict[str, Any]]:
    """Put null in the place of a JSON value of more than `limit` bytes; what is to be said of that, if anything."""
    text = json_text(row[key])
    if len(text.encode()) <= limit:
        return []
    row[key] = None
    return [describe_cut(key, 0, len(text), "characters", address)]


def with_cuts(row: Mapping[str, Any], *cuts: list[dict[str, Any]]) -> dict[str, Any]:
    """The row with all that is cut in it, and whether anything is."""
    found = [each for some in cuts for each in some]
    return {**row, "truncated": bool(found), "cut": found}
