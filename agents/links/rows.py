"""Calls as rows: what the session's runner asks for, and what the holder of the device makes of it.

Each function is one transaction, whoever else works on the same rows. Nudges go out with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents.models import Device, DeviceCall, DeviceCallMessage, DeviceLink, Stream
from agents.streams import nudges
from agents.streams.statements import raw_cursor, select_any, write_transaction
from agents.tools.calls import Call, Outcome

GIVEN = (
    "timeout", "scope", "inherits", "writes", "printed", "place", "blackboard", "inputs", "outputs", "agent", "app", "resumes",
)  # fmt: skip
"""Fields of a call that are kept beside those with a column of their own."""
OUTPUT, THINKING = "output", "thinking"
"""Kinds of messages with what a call has printed, and with what a program that carries it out thinks..."""
NOTE = "note"
"""...and of one that the session's stream is told: {"event", and what belongs to it}; all others are its updates."""
AT_ONCE = 500
"""Rows that one statement takes."""
TERMS = 100
"""Calls that one statement asks about, each with a term of its own."""

Message = tuple[int, str, Any]
"""The key of a call, the kind, the body."""


@dataclass
class Wishes:
    """What a runner wants written: calls to be made, calls to be ended (with their fences), messages to calls."""

    calls: list[Call] = field(default_factory=list)
    cancels: list[tuple[int, int]] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.cancels or self.told)


@dataclass
class News:
    """What has become of calls: outcomes of those that have ended, what calls say; `last` of each the newest message."""

    ended: dict[int, Outcome] = field(default_factory=dict)
    said: list[Message] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)


def write_wishes(wishes: Wishes) -> list[int]:
    """Write what a runner wants; the keys of calls whose session it does not own any more, which nobody makes."""
    refused: list[int] = []
    with write_transaction():
        tokens = dict(
            Stream.objects.select_for_update(of=("self",))
            .filter(pk__in={call.session for call in wishes.calls})
            .order_by("pk")
            .values_list("pk", "token")
        )
        devices: set[int] = set()
        for call in wishes.calls:
            if tokens.get(call.session) != call.fence:
                refused.append(call.key)
                continue
            devices.add(call.device["id"])
            DeviceCallMessage.objects.filter(call=call.key).delete()  # of an earlier try
            DeviceCall.objects.update_or_create(
                key=call.key,
                defaults={
                    "device_id": call.device["id"], "session_id": call.session, "attempt_id": call.attempt,
                    "fence": call.fence, "tool": call.tool, "arguments": dict(call.arguments),
                    "given": {name: _plain(getattr(call, name)) for name in GIVEN}, "state": "waiting", "link_fence": 0,
                    "cancel": False, "outcome": None, "created_at": Now(), "taken_at": None, "ended_at": None,
                },
            )  # fmt: skip
        for key, fence in wishes.cancels:
            found = DeviceCall.objects.filter(key=key, fence=fence).exclude(state="ended")
            devices.update(found.values_list("device_id", flat=True))
            found.update(cancel=True)
        told = [DeviceCallMessage(call_id=key, way="down", kind=kind, body=body) for key, kind, body in wishes.told]
        DeviceCallMessage.objects.bulk_create(told)
        devices.update(
            DeviceCall.objects.filter(key__in={key for key, _, _ in wishes.told}).values_list("device_id", flat=True)
        )
        _announce(nudges.CALLS, devices)
    return refused


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def read_news(lasts: Mapping[int, int]) -> News:
    """What has become of calls, each since the message that was the last read of it."""
    news, keys = News(), list(lasts)
    for at in range(0, len(keys), AT_ONCE):
        some = keys[at : at + AT_ONCE]
        # Ends first: what was said before an end is read after it, and so never missed.
        ended = DeviceCall.objects.filter(key__in=some, state="ended").values_list("key", "outcome")
        news.ended.update({key: Outcome(**outcome) for key, outcome in ended if outcome is not None})
    news.said, news.last = _read_messages("up", lasts)
    return news


def _read_messages(way: str, lasts: Mapping[int, int]) -> tuple[list[Message], dict[int, int]]:
    """Messages of calls, each after its own last: those of one call are written one after the other, those of several not."""
    said: list[Message] = []
    newest: dict[int, int] = {}
    silent = [key for key, last in lasts.items() if not last]
    wanted = [Q(call__in=silent[at : at + AT_ONCE]) for at in range(0, len(silent), AT_ONCE)]
    spoke = [Q(call=key, id__gt=last) for key, last in lasts.items() if last]
    wanted += [reduce(or_, spoke[at : at + TERMS]) for at in range(0, len(spoke), TERMS)]
    for each in wanted:
        found = DeviceCallMessage.objects.filter(each, way=way).order_by("id")
        for number, key, kind, body in found.values_list("id", "call_id", "kind", "body"):
            said.append((key, kind, body))
            newest[key] = number
    return said, newest


def adopt_calls(keys: Iterable[int], session: int, fence: int) -> list[Call]:
    """Those calls of a session that was taken over which have a row: they go on, or have ended meanwhile."""
    with write_transaction():
        rows = list(DeviceCall.objects.filter(key__in=list(keys), session=session))
        DeviceCall.objects.filter(key__in=[row.key for row in rows]).update(fence=fence)
    devices = {row["id"]: row for row in Device.objects.filter(pk__in={row.device_id for row in rows}).values()}
    return [replace(call_of(row, devices[row.device_id]), fence=fence) for row in rows]


