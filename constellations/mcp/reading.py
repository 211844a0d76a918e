"""The MCP tools that read, and those about approvals."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from agents import approvals
from agents.authors import names_of
from agents.models import Approval, Device
from agents.replay import consistent_read
from agents.tables import Fields
from constellations import history
from constellations.errors import ConstellationsError
from constellations.mcp import results
from constellations.mcp.access import Caller, approvals_of, constellation_of, constellations_of
from constellations.mcp.parameters import PAGE, Form
from constellations.models import Constellation, Task
from constellations.overview import overview, within
from constellations.waiting import why
from constellations.written import written

ACTION_BYTES = 10_000
"""Of an approval's action, as JSON; a longer one is left out."""
DEVICES_SHOWN = 200
"""Devices that the list of them has at most."""
REASON = 500
"""Characters of an edit's reason in the history."""

READ = "own"
"""What reading needs, as over REST: any login whose token has the scope read; what is found is what it may see."""

GET = Form("constellation_id", tasks="task_ids", needed=("constellation_id",))
LIST = Form("session", "state", "before", "limit")
EDITS = Form("constellation_id", "author", "since", "task_id", "before", "limit", needed=("constellation_id",))
WHY = Form("constellation_id", "task_id", needed=("constellation_id", "task_id"))
APPROVALS = Form("session", "before", "limit", state="approval_state")
DEVICES = Form()
DECIDE = Form(
    "approval_id", "decision", "answer", "digest", "arguments", reason="decision_reason", needed=("approval_id", "decision")
)  # fmt: skip


class NoSuchTask(ConstellationsError):
    """The constellation has no task of that task_id."""

    code = "no_such_task"
    status = 404


def page(rows: QuerySet, given: Fields, key: str = "id") -> tuple[list[Any], int | None]:
    """The newest rows by `key`, and what to give as `before` for those after them."""
    limit = given.get("limit", PAGE)
    older = rows.filter(**{f"{key}__lt": given["before"]}) if "before" in given else rows
    found = list(older.order_by(f"-{key}")[: limit + 1])
    return found[:limit], getattr(found[limit - 1], key) if len(found) > limit else None


def get_constellation(caller: Caller, arguments: Fields) -> results.ConstellationView:
    given = GET.read(arguments)
    caller.demand(READ)
    named = given.get("tasks", ())
    with consistent_read():
        found = constellation_of(caller, given["constellation_id"])
        view = overview(found, named)
        if named:
            _check_named(found, named, view)
            view["written"] = written(found, named)
    return results.ConstellationView.model_validate(view)


def _check_named(constellation: Constellation, named: list[str], view: Fields) -> None:
    """Raise NoSuchTask for the first that the constellation does not have; a view that was cut may lack others."""
    missing = set(named) - {task["task_id"] for task in view["tasks"]}
    there = Task.objects.filter(constellation=constellation, task_id__in=missing).values_list("task_id", flat=True)
    for task_id in sorted(missing - set(there) if missing else ()):
        raise NoSuchTask(f"constellation {constellation.pk} has no task {task_id}")


def list_constellations(caller: Caller, arguments: Fields) -> results.ConstellationList:
    given = LIST.read(arguments)
    caller.demand(READ)
    wanted = {name: given[key] for name, key in (("session", "session"), ("state", "state")) if key in given}
    rows, following = page(constellations_of(caller).filter(**wanted), given)
    return results.ConstellationList(constellations=[line_of(row) for row in rows], next=following)


def line_of(row: Constellation) -> results.ConstellationLine:
    return results.ConstellationLine.model_validate(row)


def list_edits(caller: Caller, arguments: Fields) -> results.EditList:
    given = EDITS.read(arguments)
    caller.demand(READ)
    with consistent_read():
        constellation = constellation_of(caller, given["constellation_id"])
        wanted = {key: given.get(key) for key in ("author", "since", "task_id")}
        found, following = page(history.edits_of(constellation.pk, **wanted), given, "version")
        edits = history.listed(found)
    who = names_of(row.author for row in edits)
    return results.EditList(edits=[_edit(row, who[row.author]) for row in edits], next=following)


def _edit(row: Any, name: str) -> results.EditLine:
    return results.EditLine(
        id=row.pk, edit_id=row.edit_id, author=row.author, author_name=name, reason=row.reason[:REASON], undoes=row.undoes_id,
        at=row.at, based_on=row.based_on, version=row.version, operations=row.operations, diff=row.diff,
        truncated=row.truncated,
    )  # fmt: skip


def explain(caller: Caller, arguments: Fields) -> results.Explanation:
    given = WHY.read(arguments)
    caller.demand(READ)
    with consistent_read():
        constellation = constellation_of(caller, given["constellation_id"])
        found = Task.objects.filter(constellation=constellation, task_id=given["task_id"])
        task = found.select_related("constellation").first()
        if task is None:
            raise NoSuchTask(f"constellation {constellation.pk} has no task {given['task_id']}")
        return results.Explanation.model_validate({"task_id": task.task_id, "state": task.state, **why(task)})


def list_devices(caller: Caller, arguments: Fields) -> results.DeviceList:
    DEVICES.read(arguments)
    caller.demand("read")  # devices are nobody's own
    found = list(Device.objects.order_by("name")[: DEVICES_SHOWN + 1])
    shown = [results.DeviceView.model_validate(row) for row in found[:DEVICES_SHOWN]]
    return results.DeviceList(devices=shown, truncated=len(found) > DEVICES_SHOWN)


def list_approvals(caller: Caller, arguments: Fields) -> results.ApprovalList:
    given = APPROVALS.read(arguments)
    caller.demand(READ)
    wanted = {"session": given["session"]} if "session" in given else {}
    rows, following = page(approvals_of(caller).filter(state=given.get("state", "waiting"), **wanted), given)
    who = names_of(row.decided_by for row in rows)
    return results.ApprovalList(approvals=[_approval(row, who) for row in rows], next=following)


def _approval(row: Approval, who: Mapping[str, str]) -> results.ApprovalView:
    shown, _, _ = within([row.action], 1, ACTION_BYTES)
    row.action, row.decided_by_name = shown[0] if shown else None, who[row.decided_by]  # type: ignore[attr-defined]
    return results.ApprovalView.model_validate(row)


def decide_approval(caller: Caller, arguments: Fields) -> results.Decision:
    given = DECIDE.read(arguments)
    caller.demand("approve")
    approval = given.pop("approval_id")
    if not approvals_of(caller).filter(pk=approval).exists():
        raise approvals.NoSuchApproval(f"there is no approval {approval} for you to decide")
    row, changed = approvals.approval_decide(approval, by=caller.by, request_id=secrets.token_hex(8), **given)
    return results.Decision(changed=changed, approval=_approval(row, names_of([row.decided_by])))
