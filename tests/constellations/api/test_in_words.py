"""Tasks in words alone: an import keeps them as drafts that cannot start until somebody says what they do."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import reverse

from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Attempt, Constellation
from tests.agents.conftest import Rest
from tests.conftest import connected
from tests.constellations.admin.admin_client import Staff, row_of
from tests.constellations.planting import noop, states
from tests.constellations.runs.attempts.test_crews_edges import GIVEN_BACK, found
from tests.constellations.runs.test_run import query

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

DOCUMENTS = Path(__file__).parents[1] / "plan" / "dialects"
DEVICES = ("laptop", "gpu_server", "test_server", "prod_server")
TASKS = ("task_001", "task_002", "task_003", "task_004")
NEEDS = "needs a model or a command"
EVALUATED = """echo '{"accuracy": 0.99}'"""
COMMANDS = [
    {"update_task": {"task_id": task_id, "command": ["sh", "-c", EVALUATED] if task_id == "task_003" else ["true"]}}
    for task_id in TASKS
]
"""What the seeds' four tasks do."""


def rests() -> bool:
    """Nothing waits to be begun, and no runner holds the session."""
    return query("SELECT count(*) FROM agents_inboxitem WHERE state = 'queued'") == 0 and GIVEN_BACK()


class Scene:
    """An operator, a session, the seeds' devices and an engine."""

    def __init__(self, engine):
        for name in DEVICES:
            connected(device_create(name, by="system"))
        self.engine, self.rest = engine, Rest(engine.owner)
        self.session = sessions.session_create(engine.owner, "mnist", by="system")

    def imported(self, document, dialect: str = "") -> Constellation:
        """What became of a document when nothing in its session goes on by itself any more."""
        body = {"document": document, **({"dialect": dialect} if dialect else {})}
        self.session = sessions.session_create(self.engine.owner, "mnist", by="system")  # a draft is not done with its own
        answer = self.rest.post(f"/api/sessions/{self.session.pk}/import/", body)
        assert answer.status_code == 202, answer.content
        self.engine.run(until=rests)
        return Constellation.objects.get(interaction=answer.json()["interaction"])

    def edit(self, constellation: Constellation, *operations: dict, status: int = 201) -> dict:
        answer = self.rest.post(f"/api/constellations/{constellation.pk}/edits/", {"operations": operations})
        assert answer.status_code == status, answer.content
        return answer.json()

    def why(self, constellation: Constellation, task_id: str) -> dict:
        task = constellation.tasks.get(task_id=task_id)
        return self.rest.get(f"/api/tasks/{task.pk}/why/").json()


@pytest.fixture
def scene(engine) -> Scene:
    return Scene(engine)


def seeds_document() -> str:
    return (DOCUMENTS / "seed_in_words.json").read_text()


def in_words(*task_ids: str) -> dict:
    """An answer of the seeds' agent with independent tasks in words alone."""
    return {"constellation": {"tasks": [word_task(task_id) for task_id in task_ids]}}


def word_task(task_id: str) -> dict:
    return {"task_id": task_id, "name": task_id, "device": "laptop"}


def test_the_seeds_document_in_words_becomes_a_draft_that_waits_and_holds_no_worker(scene):
    made = scene.imported(seeds_document(), "seed")
    assert made.state == "EXECUTING"
    assert states(made) == {"task_001": "PENDING", **dict.fromkeys(TASKS[1:], "WAITING_DEPENDENCY")}
    assert set(made.tasks.values_list("tool", flat=True)) == {""}
    told = scene.why(made, "task_001")
    assert told["kind"] == "in_words"
    assert told["text"].startswith(NEEDS)
    waiting = scene.why(made, "task_002")
    assert waiting["kind"] == "dependency"
    assert waiting["text"].startswith(f"waits for task_001 (PENDING); then it {NEEDS}; besides, no runner lives")
    assert not Attempt.objects.exists()


def test_an_import_tells_what_will_not_start(scene, tmp_path):
    answer = scene.rest.post(f"/api/sessions/{scene.session.pk}/import/", {"document": seeds_document()}).json()
    assert [each["message"].partition(":")[0] for each in answer["warnings"]] == [f"{task_id} {NEEDS}" for task_id in TASKS]
    file, out, told = tmp_path / "answer.json", StringIO(), StringIO()
    file.write_text(seeds_document())
    call_command("constellation_import", file, session=scene.session.pk, stdout=out, stderr=told)
    assert told.getvalue().splitlines()[0].startswith(f"line 6, constellation.tasks[0]: task_001 {NEEDS}")


