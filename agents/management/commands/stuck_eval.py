"""`manage.py stuck_eval FILE`: how well the detection of being stuck judges labelled traces, one figure a line."""

import json
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from agents.masks.doors import MaskedCommand
from agents.progress.traces import TraceJudgement, judge_trace, score_judgements

FILE_LIMIT = 64 * 2**20
"""Bytes of a file of traces."""


class Command(MaskedCommand):
    help = "Scores labelled traces: precision, recall, f1, median latency past detect_by, then the misjudged ones by name."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a JSON list of traces")

    def handle(self, *args, **options) -> None:
        result = score_judgements(judge_trace(trace) for trace in read_traces(options["file"]))
        for name in ("precision", "recall", "f1"):
            self.stdout.write(f"{name} {getattr(result, name):.2f}")
        self.stdout.write(f"latency_median {result.latency}")
        for judgement in result.misjudged:
            self.stdout.write(judgement_line(judgement))


def read_traces(path: Path) -> list[dict]:
    """The file's traces; raises CommandError for what is not a list of traces."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise CommandError(f"{path} is larger than {FILE_LIMIT} bytes")
        traces = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    if not isinstance(traces, list):
        raise CommandError(f"{path} is not a list of traces")
    return [_complete(trace, place) for place, trace in enumerate(traces)]


def _complete(trace: dict, place: int) -> dict:
    needed = {"name", "expected_stuck", "actions"}
    if not isinstance(trace, dict) or needed - trace.keys():
        raise CommandError(f"trace {place} needs {', '.join(sorted(needed))}")
    return {"eval": "any", "detect_by": None} | trace


def judgement_line(judgement: TraceJudgement) -> str:
    if judgement.expected:
        return f"{judgement.name} expected stuck, no rule fired"
    return f"{judgement.name} expected not stuck, {judgement.rule} fired at {judgement.index}"
