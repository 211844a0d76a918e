"""The digits example's commands, run as the plan has them: each device in a workspace of its own, files by ORRERY_ARTIFACTS."""

import hashlib
import json
from pathlib import Path

import numpy
import pytest
import yaml

from agents.devices import CommandLimits, run_command
from agents.devices.confinement import Walls, find_confinement
from examples.digits.fetch import SOURCE, parts, read

pytestmark = [pytest.mark.one_database, pytest.mark.live]

ROOT = Path(__file__).resolve().parents[2]
PLAN = yaml.safe_load((ROOT / "examples" / "digits.yaml").read_text())
ADDED = [operation["add_task"] for operation in PLAN["replan"][0]["edit"] if "add_task" in operation]
TASKS = {task["task_id"]: task for task in PLAN["tasks"] + ADDED}


@pytest.fixture
def printed():
    return []


@pytest.fixture
def run(tmp_path, printed):
    """Runs the command of a task of the plan, or another one on a device."""

    walls = Walls(
        find_confinement("auto", tmp_path).mechanism, (tmp_path / "artifacts",), (ROOT / "examples",), hidden=(tmp_path, ROOT)
    )

    async def run(task_id, command=None, device="laptop"):
        task = TASKS.get(task_id, {"command": command, "device": device})
        (tmp_path / "artifacts").mkdir(exist_ok=True)
        return await run_command(
            task["command"],
            workspace=tmp_path / task["device"],
            attempt_id=1,
            instance=str(tmp_path),
            limits=CommandLimits(),
            timeout=60,
            env={"PYTHONPATH": str(ROOT), "ORRERY_ARTIFACTS": str(tmp_path / "artifacts"), "PYTHONDONTWRITEBYTECODE": "1"},
            on_output=printed.append,
            walls=walls if walls.frame else None,
        )

    return run


async def completed(run, *task_ids):
    """The results of these tasks, run one after the other."""
    outcomes = [await run(task_id) for task_id in task_ids]
    assert [outcome.error for outcome in outcomes] == [""] * len(task_ids)
    return [outcome.result for outcome in outcomes]


async def test_the_first_training_falls_short_and_the_second_is_deployed(run, printed, tmp_path):
    fetched, first, short = await completed(run, "task_001", "task_002", "task_003")
    assert fetched["train"] + fetched["validation"] + fetched["test"] == fetched["images"] == 1797
    assert first["epochs"] == 30
    assert 0.85 < short["accuracy"] <= 0.94

    second, good, deployed = await completed(run, "task_005", "task_006", "task_007")
    assert "epoch 250/250 loss" in "".join(printed)
    assert good["accuracy"] > 0.96
    assert good["accuracy"] == round(good["right"] / good["images"], 4)
    assert deployed["accuracy"] == good["accuracy"]
    model = tmp_path / "prod_server" / "deployed" / "model.npz"
    assert deployed["deployed"] == str(model)
    assert hashlib.sha256(model.read_bytes()).hexdigest() == deployed["sha256"] == good["sha256"] == second["sha256"]
    assert json.loads(model.with_suffix(".json").read_text()) == good


async def test_the_same_training_makes_the_same_model(run):
    await completed(run, "task_001")
    one, another = await completed(run, "task_002", "task_002")
    assert one["sha256"] == another["sha256"]


async def test_a_model_that_was_not_evaluated_is_not_deployed(run, tmp_path):
    await completed(run, "task_001", "task_002")
    outcome = await run("task_004")
    assert outcome.outcome == "failed"
    assert "model-1.evaluation.json is missing" in outcome.error
    assert not (tmp_path / "prod_server" / "deployed").exists()


async def test_a_model_that_changed_since_its_evaluation_is_not_deployed(run, tmp_path):
    await completed(run, "task_001", "task_002", "task_003")
    with (tmp_path / "artifacts" / "model-1.npz").open("ab") as model:
        model.write(b"more")
    outcome = await run("task_004")
    assert outcome.error == "exit code 1: model-1.npz has changed since it was evaluated"


async def test_a_step_too_early_names_the_step_to_run_first(run):
    outcome = await run("task_002")
    assert outcome.outcome == "failed"
    assert "train.npz is missing" in outcome.error
    assert outcome.error.endswith("run fetch first")


async def test_without_a_folder_for_artifacts_a_command_says_so(run):
    outcome = await run("", ["env", "-u", "ORRERY_ARTIFACTS", "python", "-m", "examples.digits.fetch"])
    assert outcome.error.endswith("ORRERY_ARTIFACTS must name a folder that exists")


def test_no_image_is_in_two_parts_and_every_part_has_all_digits():
    _, digits = read(SOURCE)
    rows = parts(digits)
    assert sorted(numpy.concatenate(list(rows.values()))) == list(range(1797))
    assert all(set(digits[some]) == set(range(10)) for some in rows.values())


def test_other_data_than_the_known_is_refused(tmp_path):
    other = tmp_path / "digits.csv.gz"
    other.write_bytes(SOURCE.read_bytes()[:-1])
    with pytest.raises(SystemExit, match=r"digits\.csv\.gz is not the file"):
        read(other)
