"""What a command means for the actor's machine, before anything is written (docs/machines.md, "1. Actor")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import ActorEnded
from agents.machines import ACTOR, step
from agents.models import Actor, InboxItem

EVENTS = {"pause": "Pause", "resume": "Resume", "cancel": "Cancel"}
TARGETS = {"pause": "paused", "resume": "idle", "cancel": "cancelled"}
"""The state a command asks for; the others ask for none."""
IMMEDIATE = "immediate"
"""The mode of a pause that cuts off what runs."""


def changes_actor(session: int, kind: str, payload: Mapping[str, Any]) -> bool:
    """Whether `kind` would change the session's latest actor; False: it is there already.

    Raises ActorEnded where there is nobody (left) to command, TransitionNotAllowed where its state does not take it. The
    runner decides again, under its lease: this only keeps what cannot succeed out of the inbox.
    """
    actor = Actor.objects.filter(session_id=session).order_by("-epoch").first()
    if actor is None or ACTOR.is_terminal(actor.state):
        if waits_for_an_actor(session):
            return True
        if actor is None:
            raise ActorEnded(f"session {session} has no actor to {kind}; an interaction starts one")
        if kind == "cancel":
            return False
        raise ActorEnded(f"the actor of session {session} is {actor.state}; a new interaction starts another")
    if InboxItem.objects.filter(session_id=session, state="queued", kind__in=EVENTS).exists():
        return True  # what it answers depends on commands that nobody has taken up yet
    if kind == "pause" and actor.pausing and payload.get("mode") == IMMEDIATE:
        return True  # what runs was to end first, and is now cut off
    if kind == "pause" and (actor.pausing or actor.state == TARGETS[kind]):
        return _asked_since_the_pause(session)
    if kind == "resume" and actor.pausing:
        return True
    if actor.state == TARGETS.get(kind):
        return False
    if kind in EVENTS:
        step(ACTOR, actor.state, EVENTS[kind])
    return True


def waits_for_an_actor(session: int) -> bool:
    """Whether the session, which has no live actor, has been asked for something that will start one: commands are for that."""
    return InboxItem.objects.filter(session_id=session, kind="interaction", state="queued").exists()


def _asked_since_the_pause(session: int) -> bool:
    """Whether something waits that was asked after the last pause, and would end it."""
    asked = InboxItem.objects.filter(session_id=session)
    last = asked.filter(kind="pause").order_by("-id").values_list("id", flat=True).first() or 0
    return asked.filter(kind="interaction", state="queued", id__gt=last).exists()
