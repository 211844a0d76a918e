"""Which pages an attempt had, from the evidence of its calls: what ends with a browser, and is opened again in the next."""

from __future__ import annotations

from django.db import connection
from django.db.models import Q, QuerySet

from agents.browsing.sites import INERT
from agents.models import Evidence

LEVELS = 4
"""Of delegations below a host whose calls are looked at."""
ROWS = 200
"""The latest calls that are looked at."""


def pages_of(agent: int, device: int) -> dict[str, str]:
    """By name the addresses of the pages that the agents of an attempt had on a device when they called last; `agent` is the
    host. Called in a thread, which has a connection of its own.
    """
    try:
        results = list(_calls(agent, device).filter(success=True).order_by("-id").values_list("result", flat=True)[:ROWS])
    finally:
        connection.close()
    told = [result for result in results if isinstance(result, dict) and result.get("page")]
    there = told[0].get("pages", []) if told else []
    found: dict[str, str] = {}
    for result in told:
        if result["page"] in there and result.get("url", INERT[0]) not in INERT:
            found.setdefault(result["page"], result["url"])
    return found


def lost_there(agent: int, device: int) -> bool:
    """Whether a call of theirs was lost there. Called as `pages_of`."""
    try:
        return _calls(agent, device).filter(error_kind="lost").exists()
    finally:
        connection.close()


def _calls(agent: int, device: int) -> QuerySet[Evidence]:
    whose, path = Q(), "loop__agent"
    for _ in range(LEVELS):
        whose |= Q(**{path: agent})
        path += "__parent"
    return Evidence.objects.filter(whose, loop__agent__device=device, tool__startswith="browser.")
