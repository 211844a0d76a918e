"""The rules on runs made up from a seed (tests/agents/progress/generated), and the runs themselves."""

import json
import subprocess
import sys
from collections import Counter
from io import StringIO
from random import Random

import pytest
from django.conf import settings
from django.core.management import call_command

from agents.progress.shapes import similar
from agents.progress.traces import judge_trace, score_judgements
from tests.agents.progress.generated.loops import LOOPS
from tests.agents.progress.generated.runs import RECOVERED, generate_runs
from tests.agents.progress.generated.session import STYLES, Session
from tests.agents.progress.generated.work import WORK

SEED = 90_210_000
"""Nothing was tuned on it."""
EACH = 4
LEAST_F1 = 0.45
LEAST_F1_WITH_SHAPES = 0.55
PLAIN_KINDS = ("cycle", "exact_repeat", "irregular_alternation", "oscillation", "same_failure", "standstill")
PLAIN_KINDS_CAUGHT = 0.9


@pytest.fixture(scope="module")
def plain_runs():
    return generate_runs(SEED, EACH, shapes=False)


@pytest.fixture(scope="module")
def shaped_runs():
    return generate_runs(SEED, EACH, shapes=True)


def loop_of(run):
    return run["actions"][run["stuck_from"] - 1 : run["detect_by"]]


def test_the_rules_judge_runs_of_which_only_digests_are_known(plain_runs):
    assert score_judgements(map(judge_trace, plain_runs)).f1 >= LEAST_F1


def test_the_rules_judge_runs_of_which_shapes_are_known(shaped_runs):
    assert score_judgements(map(judge_trace, shaped_runs)).f1 >= LEAST_F1_WITH_SHAPES


def test_the_plain_kinds_of_loop_are_caught_where_shapes_are_known(shaped_runs):
    plain = [run for run in shaped_runs if run["reason"] in PLAIN_KINDS]
    assert sum(judge_trace(run).right for run in plain) >= PLAIN_KINDS_CAUGHT * len(plain)


def test_the_same_seed_makes_the_same_runs():
    once, again, other = (generate_runs(seed, 1, shapes=True) for seed in (5, 5, 6))
    assert once == again != other


def test_every_kind_is_there_equally_often_and_about_half_is_honest(plain_runs):
    assert Counter(run["reason"] for run in plain_runs) == dict.fromkeys(
        {one.kind for one in [*LOOPS, *WORK]} | {RECOVERED}, EACH
    )
    assert 0.4 <= sum(run["expected_stuck"] for run in plain_runs) / len(plain_runs) <= 0.6


def test_every_kind_has_two_variants_at_least():
    variants = Counter(one.kind for one in [*LOOPS, *WORK])
    assert {kind for kind, number in variants.items() if number < 2} == {"long_work"}


def test_labels_say_where_a_loop_begins_and_where_it_is_clear(plain_runs):
    for run in plain_runs:
        if run["expected_stuck"]:
            rounds = min(one.clear_after for one in LOOPS if one.kind == run["reason"])
            assert 0 < run["stuck_from"] <= run["detect_by"] - rounds + 1 <= run["detect_by"] <= len(run["actions"]), run[
                "name"
            ]
            assert run["eval"] == "any"
        else:
            assert run["stuck_from"] is run["detect_by"] is None
            assert run["eval"] == ("final" if run["reason"] == RECOVERED else "any")


def test_a_loop_whose_answer_only_looks_new_is_seen_through_by_shapes_alone(shaped_runs):
    for run in (run for run in shaped_runs if run["reason"] == "looks_new"):
        calls = Counter(action["args_digest"] for action in loop_of(run) if action["kind"] == "tool")
        again = [action for action in loop_of(run) if action["args_digest"] == calls.most_common(1)[0][0]]
        assert len({action["content_hash"] for action in again}) == len(again) >= 5, run["name"]
        assert all(similar(again[0]["shape"], action["shape"]) for action in again), run["name"]


def test_a_change_after_one_that_was_taken_back_is_new():
    session = Session(Random(1), next(style for style in STYLES if style.sees_changes))
    session.edit("a.py")
    session.edit("a.py")
    session.take_back("a.py", 2)
    session.edit("a.py")
    first, second, again, last = (action["after"] for action in session.actions)
    assert first == again
    assert len({first, second, last}) == 3


def test_shapes_are_only_added(plain_runs, shaped_runs):
    keys = ("kind", "tool", "target", "args_digest", "success")
    for plain, shaped in zip(plain_runs, shaped_runs, strict=True):
        assert plain | {"actions": []} == shaped | {"actions": []}
        for one, other in zip(plain["actions"], shaped["actions"], strict=True):
            assert "shape" not in one
            assert [one[key] for key in keys] == [other[key] for key in keys]


def test_what_the_script_prints_is_read_by_stuck_eval(tmp_path):
    asked = [sys.executable, "-m", "tests.agents.progress.generated", "5", "1", "--shapes"]
    printed = subprocess.run(asked, cwd=settings.BASE_DIR, check=True, text=True, stdout=subprocess.PIPE).stdout
    assert json.loads(printed) == generate_runs(5, 1, shapes=True)
    path, out = tmp_path / "runs.json", StringIO()
    path.write_text(printed)
    call_command("stuck_eval", str(path), stdout=out)
    assert [line.split()[0] for line in out.getvalue().splitlines()[:4]] == ["precision", "recall", "f1", "latency_median"]
