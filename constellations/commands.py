"""One function for each thing that a person or another program asks of a constellation as a whole (machines, section 6).

A pause, a resume, and a retry in an open one are written under the session's lock: they count at once, also while no runner
lives. What ends processes, or begins an interaction, goes through an inbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents import ids, replay, services
from agents.errors import Conflict, NoSuchSession
from agents.models import InboxItem, Session
from agents.records import Door, door
from agents.storage import writing
from constellations import adoption, retrying
from constellations.errors import ConstellationEnded, NoSuchConstellation
from constellations.graph_reads import graph_opened, rows
from constellations.limits import RESTARTS
from constellations.machines import CONSTELLATION
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation

TITLE_LENGTH = 200
"""Characters of a session's title."""
NAMED = 5
"""Tasks that a request names in words."""


@dataclass(frozen=True)
class Retried:
    """`tasks` begin again: at once, or by `interaction`, which reopens a constellation that had ended."""

    tasks: list[str]
    interaction: InboxItem | None = None
    changed: bool = True


# What counts at once


def constellation_pause(
    constellation_id: int, *, by: str, reason: str = "", request_id: str = ""
) -> tuple[Constellation, bool]:  # fmt: skip
    """Nothing starts any more, what runs ends: (the row, whether this changed it). Raises ConstellationEnded."""
    return _move(constellation_id, "pause", "PAUSED", by, reason, request_id)


def constellation_resume(
    constellation_id: int, *, by: str, reason: str = "", request_id: str = ""
) -> tuple[Constellation, bool]:  # fmt: skip
    """It goes on after a pause: (the row, whether this changed it). Raises ConstellationEnded."""
    return _move(constellation_id, "resume", "EXECUTING", by, reason, request_id)


def _move(
    constellation_id: int, event: str, target: str, by: str, reason: str, request_id: str
) -> tuple[Constellation, bool]:  # fmt: skip
    with _door(constellation_id, by, request_id) as opened:
        found = rows("constellation", "id = %s", constellation_id)
        if not found:
            raise _unknown(constellation_id)
        _refuse_ended(found[0]["name"], constellation_id, found[0]["state"])
        changed = found[0]["state"] != target
        if changed:
            opened.turn.transition(CONSTELLATION, "constellation", found[0], event, reason=reason)
    if changed:
        services.wake_a_runner()
    return Constellation.objects.get(pk=constellation_id), changed


def constellation_retry(
    constellation_id: int, task_ids: Sequence[str] | None, *, by: str, reason: str = "", client_id: str = "",
    request_id: str = "",
) -> Retried:  # fmt: skip
    """Tasks that have FAILED or were cancelled begin again, with all downstream that ended so or was skipped.

    None stands for every FAILED task. Raises NotRetried, and ConstellationEnded where everything was cancelled.
    """
    row = _row(constellation_id)
    if row.state == "CANCELLED":
        raise ConstellationEnded(f"{row} was cancelled, and stays so; fork it to go on from there")
    if row.state in CLOSED or _is_known(row, client_id):
        return _retry_by_reopening(row, task_ids, by, reason, client_id, request_id)
    begun: list[str] | None = None
    with graph_opened(constellation_id, by, request_id) as (opened, live):
        if live.constellation["state"] not in (*CLOSED, "CANCELLED"):
            wanted = retrying.failed(live) if task_ids is None else task_ids
            begun = retrying.begin_again(live, opened.turn, wanted, by, reason)
    if begun is None:  # it ended a moment ago
        return constellation_retry(constellation_id, task_ids, by=by, reason=reason, client_id=client_id, request_id=request_id)
    if begun:
        services.wake_a_runner()
    return Retried(begun, changed=bool(begun))


def _retry_by_reopening(
    row: Constellation, task_ids: Sequence[str] | None, by: str, reason: str, client_id: str, request_id: str
) -> Retried:  # fmt: skip
    failed = row.tasks.filter(state="FAILED").order_by("id").values_list("task_id", flat=True)
    wanted = list(failed if task_ids is None else task_ids)
    if not wanted and not _is_known(row, client_id):
        return Retried([], changed=False)
    asked: dict[str, Any] = {"retry": wanted, "reason": reason, "client_id": client_id, "request_id": request_id}
    item, created = constellation_reopen(row.pk, by=by, **asked)
    return Retried(wanted, item, created)


# What goes through an inbox


def constellation_cancel(
    constellation_id: int, *, by: str, reason: str = "", client_id: str = "", request_id: str = ""
) -> tuple[InboxItem | None, bool]:  # fmt: skip
    """End it, and its interaction with it; the session's actor lives on: (the command, whether it is new).

    (None, False) where it has ended already.
    """
    row = _row(constellation_id)
    if row.state in (*CLOSED, "CANCELLED") and not _is_known(row, client_id):
        return None, False
    return _command(row, "stop", by, reason, client_id, request_id)


