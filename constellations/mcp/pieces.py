"""What an answer cuts short, read whole or in pieces by its address; docs/mcp.md, "What is cut", lists the addresses.

An approval's action has a seal beside: its digest, without which nobody approves it here, is given with the last piece to those
alone who have read every piece before it. Nothing is kept for that: each piece says, signed, how far its reader has come.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from django.utils.crypto import constant_time_compare, salted_hmac

from agents.devices.limits import CommandLimits
from agents.masks.values import mask_text, mask_value, shown_limits
from agents.models import Approval, InboxItem
from agents.reads.printed import printed_characters, printed_piece
from agents.streams.fold import consistent_read
from constellations.errors import ConstellationsError, NoSuchTask
from constellations.live.kept import read_graph
from constellations.mcp import results
from constellations.mcp.access import Caller, approvals_of, constellation_of, device_of, sessions_of, task_of
from constellations.reads.excerpts.addresses import ROOT, json_text
from constellations.reads.excerpts.written import read_written_task
from constellations.services.preview import critical_path
from constellations.services.undo import edit_named

CHARACTERS = 16_000
LARGEST = 100_000
"""Of a piece: unless it is said, and at most."""
WHOLE = 1_000_000
"""Characters of a value that a resource shows as a whole."""
SEAL = "orrery.mcp.seen"
SEAL_LENGTH = 32
"""Hexadecimal digits."""


class NoSuchAddress(ConstellationsError):
    """There is nothing under this address."""

    code = "no_such_address"
    status = 404


class NotSeen(ConstellationsError):
    """The action has not been read from its beginning to here."""

    code = "action_not_seen"


@dataclass(frozen=True)
class PieceSource:
    """A text that is read in pieces. `digest` is what is given to those who have read all of it."""

    total: int
    piece: Callable[[int, int], str]
    is_json: bool = True
    digest: str = ""


def text_of(value: str, is_json: bool = False) -> PieceSource:
    """Masked as a whole: a piece may begin or end in the middle of a secret."""
    shown = mask_text(value)
    return PieceSource(len(shown), lambda start, end: shown[start:end], is_json)


def json_of(value: Any) -> PieceSource:
    return text_of(json_text(mask_value(value)), True)


# What is where


def _constellation(caller: Caller, key: str, part: str) -> PieceSource:
    row = constellation_of(caller, int(key))
    if part == "reason":
        return text_of(row.reason)
    if part == "critical_path":
        with consistent_read():
            live = read_graph(row.pk)
        try:
            return json_of(critical_path(live))
        finally:
            live.release()
    return json_of({"result": row.result, "rules": row.rules}[part])


def _task(caller: Caller, key: str, task_id: str, part: str) -> PieceSource:
    constellation = constellation_of(caller, int(key))
    task = task_of(constellation, task_id)
    if part == "output":
        return _output(task.attempts.order_by("-number").first())
    if part in ("written", "dependencies"):
        whole = read_written_task(constellation, task.task_id)
        return json_of(whole["task"] if part == "written" else whole["dependencies"])
    value = getattr(task, part)
    return json_of(value) if part in ("result", "arguments") else text_of(value)


def _attempt(caller: Caller, key: str, task_id: str, number: str, part: str) -> PieceSource:
    task = task_of(constellation_of(caller, int(key)), task_id)
    attempt = task.attempts.filter(number=int(number)).first()
    if attempt is None:
        raise NoSuchTask(f"{task.task_id} has no attempt {number}; its last is {task.attempt}")
    if part == "output":
        return _output(attempt)
    return text_of(attempt.error) if part == "error" else json_of(attempt.result)


def _output(attempt: Any) -> PieceSource:
    """What an attempt has printed so far; a task without one has printed nothing."""
    if attempt is None:
        return text_of("")
    return PieceSource(
        printed_characters(attempt.pk),
        lambda start, end: printed_piece(attempt.pk, start, end),
        is_json=False,
    )


def _edit(caller: Caller, key: str, edit_id: str, part: str) -> PieceSource:
    row = edit_named(constellation_of(caller, int(key)).pk, edit_id)
    return text_of(row.reason) if part == "reason" else json_of(getattr(row, part))


def approval_of(caller: Caller, key: int) -> Approval:
    """Raises NoSuchAddress, with the same words for what is not there and what is not the caller's to see."""
    row = approvals_of(caller).filter(pk=key).first()
    if row is None:
        raise NoSuchAddress(f"there is no approval {key} for you to see")
    return row


def _approval(caller: Caller, key: str, part: str) -> PieceSource:
    row = approval_of(caller, int(key))
    source = json_of(getattr(row, part))
    return replace(source, digest=row.digest) if part == "action" else source


def _device(caller: Caller, name: str, part: str) -> PieceSource:
    row = device_of(caller, name)
    return json_of(
        limits_of(shown_limits(row.limits, to_admin=not caller.refusal("govern"))) if part == "limits" else getattr(row, part)
    )


