"""Tokens of devices: a person issues a one-time one, whoever installs the device exchanges it for the device's own.

They are no tokens of users (agents.services.tokens): they open nothing but the connection of their one device, and those of
users do not open that. No text is stored. After a rotation the earlier token is good until the new one is first used.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import timedelta

from django.db import DatabaseError
from django.db.models import Q, QuerySet
from django.utils import timezone
from knox.crypto import hash_token

from agents.errors import AgentsError
from agents.links.holders import end_link
from agents.links.moves import move_device
from agents.links.rows import lose_calls
from agents.machines import DEVICE, TransitionNotAllowed
from agents.models import Device, DeviceToken
from agents.services.devices import known_device
from agents.streams.door import door
from agents.streams.statements import not_waiting, write_transaction

PREFIXES = {"enrolment": "ore_", "device": "ord_"}
"""By purpose: how tokens begin, so that people and the mask know one when they see it."""
KEY_LENGTH = 15
"""Characters that name a token in records."""
LONGEST = 200
"""Characters; what is longer is no token of ours and is not hashed."""
ENROLMENT = timedelta(hours=1)
LONGEST_ENROLMENT = timedelta(days=7)
KEPT = 20
"""Tokens of a device that are good no more and stay listed."""
USED_EVERY = timedelta(seconds=60)
"""A token's `last_used` is written at most this often."""


class EnrolmentRefused(AgentsError):
    """This is no enrolment token, or it has been used, has expired or was revoked."""

    code = "enrolment_refused"
    status = 401


class NotEnrolled(AgentsError):
    """Devices of this kind, or in this state, have no tokens."""

    code = "not_enrolled"
    status = 409


def enrolment_create(device_id: int, *, by: str, lifetime: timedelta = ENROLMENT) -> tuple[DeviceToken, str]:
    """A token for one enrolment of a remote device: (its row, its text), shown once; an earlier unused one is revoked.

    Raises NoSuchDevice and NotEnrolled.
    """
    device = _remote_device(device_id)
    with door(device_id, by) as opened:
        _good(device, "enrolment").update(revoked_at=timezone.now())
        row, text = _issue(device, "enrolment", by, expires_at=timezone.now() + min(lifetime, LONGEST_ENROLMENT))
        opened.turn.record("device_enrolment_issued", token_key=row.token_key)
    return row, text


def enrol(text: str) -> str:
    """The device token for an enrolment token, which is thereby used up. Raises EnrolmentRefused.

    A token that the device had before is good until the new one is first used.
    """
    found = _read("enrolment", text)
    if found is None:
        raise EnrolmentRefused("this is no enrolment token that is still good: ask for a new one")
    with door(found.device_id, f"device:{found.device_id}") as opened:
        if not _good(found.device, "enrolment").filter(pk=found.pk).update(used_at=timezone.now()):
            raise EnrolmentRefused("the enrolment token has been used")
        row, fresh = _issue(found.device, "device", found.created_by)
        opened.turn.record("device_enrolled", token_key=row.token_key, enrolment=found.token_key)
    return fresh


def find_device(text: str) -> int | None:
    """The id of the device whose token this is; None for anything else. Its first use ends the device's earlier tokens.

    It says nothing of whether the device may connect now: that is its state, and `is_off`.
    """
    found = _read("device", text)
    if found is None:
        return None
    now = timezone.now()
    if found.used_at is None:
        with write_transaction():
            DeviceToken.objects.filter(pk=found.pk).update(used_at=now, last_used=now)
            _good(found.device, "device").filter(pk__lt=found.pk).update(revoked_at=now)
    elif found.last_used is None or found.last_used < now - USED_EVERY:
        with suppress(DatabaseError), not_waiting():
            DeviceToken.objects.filter(pk=found.pk).update(last_used=now)
    return found.device_id


def device_token_rotate(device_id: int, *, by: str) -> tuple[DeviceToken, str]:
    """A new device token: (its row, its text), shown once. The earlier one is good until this one is first used.

    Raises NoSuchDevice and NotEnrolled.
    """
    device = _remote_device(device_id)
    with door(device_id, by) as opened:
        _good(device, "device").filter(used_at=None).update(revoked_at=timezone.now())  # that nobody took up
        row, text = _issue(device, "device", by)
        opened.turn.record("device_token_rotated", token_key=row.token_key)
    return row, text


def device_tokens_revoke(device_id: int, *, by: str, reason: str = "its tokens were revoked") -> int:
    """End all tokens of a device, and with them its connection; how many there were.

    Its link is nobody's any more, so its holder sees at the next renewal that it has lost it. Raises NoSuchDevice.
    """
    device = known_device(device_id)
    with door(device_id, by) as opened:
        ended = _good(device).update(revoked_at=timezone.now())
        opened.turn.record("device_tokens_revoked", count=ended)
    if device.kind == "remote":
        end_link(device_id)
        with suppress(TransitionNotAllowed):  # it was not connected
            move_device(device_id, "disconnect", by=by, reason=reason)
        lose_calls(device_id, reason)
    return ended


def _remote_device(device_id: int) -> Device:
    device = known_device(device_id)
    if device.kind != "remote":
        raise NotEnrolled(f"device {device.name} is {device.kind}: only remote devices dial in, and have tokens")
    if device.state in DEVICE.terminal:
        raise NotEnrolled(f"device {device.name} is {device.state}")
    return device


def _good(device: Device, purpose: str = "") -> QuerySet[DeviceToken]:
    """Tokens of a device that have been neither revoked nor let expire, and enrolments that are not used up."""
    lasting, enrolment = Q(purpose="device"), Q(purpose="enrolment", used_at=None, expires_at__gt=timezone.now())
    rows = DeviceToken.objects.filter(lasting | enrolment, device=device, revoked_at=None)
    return rows.filter(purpose=purpose) if purpose else rows


def _read(purpose: str, text: str) -> DeviceToken | None:
    """The good token of that purpose that `text` is, with its device."""
    if not text.startswith(PREFIXES[purpose]) or not text.isascii() or len(text) > LONGEST:
        return None
    found = DeviceToken.objects.select_related("device").filter(digest=hash_token(text), purpose=purpose).first()
    if found is None or found.device.state in DEVICE.terminal:
        return None
    return found if _good(found.device, purpose).filter(pk=found.pk).exists() else None


def _issue(device: Device, purpose: str, by: str, **fields: object) -> tuple[DeviceToken, str]:
    """A new row and its text; the oldest that are good no more go. The caller holds the device's stream."""
    text = PREFIXES[purpose] + secrets.token_hex(32)
    row = DeviceToken.objects.create(
        device=device, purpose=purpose, digest=hash_token(text), token_key=text[:KEY_LENGTH], created_by=by,
        created_at=timezone.now(), **fields,
    )  # fmt: skip
    others = DeviceToken.objects.filter(device=device).exclude(pk__in=_good(device).values("pk"))
    old = list(others.order_by("-pk").values_list("pk", flat=True)[KEPT:])
    DeviceToken.objects.filter(pk__in=old).delete()
    return row, text
