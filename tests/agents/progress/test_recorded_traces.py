"""The real runs of public agents that are kept here: labelled, digested and without their texts."""

import hashlib
import json
from pathlib import Path

import pytest

from agents.progress.traces import items_of

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded_traces.json").read_text())
ASIDE = json.loads((HERE / "set_aside.json").read_text())
KEPT = {
    "kind", "tool", "target", "args_digest", "error", "content_hash", "success", "pre_hash", "shape", "args_shape",
    "error_shape",
}  # fmt: skip


@pytest.mark.parametrize("trace", RECORDED, ids=lambda trace: trace["name"])
def test_a_recorded_run_is_labelled_and_holds_no_text_of_the_run(trace):
    assert len(items_of(trace)) == len(trace["actions"]) > 1
    assert trace["expected_stuck"] == (trace["detect_by"] in range(1, len(trace["actions"]) + 1))
    assert trace["reason"].endswith(".")
    assert trace["source"].endswith(("(MIT)", "(Apache-2.0)", "(BSD-3-Clause)"))
    for action in trace["actions"]:
        assert set(action) <= KEPT
        assert all(len(action[field] or "") <= 160 for field in ("target", "error"))


def test_a_third_of_the_recorded_runs_is_set_aside_by_name():
    names = {trace["name"] for trace in RECORDED}
    assert len(names) == len(RECORDED)
    assert names & set(ASIDE) == {name for name in names if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0}
