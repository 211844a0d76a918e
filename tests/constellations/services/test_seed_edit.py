"""The seeds' edit - retrain, and no deployment - made in every way there is: the history says the same, but for who and why.

Seeds: constellation-agent-overview, "Editing Mode Output". There a language model carries task_005 out by its description;
here it says what it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from django.contrib.auth.models import User

from agents.models import Event, Token
from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Constellation, Edit
from constellations.plan.tasks import DEPENDENCY_DEFAULTS, TASK_DEFAULTS
from tests.agents.conftest import Rest, make_token
from tests.conftest import Engine
from tests.constellations.admin.admin_client import Staff, added, row_of
from tests.constellations.mcp.test_tools import Program
from tests.constellations.planting import advance, noop, plant, states
from tests.constellations.runs.test_run import in_thread, inbox_rests, query

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

DEVICES = ("laptop", "gpu_server", "test_server", "prod_server")
TASKS = [
    noop("task_001", name="download_mnist", device="laptop"),
    noop("task_002", name="train_cnn", device="gpu_server"),
    noop("task_003", name="evaluate", device="test_server", arguments={"result": {"accuracy": 0.92}}),
    noop("task_004", name="deploy", device="prod_server"),
]
DEPENDENCIES = [
    {"from": "task_001", "to": "task_002", "type": "SUCCESS_ONLY"},
    {"from": "task_002", "to": "task_003", "type": "SUCCESS_ONLY"},
    {"from": "task_003", "to": "task_004", "type": "CONDITIONAL", "condition": "accuracy > 0.95"},
]
RETRAINING = {
    "task_id": "task_005",
    "name": "retrain_with_tuning",
    "device": "gpu_server",
    "description": "Retrain with learning rate decay and data augmentation",
    "tool": "noop",
}
OPERATIONS = [
    {"op": "add_task", "parameters": RETRAINING},
    {"op": "add_dependency", "parameters": {"from": "task_003", "to": "task_005", "type": "SUCCESS_ONLY"}},
    {"op": "remove_task", "parameters": {"task_id": "task_004"}},
]
EVALUATION = """sleep 0.3; echo '{"accuracy": 0.92}'"""
REASON = "Evaluation accuracy (92%) did not meet deployment threshold (95%)."

ADDED = {key: value for key, value in RETRAINING.items() if key != "device"} | {"wanted_device": "gpu_server"}
DEPLOYMENT = {"task_id": "task_004", "name": "deploy", "wanted_device": "prod_server", "tool": "noop"}
TIE = {"dependency_id": "task_003>task_005", "from": "task_003", "to": "task_005"}
OLD_TIE = {"dependency_id": "task_003>task_004", **DEPENDENCIES[2]}
HISTORY = {
    "operations": OPERATIONS,
    "before": {
        "tasks": {"task_005": None, "task_004": {**TASK_DEFAULTS, **DEPLOYMENT}},
        "dependencies": {"task_003>task_005": None, "task_003>task_004": {**DEPENDENCY_DEFAULTS, **OLD_TIE}},
    },
    "after": {
        "tasks": {"task_005": {**TASK_DEFAULTS, **ADDED}, "task_004": None},
        "dependencies": {"task_003>task_005": {**DEPENDENCY_DEFAULTS, **TIE}, "task_003>task_004": None},
    },
    "diff": [
        {"change": "added", "task": "task_005"},
        {"change": "removed", "task": "task_004"},
        {"change": "added", "dependency": "task_003>task_005", "from": "task_003", "to": "task_005"},
        {"change": "removed", "dependency": "task_003>task_004", "from": "task_003", "to": "task_004"},
    ],
    "based_on": 1,
    "version": 2,
    "undoes_id": None,
}
"""What a row of the history says, but for its ids, author, reason and time."""


@dataclass
class Scene:
    """An operator, the seeds' devices, and an engine."""

    operator: User
    engine: Engine

    def evaluated(self) -> Constellation:
        """The seeds' constellation when task_003 is COMPLETED, and task_004 therefore skipped."""
        session = sessions.session_create(self.operator, "mnist", by="system")
        made = plant(session, *TASKS, dependencies=DEPENDENCIES)
        advance(made, task_001="COMPLETED", task_002="COMPLETED", task_003="COMPLETED", task_004="SKIPPED")
        return made


@pytest.fixture
def scene(operator, engine) -> Scene:
    for name in DEVICES:
        device_create(name, by="system")
    return Scene(operator, engine)


# The ways. Each makes the edit of a constellation in which task_003 is COMPLETED, and returns its row.


def by_rest(scene: Scene) -> Edit:
    return posted(scene, scene.evaluated())


def by_actions(scene: Scene, tool: str = "tool", parameters: str = "parameters") -> Edit:
    """As the seeds' agent writes what it does."""
    actions = [{tool: each["op"], parameters: each["parameters"]} for each in OPERATIONS]
    return posted(scene, scene.evaluated(), actions)


