"""The plan of a request: what it is read into, that it is read once, and what is built where somebody has touched it."""

import json
from pathlib import Path

import pytest
from django.utils import timezone

from agents.models import InboxItem, Runner, Session
from agents.reads.confinement import only_admins_may
from agents.services.devices import device_create
from agents.streams.statements import json_text
from agents.tools import confining
from constellations.editor import editor
from constellations.graph import Graph
from constellations.models import Constellation, NormalForm
from constellations.plan import plan as plan_reader
from constellations.plan.condensed import condense_plan, expand_plan
from constellations.plan.plan import parse_plan
from constellations.reads.devices import known_devices
from constellations.services import plans
from constellations.services.plans import check_plan, kept_plan, read_plan
from tests.agents.conftest import Rest
from tests.constellations.planting import graph_of, noop

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
DEVICES = ("laptop", "gpu_server", "test_server", "prod_server")
"""Those that the examples name."""
EMPTY = editor.Snapshot(version=1, state="CREATED", tasks={}, dependencies={}, graph=Graph())
COMMAND = {"task_id": "c", "device": "laptop", "command": ["true"]}
CHAIN = {"tasks": [noop("a"), noop("b", after=["a"]), {**COMMAND, "after": ["b"]}]}


def built_by_an_edit(plan):
    parameters = {"tasks": plan.tasks, "dependencies": plan.dependencies}
    return editor.apply_operations(EMPTY, [{"op": "build_constellation", "parameters": parameters}], known_devices())


@pytest.mark.django_db
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_plan_builds_what_an_edit_with_its_tasks_would(example):
    for name in DEVICES:
        device_create(name, capabilities=["evaluate"], by="system")
    plan = read_plan({"plan": example.read_text()})
    edited = built_by_an_edit(plan)
    assert plan.tasks == edited.added_tasks
    assert plan.dependencies == edited.added_dependencies


@pytest.mark.django_db
def test_a_request_in_words_builds_what_an_edit_with_its_tasks_would():
    device_create("d", by="system")
    plan = read_plan({"request": "`make` on d, `make test` on d if exit_code == 0"})
    edited = built_by_an_edit(plan)
    assert len(plan.tasks) == 2
    assert plan.tasks == edited.added_tasks
    assert plan.dependencies == edited.added_dependencies


IN_STEPS = """
name: Names, numbers and Ümläute
tasks:
  - {task_id: a, command: [echo, "1.0", "ü"], timeout: 1.5, priority: HIGH, labels: [x], max_attempts: 3, deadline: 1e3}
  - task_id: b
    confirm: true
    policies: [{decision: ask, tool: command}]
    phases: [{description: One, steps: [{say: x}, {command: [ls]}, {ask: Go on?, options: [yes, no]}]}]
dependencies: [{from: a, to: b, type: CONDITIONAL, condition: "exit_code == 0", description: Only then}]
replan: [{when: {event: task_completed, task: b}, edit: [{add_task: {task_id: d, tool: noop, after: [b]}}]}]
"""


@pytest.mark.parametrize("text", [IN_STEPS, *(path.read_text() for path in EXAMPLES)])
def test_what_is_written_down_of_a_plan_gives_the_same_plan(text):
    plan = parse_plan(text)
    assert expand_plan(json.loads(json_text(condense_plan(plan)))) == plan


@pytest.fixture
def tasks_read(monkeypatch):
    """The ids of tasks as often as they are read."""
    read, seen = plan_reader.read_task, []

    def counted(value, in_words=False):
        seen.append(value["task_id"])
        return read(value, in_words)

    monkeypatch.setattr(plan_reader, "read_task", counted)
    return seen


def say_no_walls_are_up() -> None:
    """As a runner tells the web server."""
    now = timezone.now()
    told = {"started_at": now, "renewed_at": now, "confinement": confining.confinement_text()}
    Runner.objects.create(host="here", pid=1, pid_start=1, files="/", **told)


@pytest.mark.parametrize("only_admins", [False, True], ids=["everybody", "admins only"])
@pytest.mark.usefixtures("device", "verified")
def test_from_the_post_to_the_first_body_each_task_is_read_once(only_admins, admin_user, engine, settings, tasks_read):
    """Also where no walls are up, and it has to be known whether the plan runs commands."""
    if only_admins:
        settings.UNCONFINED_COMMANDS = False
        say_no_walls_are_up()
    assert only_admins_may() == only_admins
    answer = Rest(admin_user).post("/api/sessions/", {"title": "first", "plan": json.dumps(CHAIN)})
    assert answer.status_code == 201, answer.content
    session = Session.objects.get()
    again = Rest(admin_user).post(f"/api/sessions/{session.pk}/interactions/", {"plan": json.dumps({"tasks": [noop("d")]})})
    assert again.status_code == 202, again.content
    assert tasks_read == ["a", "b", "c", "d"]
    settings.UNCONFINED_COMMANDS = True
    engine.run()
    assert [row.state for row in Constellation.objects.order_by("id")] == ["COMPLETED", "COMPLETED"]
    assert tasks_read == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("device")
