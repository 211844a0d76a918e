"""`manage.py trace_export`: recorded runs of tool loops as traces that `stuck_eval` can score."""

import json
from collections.abc import Mapping
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
        "Writes recorded tool loops as a JSON list of traces for stuck_eval. A loop that a person has labelled is what they "
        "say (stuck_label). Any other is taken for stuck if it was halted as stuck: label it before you measure with it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--session", type=int, help="only the loops of this session")
        parser.add_argument("--labelled", action="store_true", help="only the loops that a person has labelled")

    def handle(self, *args, **options) -> None:
        loops = Loop.objects.order_by("-id")
        if options["session"] is not None:
            loops = loops.filter(agent__session=options["session"])
        if options["labelled"]:
            loops = loops.filter(label__isnull=False)
        traces = [trace_of_loop(loop) for loop in loops[:LOOPS]]
        self.stdout.write(json.dumps([one for one in traces if one["actions"]], indent=1))


def trace_of_loop(loop: Loop) -> dict[str, Any]:
    """One loop in the form of agents.progress.traces."""
    rows = list(loop.evidence.filter(ended_at__isnull=False).exclude(kind__in=("accept", "ruling")).order_by("id")[:ACTIONS])
    stuck, detect_by = _said_of(loop.label, rows) if loop.label else _guessed_of(loop, rows)
    return {
        "name": f"loop {loop.pk}", "source": "recorded", "eval": "any", "expected_stuck": stuck, "detect_by": detect_by,
        "reason": loop.reason, "labelled": bool(loop.label), "actions": [action_of_row(row) for row in rows],
    }  # fmt: skip


def _said_of(label: Mapping[str, Any], rows: list[Evidence]) -> tuple[bool, int | None]:
    """Whether a person says that it was stuck, and from which place of the trace on."""
    return label["stuck"], next((place for place, row in enumerate(rows, 1) if row.number == label["since"]), None)


def _guessed_of(loop: Loop, rows: list[Evidence]) -> tuple[bool, int | None]:
    """The same as the rules saw it while it ran."""
    if not (loop.state == "Halted" and loop.reason.startswith("stuck:")):
        return False, None
    verdicts = (place for place, row in enumerate(rows, 1) if row.verdict and row.verdict["action"] in ("steer", "halt"))
    return True, next(verdicts, None)


def action_of_row(row: Evidence) -> dict[str, Any]:
    """One action, with all that its row knows, so that it is judged as it was when it ran."""
    if row.kind in CONTROLS:
        return {"kind": row.kind, "tool": "", "target": ""}
    kind = "tool" if row.kind == "observe" else row.kind
    told = {
        "kind": "tool" if kind == "poll" else kind, "call_kind": kind, "tool": row.tool, "target": row.target,
        "args_digest": row.call, "success": bool(row.success), "error": row.raw_error or None, "error_digest": row.error,
        "error_kind": row.error_kind, "content_hash": row.outcome, "pre_hash": row.before,
    }  # fmt: skip
    seen = {"shape": row.shape, "args_shape": row.call_shape, "error_shape": row.error_shape, "ordered": row.ordered}
    # An empty shape says that nothing was answered; one that is missing, that nobody looked.
    return told | {name: value for name, value in seen.items() if value or (name == "shape" and value is not None)}
