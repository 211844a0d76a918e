"""Constellations as MCP resources: the newest that the caller may see, and each by its id."""

from __future__ import annotations

import re

from agents.tables import Fields
from constellations.errors import ConstellationsError
from constellations.mcp import reading
from constellations.mcp.access import Caller, constellations_of

LISTED = 50
"""The newest."""
TEMPLATE = "orrery://constellations/{id}"
ADDRESS = re.compile(r"orrery://constellations/([1-9][0-9]{0,15})")
MEDIA_TYPE = "application/json"


class NoSuchResource(ConstellationsError):
    """There is nothing under this address."""

    code = "no_such_resource"
    status = 404


def newest(caller: Caller) -> list[Fields]:
    """{"uri", "name", "description"} of the newest constellations."""
    caller.demand(reading.READ)
    return [
        {"uri": TEMPLATE.format(id=row.pk), "name": str(row), "description": f"{row.state}, version {row.version}"}
        for row in constellations_of(caller).order_by("-pk")[:LISTED]
    ]


def read(caller: Caller, uri: str) -> str:
    """What get_constellation answers, as JSON; raises NoSuchResource, NoSuchConstellation."""
    found = ADDRESS.fullmatch(uri)
    if found is None:
        raise NoSuchResource(f"there is no resource {uri[:200]}; constellations are at {TEMPLATE}")
    return reading.get_constellation(caller, {"constellation_id": int(found[1])}).model_dump_json(by_alias=True)
