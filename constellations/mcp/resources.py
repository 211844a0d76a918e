"""MCP resources: the newest constellations that the caller may see, and everything that has an address."""

from __future__ import annotations

import re

from agents.reads.authors import names_of
from agents.streams.tables import Fields
from constellations.errors import ConstellationsError
from constellations.mcp import reading
from constellations.mcp.access import READ, Caller, constellations_of
from constellations.mcp.pieces import ID, TEMPLATES, WHOLE, approval_of, read_whole
from constellations.reads.excerpts.addresses import of_constellation

LISTED = 50
"""The newest, in one page."""
CONSTELLATION = "orrery://constellations/{id}"
APPROVAL = "orrery://approvals/{id}"
ALL = (CONSTELLATION, APPROVAL, *TEMPLATES)
"""Templates of all addresses."""
JSON, PLAIN = "application/json", "text/plain"
"""Media types."""
BOTH = re.compile(rf"orrery://(constellations|approvals)/{ID}")
CURSOR = re.compile(ID)


class BadCursor(ConstellationsError):
    """A page of the list of resources that there is not."""

    code = "bad_cursor"


def newest_resources(caller: Caller, cursor: str | None = None) -> tuple[list[Fields], str | None]:
    """{"uri", "name", "description"} of constellations, the newest first; what to give for the page after these."""
    caller.demand(READ)
    rows = constellations_of(caller).order_by("-pk")
    if cursor is not None:
        if not CURSOR.fullmatch(cursor):
            raise BadCursor(f"there is no page {cursor[:40]} of the resources: give what the page before called nextCursor")
        rows = rows.filter(pk__lt=int(cursor))
    found = list(rows[: LISTED + 1])
    told = [
        {"uri": of_constellation(row.pk), "name": str(row), "description": f"{row.state}, version {row.version}"}
        for row in found[:LISTED]
    ]
    return told, str(found[LISTED - 1].pk) if len(found) > LISTED else None


def read_resource(caller: Caller, uri: str) -> tuple[str, str]:
    """The resource and its media type; raises NoSuchAddress, NoSuchConstellation and the like."""
    caller.demand(READ)
    found = BOTH.fullmatch(uri)
    if found is None:
        text, is_json = read_whole(caller, uri)
        return text, JSON if is_json else PLAIN
    if found[1] == "constellations":
        return reading.get_constellation(caller, {"constellation_id": int(found[2])}).model_dump_json(by_alias=True), JSON
    row = approval_of(caller, int(found[2]))
    return reading.approval_view(row, names_of([row.decided_by]), WHOLE).model_dump_json(by_alias=True), JSON
