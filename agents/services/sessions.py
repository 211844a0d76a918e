"""One function for each thing that a person or another program asks of sessions and devices."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents import jobs
from agents.access import ancestry, lineage
from agents.devices.ceilings import MAX_CONCURRENT
from agents.devices.profiles import check_profile
from agents.engine.leases import LEASE_S
from agents.engine.requests import waits_for_an_actor
from agents.engine.work import handler
from agents.errors import ActorEnded, AgentsError, Conflict, InboxFull, NoSuchSession
from agents.machines import ACTOR, DEVICE_AGENT
from agents.models import Actor, Agent, Device, InboxItem, Lease, Runner, Session, Stream, Token
from agents.reads.confinement import only_admins_may
from agents.streams.door import Door, door, new_stream, system_stream
from agents.streams.statements import writing
from agents.tools import confining

INBOX_LIMIT = 100
"""Requests that may wait in one session."""
TO_LIVE_ACTORS = ("pause", "resume", "cancel", "ping", "shutdown", "go_on", "stop", "restart", "cancel_task")


class NoSuchDevice(AgentsError):
    """There is no device {id}."""

    code = "no_such_device"
    status = 404


class DeviceExists(AgentsError):
    """There is a device of that name."""

    code = "device_exists"
    status = 409


class ScopeMissing(AgentsError):
    """A token cannot make one that may do more than itself."""

    code = "scope_missing"
    status = 403


class TokenRejected(AgentsError):
    """Whoever asks may not make such a token."""

    code = "token_rejected"
    status = 403


def session_create(owner, title: str = "", *, by: str, parent: int | None = None) -> Session:
    """A new session of `owner`, with nobody at work in it yet.

    Where `by` is a token, the session has its key, and perhaps a parent: the session that the token was issued for, else
    `parent`, one that the token started itself. The parent's stream tells of it. Raises NotYourChild, TooDeep, ParentEnded.
    """
    with ancestry.beginning(by, parent) as line:
        stream = new_stream("session")
        with door(stream, by) as opened:
            row = {"id": stream, "owner_id": owner.pk, "title": title, "created_at": opened.turn.at, **line}
            opened.turn.record("session_created", add={"session": [row]})
        Lease.objects.create(stream_id=stream)
        if line["parent_id"] is not None:
            with door(line["parent_id"], by) as opened:
                opened.turn.record("child_created", session_id=stream, title=title)
    return Session.objects.get(pk=stream)


def check_payload(payload: dict[str, Any]) -> None:
    """Refuse, before anything is written, an interaction that nobody here could begin; raises PayloadRejected."""
    handler().check(payload)


def command_submit(
    session_id: int, kind: str, client_id: str, payload: dict[str, Any], *, by: str, request_id: str = "", checked: bool = False
) -> tuple[InboxItem, bool]:
    """Put a request into the session's inbox: (the row, whether it is new). The same client_id again is the same request.

    A cancel or a stop tells the sessions that were started from this one to end too, in the same transaction. `checked`: the
    caller has asked `check_payload` already, outside a transaction of its own. Raises NoSuchSession, NotYourSession, InboxFull,
    ActorEnded, Conflict where the client_id is that of another request, and for interactions PayloadRejected, TooManyOpen,
    ParentEnded and NotConfined.
    """
    ancestry.refuse_outside(session_id, by)
    if kind == "interaction" and not checked:
        check_payload(payload)
    if kind == "interaction" and only_admins_may() and handler().runs_commands(payload):
        confining.refuse_unconfined(session_id, by)
    client_id = client_id or secrets.token_hex(8)
    room = ancestry.room_for_request(session_id, by) if kind == "interaction" else nullcontext(lambda: None)
    with room as check_room, door(session_id, by, request_id) as opened:
        found = asked_as(session_id, client_id)
        if found is not None:
            check_same(found, kind, by, payload)
            return found, False
        _accept(session_id, kind)
        check_room()
        row = _inbox_row(opened, kind, client_id, payload, by)
        opened.turn.record("command_received", add={"inbox": [row]})
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


def asked_as(session_id: int, client_id: str) -> InboxItem | None:
    """What the session was asked under that client_id."""
    return InboxItem.objects.filter(session_id=session_id, client_id=client_id).first() if client_id else None


def check_same(found: InboxItem, kind: str, by: str, payload: dict[str, Any]) -> None:
    """Raise Conflict unless `found` is the same request: what is sent again counts once, and nothing else counts as that."""
    if found.kind != kind:
        raise Conflict(f"client_id {found.client_id} was used for a request of kind {found.kind}")
    if (found.by, found.payload) != (by, payload):
        raise Conflict(
            f"client_id {found.client_id} was used for another request, by {found.by}; give this one an id of its own"
        )


def wake_a_runner() -> None:
    """Ask the queue for a runner when none has shown life lately and none has been asked for."""
    alive = timezone.now() - timedelta(seconds=LEASE_S)
    if not Runner.objects.filter(state="LIVE", renewed_at__gt=alive).exists() and not jobs.runners_asked_for():
        jobs.ask_for_runner()


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


def device_create(
    name: str,
    *,
    by: str,
    kind: str = "local",
    platform: str = "shell",
    type: str = "",
    capabilities: Iterable[str] = (),
    labels: Iterable[str] = (),
    recipes: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    may_exceed: bool = True,
) -> Device:
    """Register a device. `may_exceed`: whether its limits may be beyond the installation's ceilings.

    Raises DeviceExists when the name is taken, in whatever case, DeviceRejected when something makes no sense, BeyondCeiling.
    """
    said: dict[str, Any] = {
        "kind": kind, "platform": platform, "type": type, "capabilities": list(capabilities), "labels": list(labels),
        "recipes": {} if recipes is None else recipes, "limits": limits or {}, "max_concurrent": max_concurrent,
    }  # fmt: skip
    check_profile(name, said, None, may_exceed=may_exceed)
    with writing():
        Stream.objects.select_for_update().get(pk=system_stream())  # nobody else gives out a name meanwhile
        if taken := Device.objects.filter(name__iexact=name).values_list("name", flat=True).first():
            raise DeviceExists(f"there is a device called {taken} already")
        stream = new_stream("device")
        with door(stream, by) as opened:
            row = {"id": stream, "name": name, **said, "state": "ONLINE", "created_at": opened.turn.at}
            opened.turn.record("device_created", add={"device": [row]})
    return Device.objects.get(pk=stream)


def device_change(device_id: int, *, by: str, may_exceed: bool = True, **fields: Any) -> Device:
    """Change a device's profile or state; its name stays. Raises NoSuchDevice, DeviceRejected, BeyondCeiling.

    A change of state is also told in the streams of the sessions that have work on the device.
    """
    before = Device.objects.filter(pk=device_id).first()
    if before is None:
        raise NoSuchDevice(f"there is no device {device_id}")
    check_profile(before.name, fields, before, may_exceed=may_exceed)
    if not fields:
        return before
    with door(device_id, by) as opened:
        opened.turn.record("device_changed", set={"device": {str(device_id): fields}})
    if fields.get("state", before.state) != before.state:
        told = {"device_id": device_id, "name": before.name, "from_state": before.state, "to_state": fields["state"]}
        for session in sessions_at_work_on(device_id):
            with door(session, by) as opened:
                opened.turn.record("device_state_changed", **told)
    return Device.objects.get(pk=device_id)


def sessions_at_work_on(device_id: int) -> list[int]:
    """Sessions with an agent on the device that has not ended."""
    agents = Agent.objects.filter(device=device_id).exclude(state__in=sorted(DEVICE_AGENT.terminal))
    return sorted(set(agents.values_list("session_id", flat=True)))


def token_create(
    user, name: str, scopes: Iterable[str], lifetime: timedelta, *, by: str, session: int | None = None
) -> tuple[Token, str]:  # fmt: skip
    """A new API token of `user`: (its row, its text). The text is nowhere stored and cannot be shown again.

    One that a token makes is that token's child (`agents.access.lineage`): it has no other user and no more scopes, and its
    lifetime ends with its parent's at the latest. With `session`, one that the user may see, it is for whoever works inside
    that session: see `agents.access.ancestry`. Raises NoSuchSession, ScopeMissing, TokenEnded, and TokenRejected where `by`
    is a token of a session or of somebody else.
    """
    if session is not None and not Session.objects.visible_to(user).filter(pk=session).exists():
        raise NoSuchSession(f"there is no session {session}, or it is not one that {user.get_username()} may see")
    wanted, maker = sorted(set(scopes)), ancestry.key_of(by)
    with door(system_stream(), by) as opened:  # under which tokens are revoked, too
        parent = _parent_for(maker, user, wanted) if maker else None
        token, text = Token.objects.create(
            user, expiry=lifetime, name=name, scopes=wanted, session_id=session, parent=parent
        )  # fmt: skip
        if parent is not None and parent.expiry is not None and parent.expiry < token.expiry:
            token.expiry = parent.expiry
            token.save(update_fields=["expiry"])
        told = {"user_id": user.pk, "token_key": token.token_key, "name": name, "scopes": token.scopes}
        opened.turn.record("token_created", **told, session_id=session)
    return token, text


def _parent_for(maker: str, user: Any, scopes: Iterable[str]) -> Token:
    """The token that makes another one, if it may."""
    parent = lineage.good_token(maker)
    if parent.session_id is not None:
        raise TokenRejected(f"this token was issued for session {parent.session_id}, and such a token makes no others")
    if parent.user_id != user.pk:
        raise TokenRejected("a token makes tokens of its own user, and of nobody else")
    if more := sorted(set(scopes) - set(parent.scopes)):
        raise ScopeMissing(f"this token cannot give the scopes {', '.join(more)}: it lacks them")
    return parent


def token_revoke(token: Token, *, by: str) -> None:
    """The token is no good from now on, and neither is any that descends from it."""
    with door(system_stream(), by) as opened:
        for each in lineage.with_descendants(token):
            opened.turn.record("token_revoked", user_id=each.user_id, token_key=each.token_key, name=each.name)
        Token.objects.filter(digest=token.digest).delete()  # and its children with it
