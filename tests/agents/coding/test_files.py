"""Files that go to a coding agent with its task, and those that are kept of what it leaves."""

from __future__ import annotations

import pytest

from agents.artifacts.reading import whole_content
from agents.models import Artifact
from constellations.models import Attempt, Task
from tests.agents.coding.conftest import errand

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified", "coder", "device")]
COPY = ["cp", "in", "out"]


def copied(*ends: dict) -> dict:
    """A plan with an errand that copies the file of another task, and then does `ends`."""
    make = {"task_id": "make", "device": "laptop", "command": "echo beta > a", "shell": True, "outputs": ["a"]}
    files = {"after": ["make"], "inputs": {"in": "make#a"}, "outputs": ["out"]}
    return {"tasks": [make, errand({"run": COPY}, *ends, unasked={"commands": [COPY]}, **files)]}


def test_it_finds_its_inputs_in_its_workspace_and_its_outputs_are_artifacts(engine):
    engine.carry_out(copied({"say": "Copied."}))
    assert {(task.state, task.error) for task in Task.objects.all()} == {("COMPLETED", "")}
    kept = Artifact.objects.get(name="out")
    assert b"".join(whole_content(kept.sha256)) == b"beta\n"
    assert Attempt.objects.get(pk=kept.attempt_id).task.task_id == "work"


def test_what_it_leaves_when_it_has_failed_is_not_kept(engine, state_dir):
    engine.carry_out(copied({"stop": "refusal"}))
    assert Task.objects.get(task_id="work").state == "FAILED"
    assert (state_dir / "workspaces" / "coder" / "out").exists()
    assert not Artifact.objects.filter(name="out").exists()
