"""The MCP tools that start requests, follow them, and command sessions, constellations and single tasks."""

from __future__ import annotations

import secrets
from typing import Any

from django.db import transaction

from agents.engine.drives.work import Checked
from agents.engine.requests import changes_actor
from agents.errors import AgentsError
from agents.models import Actor, InboxItem
from agents.reads.standings import read_standings, viewer_of
from agents.services import sessions
from agents.services.same_request import refuse_another_request, request_known_as, session_begun_as
from agents.streams.fold import consistent_read
from agents.streams.statements import write_transaction
from agents.streams.tables import Fields
from constellations.mcp import editing, results
from constellations.mcp.access import READ, Caller, constellation_of, session_of, task_of
from constellations.mcp.parameters import ToolParameters
from constellations.mcp.reading import newest_page
from constellations.models import Constellation
from constellations.reads.excerpts.addresses import describe_cut, leave_out, of_interaction, shorten_text, with_cuts
from constellations.reads.excerpts.overview import TEXT, VALUE_BYTES
from constellations.services import dispatcher, lifecycle, task_commands
from constellations.services.standing import standing_of

INTERACTIONS = 20
"""The latest of a session that are shown."""

START = ToolParameters("plan", "request", "title", "parent", "client_id", session="in_session")
SESSION = ToolParameters("before", session="session_id", needed=("session",))
EITHER = ToolParameters(constellation_id="constellation", session="session_or", client_id="same_id", reason="why")
AT_ONCE = ToolParameters(constellation_id="constellation", session="session_or", reason="why")
RESTART = ToolParameters("constellation_id", client_id="same_id", reason="why", needed=("constellation_id",))
CANCEL_TASK = ToolParameters(
    "constellation_id", "task_id", client_id="same_id", reason="why", needed=("constellation_id", "task_id", "reason")
)  # fmt: skip
RETRY = ToolParameters(
    "constellation_id", "based_on", tasks="failed", operations="as_in_apply", client_id="same_id", reason="why",
    needed=("constellation_id",),
)  # fmt: skip
REOPEN = ToolParameters(
    "constellation_id", "retry", operations="as_in_apply", client_id="same_id", reason="why", needed=("constellation_id",)
)  # fmt: skip
FORK = ToolParameters(
    "constellation_id", "seq", "retry", "title", "parent", operations="as_in_apply", client_id="same_id", reason="why",
    needed=("constellation_id",),
)  # fmt: skip


class NotExactlyOne(AgentsError):
    """Exactly one of two things has to be said."""

    code = "arguments_rejected"


# Starting


def start_request(caller: Caller, arguments: Fields) -> results.SubmitResult:
    """As REST: a new session with its first interaction, both or neither; or another interaction of a session that is there."""
    given = START.read(arguments)
    caller.demand("operate")
    payload: Fields = {key: given[key] for key in ("plan", "request") if key in given}
    if len(payload) != 1:
        raise NotExactlyOne("give exactly one of plan and request")
    if "session" in given:
        if {"title", "parent"} & given.keys():
            raise NotExactlyOne("title and parent are for a new session; leave them out, or session")
        session = session_of(caller, given["session"])
        item, created = _submit(caller, session.pk, "interaction", given.get("client_id", ""), payload)
        return _started(item, created)
    if (known := session_begun_as(caller.user, caller.by, given.get("client_id", ""))) is not None:
        refuse_another_request(known, "interaction", caller.by, payload)
        return _started(known, False)
    checked = sessions.check_payload(payload)
    with write_transaction():
        title = given.get("title", "") or checked.name()
        session = sessions.session_create(caller.user, title, by=caller.by, parent=given.get("parent"))
        # by the same call, made twice at once: the token is held now
        known = session_begun_as(caller.user, caller.by, given.get("client_id", ""))
        if known is not None:
            transaction.set_rollback(True)
        else:
            item, _ = _submit(caller, session.pk, "interaction", given.get("client_id", ""), payload, checked)
    if known is not None:
        refuse_another_request(known, "interaction", caller.by, payload)
        return _started(known, False)
    return _started(item, True)