def constellation_restart(
    constellation_id: int, *, by: str, reason: str = "", client_id: str = "", request_id: str = ""
) -> tuple[InboxItem, bool]:  # fmt: skip
    """Cancel what is open and plan the same request anew: (the command, whether it is new).

    Raises ConstellationEnded, and Conflict where there is no request to plan anew or the limit is reached.
    """
    row = _row(constellation_id)
    if not _is_known(row, client_id):
        _refuse_ended(row.name, row.pk, row.state)
        if adoption.REOPEN in row.interaction.payload:
            raise Conflict(f"{row} was reopened, so there is no request to plan anew; fork it from its beginning")
        if Constellation.objects.filter(interaction=row.interaction_id).count() > RESTARTS:
            raise Conflict(f"limit reached: {row} has been restarted {RESTARTS} times")
    return _command(row, "restart", by, reason, client_id, request_id)


def constellation_reopen(
    constellation_id: int, *, operations: Sequence[Any] = (), retry: Sequence[str] = (), by: str, reason: str = "",
    client_id: str = "", request_id: str = "",
) -> tuple[InboxItem, bool]:  # fmt: skip
    """A constellation that has ended goes on as an interaction of its own: (that one, whether it is new).

    `operations` are an edit of it, `retry` names tasks that begin again; they are checked here, and done when the session
    comes to it. Raises NotReopened, NotRetried, EditRefused.
    """
    row = _row(constellation_id)
    words = f"Reopen {row}{_in_words(retry, operations)}"
    asked = {"constellation": row.pk, "operations": list(operations), "retry": list(retry), "reason": reason}
    payload = {"request": words, adoption.REOPEN: asked}
    return _submit(row, "interaction", payload, by, client_id, request_id, checked=_is_known(row, client_id))


def constellation_fork(
    constellation_id: int, owner: Any, *, seq: int | None = None, operations: Sequence[Any] = (), retry: Sequence[str] = (),
    title: str = "", by: str, reason: str = "", client_id: str = "", request_id: str = "",
) -> tuple[Session, InboxItem]:  # fmt: skip
    """A session of `owner` that goes on from the graph as it was after event `seq` of its stream; None: as it is.

    What was COMPLETED or FAILED then stays so, with its results; everything else begins again. Raises NotForked, NotRetried,
    EditRefused; then nothing is made.
    """
    row = _row(constellation_id)
    at = replay.head(row.session_id) if seq is None else seq
    words = f"Fork {row} at {at}{_in_words(retry, operations)}"
    asked = {"constellation": row.pk, "seq": at, "operations": list(operations), "retry": list(retry), "reason": reason}
    payload = {"request": words, adoption.FORK: asked}
    services.check_payload(payload)
    with writing():
        session = services.session_create(owner, (title or f"Fork of {row}")[:TITLE_LENGTH], by=by)
        item, _ = services.command_submit(
            session.pk, "interaction", client_id, payload, by=by, request_id=request_id, checked=True
        )
    return session, item


def _in_words(retry: Sequence[str], operations: Sequence[Any]) -> str:
    """What is wanted besides, as the chat shows it."""
    names = ", ".join(retry[:NAMED]) + (f" and {len(retry) - NAMED} more" if len(retry) > NAMED else "")
    told = [f"retry {names}"] if retry else []
    told += [f"{len(operations)} operation{'s' if len(operations) > 1 else ''}"] if operations else []
    return f": {', '.join(told)}" if told else ""


def _command(
    row: Constellation, kind: str, by: str, reason: str, client_id: str, request_id: str
) -> tuple[InboxItem, bool]:  # fmt: skip
    return _submit(row, kind, {"subject": row.pk, "reason": reason}, by, client_id, request_id)


def _submit(
    row: Constellation, kind: str, payload: dict[str, Any], by: str, client_id: str, request_id: str, checked: bool = False
) -> tuple[InboxItem, bool]:  # fmt: skip
    """As `services.command_submit`; raises Conflict where the client_id was another kind of request's."""
    item, created = services.command_submit(
        row.session_id, kind, client_id, payload, by=by, request_id=request_id, checked=checked
    )
    if item.kind != kind:
        raise Conflict(f"client_id {client_id} was used for a request of kind {item.kind}")
    return item, created


def _is_known(row: Constellation, client_id: str) -> bool:
    """Whether the session has been asked so before."""
    return bool(client_id) and InboxItem.objects.filter(session=row.session_id, client_id=client_id).exists()


def _row(constellation_id: int) -> Constellation:
    found = Constellation.objects.select_related("interaction").filter(pk=constellation_id).first()
    if found is None:
        raise _unknown(constellation_id)
    return found


def _unknown(constellation_id: int) -> NoSuchConstellation:
    return NoSuchConstellation(f"there is no constellation {constellation_id}")


def _refuse_ended(name: str, constellation_id: int, state: str) -> None:
    if state in (*CLOSED, "CANCELLED"):
        raise ConstellationEnded(f"{name or f'constellation {constellation_id}'} has ended ({state})")


@contextmanager
def _door(constellation_id: int, by: str, request_id: str) -> Iterator[Door]:
    """Its session's; raises NoSuchConstellation."""
    try:
        with door(ids.stream_of(constellation_id), by, request_id) as opened:
            yield opened
    except NoSuchSession as error:
        raise _unknown(constellation_id) from error
