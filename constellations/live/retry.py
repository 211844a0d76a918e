"""Tasks that have ended badly begin again, with what ended badly or was skipped downstream (docs/machines.md, "5. Task")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations.editor.replacing import replacements_of
from constellations.errors import NotRetried
from constellations.live.live import LiveGraph, reason_that_fits
from constellations.live.rows import Node, RowsOf
from constellations.machines import TASK
from constellations.machines.task import WITH_THE_RUN

RETRIED = "retried"
"""What the reason of a task begins with that began again."""
SHOWN = 5
"""Tasks that a refusal names."""


def check_retry(live: LiveGraph, keys: Sequence[str]) -> None:
    """Raise NotRetried, naming every task that cannot begin again."""
    others = replacements_of(RowsOf(live.nodes).values())
    faults = [fault for key in keys if (fault := _fault(live, key, others))]
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise NotRetried("; ".join(faults[:SHOWN]) + more, [{"key": "tasks", "message": fault} for fault in faults])


def _fault(live: LiveGraph, key: str, others: Mapping[str, str]) -> str:
    node = live.nodes.get(key)
    if node is None:
        return f"there is no task {key}"
    if node.row["condition_failed"]:
        return f"{key} was {node.row['reason']}; mend the condition, and it is revived"
    if node.skipped:
        return f"{key} was skipped; it is revived when what decided that begins again"
    if key in others:
        return f"{key} was replaced by {others[key]}; retry that one, or undo the edit that added it"
    if node.row["state"] not in ("FAILED", "CANCELLED"):
        return f"{key} is {node.row['state']}; only what has FAILED or was cancelled begins again"
    return ""


def failed_tasks(live: LiveGraph) -> list[str]:
    """Every task that has FAILED and that no other one replaces."""
    others = replacements_of(RowsOf(live.nodes).values())
    return [key for key, node in live.nodes.items() if node.row["state"] == "FAILED" and key not in others]


def begin_again(
    live: LiveGraph, turn: Turn, keys: Sequence[str], by: str, reason: str = "", *, replaced_now: Collection[str] = ()
) -> list[str]:  # fmt: skip
    """Attempts begin again, what was skipped because of it is revived; returns the tasks, as `all_that_begin` does.

    COMPLETED tasks downstream stay as they are. A deadline that is over is taken away: it would end the task at once.
    """
    order = all_that_begin(live, keys, replaced_now=replaced_now)
    nodes = [live.nodes[key] for key in order]
    why = f"{RETRIED}: {reason}" if reason else RETRIED
    turn.record_steps("tasks_retried", "task", [_step(live, turn, node, why) for node in nodes], by)
    behind = {edge.down.key: None for node in nodes for edge in node.outgoing}
    live.evaluate(turn, [*order, *behind])
    return order


def all_that_begin(live: LiveGraph, keys: Sequence[str], *, replaced_now: Collection[str] = ()) -> list[str]:
    """`keys`, and what ended badly downstream of them, in the order of the graph. Raises NotRetried.

    What a person cancelled stays so unless it is named, and what has been replaced, `replaced_now` by an edit in the same step.
    """
    check_retry(live, keys)
    others, named = {*replacements_of(RowsOf(live.nodes).values()), *replaced_now}, set(keys)
    begin = []
    for node in _downstream(live, keys):
        ended_with_the_run = node.row["state"] == "CANCELLED" and node.row["reason"].startswith(WITH_THE_RUN)
        if node.key not in others and (node.key in named or node.row["state"] == "FAILED" or ended_with_the_run):
            begin.append(node.key)
    return [str(key) for key in live.graph.in_order(begin)]


def _downstream(live: LiveGraph, keys: Iterable[str]) -> list[Node]:
    """The tasks themselves and all that depend on them, however far."""
    found = {key: live.nodes[key] for key in keys}
    todo = list(found.values())
    while todo:
        for edge in todo.pop().outgoing:
            if edge.down.key not in found:
                found[edge.down.key] = edge.down
                todo.append(edge.down)
    return list(found.values())


def _step(live: LiveGraph, turn: Turn, node: Node, reason: str) -> tuple[Fields, Fields]:
    unmet = live.reopen(node)
    fields: Fields = {
        "attempts_before": node.row["attempt"],
        "error": "",
        "error_kind": "",
        "ended_at": None,
        "retry_at": None,
        "device_id": None,
    }
    if node.row["untold"]:
        fields["untold"] = False
    fields |= live.deadline_left(turn, node)
    return turn.step(TASK, node.row, "retry", {"unmet": unmet}, reason_that_fits(reason), **fields)
