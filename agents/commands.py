"""What a command means for the actor's machine, before anything is written (machines, "1. Actor")."""

from __future__ import annotations

from agents.errors import ActorEnded
from agents.machines import ACTOR, step
from agents.models import Actor, InboxItem

EVENTS = {"pause": "Pause", "resume": "Resume", "cancel": "Cancel"}
TARGETS = {"pause": "paused", "resume": "idle", "cancel": "cancelled"}
"""The state a command asks for; `ping` and `go_on` ask for none."""


def changes(session: int, kind: str) -> bool:
    """Whether `kind` would change the session's latest actor; False: it is there already.

    Raises ActorEnded where there is nobody (left) to command, TransitionNotAllowed where its state does not take it. The
    runner decides again, under its lease: this only keeps what cannot succeed out of the inbox.
    """
    actor = Actor.objects.filter(session_id=session).order_by("-epoch").first()
    if actor is None:
        return _before_the_first(session, kind)
    if ACTOR.is_terminal(actor.state):
        return _ended(actor, kind)
    if actor.state == TARGETS.get(kind) or (kind == "pause" and actor.pausing):
        return False
    if kind in EVENTS:
        step(ACTOR, actor.state, EVENTS[kind])
    return True


def _before_the_first(session: int, kind: str) -> bool:
    if not InboxItem.objects.filter(session_id=session, kind="interaction", state="queued").exists():
        raise ActorEnded(f"session {session} has no actor to {kind}; an interaction starts one")
    return True


def _ended(actor: Actor, kind: str) -> bool:
    if kind == "cancel":
        return InboxItem.objects.filter(session_id=actor.session_id, kind="interaction", state="queued").exists()
    raise ActorEnded(f"the actor of session {actor.session_id} is {actor.state}; a new interaction starts another")
