"""The MCP tools that read, and those about approvals."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from agents.engine.leases import LEASE_S
from agents.masks.values import shown_limits
from agents.models import Approval, Device, Runner
from agents.reads.authors import names_of
from agents.reads.confinement import confinement_shown
from agents.services import approvals
from agents.streams.fold import consistent_read
from agents.streams.tables import Fields
from agents.tools.catalogue import tool_schemas
from constellations.errors import ConstellationsError
from constellations.mcp import results
from constellations.mcp.access import (
    READ,
    Caller,
    approvals_of,
    constellation_of,
    constellations_of,
    no_such_task,
    task_of,
)
from constellations.mcp.parameters import PAGE, ToolParameters
from constellations.mcp.pieces import CHARACTERS, limits_of, read_piece
from constellations.models import Constellation, Edit, Task
from constellations.reads.excerpts import history
from constellations.reads.excerpts.addresses import (
    describe_cut,
    leave_out,
    of_approval,
    of_constellation,
    of_device,
    of_edit,
    of_task,
    shorten_text,
    with_cuts,
)
from constellations.reads.excerpts.narrowing import FILTERS
from constellations.reads.excerpts.overview import TEXT, OverviewPart, read_overview, size_of
from constellations.reads.excerpts.written import read_written_tasks
from constellations.reads.why import explain_task

ACTION_BYTES = 10_000
"""Of an approval's action, as JSON; a longer one is read by its address."""
ACTIONS_BYTES = 100_000
"""Of all actions of one answer."""
DEVICES_SHOWN = 50
"""Devices of one answer."""
RECIPES_BYTES = 4_000
"""Of a device's recipes, as JSON."""
REASON = 500
"""Characters of an edit's reason in the history."""

GET = ToolParameters(
    "constellation_id", "after", tasks="task_ids", state="task_state", name="task_name", limit="tasks_limit",
    needed=("constellation_id",), **{key: f"task_{key}" for key in FILTERS},
)  # fmt: skip
LIST = ToolParameters("session", "state", "before", "limit")
EDITS = ToolParameters("constellation_id", "author", "since", "task_id", "before", "limit", needed=("constellation_id",))
WHY = ToolParameters("constellation_id", "task_id", needed=("constellation_id", "task_id"))
OUTPUT = ToolParameters(
    "constellation_id", "task_id", "attempt", "offset", limit="characters", needed=("constellation_id", "task_id")
)  # fmt: skip
VALUE = ToolParameters("address", "offset", "seen", limit="characters", needed=("address",))
APPROVALS = ToolParameters("session", "before", "limit", state="approval_state")
DEVICES = ToolParameters(after="device_name")
DECIDE = ToolParameters(
    "approval_id", "decision", "answer", "digest", "arguments", reason="decision_reason", needed=("approval_id", "decision")
)  # fmt: skip


class DigestNeeded(ConstellationsError):
    """What is approved has to have been read."""

    code = "digest_needed"


def newest_page(rows: QuerySet[Any], given: Fields, key: str = "id") -> tuple[list[Any], int | None]:
    """The newest rows by `key`, and what to give as `before` for those after them."""
    limit = given.get("limit", PAGE)
    older = rows.filter(**{f"{key}__lt": given["before"]}) if "before" in given else rows
    found = list(older.order_by(f"-{key}")[: limit + 1])
    return found[:limit], getattr(found[limit - 1], key) if len(found) > limit else None


def get_constellation(caller: Caller, arguments: Fields) -> results.ConstellationView:
    given = GET.read(arguments)
    caller.demand(READ)
    named = given.get("tasks", ())
    narrow = {key: given[key] for key in FILTERS if key in given}
    part = OverviewPart(named, given.get("state", ""), given.get("name", ""), narrow, given.get("after", 0), given.get("limit"))
    with consistent_read():
        found = constellation_of(caller, given["constellation_id"])
        view = read_overview(found, part)
        if named:
            _check_named(found, named, view)
            view["written"] = read_written_tasks(found, named)
    return results.ConstellationView.model_validate(view)


def _check_named(constellation: Constellation, named: list[str], view: Fields) -> None:
    """Raise NoSuchTask for the first that the constellation does not have; a view that was cut may lack others."""
    missing = set(named) - {task["task_id"] for task in view["tasks"]}
    there = Task.objects.filter(constellation=constellation, task_id__in=missing).values_list("task_id", flat=True)
    for task_id in sorted(missing - set(there) if missing else ()):
        raise no_such_task(constellation, task_id)


def list_constellations(caller: Caller, arguments: Fields) -> results.ConstellationList:
    given = LIST.read(arguments)
    caller.demand(READ)
    wanted = {name: given[key] for name, key in (("session", "session"), ("state", "state")) if key in given}
    rows, following = newest_page(constellations_of(caller).filter(**wanted), given)
    return results.ConstellationList(constellations=[constellation_line(row) for row in rows], next=following)


def constellation_line(row: Constellation) -> results.ConstellationLine:
    fields = ("id", "session_id", "name", "state", "reason", "version", "created_at", "ended_at")
    line = {key: getattr(row, key) for key in fields}
    cuts = shorten_text(line, "reason", TEXT, of_constellation(row.pk, "reason"))
    return results.ConstellationLine.model_validate(with_cuts(line, cuts))


def list_edits(caller: Caller, arguments: Fields) -> results.EditList:
    given = EDITS.read(arguments)
    caller.demand(READ)
    with consistent_read():
        constellation = constellation_of(caller, given["constellation_id"])
        wanted = {key: given.get(key) for key in ("author", "since", "task_id")}
        found, following = newest_page(history.edits_of(constellation.pk, **wanted), given, "version")
        edits = history.list_edits(found)
    who = names_of(row.author for row in edits)
    return results.EditList(edits=[_edit(row, who[row.author]) for row in edits], next=following)