def _submit(
    caller: Caller, session: int, kind: str, client_id: str, payload: Fields, checked: Checked | None = None
) -> tuple[InboxItem, bool]:  # fmt: skip
    return sessions.request_submit(
        session, kind, client_id, payload, by=caller.by, request_id=secrets.token_hex(8), checked=checked
    )


def _started(item: InboxItem, created: bool) -> results.SubmitResult:
    return results.SubmitResult(session=item.session_id, interaction=item.pk, client_id=item.client_id, created=created)


# Following


def get_session(caller: Caller, arguments: Fields) -> results.SessionView:
    given = SESSION.read(arguments)
    caller.demand(READ)
    with consistent_read():
        session = session_of(caller, given["session"])
        actor = Actor.objects.filter(session=session).order_by("-epoch").first()
        standing = read_standings([session.pk], viewer_of(caller.user, caller.token))[session.pk]
        asked = InboxItem.objects.filter(session=session, kind="interaction")
        rows, following = newest_page(asked, {**given, "limit": INTERACTIONS})
        made = Constellation.objects.filter(interaction__in=[row.pk for row in rows]).order_by("id")
        graphs: dict[int, list[int]] = {}
        for interaction, constellation in made.values_list("interaction_id", "id"):
            graphs.setdefault(interaction, []).append(constellation)
    shown = [_interaction(row, graphs.get(row.pk, [])) for row in rows]
    rest = f"get_session with before: {following}"
    cuts = [] if following is None else [describe_cut("interactions", len(shown), asked.count(), "items", rest)]
    view: Fields = {
        "session": session.pk, "title": session.title, "state": None if actor is None else actor.state,
        "reason": "" if actor is None else actor.reason, "standing": standing, "interactions": shown, "next": following,
    }  # fmt: skip
    return results.SessionView.model_validate(with_cuts(view, cuts))


def _interaction(row: InboxItem, constellations: list[int]) -> results.InteractionView:
    words = "plan" if "plan" in row.payload else "request"
    view: Fields = {
        "id": row.pk, "state": row.state, "outcome": row.outcome, "by": row.by,
        "constellations": constellations, "asked": str(row.payload.get(words, "")), "result": row.result,
        "created_at": row.created_at, "ended_at": row.ended_at,
    }  # fmt: skip
    cuts = shorten_text(view, "asked", TEXT, of_interaction(row.session_id, row.pk, words))
    cuts += leave_out(view, "result", VALUE_BYTES, of_interaction(row.session_id, row.pk, "result"))
    return results.InteractionView.model_validate(with_cuts(view, cuts))


# Commanding


def pause_constellation(caller: Caller, arguments: Fields) -> results.LifecycleResult:
    return _either(caller, AT_ONCE.read(arguments), "pause")


def resume_constellation(caller: Caller, arguments: Fields) -> results.LifecycleResult:
    return _either(caller, AT_ONCE.read(arguments), "resume")


def cancel_constellation(caller: Caller, arguments: Fields) -> results.LifecycleResult:
    given = EITHER.read(arguments)
    if not given.get("reason"):
        raise NotExactlyOne("reason: a cancel needs a reason")
    return _either(caller, given, "cancel")


def _either(caller: Caller, given: Fields, kind: str) -> results.LifecycleResult:
    """A command to a constellation, or to the actor of a session with all it works on."""
    caller.demand("operate")
    if len({"constellation_id", "session"} & given.keys()) != 1:
        raise NotExactlyOne("give exactly one of constellation_id and session")
    if "session" in given:
        session, client_id = session_of(caller, given["session"]), given.get("client_id", "")
        payload, command = {"reason": given.get("reason", "")}, None
        changed = False
        if request_known_as(session.pk, client_id) is not None or changes_actor(session.pk, kind, payload):
            command, changed = _submit(caller, session.pk, kind, client_id, payload)
        actor = Actor.objects.filter(session=session).order_by("-epoch").first()
        state, number = "" if actor is None else actor.state, None if command is None else command.pk
        return results.LifecycleResult(state=state, changed=changed, command=number)
    row, said = constellation_of(caller, given["constellation_id"]), _said(caller, given)
    if kind == "cancel":
        item, changed = lifecycle.constellation_cancel(row.pk, **said, client_id=given.get("client_id", ""))
        return _commanded(row, changed, item)
    _, changed = (lifecycle.constellation_pause if kind == "pause" else lifecycle.constellation_resume)(row.pk, **said)
    return _commanded(row, changed, None)


