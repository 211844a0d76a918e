"""`manage.py trace_export`: recorded runs of tool loops as traces that `stuck_eval` can score."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import CommandParser

from agents.masks.doors import MaskedCommand
from agents.models import Evidence, Loop
from agents.progress.traces import CONTROLS

LOOPS = 10_000
"""Loops that one export holds, the latest."""
ACTIONS = 10_000
"""Of one loop."""


class Command(MaskedCommand):
    help = (
        "Writes recorded tool loops as a JSON list of traces for stuck_eval. A loop that was halted because it was stuck is "
        "labelled stuck, any other is not: correct the labels before you measure with them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--session", type=int, help="only the loops of this session")

    def handle(self, *args, **options) -> None:
        loops = Loop.objects.order_by("-id")
        if options["session"] is not None:
            loops = loops.filter(agent__session=options["session"])
        traces = [trace_of_loop(loop) for loop in loops[:LOOPS]]
        self.stdout.write(json.dumps([one for one in traces if one["actions"]], indent=1))


def trace_of_loop(loop: Loop) -> dict[str, Any]:
    """One loop in the form of agents.progress.traces."""
    rows = list(loop.evidence.filter(ended_at__isnull=False).exclude(kind="accept").order_by("id")[:ACTIONS])
    stuck = loop.state == "Halted" and loop.reason.startswith("stuck:")
    return {
        "name": f"loop {loop.pk}", "source": "recorded", "eval": "any", "expected_stuck": stuck,
        "detect_by": _first_verdict(rows) if stuck else None, "reason": loop.reason, "actions": list(_actions(rows)),
    }  # fmt: skip


def _first_verdict(rows: Iterable[Evidence]) -> int | None:
    return next((place for place, row in enumerate(rows, 1) if row.verdict is not None), None)


def _actions(rows: Iterable[Evidence]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.kind in CONTROLS:
            yield {"kind": row.kind, "tool": "", "target": ""}
            continue
        yield {
            "kind": "tool" if row.kind in ("poll", "observe") else row.kind, "tool": row.tool, "target": row.target,
            "args_digest": row.call, "success": bool(row.success), "error": row.raw_error or None,
            "error_kind": row.error_kind, "content_hash": row.outcome, "pre_hash": row.before,
        }  # fmt: skip
