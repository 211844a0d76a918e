"""`manage.py stuck_eval FILE...`: how well the detection of being stuck judges labelled traces, in all, by kind and by rule."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.masks.doors import MaskedCommand
from agents.progress.traces import Score, TraceJudgement, count_by_rule, judge_trace, score_by_kind, score_judgements

FILE_LIMIT = 64 * 2**20
"""Bytes of a file of traces."""
FIGURES = ("precision", "recall", "f1")
NEEDED = {"name", "expected_stuck", "actions"}


class Command(MaskedCommand):
    help = (
        "Scores labelled traces: precision, recall, f1, median latency past detect_by and false alarms, then each kind and "
        "each rule, then the misjudged ones by name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a JSON list of traces")
        parser.add_argument("--json", action="store_true", help="all of it as one JSON object")

    def handle(self, *args, **options) -> None:
        judged = [judge_one(path, trace) for path in options["files"] for trace in read_traces(path)]
        overall, kinds, rules = score_judgements(judged), score_by_kind(judged), count_by_rule(judged)
        if options["json"]:
            parts = {"overall": asdict(overall), "kinds": {kind: asdict(score) for kind, score in kinds.items()}}
            named = {rule: {"rightly": rightly, "wrongly": wrongly} for rule, (rightly, wrongly) in rules.items()}
            self.stdout.write(json.dumps(parts | {"rules": named}, indent=1))
            return
        for name in FIGURES:
            self.stdout.write(f"{name} {getattr(overall, name):.2f}")
        self.stdout.write(f"latency_median {overall.latency}")
        self.stdout.write(f"false_alarms {overall.false_alarms} of {overall.benign}")
        for kind, score in kinds.items():
            self.stdout.write(kind_line(kind, score))
        for rule, (rightly, wrongly) in rules.items():
            self.stdout.write(f"rule {rule}: {rightly} rightly, {wrongly} wrongly")
        for judgement in overall.misjudged:
            self.stdout.write(judgement_line(judgement))


def read_traces(path: Path) -> list[dict[str, Any]]:
    """The file's traces; raises CommandError for what is not a list of traces."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise CommandError(f"{path} is larger than {FILE_LIMIT} bytes")
        traces = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    if not isinstance(traces, list):
        raise CommandError(f"{path} is not a list of traces")
    for place, trace in enumerate(traces):
        if not isinstance(trace, dict) or NEEDED - trace.keys():
            raise CommandError(f"{path}: trace {place} needs {', '.join(sorted(NEEDED))}")
    return [{"eval": "any", "detect_by": None} | trace for trace in traces]


def judge_one(path: Path, trace: dict[str, Any]) -> TraceJudgement:
    """The trace judged; raises CommandError that names the trace when its actions are not of the format."""
    try:
        return judge_trace(trace)
    except KeyError as error:
        raise CommandError(f"{path}: {trace['name']}: an action has no {error.args[0]}") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise CommandError(f"{path}: {trace['name']}: an action is not of the format: {error}") from error


def kind_line(kind: str, score: Score) -> str:
    if score.stuck:
        return f"kind {kind}: {score.caught} of {score.stuck} caught, latency_median {score.latency}"
    return f"kind {kind}: {score.false_alarms} false alarms of {score.benign}"


def judgement_line(judgement: TraceJudgement) -> str:
    if judgement.expected:
        return f"{judgement.name} expected stuck, no rule fired"
    return f"{judgement.name} expected not stuck, {judgement.rule} fired at {judgement.index}: {judgement.sentence}"
