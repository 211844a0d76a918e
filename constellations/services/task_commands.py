"""The end of one task on request: of one that waits at once, of one that runs by its runner (docs/editing.md).

A task that waits is ended under the session's lock, also while no runner lives; what ends processes goes through an inbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.engine.summon import wake_a_runner
from agents.errors import PayloadRejected
from agents.models import InboxItem
from agents.reads.authors import names_of
from agents.services import sessions
from agents.services.same_request import refuse_another_request, request_known_as
from agents.streams.door import Door
from constellations.errors import NoSuchTask, TaskNotCancelled
from constellations.live.kept import graph_opened
from constellations.live.live import REASON_LENGTH, LiveGraph
from constellations.machines import TASK
from constellations.machines.task import CANCELLED_BY
from constellations.models import Task
from constellations.plan.values import MAX_COMPARED, did_you_mean
from constellations.services.lifecycle import constellation_for

CANCEL_TASK = "cancel_task"
"""Kind of the request that ends one task, whether it is done at once or by the runner that has the task."""
AT_ONCE = "at_once"
"""Key in the result of one that no runner was needed for."""
WAITING = ("PENDING", "WAITING_DEPENDENCY")
"""States of a task that has not started."""


@dataclass(frozen=True)
class CancelResult:
    """`task` is the row as it is now; `command` the request by which its runner ends it, where it runs."""

    task: Task
    command: InboxItem | None = None
    changed: bool = True


def task_cancel(
    constellation_id: int, task_id: str, *, by: str, reason: str, client_id: str = "", request_id: str = ""
) -> CancelResult:  # fmt: skip
    """End one task, for the reason given; what depends on it follows, everything else goes on.

    One that waits is CANCELLED at once, also while no runner lives; of one that runs the processes are killed and the slot is
    freed by the runner that has it, so `command` is then a request that waits for that runner. A cancelled task counts as done
    on purpose. Asking again, or for a task that was cancelled or skipped, changes nothing. Raises NoSuchConstellation,
    NoSuchTask, TaskNotCancelled where it has ended otherwise, Conflict where the client_id is that of another request.
    """
    return _cancel_task(constellation_id, task_id, True, by, reason, client_id, request_id)


def task_skip(
    constellation_id: int, task_id: str, *, by: str, reason: str, client_id: str = "", request_id: str = ""
) -> CancelResult:  # fmt: skip
    """End one task that has not started, at once; as `task_cancel`, but TaskNotCancelled where it runs: nothing is interrupted.

    Of a skip and the start of the task exactly one counts.
    """
    return _cancel_task(constellation_id, task_id, False, by, reason, client_id, request_id)


def _cancel_task(
    constellation_id: int, task_id: str, may_run: bool, by: str, reason: str, client_id: str, request_id: str
) -> CancelResult:  # fmt: skip
    if not reason.strip():
        said = f"{'a cancel' if may_run else 'a skip'} needs a reason"
        raise PayloadRejected(said, [{"key": "reason", "message": said}])
    row = constellation_for(constellation_id, by)
    told = f"{CANCELLED_BY} {names_of([by])[by]}: {reason}"
    if (beyond := len(told) - REASON_LENGTH) > 0:
        allowed = f"at most {len(reason) - beyond:,} characters, not {len(reason):,}: the task keeps who asked beside it"
        raise PayloadRejected(f"reason: {allowed}", [{"key": "reason", "message": allowed}])
    payload = {"subject": row.pk, "task": task_id, "may_run": may_run, "reason": told}
    if (known := request_known_as(row.session_id, client_id)) is not None:
        return _cancelled_before(known, payload, by)
    task = row.tasks.filter(task_id=task_id).first()
    if task is None:
        hint = did_you_mean(task_id, row.tasks.order_by("id").values_list("task_id", flat=True)[:MAX_COMPARED])
        raise NoSuchTask(f"{row} has no task {task_id}{hint}")
    if task.state in WAITING:
        with graph_opened(constellation_id, by, request_id) as (opened, live):
            if (known := request_known_as(row.session_id, client_id)) is not None:
                return _cancelled_before(known, payload, by)
            changed = _cancel_at_once(opened, live, payload, by, client_id)
        task.refresh_from_db()
        if changed:
            wake_a_runner()
            return CancelResult(task)
    if task.state == "CANCELLED":
        return CancelResult(task, changed=False)
    if task.state != "RUNNING":
        raise TaskNotCancelled(f"{task_id} has ended ({task.state}); nothing of it is left to end")
    if not may_run:
        raise TaskNotCancelled(f"{task_id} already runs, so it is skipped no more; cancel it")
    waits = InboxItem.objects.filter(session=row.session_id, kind=CANCEL_TASK, state="queued")
    asked = None if client_id else waits.filter(payload__subject=row.pk, payload__task=task_id).first()
    if asked is not None:
        return CancelResult(task, asked, changed=False)
    item, created = sessions.request_submit(row.session_id, CANCEL_TASK, client_id, payload, by=by, request_id=request_id)
    return CancelResult(task, item, created)


def _cancel_at_once(opened: Door, live: LiveGraph, payload: dict[str, Any], by: str, client_id: str) -> bool:
    """Under the session's lock: False where the task waits no more, because something else came first."""
    node = live.nodes.get(payload["task"])
    if node is None or node.row["state"] not in WAITING:
        return False
    opened.turn.transition(TASK, "task", node.row, "cancel", reason=payload["reason"], **live.end_fields(opened.turn))
    live.ended(opened.turn, node)
    if client_id:
        sessions.record_done(opened, CANCEL_TASK, client_id, payload, by, {"changed": True, AT_ONCE: True})
    return True


def _cancelled_before(known: InboxItem, payload: dict[str, Any], by: str) -> CancelResult:
    refuse_another_request(known, CANCEL_TASK, by, payload)
    task = Task.objects.get(constellation=payload["subject"], task_id=payload["task"])
    return CancelResult(task, None if (known.result or {}).get(AT_ONCE) else known, changed=False)