def test_an_import_tells_which_rules_copy_what_is_in_words_alone(scene):
    def rule(name: str, **added) -> dict:
        return {"name": name, "when": {"event": "task_failed", "task": "b"}, "edit": [{"add_task": added}]}

    rules = [
        rule("again", task_id="c", copy="a"), rule("done", task_id="d", copy="a", command=["true"]),
        rule("other", task_id="e", copy="b"), rule("filled", task_id="{task}_2", copy="{task}"),
    ]  # fmt: skip
    document = {"tasks": [{"task_id": "a", "tool": ""}, noop("b")], "replan": rules}
    for path in (f"/api/sessions/{scene.session.pk}/import/", "/api/import/check"):
        warnings = scene.rest.post(path, {"document": document, "dialect": "orrery"}).json()["warnings"]
        assert [each["key"] for each in warnings] == ["tasks[0]", "replan[0].edit[0].add_task.copy"]
        assert warnings[1]["message"] == (
            "the rule again copies a, which is in words alone: its edit is refused as long as that is so; give a or the copy a "
            "command"
        )


def test_tasks_in_words_start_when_an_edit_says_what_they_do(scene):
    made = scene.imported(seeds_document())
    scene.edit(made, COMMANDS[0])
    scene.engine.run(
        until=lambda: found("constellations_task", "task_id = 'task_001' AND state = 'COMPLETED'")() and GIVEN_BACK()
    )
    assert states(made) == {"task_001": "COMPLETED", "task_002": "PENDING", **dict.fromkeys(TASKS[2:], "WAITING_DEPENDENCY")}
    scene.edit(made, *COMMANDS[1:])
    scene.engine.run()
    made.refresh_from_db()
    assert made.state == "COMPLETED"
    assert states(made) == dict.fromkeys(TASKS, "COMPLETED")


def test_an_edit_while_its_session_is_owned_starts_it(scene):
    made = scene.imported({"tasks": [word_task("a"), {"task_id": "b", "actions": [{"tool": "noop"}]}]}, "seed")
    assert states(made) == {"a": "PENDING", "b": "COMPLETED"}
    scene.edit(made, {"update_task": {"task_id": "a", "tool": "noop"}})
    scene.engine.run()
    made.refresh_from_db()
    assert (made.state, states(made)) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED"})


def test_an_undo_takes_a_command_away_again_and_the_task_waits(scene):
    made = scene.imported(in_words("a"))
    edit = scene.edit(made, {"update_task": {"task_id": "a", "command": ["true"]}})["edit"]["edit_id"]
    assert scene.rest.post(f"/api/constellations/{made.pk}/edits/{edit}/undo/").status_code == 201
    scene.engine.run(until=rests)
    assert (made.tasks.get().tool, states(made)) == ("", {"a": "PENDING"})
    removal = scene.edit(made, {"add_task": noop("b")}, {"remove_task": {"task_id": "a"}})["edit"]["edit_id"]
    assert scene.rest.post(f"/api/constellations/{made.pk}/edits/{removal}/undo/").status_code == 201
    assert (made.tasks.get().task_id, made.tasks.get().tool) == ("a", "")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"add_task": {"task_id": "b", "tool": ""}}, "a task needs a command, a tool or steps"),
        ({"add_task": {"task_id": "b"}}, "a task needs a command, a tool or steps"),
        ({"update_task": {"task_id": "c", "tool": ""}}, "a task needs a command, a tool or steps"),
        ({"update_task": {"task_id": "a", "arguments": {"x": 1}}}, "a is in words alone, and has no arguments"),
        ({"build_constellation": {"tasks": [{"task_id": "b", "tool": ""}], "clear": False}}, "a task needs a command"),
    ],
)
def test_an_edit_makes_no_task_in_words(scene, operation, message):
    document = {"tasks": [word_task("a"), {"task_id": "c", "device": "laptop", "actions": [{"tool": "noop"}]}]}
    document["dependencies"] = [{"from": "a", "to": "c"}]
    made = scene.imported(document, "seed")
    assert message in scene.edit(made, operation, status=400)["detail"]


def test_what_is_in_words_may_change_otherwise_and_be_listed_as_it_is(scene):
    made = scene.imported(in_words("a", "b"))
    scene.edit(made, {"update_task": {"task_id": "a", "priority": "HIGH", "description": "Soon."}})
    listed = [{"task_id": name, "device": "laptop", "tool": "", "priority": "HIGH", "description": "Soon."} for name in "ab"]
    scene.edit(made, {"build_constellation": {"tasks": [*listed, noop("c", after=["a"])]}})
    assert dict(made.tasks.values_list("task_id", "tool")) == {"a": "", "b": "", "c": "noop"}


@pytest.mark.parametrize("plan", [{"task_id": "a"}, {"task_id": "a", "tool": ""}, {"task_id": "a", "description": "Do it."}])
def test_a_plan_in_words_stays_an_error(scene, plan):
    answer = scene.rest.post(f"/api/sessions/{scene.session.pk}/interactions/", {"plan": json.dumps({"tasks": [plan]})})
    assert answer.status_code == 400
    rule = {"when": {"event": "task_ended"}, "edit": [{"add_task": {**plan, "task_id": "b"}}]}
    ruled = json.dumps({"tasks": [noop("a")], "replan": [rule]})
    assert scene.rest.post(f"/api/sessions/{scene.session.pk}/interactions/", {"plan": ruled}).status_code == 400
    assert scene.rest.post(f"/api/sessions/{scene.session.pk}/import/", {"document": ruled}).status_code == 400