def call_of(row: DeviceCall, device: Mapping[str, Any]) -> Call:
    """A row as the call that it is about."""
    given: dict[str, Any] = row.given or {}
    return Call(
        attempt=row.attempt_id, session=row.session_id, tool=row.tool, arguments=row.arguments, device=device, key=row.key,
        fence=row.fence, **given,
    )  # fmt: skip


@dataclass
class Ends:
    """What a holder wants written: outcomes and messages of calls, each with the fence of its hold on the device."""

    outcomes: list[tuple[int, int, Outcome]] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.said)


@dataclass
class Due:
    """What a holder is to do: calls to begin, calls to end, what calls are told; `last` of each call the newest message."""

    begin: list[Call] = field(default_factory=list)
    cancel: list[int] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)


def take_due(fences: Mapping[int, int], lasts: Mapping[int, int]) -> Due:
    """Take the calls that wait for devices this process holds, by their fences; what those under way, `lasts`, are to hear."""
    due = Due()
    asked = {device for (device,) in select_any("agents_devicecall", "device_id", "device_id", fences, "state = 'waiting'")}
    if asked:
        with write_transaction():
            held = DeviceLink.objects.filter(device__in=asked).values_list("device_id", "fence")
            mine = [device for device, fence in held if fences[device] == fence]
            waiting = DeviceCall.objects.filter(device__in=mine, state="waiting")
            rows = list(waiting.select_for_update().order_by("key"))
            for device in {row.device_id for row in rows}:
                of_device = DeviceCall.objects.filter(key__in=[row.key for row in rows if row.device_id == device])
                of_device.update(link_fence=fences[device], taken_at=Now(), state="taken")
            ended = {"outcome": "cancelled", "error": "interrupted"}
            if cancelled := [row.key for row in rows if row.cancel]:
                DeviceCall.objects.filter(key__in=cancelled).update(state="ended", outcome=ended)
            _announce(nudges.ANSWERS, {row.session_id for row in rows if row.cancel})
        devices = {row["id"]: row for row in Device.objects.filter(pk__in={row.device_id for row in rows}).values()}
        due.begin = [call_of(row, devices[row.device_id]) for row in rows if not row.cancel]
    known = {**lasts, **{call.key: 0 for call in due.begin}}
    keys = list(known)
    for at in range(0, len(keys), AT_ONCE):
        some = keys[at : at + AT_ONCE]
        due.cancel += DeviceCall.objects.filter(key__in=some, cancel=True, state="taken").values_list("key", flat=True)
    due.told, due.last = _read_messages("down", known)
    return due


def calls_left_by_others(device: int, fence: int) -> list[Call]:
    """Calls of a device that an earlier holder had begun and that have not ended; they are this one's from now on."""
    with write_transaction():
        rows = list(DeviceCall.objects.filter(device=device, state="taken", link_fence__lt=fence).select_for_update())
        DeviceCall.objects.filter(key__in=[row.key for row in rows]).update(link_fence=fence)
    found = Device.objects.filter(pk=device).values().first()
    return [call_of(row, found) for row in rows] if found else []


def write_ends(ends: Ends) -> list[int]:
    """Write outcomes and messages; the keys of calls that had ended already, or are somebody else's: those are refused."""
    refused: list[int] = []
    with write_transaction():
        sessions: set[int] = set()
        messages = [DeviceCallMessage(call_id=key, way="up", kind=kind, body=body) for key, kind, body in ends.said]
        open_calls = set(
            DeviceCall.objects.filter(key__in={key for key, _, _ in ends.said})
            .exclude(state="ended")
            .values_list("key", flat=True)
        )
        DeviceCallMessage.objects.bulk_create([each for each in messages if each.call_id in open_calls], batch_size=AT_ONCE)
        for key, fence, outcome in ends.outcomes:
            found = DeviceCall.objects.filter(key=key, state="taken", link_fence=fence)
            if not found.update(state="ended", outcome=outcome.as_json(), ended_at=Now()):
                refused.append(key)
        keys = {key for key, _, _ in (*ends.said, *ends.outcomes)}
        sessions.update(DeviceCall.objects.filter(key__in=keys).values_list("session_id", flat=True))
        _announce(nudges.ANSWERS, sessions)
    return refused


def lose_calls(device: int, why: str) -> list[int]:
    """End all open calls of a device that is gone, as lost; their keys. What comes of them later is refused."""
    with write_transaction():
        rows = list(DeviceCall.objects.filter(device=device).exclude(state="ended").select_for_update())
        keys = [row.key for row in rows]
        lost = {"outcome": "lost", "error": why}
        DeviceCall.objects.filter(key__in=keys).update(state="ended", outcome=lost, ended_at=Now())
        _announce(nudges.ANSWERS, {row.session_id for row in rows})
    return keys


def _announce(mark: str, keys: Iterable[int]) -> None:
    """Inside a transaction: nudge once it is committed."""
    keys = sorted(keys)
    if not keys:
        return
    if connection.vendor == "postgresql":
        nudges.announce_marks(raw_cursor(), mark, keys)
    else:
        transaction.on_commit(lambda: nudges.send_marks(mark, keys))
