"""Sessions and the requests to them: one function for each thing that a person or another program asks."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from agents.access import ancestry
from agents.access.approvers import NotApprover, why_no_approver
from agents.devices.profiles.ceilings import SESSION_SLOTS
from agents.engine.drives.work import Checked, registered_handler
from agents.engine.requests import waits_for_an_actor
from agents.engine.summon import wake_a_runner
from agents.errors import ActorEnded, InboxFull, PayloadRejected
from agents.llm import choices
from agents.llm.profiles import read_profiles
from agents.machines import ACTOR
from agents.models import Actor, InboxItem, Lease, Session
from agents.reads.confinement import only_admins_may
from agents.services.same_request import refuse_another_request, request_known_as
from agents.streams.door import Door, door, new_stream
from agents.tools import confining

INBOX_LIMIT = 100
"""Requests that may wait in one session."""
COLUMNS = {"title": "title", "models": "model_profiles", "start": "start", "max_concurrent": "max_concurrent"}
"""What of a session may be changed: its words, and the columns that have it."""
TO_LIVE_ACTORS = ("pause", "resume", "cancel", "ping", "shutdown", "go_on", "ruling", "stop", "restart", "cancel_task")


def session_create(
    owner, title: str = "", *, by: str, parent: int | None = None, models: Mapping[str, str] | None = None, start: str = "",
    max_concurrent: int = 0,
) -> Session:  # fmt: skip
    """A new session of `owner`, with nobody at work in it yet; `models` are names of model profiles by purpose.

    `max_concurrent` is how many of its attempts may have slots at one time, 0: as many as the installation says.

    Where `by` is a token, the session has its key, and perhaps a parent: the session that the token was issued for, else
    `parent`, one that the token started itself. The parent's stream tells of it. Raises NotYourChild, TooDeep, ParentEnded,
    and PayloadRejected where there is no such profile, `start` is no word of it, or `max_concurrent` is out of bounds.
    """
    refuse_choices({"models": models or {}, "start": start, "max_concurrent": max_concurrent})
    with ancestry.new_ancestry(by, parent) as line:
        stream = new_stream("session")
        with door(stream, by) as opened:
            row = {"id": stream, "owner_id": owner.pk, "title": title, "created_at": opened.turn.at, **line}
            row |= {"model_profiles": dict(models or {}), "start": start, "max_concurrent": max_concurrent}
            opened.turn.record("session_created", add={"session": [row]})
        Lease.objects.create(stream_id=stream)
        if line["parent_id"] is not None:
            with door(line["parent_id"], by) as opened:
                opened.turn.record("child_created", session_id=stream, title=title)
    return Session.objects.get(pk=stream)


def session_change(session_id: int, *, by: str, request_id: str = "", **said: Any) -> Session:
    """Change `title`, `models` or `start` of a session, for what is asked of it from now on; `max_concurrent` counts at once.

    Raises NoSuchSession, NotYourSession, and PayloadRejected as `session_create` does.
    """
    ancestry.refuse_outside(session_id, by)
    refuse_choices(said)
    wanted = {COLUMNS[name]: value for name, value in said.items()}
    with door(session_id, by, request_id) as opened:
        row = Session.objects.get(pk=session_id)
        fields = {name: value for name, value in wanted.items() if getattr(row, name) != value}
        if fields:
            opened.turn.record("session_changed", set={"session": {str(session_id): fields}})
    return Session.objects.get(pk=session_id)


def refuse_choices(said: Mapping[str, Any]) -> None:
    """Raise PayloadRejected where `models` names no profile that is there, `start` no word of it, `max_concurrent` no limit."""
    models = said.get("models", {})
    problems = [(f"models.{purpose}".rstrip("."), message) for purpose, message in choices.models_problems(models)]
    if models and not problems:
        found = choices.unknown_profiles(models, read_profiles())
        problems = [(f"models.{purpose}", message) for purpose, message in found]
    if message := choices.start_problem(said.get("start", "")):
        problems.append(("start", message))
    if message := limit_problem(said.get("max_concurrent", 0)):
        problems.append(("max_concurrent", message))
    if problems:
        told = "; ".join(f"{key}: {message}" for key, message in problems)
        raise PayloadRejected(told, [{"key": key, "message": message} for key, message in problems])


def limit_problem(said: Any) -> str:
    """What is wrong with a `max_concurrent`; empty where nothing is."""
    good = isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= SESSION_SLOTS
    return "" if good else f"must be a whole number from 1 to {SESSION_SLOTS:,}, or 0 for as many as the installation says"


def check_payload(payload: dict[str, Any]) -> Checked:
    """Refuse, before anything is written, an interaction that nobody here could begin; raises PayloadRejected."""
    refuse_choices(payload)
    return registered_handler().check(payload)


def request_submit(
    session_id: int, kind: str, client_id: str, payload: dict[str, Any], *, by: str, request_id: str = "",
    checked: Checked | None = None,
) -> tuple[InboxItem, bool]:  # fmt: skip
    """Put a request into the session's inbox: (the row, whether it is new). The same client_id again is the same request.

    A cancel or a stop tells the sessions that were started from this one to end too, in the same transaction. `checked` is what
    `check_payload` has said of the payload, where the caller has asked it outside a transaction of its own. Raises
    NoSuchSession, NotYourSession, InboxFull, ActorEnded, Conflict where the client_id is that of another request, and for
    interactions PayloadRejected, TooManyOpen, ParentEnded, NotApprover and NotConfined; also where a plan names a device that
    the session's owner may not use.
    """
    ancestry.refuse_outside(session_id, by)
    if kind == "interaction" and checked is None:
        checked = check_payload(payload)
    if checked is not None and only_admins_may() and checked.runs_commands():
        confining.refuse_unconfined(session_id, by)
    if checked is not None and (owner := Session.objects.filter(pk=session_id).values_list("owner_id", flat=True).first()):
        checked.refuse_for(owner)
    if checked is not None and (let := checked.lets_unasked()) and (why := why_no_approver(by)):
        raise NotApprover(f"{let}, and who sends it may only narrow that: {why}")
    client_id = client_id or secrets.token_hex(8)
    room = ancestry.room_for_request(session_id, by) if kind == "interaction" else nullcontext(lambda: None)
    with room as check_room, door(session_id, by, request_id) as opened:
        found = request_known_as(session_id, client_id)
        if found is not None:
            refuse_another_request(found, kind, by, payload)
            return found, False
        _accept(session_id, kind)
        check_room()
        row = _inbox_row(opened, kind, client_id, payload, by)
        opened.turn.record("command_received", add={"inbox": [row]})
        if checked is not None:
            checked.keep(row["id"])
        if kind in ancestry.CANCELS:
            _cancel_descendants(opened, row["id"], by)
        if kind == "stop":
            _refuse_queued_from_within(opened)
    wake_a_runner()
    return InboxItem.objects.get(pk=row["id"]), True


def _cancel_descendants(parent: Door, command: int, by: str) -> None:
    """Tell what was started from the session to end with it; its stream is locked, so nothing more is started meanwhile."""
    for session in ancestry.live_descendants(parent.stream):
        with door(session, by, parent.request_id) as opened:
            payload = {"reason": ancestry.PARENT_CANCELLED, "parent": parent.stream}
            row = _inbox_row(opened, "cancel", f"parent:{command}", payload, by)
            opened.turn.record("command_received", add={"inbox": [row]})


def _refuse_queued_from_within(opened: Door) -> None:
    """What has asked its own session for more does not begin when it is stopped; what others asked for may.

    A cancel of the whole session refuses all that waits there, when its runner comes to it.
    """
    for item in ancestry.queued_from_within(opened.stream):
        fields = {
            "state": "refused", "outcome": "cancelled", "result": {"summary": ancestry.PARENT_CANCELLED},
            "ended_at": opened.turn.at,
        }  # fmt: skip
        opened.turn.record("command_done", set={"inbox": {str(item.pk): fields}})


def record_done(opened: Door, kind: str, client_id: str, payload: dict[str, Any], by: str, result: dict[str, Any]) -> None:
    """Keep, in the turn that does it, that the session was asked for what needs no runner: the same again is then known."""
    row = _inbox_row(opened, kind, client_id, payload, by)
    row |= {"state": "done", "result": result, "ended_at": opened.turn.at}
    opened.turn.record("command_received", add={"inbox": [row]})


def _accept(session_id: int, kind: str) -> None:
    if InboxItem.objects.filter(session_id=session_id, state="queued").count() >= INBOX_LIMIT:
        raise InboxFull(f"{INBOX_LIMIT} requests wait in session {session_id} already")
    if kind in TO_LIVE_ACTORS:
        actor = Actor.objects.filter(session_id=session_id).order_by("-epoch").first()
        if actor is not None and ACTOR.is_terminal(actor.state) and not waits_for_an_actor(session_id):
            raise ActorEnded(f"the actor of session {session_id} is {actor.state}; a new interaction starts another")


def _inbox_row(opened: Door, kind: str, client_id: str, payload: dict[str, Any], by: str) -> dict[str, Any]:
    return {
        "id": opened.take(), "session_id": opened.stream, "client_id": client_id, "kind": kind, "payload": payload,
        "by": by, "created_at": opened.turn.at,
    }  # fmt: skip
