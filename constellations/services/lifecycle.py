"""One function for each thing that a person or another program asks of a constellation as a whole (docs/editing.md, "The
constellation as a whole"); those about one task are in task_commands.

A start, a pause, a resume, and a retry in an open one are written under the session's lock: they count at once, also while no
runner lives. What ends processes, or begins an interaction, goes through an inbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents import ids
from agents.access import ancestry
from agents.clock import to_datetime
from agents.engine.summon import wake_a_runner
from agents.errors import Conflict, NoSuchSession
from agents.models import InboxItem, Session
from agents.services import sessions
from agents.services.same_request import refuse_another_request, request_known_as
from agents.streams import fold
from agents.streams.door import Door, door
from agents.streams.tables import fold_rows
from constellations.errors import (
    ConstellationEnded,
    EditRejected,
    NoSuchConstellation,
    NotRetried,
)
from constellations.limits import FORK, REOPEN, RESTARTS
from constellations.live.kept import graph_opened
from constellations.live.live import LiveGraph
from constellations.live.retry import failed_tasks
from constellations.live.row_types import ConstellationRow
from constellations.machines import CONSTELLATION
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation, Edit
from constellations.reads.watching import NOTHING, GateWatch
from constellations.services import adopt, mending
from constellations.services.gates.keeping import watched_now

TITLE_LENGTH = 200
"""Characters of a session's title."""
RETRY = "retry"
"""Kind of what a session has been asked and was done at once."""
BEGINS = "begins"
"""Key of all the tasks that begin again, in a payload that reopens a constellation for a retry."""
BASED_ON = "based_on"
"""Key of the version that operations were made on."""
NAMED = 5
"""Tasks that a request names in words."""


@dataclass(frozen=True)
class RetryResult:
    """`tasks` begin again: at once, or by `interaction`, which reopens a constellation that had ended.

    `edit` is what changed them at once, where operations were given.
    """

    tasks: list[str]
    interaction: InboxItem | None = None
    changed: bool = True
    edit: Edit | None = None


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


def constellation_start(
    constellation_id: int, *, by: str, reason: str = "", request_id: str = ""
) -> tuple[Constellation, bool]:  # fmt: skip
    """One that is under review runs: (the row, whether this changed it).

    Raises ConstellationEnded, and OwnApproval where `by` is a token with a part in what was planned.
    """
    return _move(constellation_id, "start", "EXECUTING", by, reason, request_id)


def _move(
    constellation_id: int, event: str, target: str, by: str, reason: str, request_id: str
) -> tuple[Constellation, bool]:  # fmt: skip
    ancestry.refuse_outside(ids.stream_of(constellation_id), by)
    with _door(constellation_id, by, request_id) as opened:
        found: list[ConstellationRow] = fold_rows("constellation", "id = %s", constellation_id)
        if not found:
            raise _unknown(constellation_id)
        _refuse_ended(found[0]["name"], constellation_id, found[0]["state"])
        state = found[0]["state"]
        # Started is what runs and what is paused; a pause and a resume are nothing to one that has not been started.
        if state == "READY" and event != "start":
            raise Conflict(f"{found[0]['name'] or 'the constellation'} is under review: it runs once it is started")
        changed = state == "READY" if event == "start" else state != target
        if changed and event == "start":
            ancestry.refuse_own_review(opened.stream, to_datetime(found[0]["created_at"]), by)
        if changed:
            opened.turn.transition(CONSTELLATION, "constellation", found[0], event, reason=reason)
    if changed:
        wake_a_runner()
    return Constellation.objects.get(pk=constellation_id), changed


def constellation_retry(
    constellation_id: int, task_ids: Sequence[str] | None, *, operations: Sequence[Any] = (), by: str, reason: str = "",
    client_id: str = "", request_id: str = "", based_on: int | None = None,
) -> RetryResult:  # fmt: skip
    """Tasks that have FAILED or were cancelled begin again, with what FAILED, was skipped or ended with the run downstream.

    None stands for every FAILED task. `operations` are an edit that is made with it, and may change the tasks that are named;
    `based_on` is the version that they were made on, as in `edits.edit_apply`, whose StaleEdit and EditRejected are raised.
    With a `client_id` the session keeps that it was asked, and the same again is answered by what came of it. Raises
    NotRetried, EditRefused, ConstellationEnded where everything was cancelled, Conflict where the client_id is that of another
    request.
    """
    row = constellation_for(constellation_id, by)
    if based_on is not None and not operations:
        raise EditRejected("based_on: is for operations, and this retry has none; what begins again is what is there")
    asked = _asked(row, operations, () if task_ids is None else task_ids, reason) | {"every_failed": task_ids is None}
    if based_on is not None:
        asked[BASED_ON] = based_on
    if (known := request_known_as(row.session_id, client_id)) is not None:
        return _retried_before(known, asked, by)
    if row.state == "CANCELLED":
        raise ConstellationEnded(f"{row} was cancelled, and stays so; fork it to go on from there")
    if row.state in CLOSED:
        return _retry_by_reopening(row, asked, by, client_id, request_id)
    told: RetryResult | None = None
    watched = watched_now() if operations else NOTHING
    with graph_opened(constellation_id, by, request_id) as (opened, live):
        known = request_known_as(row.session_id, client_id)
        if known is not None:
            told = _retried_before(known, asked, by)
        elif live.constellation["state"] not in (*CLOSED, "CANCELLED"):
            told = _retry_at_once(opened, live, asked, watched, by, client_id)
    if told is None:  # it ended a moment ago
        return constellation_retry(
            constellation_id, task_ids, operations=operations, by=by, reason=reason, client_id=client_id,
            request_id=request_id, based_on=based_on,
        )  # fmt: skip
    if told.changed:
        wake_a_runner()
    return told