def limits_of(wanted: dict[str, Any]) -> dict[str, Any]:
    """A device's limits as they are in effect: of one command what it may use, and when its work pauses."""
    effective = CommandLimits.of(wanted)
    of_a_command = {
        "seconds": effective.seconds, "memory_mb": effective.memory_bytes / (1 << 20),
        "output_mb": effective.output_bytes / (1 << 20), "processes": effective.processes, "network": effective.network,
    }  # fmt: skip
    return {**wanted, **of_a_command}


def _interaction(caller: Caller, session: str, key: str, part: str) -> PieceSource:
    row = InboxItem.objects.filter(
        session__in=sessions_of(caller), session=int(session), pk=int(key), kind="interaction"
    ).first()
    if row is None:
        raise NoSuchAddress(f"there is no interaction {key} in session {session}, or it is not yours to see")
    if part == "result":
        return json_of(row.result)
    return text_of(str(row.payload.get(part, "")))


ID = r"([1-9][0-9]{0,15})"
NAME = r"([^/]{1,800})"
"""Of a task, an edit or a device, quoted."""
PLACES: tuple[tuple[str, re.Pattern[str], Callable[..., PieceSource]], ...] = tuple(
    (template, re.compile(ROOT + pattern), read)
    for template, pattern, read in (
        ("constellations/{id}/{part}", rf"constellations/{ID}/(reason|result|rules|critical_path)", _constellation),
        (
            "constellations/{id}/tasks/{task_id}/{part}",
            rf"constellations/{ID}/tasks/{NAME}/"
            "(result|arguments|error|reason|description|output|written|dependencies)",
            _task,
        ),
        (
            "constellations/{id}/tasks/{task_id}/attempts/{number}/{part}",
            rf"constellations/{ID}/tasks/{NAME}/attempts/([1-9][0-9]{{0,5}})/(output|result|error)",
            _attempt,
        ),
        (
            "constellations/{id}/edits/{edit_id}/{part}",
            rf"constellations/{ID}/edits/{NAME}/(operations|diff|before|after|reason)",
            _edit,
        ),
        ("approvals/{id}/{part}", rf"approvals/{ID}/(action|observed)", _approval),
        ("devices/{name}/{part}", rf"devices/{NAME}/(recipes|limits|capabilities)", _device),
        (
            "sessions/{session}/interactions/{id}/{part}",
            rf"sessions/{ID}/interactions/{ID}/(request|plan|result)",
            _interaction,
        ),
    )
)  # fmt: skip
TEMPLATES = tuple(ROOT + template for template, _, _ in PLACES)


def find_source(caller: Caller, address: str) -> PieceSource:
    """What is under an address; raises NoSuchAddress, and what looking for its parts raises."""
    for _, pattern, read in PLACES:
        if (found := pattern.fullmatch(address)) is not None:
            return read(caller, *map(unquote, found.groups()))
    raise NoSuchAddress(f"there is nothing at {address[:200]}; addresses are those that answers give as `more`")


# Reading


def read_piece(
    caller: Caller, address: str, *, offset: int = 0, limit: int = CHARACTERS, seen: str = ""
) -> results.Piece:  # fmt: skip
    """Characters of a value from `offset` on, or, where it is negative, its last ones. `seen` is that of the piece before.

    Raises NotSeen where an approval's action is read otherwise than from its beginning, piece by piece.
    """
    source = find_source(caller, address)
    piece = piece_of(source, address, offset, limit)
    if not source.digest:
        return piece
    if piece.offset and not (seen and constant_time_compare(seen, _seal(caller, source, piece.offset))):
        raise NotSeen(
            "an approval's action is read from its beginning, piece by piece: give `seen` of the piece that ended at "
            f"character {piece.offset:,}, or begin again with offset 0"
        )
    if piece.next is None:
        return piece.model_copy(update={"digest": source.digest})
    return piece.model_copy(update={"seen": _seal(caller, source, piece.next)})


def piece_of(source: PieceSource, address: str, offset: int, limit: int) -> results.Piece:
    start = max(source.total + offset, 0) if offset < 0 else offset
    text = source.piece(start, start + limit)
    end = start + len(text)
    return results.Piece(
        address=address, offset=start, text=text, total=source.total, next=end if end < source.total else None,
        truncated=len(text) < source.total,
    )  # fmt: skip


def _seal(caller: Caller, source: PieceSource, end: int) -> str:
    """Says that this caller has read the action of this digest up to `end`."""
    told = f"{caller.by} {source.digest} {end}"
    return salted_hmac(SEAL, told, algorithm="sha256").hexdigest()[:SEAL_LENGTH]


def read_whole(caller: Caller, address: str) -> tuple[str, bool]:
    """A value as a resource shows it, and whether it is JSON; raises NoSuchAddress where it is too long for that."""
    source = find_source(caller, address)
    if source.total > WHOLE:
        raise NoSuchAddress(f"{address} has {source.total:,} characters, too many for a resource: read it with read_value")
    return source.piece(0, source.total), source.is_json