def restart_constellation(caller: Caller, arguments: Fields) -> results.LifecycleResult:
    given = RESTART.read(arguments)
    caller.demand("operate")
    row = constellation_of(caller, given["constellation_id"])
    item, changed = lifecycle.constellation_restart(
        row.pk, **_said(caller, given), client_id=given.get("client_id", "")
    )  # fmt: skip
    return _commanded(row, changed, item)


def _commanded(row: Constellation, changed: bool, item: InboxItem | None) -> results.LifecycleResult:
    state = Constellation.objects.values_list("state", flat=True).get(pk=row.pk)
    return results.LifecycleResult(state=state, changed=changed, command=None if item is None else item.pk)


def _said(caller: Caller, given: Fields) -> dict[str, Any]:
    return {"by": caller.by, "reason": given.get("reason", ""), "request_id": secrets.token_hex(8)}


def cancel_task(caller: Caller, arguments: Fields) -> results.TaskCancelResult:
    given = CANCEL_TASK.read(arguments)
    caller.demand("operate")
    task = task_of(constellation_of(caller, given["constellation_id"]), given["task_id"])
    done = task_commands.task_cancel(
        task.constellation_id, task.task_id, **_said(caller, given), client_id=given.get("client_id", "")
    )  # fmt: skip
    return results.TaskCancelResult(
        task_id=done.task.task_id, state=done.task.state, reason=done.task.reason, changed=done.changed,
        command=None if done.command is None else done.command.pk,
    )  # fmt: skip


# Going on


def retry_tasks(caller: Caller, arguments: Fields) -> results.RetryResult:
    given = RETRY.read(arguments)
    row, wanted = _going_on(caller, given)
    for task_id in given.get("tasks", ()):
        task_of(row, task_id)
    based_on = given.get("based_on")
    done = lifecycle.constellation_retry(row.pk, given.get("tasks"), **wanted, based_on=based_on)
    edit_id = "" if done.edit is None else done.edit.edit_id
    found = standing_of(row.pk, done.edit, done.changed, edit_id=edit_id, based_on=based_on, before=row.version)
    view: Fields = {
        "tasks": done.tasks, "changed": done.changed,
        "interaction": None if done.interaction is None else done.interaction.pk,
        "edit": None if done.edit is None else done.edit.pk, **editing.standing_fields(found),
    }  # fmt: skip
    unseen = editing.unseen_edits(found.version, len(found.between), found.between_total)
    return results.RetryResult.model_validate(with_cuts(view, unseen))


def reopen_constellation(caller: Caller, arguments: Fields) -> results.SubmitResult:
    given = REOPEN.read(arguments)
    row, wanted = _going_on(caller, given)
    item, created = lifecycle.constellation_reopen(row.pk, retry=given.get("retry", ()), **wanted)
    return _started(item, created)


def fork_constellation(caller: Caller, arguments: Fields) -> results.SubmitResult:
    given = FORK.read(arguments)
    row, wanted = _going_on(caller, given)
    more = {key: given[key] for key in ("retry", "seq", "title", "parent") if key in given}
    _, item, created = lifecycle.constellation_fork(row.pk, caller.user, **wanted, **more)
    return _started(item, created)


def _going_on(caller: Caller, given: Fields) -> tuple[Constellation, dict[str, Any]]:
    """The constellation, and what is wanted of it; operations are an edit, whatever carries them."""
    caller.demand("operate")
    wanted = {**_said(caller, given), "client_id": given.get("client_id", "")}
    if given.get("operations"):
        caller.demand("edit")
        wanted["operations"] = dispatcher.operations_of(dispatcher.commands_of(given["operations"]))
    return constellation_of(caller, given["constellation_id"]), wanted