def _retried_before(known: InboxItem, asked: dict[str, Any], by: str) -> RetryResult:
    """What came of it; which tasks had FAILED then is what it says."""
    if known.kind == RETRY:
        refuse_another_request(known, RETRY, by, asked)
        came = known.result or {}
        edit = Edit.objects.filter(pk=came["edit"]).first() if "edit" in came else None
        return RetryResult(came["tasks"], changed=False, edit=edit)
    refuse_another_request(known, "interaction", by, asked, REOPEN)
    before = known.payload[REOPEN]
    return RetryResult(before.get(BEGINS, before["retry"]), known, changed=False)


def _retry_at_once(
    opened: Door, live: LiveGraph, asked: dict[str, Any], watched: GateWatch, by: str, client_id: str
) -> RetryResult:  # fmt: skip
    """In an open constellation, under its session's lock."""
    wanted = failed_tasks(live) if asked["every_failed"] else asked["retry"]
    operations, based_on = asked["operations"], asked.get(BASED_ON)
    changes = mending.decide_mending(live, operations, wanted, watched, by, based_on=based_on, needs_retry=True)
    begun, edit = mending.mend_and_retry(live, opened.turn, changes, operations, wanted, by, asked["reason"], based_on)
    if begun and client_id:
        came = {"tasks": begun} | ({"edit": edit["id"]} if edit else {})
        sessions.record_done(opened, RETRY, client_id, {**asked, "retry": wanted}, by, came)
    return RetryResult(begun, changed=bool(begun), edit=Edit(**edit) if edit else None)


def failed_of(row: Constellation) -> list[str]:
    """The tasks of a constellation that have FAILED and that no other one replaces."""
    replaced = row.tasks.exclude(replaces="").values("replaces")
    found = row.tasks.filter(state="FAILED").exclude(task_id__in=replaced)
    return list(found.order_by("id").values_list("task_id", flat=True))


def _retry_by_reopening(row: Constellation, asked: dict[str, Any], by: str, client_id: str, request_id: str) -> RetryResult:
    wanted = failed_of(row) if asked["every_failed"] else asked["retry"]
    if not wanted and asked["operations"]:
        raise NotRetried(mending.NOTHING_FAILED, [{"key": "tasks", "message": mending.NOTHING_FAILED}])
    if not wanted:
        return RetryResult([], changed=False)
    asked = {**asked, "retry": wanted}
    found = adopt.read_reopened(asked, by)
    begins = mending.list_all_that_begin(found.live, found.follow_up.changes, wanted)
    item, created = _reopen(row, {**asked, BEGINS: begins}, by, client_id, request_id, checked=True)
    return RetryResult(begins, item, created)


# What goes through an inbox


def constellation_cancel(
    constellation_id: int, *, by: str, reason: str = "", client_id: str = "", request_id: str = ""
) -> tuple[InboxItem | None, bool]:  # fmt: skip
    """End it, and its interaction with it; the session's actor lives on: (the command, whether it is new).

    (None, False) where it has ended already.
    """
    row = constellation_for(constellation_id, by)
    if row.state in (*CLOSED, "CANCELLED") and request_known_as(row.session_id, client_id) is None:
        return None, False
    return _command(row, "stop", by, reason, client_id, request_id)


def constellation_restart(
    constellation_id: int, *, by: str, reason: str = "", client_id: str = "", request_id: str = ""
) -> tuple[InboxItem, bool]:  # fmt: skip
    """Cancel what is open and plan the same request anew: (the command, whether it is new).

    Raises ConstellationEnded, and Conflict where there is no request to plan anew or the limit is reached.
    """
    row = constellation_for(constellation_id, by)
    if request_known_as(row.session_id, client_id) is None:
        _refuse_ended(row.name, row.pk, row.state)
        if REOPEN in row.interaction.payload:
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
    row = constellation_for(constellation_id, by)
    return _reopen(row, _asked(row, operations, retry, reason), by, client_id, request_id)


