"""How a run has ended, by its tasks."""

import pytest

from constellations.live.verdict import unwanted_ends, verdict_of
from constellations.machines.constellation import VERDICTS

ENDS = {
    "completed": ("COMPLETED", "", False),
    "failed": ("FAILED", "failed", False),
    "overdue": ("FAILED", "deadline", False),
    "lost": ("FAILED", "lost", False),
    "cancelled": ("CANCELLED", "cancelled: enough", False),
    "false": ("CANCELLED", "skipped: a>b condition is false: n > 1", False),
    "unknown": ("CANCELLED", "skipped: a>b condition unknown: `n` is missing", True),
    "behind": ("CANCELLED", "skipped: b>c needs b completed, and it is CANCELLED", True),
}


def tasks(*ends: str) -> list[dict]:
    columns = ("state", "reason", "condition_failed")
    return [{"task_id": f"t{number}"} | dict(zip(columns, ENDS[end], strict=True)) for number, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (("completed",), "all_done"),
        (("completed", "false"), "all_done"),
        (("completed", "cancelled"), "all_done"),
        (("cancelled", "false"), "all_done"),
        ((), "all_done"),
        (("completed", "failed"), "some_failed"),
        (("completed", "overdue"), "some_failed"),
        (("completed", "lost"), "some_failed"),
        (("completed", "unknown"), "some_failed"),
        (("completed", "false", "behind"), "some_failed"),
        (("failed",), "none_completed"),
        (("overdue", "false"), "none_completed"),
        (("lost", "cancelled"), "none_completed"),
        (("unknown", "behind"), "none_completed"),
    ],
)
def test_a_run_has_ended_as_well_as_its_tasks(ends, expected):
    assert verdict_of(tasks(*ends)) == expected
    assert expected in VERDICTS


def test_what_nobody_wanted_is_named():
    rows = tasks(*ENDS)
    assert [row["task_id"] for row in unwanted_ends(rows)] == ["t1", "t2", "t3", "t6", "t7"]