@pytest.mark.parametrize("dialect", ["orrery", "seed", "galaxy"])
def test_what_is_in_words_is_exported_and_imported_again_the_same(scene, dialect):
    made = scene.imported(seeds_document())
    export = f"/api/constellations/{made.pk}/export/"
    document = scene.rest.get(export, dialect=dialect).content.decode()
    again = scene.imported(document, dialect)
    assert states(again) == states(made)
    assert scene.rest.get(f"/api/constellations/{again.pk}/export/").json() == scene.rest.get(export).json()


def test_a_fork_keeps_what_is_in_words(scene):
    made = scene.imported(in_words("a"))
    answer = scene.rest.post(f"/api/constellations/{made.pk}/fork/", {})
    assert answer.status_code == 201, answer.content
    scene.engine.run(until=rests)
    fork = Constellation.objects.get(interaction=answer.json()["interaction"])
    assert (fork.state, states(fork), fork.tasks.get().tool) == ("EXECUTING", {"a": "PENDING"}, "")


def test_a_restart_reads_the_document_again(scene):
    made = scene.imported(in_words("a"))
    assert scene.rest.post(f"/api/constellations/{made.pk}/commands/", {"kind": "restart"}).status_code == 202
    scene.engine.run(until=lambda: found("constellations_constellation", "replaces_id IS NOT NULL")() and GIVEN_BACK())
    again = Constellation.objects.get(replaces=made)
    assert (again.state, states(again)) == ("EXECUTING", {"a": "PENDING"})


def test_it_is_paused_resumed_and_cancelled_as_any_other(scene):
    made = scene.imported(in_words("a"))
    address = f"/api/constellations/{made.pk}/commands/"
    assert scene.rest.post(address, {"kind": "pause"}).json()["state"] == "PAUSED"
    assert scene.rest.post(address, {"kind": "resume"}).json()["state"] == "EXECUTING"
    scene.engine.run(until=rests)
    assert states(made) == {"a": "PENDING"}
    assert scene.rest.post(address, {"kind": "cancel", "reason": "enough"}).status_code == 202
    scene.engine.run()
    made.refresh_from_db()
    assert (made.state, states(made)) == ("CANCELLED", {"a": "CANCELLED"})


def test_a_deadline_ends_it_and_a_retry_lets_it_wait_again(scene):
    document = in_words("a")
    document["constellation"]["tasks"][0]["orrery"] = {"deadline": 0.1}
    made = scene.imported(document)
    scene.engine.run()
    assert made.tasks.get().ended_at is not None
    assert scene.rest.post(f"/api/constellations/{made.pk}/retry/", {"tasks": ["a"]}).status_code == 202
    scene.engine.run(until=rests)
    made.refresh_from_db()
    assert (made.state, states(made), made.tasks.get().tool) == ("EXECUTING", {"a": "PENDING"}, "")


def test_the_admin_gives_it_a_command(scene):
    made, staff = scene.imported(in_words("a")), Staff(scene.engine.owner)
    values = staff.form(made)
    staff.told(staff.save(made, values | {f"{row_of(values, 'a')}-priority": "2"}, reason="sooner"))
    task = made.tasks.get()
    assert (task.priority, task.tool) == (2, "")
    values = staff.form(made)
    staff.told(staff.save(made, values | {f"{row_of(values, 'a')}-command": "true"}, reason="at last"))
    scene.engine.run()
    assert states(made) == {"a": "COMPLETED"}


def test_statistics_previews_and_pages_bear_it(scene):
    made = scene.imported(seeds_document())
    figures = scene.rest.get(f"/api/constellations/{made.pk}/statistics/").json()
    assert figures["critical_path"] == list(TASKS)
    operations = [COMMANDS[0], {"remove_task": {"task_id": "task_004"}}]
    seen = scene.rest.post(f"/api/constellations/{made.pk}/preview/", {"operations": operations}).json()
    assert seen["consequences"]["critical_path_after"] == list(TASKS[:3])
    task = made.tasks.get(task_id="task_001")
    assert scene.rest.get(f"/api/tasks/{task.pk}/").json()["tool"] == ""
    assert scene.rest.client.get(reverse("frontend:session", args=(scene.session.pk,))).status_code == 200


def test_a_check_names_what_is_in_words(scene):
    answer = scene.rest.post("/api/import/check", {"document": seeds_document()}).json()
    assert answer["plan"]["tasks"][0] == {"task_id": "task_001", "name": "download_mnist", "device": "laptop", "tool": ""}
    assert [(each["line"], each["key"]) for each in answer["warnings"]] == [
        (line, f"constellation.tasks[{line - 6}]") for line in (6, 7, 8, 9)
    ]
    assert (
        answer["warnings"][0]["message"]
        == f"task_001 {NEEDS}: it is in words alone, and cannot start before an edit gives it one"
    )