def _asked(
    row: Constellation, operations: Sequence[Any] = (), retry: Sequence[str] = (), reason: str = ""
) -> dict[str, Any]:  # fmt: skip
    """What is wanted of a graph, as a payload has it; a task that is named twice is retried once."""
    return {
        "constellation": row.pk, "operations": list(operations), "retry": list(dict.fromkeys(retry)), "reason": reason,
    }  # fmt: skip


def _reopen(
    row: Constellation, asked: dict[str, Any], by: str, client_id: str, request_id: str, *, checked: bool = False
) -> tuple[InboxItem, bool]:  # fmt: skip
    payload = {"request": f"Reopen {row}{_in_words(asked)}", REOPEN: asked}
    if not checked and request_known_as(row.session_id, client_id) is None:
        adopt.prepare_follow_up(payload, by)
    return sessions.request_submit(
        row.session_id, "interaction", client_id, payload, by=by, request_id=request_id,
        checked=adopt.CheckedFollowUp(payload),
    )  # fmt: skip


def constellation_fork(
    constellation_id: int, owner: Any, *, seq: int | None = None, operations: Sequence[Any] = (), retry: Sequence[str] = (),
    title: str = "", parent: int | None = None, by: str, reason: str = "", client_id: str = "", request_id: str = "",
) -> tuple[Session, InboxItem, bool]:  # fmt: skip
    """A session of `owner` that goes on from the graph as it was after event `seq` of its stream; None: as it is.

    (The session, its interaction, whether they are new: the same `client_id` again is the same fork.) What was COMPLETED or
    FAILED then stays so, with its results; everything else begins again. Raises NotForked, NotRetried, EditRefused, and then
    nothing is made; Conflict where the client_id is that of another fork. A fork by a token has an ancestry, as every session
    that it starts (`agents.services.sessions.session_create`, which says what `parent` is and what is raised).
    """
    row = constellation_for(constellation_id, by)
    at = fold.stream_head(row.session_id) if seq is None else seq
    asked = _asked(row, operations, retry, reason) | {"seq": at, "newest": seq is None, "title": title}
    if (known := _forked_as(row, owner, client_id)) is not None:
        return _forked_before(known, asked, by)
    payload = {"request": f"Fork {row} at {at}{_in_words(asked)}", FORK: asked}
    adopt.prepare_follow_up(payload, by)
    with (
        ancestry.new_ancestry(by, parent, beside=[row.session_id]),
        _door(constellation_id, by, request_id),  # so that of two alike the second finds the first
    ):
        if (known := _forked_as(row, owner, client_id)) is not None:
            return _forked_before(known, asked, by)
        session = sessions.session_create(owner, (title or f"Fork of {row}")[:TITLE_LENGTH], by=by, parent=parent)
        item, _ = sessions.request_submit(
            session.pk, "interaction", client_id, payload, by=by, request_id=request_id,
            checked=adopt.CheckedFollowUp(payload),
        )  # fmt: skip
    return session, item, True


def _forked_as(row: Constellation, owner: Any, client_id: str) -> InboxItem | None:
    """The request that began a fork of the constellation under that id, in a session of `owner`; sessions only get newer."""
    if not client_id:
        return None
    found = InboxItem.objects.filter(session__owner=owner, session__gt=row.session_id, client_id=client_id, kind="interaction")
    return found.filter(**{f"payload__{FORK}__constellation": row.pk}).select_related("session").first()


def _forked_before(known: InboxItem, asked: dict[str, Any], by: str) -> tuple[Session, InboxItem, bool]:
    refuse_another_request(known, "interaction", by, asked, FORK)
    return known.session, known, False


def _in_words(asked: dict[str, Any]) -> str:
    """What is wanted besides, as the chat shows it."""
    retry, operations = asked["retry"], asked["operations"]
    names = ", ".join(retry[:NAMED]) + (f" and {len(retry) - NAMED} more" if len(retry) > NAMED else "")
    told = [f"retry {names}"] if retry else []
    told += [f"{len(operations)} operation{'s' if len(operations) > 1 else ''}"] if operations else []
    return f": {', '.join(told)}" if told else ""


def _command(
    row: Constellation, kind: str, by: str, reason: str, client_id: str, request_id: str
) -> tuple[InboxItem, bool]:  # fmt: skip
    payload = {"subject": row.pk, "reason": reason}
    return sessions.request_submit(row.session_id, kind, client_id, payload, by=by, request_id=request_id)


def constellation_for(constellation_id: int, by: str) -> Constellation:
    """Raises NoSuchConstellation, and NotYourSession where `by` is a token that has no business there."""
    ancestry.refuse_outside(ids.stream_of(constellation_id), by)
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
