"""A device that has dialled in: let in or refused, with calls that go on over a lost connection, and results that come late.

Each function is one transaction. The process that calls is the one that has the device's connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F
from django.db.models.functions import Coalesce, Now

from agents.errors import AgentsError
from agents.links.holders import MISSING, heartbeat_s, is_holder_dead, take_link
from agents.links.moves import REACHED, move_device_through, try_move_device
from agents.links.rows import OUTPUT, Ends, calls_left_by_others, write_ends
from agents.models import DeviceCall, DeviceCallMessage, DeviceLink
from agents.streams.door import door
from agents.streams.row_types import DeviceRow
from agents.streams.statements import select_any, write_transaction
from agents.streams.tables import fold_rows
from agents.tools.calls import Call, Outcome

RESTARTED = "the device's client was started anew"
REASONS = {"retired": "the device was retired", "failed": "the device has failed; a person has to reset it"}


class DialRefused(AgentsError):
    """The device is not let in. `reason_code` is one of the protocol's REFUSALS."""

    code = "dial_refused"

    def __init__(self, reason_code: str, message: str):
        super().__init__(message)
        self.reason_code = reason_code


@dataclass(frozen=True)
class Dialling:
    """What a device says of itself: its client's process, version and facts, and the calls that this process knows."""

    instance: str
    client: str = ""
    peer: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LetIn:
    """A device that is connected: what its calls are served under, those that go on, each with the characters of its output
    that are stored, and those that its client has never got.
    """

    device: DeviceRow
    fence: int
    going_on: list[tuple[Call, int]]
    never_got: list[Call]


def let_in(device_id: int, said: Dialling) -> LetIn:
    """Take the device's connection, and its machine to `connected`. Raises DialRefused; then nothing has changed.

    Its client's process may take its own connection from another holder. Any other has to wait until that one is silent.
    """
    with write_transaction():
        row: DeviceRow = fold_rows("device", "id = %s", device_id)[0]
        _check_state(row)
        before = row["facts"].get("instance", "")
        if before != said.instance and is_connected_elsewhere(row):
            raise DialRefused("already_connected", f"device {row['name']} is connected by another client")
        fence = take_link(device_id, peer=said.peer, version=said.client, steal=True)
        assert fence is not None  # nobody is asked
        facts = {**said.facts, "instance": said.instance}
        fields = {"facts": facts, "os": str(facts.get("os", ""))[:80]}
        _connect(row, fields)
        going_on, never_got, lost = [], [], Ends()
        for call in calls_left_by_others(device_id, fence):
            if call.key in said.known:
                going_on.append((call, stored_characters(call.key)))
            elif before == said.instance:
                never_got.append(call)
            else:
                lost.outcomes.append((call.key, fence, Outcome("lost", error=RESTARTED)))
        if lost:
            write_ends(lost)
    return LetIn({**row, **fields}, fence, going_on, never_got)  # type: ignore[typeddict-item]  # the row with these fields


def _check_state(row: DeviceRow) -> None:
    if row["kind"] != "remote":
        raise DialRefused("not_remote", f"device {row['name']} is {row['kind']}: it does not dial in")
    if row["state"] in REASONS:
        raise DialRefused(row["state"], REASONS[row["state"]])
    if row["is_off"]:
        raise DialRefused("taken_offline", f"device {row['name']} was taken offline: {row['reason'] or 'by a person'}")


def is_connected_elsewhere(row: DeviceRow) -> bool:
    """Whether a living process has the device's connection, and has heard of the device not too long ago."""
    link = DeviceLink.objects.filter(device=row["id"]).annotate(now=Now(), heard=Coalesce(F("heard_at"), F("since"))).first()
    if row["state"] not in REACHED or link is None or not link.holder or is_holder_dead(link):
        return False
    return bool(link.heard and (link.now - link.heard).total_seconds() <= MISSING * heartbeat_s(row))


def _connect(row: DeviceRow, fields: Mapping[str, Any]) -> None:
    """Its machine's way to `connected`, or news of the facts of one that still is."""
    if row["state"] in REACHED:
        changed = {name: value for name, value in fields.items() if row[name] != value}  # type: ignore[literal-required]
        if changed:
            with door(row["id"], f"device:{row['id']}") as opened:
                opened.turn.record("device_changed", set={"device": {str(row["id"]): changed}})
        return
    events = ("accepted",) if row["state"] == "connecting" else ("dial", "accepted")
    move_device_through(row["id"], events, by=f"device:{row['id']}", **fields)


def stored_characters(key: int) -> int:
    """Of what a call has printed."""
    said = DeviceCallMessage.objects.filter(call=key, way="up", kind=OUTPUT).values_list("body", flat=True)
    return sum(map(len, said))


def refuse_dial(device_id: int, reason: str) -> None:
    """Say in the device's history that it was refused at its handshake; the same reason is said once."""
    with write_transaction():
        row: DeviceRow = fold_rows("device", "id = %s", device_id)[0]
        if row["state"] == "disconnected" and row["reason"] != reason:
            move_device_through(device_id, ("dial", "refused"), by=f"device:{device_id}", reason=reason)


def lose_dialled(device_id: int, fence: int, reason: str, *, event: str = "lost") -> bool:
    """The device has said good-bye, or has broken the protocol (`fault`): as long as this hold on it is the last."""
    with write_transaction():
        if not DeviceLink.objects.filter(device=device_id, fence=fence).exists():
            return False
        return try_move_device(device_id, event, reason=reason)


def record_late(key: int, outcome: Outcome) -> None:
    """As `take_late`, of a call whose device is in its row."""
    device = DeviceCall.objects.filter(pk=key).values_list("device_id", flat=True).first()
    if device is not None:
        take_late(device, key, outcome)


def take_late(device_id: int, key: int, outcome: Outcome) -> str:
    """A result that nobody waits for: `foreign` (no call of this device), `stored` (it is the one that counted), or `late`.

    The call had ended as lost, or was cancelled, and its fence keeps the result out: it goes into the device's history.
    """
    with write_transaction():
        row = DeviceCall.objects.filter(key=key, device=device_id).first()
        if row is None:
            return "foreign"
        if row.state != "ended":
            return "open"
        counted = (row.outcome or {}).get("outcome", "")
        if counted not in ("lost", "cancelled") or counted == outcome.outcome:
            return "stored"
        with door(device_id, f"device:{device_id}") as opened:
            opened.turn.record(
                "late_result", call=key, attempt_id=row.attempt_id, session_id=row.session_id, tool=row.tool,
                outcome=outcome.outcome, exit_code=outcome.exit_code, error=outcome.error[:1_000],
                counted=counted,
            )  # fmt: skip
        return "late"


def wants_no_more(devices: list[int]) -> dict[int, str]:
    """Which of these devices are not to be connected any more, and why."""
    reached = ", ".join(f"'{state}'" for state in REACHED)
    rows = select_any("agents_device", "id, reason, state", "id", devices, f"state NOT IN ({reached}) OR is_off")
    return {device: reason or f"it is {state}" for device, reason, state in rows}
