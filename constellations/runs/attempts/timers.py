"""When tasks begin again, and when their deadlines pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from agents.clock import from_iso
from agents.streams.turn import Turn
from constellations.live.rows import Node
from constellations.runs.context import Context


class Timers:
    """Times of tasks, next first. An edit may have moved one: what counts is what the task's row says when it comes."""

    def __init__(self, context: Context):
        self._context = context
        self._times: list[tuple[float, int, str]] = []

    def set_retry(self, node: Node) -> None:
        """`node` begins again at the time in its row."""
        heappush(self._times, (from_iso(node.row["retry_at"]), node.row["id"], "retry"))  # type: ignore[arg-type]  # it is set

    def set_deadlines(self, keys: Iterable[str]) -> None:
        start, nodes = from_iso(self._context.constellation["created_at"]), self._context.graph.nodes
        for node in (nodes[key] for key in keys if key in nodes):
            if node.row["deadline"] is not None and not node.ended:
                heappush(self._times, (start + node.row["deadline"], node.row["id"], "deadline"))

    def take_due(self, turn: Turn, now: float) -> Iterator[tuple[Node, bool]]:
        """The tasks whose time has come, each with whether it is over its deadline; else it may begin again."""
        while self._times and self._times[0][0] <= now:
            _, key, kind = heappop(self._times)
            node = self._context.graph.ids.get(key)
            if node is None or node.ended:
                continue
            row = node.row
            if kind == "deadline":
                start = from_iso(self._context.constellation["created_at"])
                if row["deadline"] is not None and start + row["deadline"] <= now:
                    yield node, True
            elif row["state"] == "PENDING" and row["retry_at"] is not None and from_iso(row["retry_at"]) <= now:
                turn.record("retry_due", set={"task": {str(key): {"retry_at": None}}}, task_id=node.key)
                row["retry_at"] = None
                yield node, False

    def wake_at(self) -> float | None:
        """When the first of them comes, in seconds since 1970."""
        return self._times[0][0] if self._times else None

    def clear(self) -> None:
        """The run begins once more, with other tasks."""
        self._times.clear()
