"""`manage.py stuck_eval FILE` on the shared traces, and on files that are not right."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.progress.traces import TraceJudgement, judge_trace, score_judgements

TRACES = Path(__file__).with_name("stuck_traces.json")


def evaluated(*arguments: object) -> list[str]:
    out = StringIO()
    call_command("stuck_eval", *map(str, arguments), stdout=out)
    return out.getvalue().splitlines()


def action(**fields) -> dict:
    return {"kind": "tool", "tool": "bash", "target": "ls", "args_digest": "a", "error": None, "content_hash": "c",
            "success": True} | fields  # fmt: skip


def trace(name: str, expected: bool, actions: list[dict], **fields) -> dict:
    return {"name": name, "expected_stuck": expected, "detect_by": 4 if expected else None, "eval": "any",
            "actions": actions} | fields  # fmt: skip


def test_the_shared_traces_are_judged_with_an_f1_of_at_least_95_percent():
    result = score_judgements(judge_trace(trace) for trace in json.loads(TRACES.read_text()))
    assert result.f1 >= 0.95
    assert result.latency == 0


def test_it_prints_one_figure_a_line_then_kinds_and_rules_and_the_misjudged(tmp_path):
    path, other = tmp_path / "traces.json", tmp_path / "more.json"
    repeated = [action()] * 5
    path.write_text(
        json.dumps([trace("caught", True, repeated, reason="Again."), trace("missed", True, [action()], reason="Again.")])
    )
    other.write_text(json.dumps([trace("wronged", False, repeated)]))
    assert evaluated(path, other) == [
        "precision 0.50",
        "recall 0.50",
        "f1 0.50",
        "latency_median 0",
        "false_alarms 1 of 1",
        "kind Again.: 1 of 2 caught, latency_median 0",
        "kind (no reason): 1 false alarms of 1",
        "rule exact_repeat: 1 rightly, 1 wrongly",
        "missed expected stuck, no rule fired",
        "wronged expected not stuck, exact_repeat fired at 4: bash “ls” was called 4 times, each time with the same outcome.",
    ]


def test_it_prints_all_of_it_as_json(tmp_path):
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([trace("caught", True, [action()] * 5, reason="Again.")]))
    printed = json.loads("\n".join(evaluated(path, "--json")))
    assert printed["overall"] == printed["kinds"]["Again."]
    assert (printed["overall"]["f1"], printed["overall"]["misjudged"]) == (1.0, [])
    assert printed["rules"] == {"exact_repeat": {"rightly": 1, "wrongly": 0}}


def test_only_the_last_verdict_counts_where_the_trace_says_so():
    recovered = [action()] * 4 + [action(target="pwd", args_digest="b", content_hash="d")]
    assert judge_trace(trace("recovered", False, recovered, eval="final")).right
    assert not judge_trace(trace("recovered", False, recovered)).right


def test_tools_a_trace_names_as_polling_may_wait():
    asked = [action(tool="job", target="7")] * 12
    assert judge_trace(trace("asked", False, asked, poll_tools=["job"])).right
    assert not judge_trace(trace("asked", False, asked)).right


def test_lateness_is_counted_past_the_action_by_which_it_should_be_found():
    late = [TraceJudgement(str(index), True, 4, index, "r") for index in (3, 6, 9)]
    assert score_judgements(late).latency == 2


def test_nothing_to_score_is_scored_nought(tmp_path):
    path = tmp_path / "none.json"
    path.write_text("[]")
    assert evaluated(path) == [
        "precision 0.00",
        "recall 0.00",
        "f1 0.00",
        "latency_median 0",
        "false_alarms 0 of 0",
    ]


@pytest.mark.parametrize("text", ["{", "{}", '[{"name": "x"}]', "[1]"])
def test_a_file_that_holds_no_traces_is_refused(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(CommandError):
        evaluated(path)


def test_an_action_that_is_not_of_the_format_is_named(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([trace("odd", True, [{"kind": "tool"}])]))
    with pytest.raises(CommandError, match="odd: an action has no tool"):
        evaluated(path)
    path.write_text(json.dumps([trace("odd", True, [5])]))
    with pytest.raises(CommandError, match="odd: an action is not of the format"):
        evaluated(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        evaluated(tmp_path / "absent.json")
