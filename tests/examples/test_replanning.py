"""The examples of replan rules, carried out by the real engine on the devices of a new installation."""

from pathlib import Path

import pytest
import yaml

from agents.models import Event
from constellations.models import Attempt, Constellation, Edit
from constellations.plan.operations import fill_rule
from project.demo.demo import demo_devices

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def text_of(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text()


@pytest.fixture
def carried_out(engine):
    """A function that carries out a plan's text."""
    demo_devices()
    return engine.carry_out


def states(constellation: Constellation) -> dict[str, str]:
    return dict(constellation.tasks.values_list("task_id", "state"))


def edits(constellation: Constellation) -> list[tuple[str, str, int, int]]:
    """Each edit's id, author, the version it was made on and the one it made."""
    return list(Edit.objects.order_by("version").values_list("edit_id", "author", "based_on", "version"))


def assert_as_written(constellation: Constellation, device: str = "", **rules: str) -> None:
    """The edits are those of these rules, with the plan's reasons and operations; each names the task that ended."""
    written = {rule["name"]: rule for rule in constellation.rules}
    made = Edit.objects.order_by("version")
    assert [edit.reason for edit in made] == [written[name]["reason"] for name in rules]
    assert [edit.operations for edit in made] == [
        fill_rule(written[name]["edit"], task_id, device) for name, task_id in rules.items()
    ]


def change(edit_id: str) -> set[tuple[str, str]]:
    """What an edit added and removed."""
    return {(line["change"], line.get("task") or line["dependency"]) for line in Edit.objects.get(edit_id=edit_id).diff}


def devices_of(task_id: str) -> list[tuple[str, str]]:
    """Where a task was tried, and how that ended."""
    return list(Attempt.objects.filter(task__task_id=task_id).order_by("number").values_list("device__name", "outcome"))


def test_a_failed_test_is_diagnosed_and_what_is_found_is_put_right(carried_out):
    found = carried_out(text_of("diagnosis"))
    assert states(found) == {
        "check_out": "COMPLETED", "test_rounding": "COMPLETED", "test_prices": "FAILED", "diagnose_test_prices": "COMPLETED",
        "settle": "COMPLETED", "test_prices_again": "COMPLETED", "package": "COMPLETED",
    }  # fmt: skip
    assert found.state == "PARTIALLY_FAILED"
    assert found.tasks.get(task_id="diagnose_test_prices").result == {
        "tests": 2,
        "failing": ["test_prices.Prices.test_another_currency", "test_prices.Prices.test_the_same_currency"],
        "missing": ["rates.json"],
    }
    assert edits(found) == [("rule:diagnose:1", "planner", 1, 2), ("rule:mend:1", "planner", 2, 3)]
    assert_as_written(found, diagnose="test_prices", mend="diagnose_test_prices")
    assert change("rule:diagnose:1") == {("added", "diagnose_test_prices"), ("added", "test_prices>diagnose_test_prices")}
    assert {("removed", "test_prices>package"), ("added", "test_prices_again>package")} < change("rule:mend:1")


def test_a_diagnosis_that_explains_nothing_mends_nothing(carried_out):
    """The settings are there, and one test is wrong: the first rule looks into that one, the second has nothing to go by."""
    broken = text_of("diagnosis").replace("rm -f rates.json prices.zip", "cp /dev/null prices.zip")
    broken = broken.replace("path: rates.example.json", "path: rates.json").replace("2.999), 3.0", "2.999), 2.9")
    found = carried_out(broken)
    assert states(found) == {
        "check_out": "COMPLETED", "test_rounding": "FAILED", "test_prices": "COMPLETED", "package": "CANCELLED",
        "diagnose_test_rounding": "COMPLETED",
    }  # fmt: skip
    diagnosis = found.tasks.get(task_id="diagnose_test_rounding").result
    assert (diagnosis["failing"], diagnosis["missing"]) == (["test_rounding.Rounding.test_cents"], [])
    assert edits(found) == [("rule:diagnose:1", "planner", 1, 2)]


def test_work_moves_to_another_device_and_what_waited_for_it_with_it(carried_out):
    found = carried_out(text_of("relocation"))
    assert states(found) == {
        "collect": "COMPLETED", "deliver": "COMPLETED", "match": "FAILED", "match_elsewhere": "COMPLETED",
        "report": "COMPLETED",
    }  # fmt: skip
    assert found.state == "PARTIALLY_FAILED"
    assert devices_of("match") == [("gpu_server", "failed"), ("gpu_server", "failed")]
    assert devices_of("match_elsewhere") == [("test_server", "completed")]
    assert found.tasks.get(task_id="match").error == "exit code 1: join: stations.csv: No such file or directory"
    assert found.tasks.get(task_id="report").result == {"coast": 10.0, "hills": 11.0, "plain": 12.0}
    assert edits(found) == [("rule:elsewhere:1", "planner", 1, 2)]
    assert_as_written(found, device="gpu_server", elsewhere="match")
    assert change("rule:elsewhere:1") == {
        ("added", "match_elsewhere"), ("added", "collect>match_elsewhere"), ("added", "deliver>match_elsewhere"),
        ("removed", "match>report"), ("added", "match_elsewhere>report"),
    }  # fmt: skip


def test_good_numbers_of_the_canary_permit_the_roll_out(carried_out, state_dir):
    found = carried_out(text_of("canary"))
    assert found.tasks.get(task_id="canary").result == {"requests": 400, "errors": 0, "different": 0}
    assert states(found) == dict.fromkeys(("build", "canary", "roll_out_gpu", "roll_out_prod"), "COMPLETED")
    assert found.state == "COMPLETED"
    assert edits(found) == [("rule:widen:1", "planner", 1, 2)]
    assert_as_written(found, widen="canary")
    placed = {name: state_dir / "workspaces" / name / "durations.py" for name in ("gpu_server", "prod_server", "test_server")}
    assert {name: path.exists() for name, path in placed.items()} == {
        "gpu_server": True, "prod_server": True, "test_server": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("good", "bad", "counted"),
    [
        ("int(count) * UNITS[unit]", "int(count)", {"errors": 0, "different": 400}),
        ("import re\n", "", {"errors": 400, "different": 0}),
    ],
)
def test_bad_numbers_of_the_canary_hold_the_roll_out_back(carried_out, good, bad, counted):
    head, new = text_of("canary").split("path: new.py")
    found = carried_out(f"{head}path: new.py{new.replace(good, bad, 1)}")
    assert found.tasks.get(task_id="canary").result == {"requests": 400, **counted}
    assert states(found) == dict.fromkeys(("build", "canary", "compare"), "COMPLETED")
    assert edits(found) == [("rule:hold:1", "planner", 1, 2)]
    assert_as_written(found, hold="canary")


def test_branches_that_have_not_begun_are_pruned_and_one_that_runs_is_not(carried_out):
    found = carried_out(text_of("search"))
    names = ("observe", "quick_1", "quick_2", "quick_3", "everything", "call_off")
    assert states(found) == dict.fromkeys(names, "COMPLETED")
    assert found.tasks.get(task_id="quick_2").result["period"] == 2.368
    assert found.tasks.get(task_id="everything").result["tried"] < 1_000_000
    assert edits(found) == [("rule:found:1", "planner", 1, 2)]
    assert_as_written(found, found="quick_2")
    assert {("removed", f"thorough_{number}") for number in (1, 2, 3)} | {("added", "call_off")} < change("rule:found:1")
    assert not Attempt.objects.filter(task__task_id__startswith="thorough").exists()

    refused = Event.objects.get(type="edit_refused").data
    assert (refused["rule"], refused["message"]) == (
        "stop",
        "operation 1 (remove_task), task_id: everything already runs",
    )
    assert found.fired == {"found": 1, "stop": 1}


def test_a_search_that_finds_nothing_quickly_looks_thoroughly(carried_out):
    """Half as much of the variation explained is not enough for anybody here, so no branch is pruned."""
    plan = yaml.safe_load(text_of("search").replace("> 0.8", "> 2").replace("6000'", "400'").replace(" 1000000'", " 100'"))
    found = carried_out(yaml.safe_dump(plan))
    assert {task_id for task_id, state in states(found).items() if state == "COMPLETED"} >= {
        "thorough_1", "thorough_2", "thorough_3",
    }  # fmt: skip
    assert edits(found) == []