def test_a_request_in_words_is_read_once(engine, operator, monkeypatch):
    read, seen = plans.text.parse_text, []

    def counted(request, recipes):
        seen.append(request)
        return read(request, recipes)

    monkeypatch.setattr(plans.text, "parse_text", counted)
    Rest(operator).post("/api/sessions/", {"title": "words", "request": "`true` on laptop"})
    engine.run()
    assert (Constellation.objects.get().state, seen) == ("COMPLETED", ["`true` on laptop"])


def change_form(row: NormalForm) -> None:
    row.form = row.form.replace('"a"', '"evil"')


def break_form(row: NormalForm) -> None:
    row.form = "no JSON at all"


def change_seal(row: NormalForm) -> None:
    row.seal = "0" * 64


def take_another(row: NormalForm) -> None:
    """The form and the seal of another request."""
    other = NormalForm.objects.exclude(pk=row.pk).get()
    row.form, row.seal = other.form, other.seal


@pytest.mark.usefixtures("device", "verified")
@pytest.mark.parametrize("tamper", [change_form, break_form, change_seal, take_another])
def test_what_somebody_has_changed_is_read_again(tamper, engine, tasks_read):
    engine.carry_out({"tasks": [noop("other")]})
    _, item = engine.submit(CHAIN)
    row = NormalForm.objects.get(pk=item.pk)
    tamper(row)
    row.save()
    tasks_read.clear()
    engine.run()
    built = Constellation.objects.get(interaction=item)
    assert (built.state, set(graph_of(built)["tasks"])) == ("COMPLETED", {"a", "b", "c"})
    assert tasks_read == ["a", "b", "c"]


@pytest.mark.usefixtures("device")
def test_a_request_of_a_release_that_wrote_no_form_is_read(engine, tasks_read):
    _, item = engine.submit(CHAIN)
    NormalForm.objects.all().delete()
    engine.run()
    assert Constellation.objects.get(interaction=item).state == "COMPLETED"
    assert tasks_read == ["a", "b", "c"] * 2


@pytest.mark.usefixtures("device")
def test_what_other_code_has_read_is_read_again(engine, monkeypatch, tasks_read):
    _, item = engine.submit(CHAIN)
    assert kept_plan(item.pk, item.payload) == read_plan(item.payload)
    monkeypatch.setattr(plans, "READER", b"a release later")
    assert kept_plan(item.pk, item.payload) is None
    tasks_read.clear()
    engine.run()
    assert (Constellation.objects.get().state, tasks_read) == ("COMPLETED", ["a", "b", "c"])


@pytest.mark.usefixtures("device")
def test_a_payload_that_somebody_has_changed_is_what_is_built(engine):
    _, item = engine.submit(CHAIN)
    payload = {"plan": json.dumps({"tasks": [noop("z")]})}
    assert kept_plan(item.pk, payload) is None
    assert [task["task_id"] for task in kept_plan(item.pk, item.payload).tasks] == ["a", "b", "c"]


@pytest.mark.usefixtures("device", "verified")
def test_a_form_that_makes_no_sense_under_a_good_seal_fails_its_interaction_alone(engine, monkeypatch):
    monkeypatch.setattr(plans, "condense_plan", lambda plan: {"tasks": 7})
    session, item = engine.submit(CHAIN)
    monkeypatch.undo()
    _, after = engine.submit({"tasks": [noop("z")]}, session)
    engine.run()
    outcomes = dict(InboxItem.objects.filter(kind="interaction").values_list("pk", "outcome"))
    assert outcomes == {item.pk: "failed", after.pk: "completed"}


@pytest.mark.usefixtures("device")
def test_a_request_that_is_refused_leaves_no_form(operator):
    answer = Rest(operator).post("/api/sessions/", {"title": "bad", "plan": json.dumps({"tasks": [noop("a"), noop("a")]})})
    assert answer.status_code == 400
    assert not NormalForm.objects.exists()


@pytest.mark.django_db
def test_what_a_rule_may_add_counts_as_a_command():
    rule = {"when": {"event": "task_completed"}, "edit": [{"add_task": {"task_id": "x", "command": ["true"]}}]}
    plain, ruled = ({"plan": json.dumps({"tasks": [noop("a")], **more})} for more in ({}, {"replan": [rule]}))
    assert not check_plan(plain).runs_commands()
    assert check_plan(ruled).runs_commands()