def _edit(row: Edit, name: str) -> results.EditLine:
    """As `history.cut_edit` leaves an edit, with a word for each part that is not whole."""
    line: Fields = {
        "id": row.pk, "edit_id": row.edit_id, "author": row.author, "author_name": name, "reason": row.reason,
        "undoes": row.undoes_id, "at": row.at, "based_on": row.based_on, "version": row.version,
        "operations": row.operations, "diff": row.diff,
    }  # fmt: skip
    cuts = shorten_text(line, "reason", REASON, of_edit(row.constellation_id, row.edit_id, "reason"))
    for part, total in (("operations", row.operations_total), ("diff", row.diff_total)):  # type: ignore[attr-defined]
        if len(line[part]) < total:
            cuts.append(describe_cut(part, len(line[part]), total, "items", of_edit(row.constellation_id, row.edit_id, part)))
    return results.EditLine.model_validate(with_cuts(line, cuts))


def explain_named_task(caller: Caller, arguments: Fields) -> results.Explanation:
    given = WHY.read(arguments)
    caller.demand(READ)
    with consistent_read():
        task = task_of(constellation_of(caller, given["constellation_id"]), given["task_id"])
        return results.Explanation.model_validate({"task_id": task.task_id, "state": task.state, **explain_task(task)})


def get_output(caller: Caller, arguments: Fields) -> results.Piece:
    given = OUTPUT.read(arguments)
    caller.demand(READ)
    parts = ("attempts", str(given["attempt"]), "output") if "attempt" in given else ("output",)
    address = of_task(given["constellation_id"], given["task_id"], *parts)
    return read_piece(caller, address, offset=given.get("offset", 0), limit=given.get("limit", CHARACTERS))


def read_value(caller: Caller, arguments: Fields) -> results.Piece:
    given = VALUE.read(arguments)
    caller.demand(READ)
    return read_piece(caller, given.pop("address"), **given)


def list_devices(caller: Caller, arguments: Fields) -> results.DeviceList:
    given = DEVICES.read(arguments)
    caller.demand("read")  # devices are nobody's own
    found = list(Device.objects.filter(name__gt=given.get("after", "")).order_by("name")[: DEVICES_SHOWN + 1])
    alive = timezone.now() - timedelta(seconds=LEASE_S)
    shows_all, confinement = not caller.refusal("govern"), confinement_shown()
    return results.DeviceList(
        devices=[_device(row, shows_all, confinement) for row in found[:DEVICES_SHOWN]],
        next=found[DEVICES_SHOWN - 1].name if len(found) > DEVICES_SHOWN else None,
        tools=dict(tool_schemas()),
        runners=Runner.objects.filter(state="LIVE", renewed_at__gt=alive).count(),
    )


def _device(row: Device, shows_all: bool, confinement: str) -> results.DeviceView:
    fields = ("name", "state", "type", "capabilities", "labels", "max_concurrent", "used", "recipes")
    view = {key: getattr(row, key) for key in fields}
    view |= {"limits": limits_of(shown_limits(row.limits, shows_all)), "confinement": confinement}
    cuts = leave_out(view, "recipes", RECIPES_BYTES, of_device(row.name, "recipes"))
    return results.DeviceView.model_validate(with_cuts(view, cuts))


def list_approvals(caller: Caller, arguments: Fields) -> results.ApprovalList:
    given = APPROVALS.read(arguments)
    caller.demand(READ)
    wanted = {"session": given["session"]} if "session" in given else {}
    rows, following = newest_page(approvals_of(caller).filter(state=given.get("state", "waiting"), **wanted), given)
    who = names_of(row.decided_by for row in rows)
    views: list[results.ApprovalView] = []
    left = ACTIONS_BYTES
    for row in rows:
        views.append(approval_view(row, who, min(ACTION_BYTES, left)))
        left -= size_of(views[-1].action)
    return results.ApprovalList(approvals=views, next=following)


def approval_view(row: Approval, who: Mapping[str, str], limit: int) -> results.ApprovalView:
    """An approval whose action is shown, with its digest, if it has at most `limit` bytes: nobody has the digest of an action
    that was not shown whole."""
    fields = (
        "id", "session_id", "kind", "title", "action", "digest", "options", "state", "asked_at", "expires_at", "decided_at",
        "decided_by", "reason",
    )  # fmt: skip
    view = {key: getattr(row, key) for key in fields} | {"decided_by_name": who[row.decided_by]}
    cuts = leave_out(view, "action", limit, of_approval(row.pk, "action"))
    if cuts:
        view["digest"] = None
    return results.ApprovalView.model_validate(with_cuts(view, cuts))


def decide_approval(caller: Caller, arguments: Fields) -> results.Decision:
    given = DECIDE.read(arguments)
    caller.demand("approve")
    approval = given.pop("approval_id")
    asked = approvals_of(caller).filter(pk=approval).first()
    if asked is None:
        raise approvals.NoSuchApproval(f"there is no approval {approval} for you to decide")
    approvals.check_author(asked, caller.by)
    if given["decision"] == "approve" and asked.digest and not given.get("digest"):
        raise DigestNeeded(
            f"digest: approving needs the digest of the action, which says that it was read: list_approvals has it beside a "
            f"short action, and read_value of {of_approval(approval, 'action')} with the last piece of a long one"
        )
    row, changed = approvals.approval_decide(approval, by=caller.by, request_id=secrets.token_hex(8), **given)
    return results.Decision(changed=changed, approval=approval_view(row, names_of([row.decided_by]), ACTION_BYTES))
