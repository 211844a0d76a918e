"""Mend and retry: an edit of a graph, and tasks that begin again, in one step. All of it is done, or nothing.

An edit may change the tasks that begin again with it as if they had not ended: so a task that failed because it was wrong is
corrected and begins again at once. What is COMPLETED stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations.editor import editor
from constellations.editor.draft import Overlay
from constellations.errors import NotRetried
from constellations.live.live import LiveGraph
from constellations.live.retry import all_that_begin, begin_again, check_retry
from constellations.reads.watching import GateWatch
from constellations.services.edits import EditRequest, edit_row, rebase_edit
from constellations.services.gates.keeping import weigh_gates

NOTHING_FAILED = "nothing has FAILED, so nothing begins again; name tasks to retry, or send the operations as an edit"


def decide_mending(
    live: LiveGraph, operations: Sequence[Any], retry: Sequence[str], watched: GateWatch, author: str, *,
    based_on: int | None = None, needs_retry: bool = False,
) -> editor.Changes | None:  # fmt: skip
    """What `operations` change where the tasks named in `retry` begin again, None without operations; nothing is done yet.

    With `based_on` they are rebased, as those of an edit are. Raises NotRetried, EditRefused, EditRejected, StaleEdit,
    LimitReached, GateKept where `author` may not take a gate away. `needs_retry`: operations alone are refused, too.
    """
    check_retry(live, retry)
    if not operations:
        return None
    if needs_retry and not retry:
        raise NotRetried(NOTHING_FAILED, [{"key": "tasks", "message": NOTHING_FAILED}])
    snapshot = live.snapshot()
    begun = {key: {**live.nodes[key].row, "state": "WAITING_DEPENDENCY"} for key in retry}
    mended = replace(snapshot, tasks=Overlay(begun, snapshot.tasks))
    wanted = EditRequest(lambda graph: operations, "", "", "", based_on)
    changes = rebase_edit(live, wanted, operations, lambda: editor.apply_operations(mended, operations, watched.devices))
    if gone := sorted(begun.keys() & set(changes.removed_tasks)):
        message = f"{gone[0]} is to begin again, and the operations remove it; do one of the two"
        raise NotRetried(message, [{"key": "tasks", "message": message}])
    live.check_room(changes)
    weigh_gates(live, changes, author, watched)
    return changes


def mend_and_retry(
    live: LiveGraph, turn: Turn, changes: editor.Changes | None, operations: Sequence[Any], retry: Sequence[str], by: str,
    reason: str = "", based_on: int | None = None,
) -> tuple[list[str], Fields | None]:  # fmt: skip
    """Do what `decide_mending` has checked: the tasks that begin again, in the order of the graph, and the edit's row.

    They begin again before they are changed: what hangs on them would else be skipped and revived in the same commit. What the
    edit replaces stays as it ended.
    """
    begun = begin_again(live, turn, retry, by, reason, replaced_now=_replaced_by(changes))
    if not changes:
        return begun, None
    wanted = EditRequest(lambda graph: operations, by, reason, "", based_on)
    row = edit_row(live, wanted, operations, changes, {"id": turn.take(), "at": turn.at})
    live.apply(turn, changes, row)
    return begun, row


def list_all_that_begin(live: LiveGraph, changes: editor.Changes | None, retry: Sequence[str]) -> list[str]:
    """The tasks that `mend_and_retry` would let begin again, in the order of the graph."""
    return all_that_begin(live, retry, replaced_now=_replaced_by(changes))


def _replaced_by(changes: editor.Changes | None) -> list[str]:
    return [row["replaces"] for row in changes.added_tasks if row["replaces"]] if changes else []
