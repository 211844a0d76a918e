"""Refusals over REST are what the OpenAPI description says they are, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from agents.services import sessions
from agents.services.devices import device_create
from tests.agents.conftest import Rest
from tests.constellations.planting import advance, noop, plant

pytestmark = pytest.mark.django_db

Ask = Callable[["Scene"], object]


class Scene:
    """An operator's client, a device, and a constellation whose first task is COMPLETED, at version 2."""

    def __init__(self, operator):
        operator.groups.add(Group.objects.get_or_create(name="devices")[0])
        device_create("laptop", by="system")
        self.rest = Rest(operator)
        self.session = sessions.session_create(operator, "mine", by="system")
        self.made = plant(self.session, noop("fetch"), noop("train", after=["fetch"]))
        advance(self.made, fetch="COMPLETED")
        self.edit({"add_task": noop("x")}, based_on=1)

    def edit(self, *operations, **more):
        return self.rest.post(f"/api/constellations/{self.made.pk}/edits/", {"operations": operations, **more})

    def plan(self, plan):
        return self.rest.post(f"/api/sessions/{self.session.pk}/interactions/", {"plan": plan})

    def check(self, document, **more):
        return self.rest.post("/api/import/check", {"document": document, **more})

    def device(self, **body):
        return self.rest.post("/api/devices/", {"name": "other", **body})


@pytest.fixture
def scene(operator) -> Scene:
    return Scene(operator)


WORDS = {"tasks": [{"task_id": "a", "actions": [{"function": "noop", "extra": 1}]}]}
REFUSED: dict[str, tuple[int, Ask]] = {
    "a plan that is none": (400, lambda it: it.plan("tasks: [")),
    "a plan with flaws": (400, lambda it: it.plan("tasks:\n  - {task_id: a, comand: make}\n")),
    "a plan for a device that is not there": (400, lambda it: it.plan("tasks: [{task_id: a, tool: noop, device: moon}]")),
    "a request that nobody understands": (
        400, lambda it: it.rest.post(f"/api/sessions/{it.session.pk}/interactions/", {"request": "make it so"})
    ),
    "a document with flaws, as text": (400, lambda it: it.check(json.dumps(WORDS, indent=1))),
    "a document with flaws, as a value": (400, lambda it: it.check(WORDS)),
    "a document of no dialect": (400, lambda it: it.check({"tasks": [{"task_id": "a", "name": "x"}]})),
    "an edit where a constellation was wanted": (400, lambda it: it.check([{"add_task": noop("y")}])),
    "a document for a device that is not there": (
        400, lambda it: it.check({"tasks": [{"task_id": "a", "tool": "noop", "device": "moon"}]})
    ),
    "operations that are none": (400, lambda it: it.edit({"add_task": noop("y")}, "x", {"add_tusk": {}})),
    "an edit of what has ended": (409, lambda it: it.edit({"update_task": {"task_id": "fetch", "timeout": 1}})),
    "an empty edit": (400, lambda it: it.edit()),
    "a stale edit": (409, lambda it: it.edit({"add_task": noop("x", timeout=1)}, based_on=1)),
    "an edit based on what is to come": (400, lambda it: it.edit({"add_task": noop("y")}, based_on=9)),
    "an agent's edit with flaws": (
        409,
        lambda it: it.rest.post(
            f"/api/constellations/{it.made.pk}/import/", {"document": '[{"remove_task":\n {"task_id": "fetch"}}]'}
        ),
    ),
    "an undo of what is not there": (404, lambda it: it.rest.post(f"/api/constellations/{it.made.pk}/edits/no/undo/")),
    "a retry of what has not failed": (
        409, lambda it: it.rest.post(f"/api/constellations/{it.made.pk}/retry/", {"tasks": ["fetch", "nobody"]})
    ),
    "a reopening of what is open": (
        409, lambda it: it.rest.post(f"/api/constellations/{it.made.pk}/reopen/", {"retry": ["x"]})
    ),
    "a cancel without a reason": (
        400, lambda it: it.rest.post(f"/api/constellations/{it.made.pk}/commands/", {"kind": "cancel"})
    ),
    "a device with flaws": (400, lambda it: it.device(recipes={"train": {"comand": []}})),
    "a device with a limit that is none": (400, lambda it: it.device(limits={"pause_memory_percent": 200})),
    "a second device of a name": (409, lambda it: it.device(name="laptop")),
    "a parameter that is unknown": (400, lambda it: it.rest.get("/api/tasks/", colour="red")),
    "a state that no agent has": (400, lambda it: it.rest.get("/api/agents/", state="nonsense")),
    "a machine that no agent is": (400, lambda it: it.rest.get("/api/agents/", machine="nonsense")),
    "a state that no task has": (400, lambda it: it.rest.get("/api/tasks/", state="nonsense")),
    "what is not there": (404, lambda it: it.rest.get("/api/tasks/5/")),
    "a method that is not taken": (405, lambda it: it.rest.delete("/api/machines/")),
    "a body that is none": (400, lambda it: it.rest.post("/api/devices/", "{")),
    "a body of another kind": (415, lambda it: it.rest.post("/api/devices/", "name=x", content_type="text/plain")),
    "what the reader may not do": (403, lambda it: it.rest.post("/api/policies/", {"tool": "*", "decision": "deny"})),
}  # fmt: skip


@pytest.fixture(scope="module")
def problem_schema():
    """The schema of a problem, which has no other keys than it names. To describe the API takes a third of a second."""
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    for name in ("Problem", "ProblemPlace"):
        schemas[name]["additionalProperties"] = False
    return {"$ref": "#/components/schemas/Problem", "components": {"schemas": schemas}}


@pytest.mark.one_database
@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_as_the_openapi_description_has_it(scene, problem_schema, what):
    status, ask = REFUSED[what]
    answer = ask(scene)
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    wrong = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(problem_schema).iter_errors(answer.json())]
    assert wrong == []


def test_a_line_that_is_not_known_is_left_out(scene):
    assert "line" not in scene.check(WORDS).json()["problems"][0]
    assert scene.check(json.dumps(WORDS)).json()["problems"][0]["line"] == 1


def test_operations_are_counted_alike_in_text_and_in_field(scene):
    answer = scene.edit({"add_task": noop("y")}, {"remove_task": {"task_id": "fetch"}}).json()
    (problem,) = answer["problems"]
    assert (problem["operation"], problem["op"], problem["field"]) == (2, "remove_task", "task_id")
    assert answer["detail"] == "operation 2 (remove_task), task_id: fetch has ended (COMPLETED)"
    assert "operation" not in scene.edit().json()["problems"][0]


def test_agents_are_found_by_states_that_agents_have(scene):
    for query in ({"state": "CONTINUE"}, {"state": "PENDING", "machine": "device_agent"}, {"machine": "constellation_agent"}):
        assert scene.rest.get("/api/agents/", **query).status_code == 200
    schema = scene.rest.client.get("/api/schema/", {"format": "json"}).json()
    parameters = {each["name"]: each["schema"] for each in schema["paths"]["/api/agents/"]["get"]["parameters"]}
    assert parameters["machine"]["enum"] == ["constellation_agent", "device_agent"]
    assert {"START", "CONTINUE", "CONFIRM", "FINISH"} <= set(parameters["state"]["enum"])