def by_functions(scene: Scene) -> Edit:
    return by_actions(scene, "function", "arguments")


def posted(scene: Scene, constellation: Constellation, operations: list[dict] = OPERATIONS) -> Edit:
    body = {"operations": operations, "reason": REASON, "based_on": 1}
    answer = Rest(scene.operator).post(f"/api/constellations/{constellation.pk}/edits/", body)
    assert answer.status_code == 201, answer.content
    return Edit.objects.get(pk=answer.json()["edit"]["id"])


def by_planner(scene: Scene) -> Edit:
    when = {"event": "task_completed", "task": "task_003", "condition": "accuracy <= 0.95"}
    rule = {"name": "retrain", "when": when, "reason": REASON, "edit": OPERATIONS}
    made = scene.engine.carry_out({"tasks": TASKS, "dependencies": DEPENDENCIES, "replan": [rule]})
    assert states(made) == dict.fromkeys(("task_001", "task_002", "task_003", "task_005"), "COMPLETED")
    return Edit.objects.get(constellation=made)


def by_mcp(scene: Scene) -> Edit:
    """The SDK's own client."""
    made, program = scene.evaluated(), Program(token_of(scene))
    answer = program("apply_edit", constellation_id=made.pk, operations=OPERATIONS, reason=REASON, based_on=1)
    return Edit.objects.get(pk=answer["edit"])


def token_of(scene: Scene) -> tuple[Token, str]:
    return make_token(scene.operator, "read", "edit", name="agent")


def by_admin(scene: Scene) -> Edit:
    """One save of the constellation's page."""
    made, staff = scene.evaluated(), Staff(scene.operator)
    values = added(staff.form(made), "tasks", **RETRAINING)
    values = added(values, "dependencies", upstream="task_003", downstream="task_005")
    values[f"{row_of(values, 'task_004')}-DELETE"] = "on"
    staff.told(staff.save(made, values, reason=REASON))
    return Edit.objects.get()


def user_of(scene: Scene) -> str:
    return f"user:{scene.operator.pk}"


WAYS: dict[str, tuple[Callable[[Scene], Edit], Callable[[Scene], str]]] = {
    "REST": (by_rest, user_of),
    "actions": (by_actions, user_of),
    "functions": (by_functions, user_of),
    "MCP": (by_mcp, lambda scene: f"token:{Token.objects.get().token_key}"),
    "admin": (by_admin, user_of),
    "planner": (by_planner, lambda scene: "planner"),
}
"""A way to make the edit, and whom the history names as its author then."""


@pytest.mark.parametrize("way", WAYS)
def test_the_history_of_the_seeds_edit_is_the_same_whoever_makes_it(scene, way):
    make, author = WAYS[way]
    edit = make(scene)
    assert history_of(edit) == in_any_order(HISTORY)
    if way != "admin":  # whose forms have no order of their own: what goes makes room for what comes
        assert {key: getattr(edit, key) for key in HISTORY} == HISTORY
    assert (edit.author, edit.reason) == (author(scene), REASON)
    edit.constellation.refresh_from_db()
    assert edit.constellation.version == 2
    told = Event.objects.get(type="edited", data__has_key="diff")
    assert (told.data["author"], told.data["reason"], told.data["diff"]) == (edit.author, REASON, edit.diff)


def history_of(edit: Edit) -> dict:
    return in_any_order({key: getattr(edit, key) for key in HISTORY})


def in_any_order(history: dict) -> dict:
    lists = {key: sorted(history[key], key=partial(json.dumps, sort_keys=True)) for key in ("operations", "diff")}
    return {**history, **lists}


def test_the_seeds_edit_makes_the_retraining_ready(scene):
    edit = posted(scene, scene.evaluated())
    assert states(edit.constellation) == {
        "task_001": "COMPLETED", "task_002": "COMPLETED", "task_003": "COMPLETED", "task_005": "PENDING",
    }  # fmt: skip


def test_the_seeds_edit_may_be_made_while_the_evaluation_runs(scene):
    evaluating = {**TASKS[2], "tool": "command", "arguments": {"argv": ["sh", "-c", EVALUATION]}}
    scene.engine.submit({"tasks": [*TASKS[:2], evaluating, TASKS[3]], "dependencies": DEPENDENCIES})
    made: list[Edit] = []

    def edit_when_it_runs() -> bool:
        if not made and query("SELECT count(*) FROM constellations_task WHERE task_id = 'task_003' AND state = 'RUNNING'"):
            in_thread(lambda: made.append(posted(scene, Constellation.objects.get())))
        return bool(made) and inbox_rests()

    scene.engine.run(until=edit_when_it_runs)
    (edit,) = made
    assert {key: getattr(edit, key) for key in HISTORY} == HISTORY
    assert states(edit.constellation) == dict.fromkeys(("task_001", "task_002", "task_003", "task_005"), "COMPLETED")
