"""The same id again is the same request: it counts once, and another request under that id is refused.

Two requests are the same if the same author asks for the same. What follows from the moment at which a request came is no part
of what it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import Conflict
from agents.models import InboxItem

ALWAYS = ""
SETTLED = {
    "based_on": ALWAYS,  # somebody who sends it again may have seen a newer version meanwhile
    "begins": ALWAYS,  # what a retry begins beside the tasks that it names
    "retry": "every_failed",  # which tasks had FAILED then
    "seq": "newest",  # which event was the newest then
    "operations": "undoes",  # what it takes to undo an edit
}
"""Keys that follow from the moment: ALWAYS, or where the request has the other key, which says so, and that is true."""


def request_known_as(session_id: int, client_id: str) -> InboxItem | None:
    """What the session was asked under that client_id."""
    return InboxItem.objects.filter(session_id=session_id, client_id=client_id).first() if client_id else None


def session_begun_as(owner: Any, by: str, client_id: str) -> InboxItem | None:
    """The request with which `by` began a session of `owner` under that client_id."""
    if not client_id:
        return None
    mine = InboxItem.objects.filter(session__owner=owner, by=by, client_id=client_id, kind="interaction")
    return mine.order_by("id").first()


def is_same_request(known_by: str, known: Mapping[str, Any], by: str, asked: Mapping[str, Any]) -> bool:
    """Whether `by` asks for what `known_by` has asked for before."""
    settled = {key for key, where in SETTLED.items() if where == ALWAYS or asked.get(where)}

    def lasting(said: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in said.items() if key not in settled}

    return known_by == by and lasting(known) == lasting(asked)


def refuse_another_request(known: InboxItem, kind: str, by: str, asked: Mapping[str, Any], part: str = "") -> None:
    """Raise Conflict unless `known` is the same request; where it is a `part` of its payload that asks, that is compared."""
    if known.kind != kind:
        raise Conflict(f"client_id {known.client_id} was used for a request of kind {known.kind}")
    before = known.payload.get(part, {}) if part else known.payload
    if not is_same_request(known.by, before, by, asked):
        raise Conflict(
            f"client_id {known.client_id} was used for another request, by {known.by}; give this one an id of its own"
        )
