"""How a run has ended, by its tasks: well, in part, or badly (docs/machines.md, "6. Constellation"). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def verdict_of(tasks: Sequence[Row]) -> str:
    """One of `machines.constellation.VERDICTS`, of the rows of tasks that have all ended."""
    if not unwanted_ends(tasks):
        return "all_done"
    return "some_failed" if any(task["state"] == "COMPLETED" for task in tasks) else "none_completed"


def unwanted_ends(tasks: Sequence[Row]) -> list[Row]:
    """The tasks that ended as nobody wanted: they FAILED, or were skipped by a condition that could not be evaluated.

    What a false condition skipped, and what was cancelled or removed on purpose, counts as done.
    """
    return [task for task in tasks if task["state"] == "FAILED" or (task["state"] == "CANCELLED" and task["condition_failed"])]
