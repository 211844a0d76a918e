"""Tasks in words in plans, edits and exports: who may have one, and that it stays what it is."""

from __future__ import annotations

import json

import pytest

from agents.services import sessions
from agents.services.model_profiles import model_profile_create
from constellations.errors import EditRefused, GateKept, PlanRejected
from constellations.models import Constellation, Task
from constellations.plan.dialects.plan_words import write_task
from constellations.plan.fitting import KnownDevices
from constellations.plan.plan import parse_plan
from constellations.reads.why import explain_task
from constellations.services.edits import edit_apply
from constellations.services.plans import read_plan
from tests.constellations.runs.attempts.test_crews import WAITING

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]


def known(*minds: str) -> KnownDevices:
    devices = KnownDevices({"laptop": {"name": "laptop", "type": "", "capabilities": []}})
    devices.minds = frozenset(minds)
    return devices


def read(task: dict, *minds: str) -> dict:
    return parse_plan(json.dumps({"tasks": [{"task_id": "a", **task}]}), devices=known(*minds)).tasks[0]


@pytest.fixture
def mind(settings):
    settings.LLM_MODEL, settings.LLM_BASE_URL = "test-model", "http://127.0.0.1:1/v1"


def test_a_task_with_words_and_nothing_else_is_one_in_words():
    row = read({"description": "Tidy up."}, "")
    assert (row["tool"], row["arguments"], row["phases"], row["name"]) == ("instruction", {}, [], "a")


def test_one_that_says_what_to_do_stays_what_it_is():
    assert read({"description": "Tidy up.", "command": ["make"]}, "")["tool"] == "command"


def test_without_words_there_is_nothing_to_do():
    with pytest.raises(PlanRejected, match="a task needs a command, a tool or steps"):
        read({}, "")


def test_it_needs_a_model_that_is_there():
    with pytest.raises(PlanRejected, match=r"tasks\[0\]: a task needs a command.*LLM_BASE_URL"):
        read({"description": "Tidy up."}, "big")
    with pytest.raises(PlanRejected, match="there is no model profile large; there is big"):
        read({"description": "Tidy up.", "model": "large"}, "big")
    assert read({"description": "Tidy up.", "model": "big"}, "big")["model"] == "big"


def test_a_plan_that_names_a_model_for_them_all_has_one():
    plan = {"models": {"device_agent": "big"}, "tasks": [{"task_id": "a", "description": "Tidy up."}]}
    assert parse_plan(json.dumps(plan), devices=known("big")).tasks[0]["tool"] == "instruction"


def test_it_has_no_arguments_and_no_command_beside_its_words():
    with pytest.raises(PlanRejected, match="a task in words has no arguments"):
        read({"tool": "instruction", "description": "Tidy up.", "arguments": {"x": 1}}, "")


def test_it_is_exported_as_it_is_and_read_again_the_same():
    row = read({"description": "Tidy up.", "tips": ["Be brief."], "result_schema": {"type": "integer"}}, "")
    assert read(write_task(row), "") == row


def test_the_purpose_of_a_profile_lets_words_be_tasks(engine, device, operator):
    model_profile_create(
        "big", by="system", provider="openai_compatible", model="m", base_url="https://models.example.org/v1",
        purposes=["device_agent"],
    )  # fmt: skip
    session = sessions.session_create(operator, by=f"user:{operator.pk}")
    engine.submit({"tasks": [{"task_id": "a", "description": "Tidy up."}]}, session)


def graph(engine, device) -> Constellation:
    engine.submit({"tasks": [{"task_id": "wait", "device": "laptop", "command": "true", "confirm": True}]})
    engine.run(WAITING)
    return Constellation.objects.get()


def test_a_request_that_names_a_model_for_them_all_has_one(device):
    model_profile_create("quick", provider="anthropic", model="m", by="system")
    asked = {"plan": "tasks: [{task_id: a, description: Tidy up.}]"}
    with pytest.raises(PlanRejected, match="none is configured for device_agent"):
        read_plan(asked)
    assert read_plan({**asked, "models": {"device_agent": "quick"}}).tasks[0]["tool"] == "instruction"


def test_an_edit_adds_one_changes_its_words_and_makes_it_a_command(engine, device, mind):
    row = graph(engine, device)
    edit_apply(
        row.pk,
        [{"add_task": {"task_id": "b", "description": "Tidy up.", "after": ["wait"]}}],
        author=f"user:{row.session.owner_id}",
    )
    edit_apply(
        row.pk, [{"update_task": {"task_id": "b", "description": "Tidy all up."}}], author=f"user:{row.session.owner_id}"
    )
    task = Task.objects.get(task_id="b")
    assert (task.tool, task.description) == ("instruction", "Tidy all up.")
    assert explain_task(task)["kind"] == "dependency"
    edit_apply(row.pk, [{"update_task": {"task_id": "b", "command": ["true"]}}], author=f"user:{row.session.owner_id}")
    edit_apply(row.pk, [{"update_task": {"task_id": "b", "tool": "instruction"}}], author=f"user:{row.session.owner_id}")
    assert Task.objects.get(task_id="b").arguments == {}


def test_an_edit_without_a_model_is_refused_with_what_to_configure(engine, device):
    row = graph(engine, device)
    with pytest.raises(EditRefused, match="LLM_BASE_URL"):
        edit_apply(row.pk, [{"add_task": {"task_id": "b", "description": "Tidy up."}}], author=f"user:{row.session.owner_id}")


def test_one_with_a_gate_is_not_written_anew_without_it(engine, device, mind):
    row = graph(engine, device)
    words = {"description": "Wipe the disk.", "name": "wipe", "after": ["wait"]}
    edit_apply(row.pk, [{"add_task": {"task_id": "b", "confirm": True, **words}}], author=f"user:{row.session.owner_id}")
    again = [{"remove_task": {"task_id": "b"}}, {"add_task": {"task_id": "c", **words}}]
    with pytest.raises(GateKept, match="instruction"):
        edit_apply(row.pk, again, author="planner")
