"""REST and commands of constellations in other dialects."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.models import InboxItem
from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Constellation, Edit
from constellations.plan.dialects import NAMES, read_constellation
from constellations.plan.documents import MAX_JSON_BYTES
from constellations.reads import exports
from tests.agents.conftest import Rest, add_actor, make_token
from tests.constellations.api.test_api import add_constellation
from tests.constellations.planting import noop, plant

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]

DOCUMENTS = Path(__file__).parents[1] / "plan" / "dialects"
GALAXY = {
    "constellation_id": "constellation_1",
    "name": "both",
    "tasks": {
        "one": {"name": "One", "description": "Do it.", "task_data": {"actions": [{"function": "noop", "arguments": {}}]}},
        "two": {
            "name": "Two", "priority": 4,
            "task_data": {"actions": [{"function": "execute_command", "arguments": {"command": "echo 'it works'"}}]},
        },
    },
    "dependencies": {"l": {"from_task_id": "one", "to_task_id": "two", "dependency_type": "success_only"}},
}  # fmt: skip
PLAN = {
    "name": "everything",
    "tasks": [
        {"task_id": "a", "tool": "noop", "deadline": 600, "tips": ["quick"]},
        {
            "task_id": "b",
            "steps": [{"command": "echo hi", "save": "said"}, {"say": "done", "if": "said != 5"}],
            "priority": "HIGH",
        },
        {"task_id": "c", "command": ["true"]},
    ],
    "dependencies": [
        {"from": "a", "to": "b", "type": "COMPLETION_ONLY", "description": "in any case"},
        {"from": "b", "to": "c", "dependency_id": "last"},
    ],
    "replan": [{"when": {"event": "task_failed"}, "edit": [{"remove_task": {"task_id": "c"}}]}],
}


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


def words_alone() -> str:
    return (DOCUMENTS / "seed_in_words.json").read_text()


# Devices beside other problems


def test_an_import_names_every_problem_as_a_plan_does_devices_among_them(rest, device):
    plan = {
        "tasks": [{"task_id": "a", "tool": "nop", "device": "mars"}, {"task_id": "b", "tool": "noop", "device": "venus"}],
    }
    keys = ["tasks[0].device", "tasks[0].tool", "tasks[1].device"]
    imported = rest.post("/api/import/check", {"dialect": "orrery", "document": plan})
    planned = rest.post("/api/sessions/", {"plan": json.dumps(plan)})
    for answer in (imported, planned):
        assert (answer.status_code, sorted(each["key"] for each in answer.json()["problems"])) == (400, keys)
    messages = [{(each["key"], each["message"]) for each in answer.json()["problems"]} for answer in (imported, planned)]
    assert messages[0] == messages[1]


def test_a_recipe_of_a_device_that_is_not_there_is_answered_with_the_device(rest, device):
    action = {"tool": "fetch", "parameters": {"url": "x"}}
    document = {"tasks": [{"task_id": "a", "device": "m1", "tips": [], "actions": [action]}], "dependencies": []}
    answer = rest.post("/api/import/check", {"dialect": "seed", "document": document})
    found = {each["key"]: each["message"] for each in answer.json()["problems"]}
    assert found.keys() == {"tasks[0].device", "tasks[0].actions[0].tool"}
    assert found["tasks[0].device"] == f"there is no device m1; there are {device.name}"


TAKES = "execute_command takes command (a text), timeout, cwd; here is"


@pytest.mark.parametrize(
    ("arguments", "key", "message"),
    [
        ({"cmd": "ls"}, ".cmd", f"{TAKES} cmd; did you mean command?"),
        ({"command": ""}, ".command", f"{TAKES} an empty text"),
        ({"command": 5}, ".command", f"{TAKES} the number 5"),
        ({"command": ["ls", "-l"]}, ".command", f"{TAKES} a list; for an argument list call command with argv"),
        ({"command": "ls", "shell": True}, ".shell", f"{TAKES} shell; there are command, cwd, timeout"),
        ({"command": "ls", "cwd": []}, ".cwd", f"{TAKES} a list; cwd is a text, too"),
        ({"timeout": 5}, "", f"{TAKES} no command"),
        (None, "", f"{TAKES} no command"),
    ],
)
def test_a_command_of_another_program_with_wrong_arguments_is_told_what_it_takes(rest, arguments, key, message):
    action = {"function": "execute_command", "arguments": arguments}
    document = {"constellation": {"tasks": [{"task_id": "a", "name": "A", "actions": [action]}]}}
    answer = rest.post("/api/import/check", {"dialect": "galaxy", "document": document})
    (problem,) = answer.json()["problems"]
    assert (problem["key"], problem["message"]) == (f"constellation.tasks[0].actions[0].arguments{key}", message)


# Export


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("states", [0, 1])
@pytest.mark.parametrize("dialect", NAMES)
def test_what_was_carried_out_is_exported_and_imported_again_the_same(engine, device, dialect, states):
    made = engine.carry_out(PLAN)
    answer = Rest(engine.owner).get(f"/api/constellations/{made.pk}/export/", dialect=dialect, states=states)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"] == f'attachment; filename="constellation-{made.pk}.{dialect}.json"'
    again, plan = read_constellation(answer.content), read_constellation(json.dumps(PLAN))
    assert again.dialect == dialect
    assert (again.name, again.tasks, again.dependencies, again.rules) == (plan.name, plan.tasks, plan.dependencies, plan.rules)
    assert ("completed" in answer.content.decode().lower()) is bool(states)


def test_an_export_is_a_plan_of_ours_unless_asked_otherwise(rest, session):
    made, _ = add_constellation(session, name="chain")
    answer = rest.get(f"/api/constellations/{made}/export")
    assert answer.json() == {
        "name": "chain",
        "tasks": [{"task_id": f"t{n}", "name": "", "tool": "command"} for n in range(3)],
        "dependencies": [
            {"dependency_id": row.dependency_id, "from": row.upstream.task_id, "to": row.downstream.task_id, "type": row.type}
            for row in Constellation.objects.get(pk=made).dependencies.order_by("id")
        ],
    }


def test_an_export_costs_the_same_queries_however_large_the_graph(rest, session, django_assert_max_num_queries):
    made, _ = add_constellation(session, 60)
    with django_assert_max_num_queries(8):
        assert rest.get(f"/api/constellations/{made}/export/", dialect="galaxy", states=1).status_code == 200


@pytest.mark.parametrize(("query", "key"), [({"dialect": "klingon"}, "dialect"), ({"states": "2"}, "states")])
def test_an_export_that_cannot_be_is_refused_with_its_key(rest, session, query, key):
    made, _ = add_constellation(session)
    answer = rest.get(f"/api/constellations/{made}/export/", **query)
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, key)


def test_an_export_beyond_the_limit_says_what_would_be_smaller(rest, session, monkeypatch):
    monkeypatch.setattr(exports, "EXPORT_BYTES", 100)
    made, _ = add_constellation(session)
    answer = rest.get(f"/api/constellations/{made}/export/", states=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "export_too_large")
    assert answer.json()["detail"].endswith("export it without states")


def test_what_belongs_to_others_is_neither_exported_nor_asked_for(viewer, session):
    made, _ = add_constellation(session)
    assert Rest(viewer).get(f"/api/constellations/{made}/export/").status_code == 404
    assert Rest(viewer).post(f"/api/sessions/{session.pk}/import/", {"document": GALAXY}).status_code == 403


# Import


@pytest.mark.django_db(transaction=True)
def test_a_document_of_another_program_is_carried_out(engine, device, session):
    rest = Rest(engine.owner)
    answer = rest.post(f"/api/sessions/{session.pk}/import/", {"document": GALAXY, "client_id": "once"})
    assert answer.status_code == 202
    accepted = answer.json()
    assert (accepted["session"], accepted["client_id"], accepted["created"]) == (session.pk, "once", True)
    engine.run()
    made = Constellation.objects.get(interaction=accepted["interaction"])
    assert (made.name, made.state) == ("both", "COMPLETED")
    two = made.tasks.get(task_id="two")
    assert (two.arguments, two.priority, two.state) == ({"argv": ["echo", "it works"]}, 3, "COMPLETED")
    assert not Edit.objects.filter(constellation=made).exists()
    again = rest.post(f"/api/sessions/{session.pk}/import/", {"document": json.dumps(GALAXY), "client_id": "once"})
    assert (again.json()["created"], again.json()["interaction"]) == (False, accepted["interaction"])


def test_a_refused_document_leaves_nothing_behind(rest, session, migrated_dump):
    before = migrated_dump()
    answer = rest.post(f"/api/sessions/{session.pk}/import/", {"document": words_alone()})
    assert (answer.status_code, answer.json()["code"]) == (400, "plan_rejected")
    assert [each["line"] for each in answer.json()["problems"]] == [6, 7, 8, 9]
    assert migrated_dump() == before


def test_a_client_id_of_a_command_is_not_an_imports(rest, session):
    add_actor(session)
    sessions.request_submit(session.pk, "ping", "taken", {}, by="system")
    answer = rest.post(f"/api/sessions/{session.pk}/import/", {"document": GALAXY, "client_id": "taken"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_token_needs_the_scope_to_operate(operator, session):
    _, text = make_token(operator, "read")
    assert Rest(token=text).post(f"/api/sessions/{session.pk}/import/", {"document": GALAXY}).status_code == 403
    device_create("laptop", by="system")
    assert Rest(token=text).post("/api/import/check", {"document": GALAXY}).status_code == 200


# A look before


def test_a_check_shows_the_plan_and_writes_nothing(rest, session, device, migrated_dump):
    before = migrated_dump()
    answer = rest.post("/api/import/check", {"document": GALAXY})
    assert answer.status_code == 200
    assert answer.json() == {
        "dialect": "galaxy", "name": "both", "tasks": 2, "dependencies": 1,
        "plan": {
            "name": "both",
            "tasks": [
                {"task_id": "one", "name": "One", "description": "Do it.", "tool": "noop"},
                {"task_id": "two", "name": "Two", "priority": "CRITICAL", "command": ["echo", "it works"]},
            ],
            "dependencies": [{"dependency_id": "l", "from": "one", "to": "two", "type": "SUCCESS_ONLY"}],
        },
        "warnings": [],
    }  # fmt: skip
    assert migrated_dump() == before


def test_a_check_names_every_problem_with_line_and_key(rest):
    answer = rest.post("/api/import/check", {"document": (DOCUMENTS / "galaxy_prose.json").read_text(), "dialect": "galaxy"})
    assert answer.status_code == 400
    assert [(each["line"], each["key"]) for each in answer.json()["problems"]] == [
        (9, "constellation.tasks[0].target_device_id"),
        (14, "constellation.tasks[1].target_device_id"),
        (18, "constellation.tasks[2].target_device_id"),
        (24, "constellation.dependencies[0].condition_description"),
    ]


def test_a_check_finds_devices_that_are_not_there(rest, device):
    tasks = [{"task_id": "a", "target_device_id": "nowhere", "actions": [{"function": "noop"}]}]
    written = json.dumps({"constellation": {"tasks": tasks}}, indent=1)
    answer = rest.post("/api/import/check", {"document": written})
    assert (answer.status_code, answer.json()["code"]) == (400, "plan_rejected")
    assert answer.json()["problems"] == [
        {
            "line": written[: written.index("nowhere")].count("\n") + 1,
            "key": "constellation.tasks[0].target_device_id",
            "message": "there is no device nowhere; there are laptop",
        }
    ]


@pytest.mark.parametrize("address", ["/api/import/check", "/api/sessions/{}/import/"])
def test_every_device_that_is_not_there_is_named_with_its_line(rest, session, device, address):
    tasks = [
        {"task_id": "a", "target_device_id": "nowhere", "actions": [{"function": "noop"}]},
        {"task_id": "b", "target_device_id": "laptop", "actions": [{"function": "noop"}]},
        {"task_id": "c", "target_device_id": "elsewhere", "actions": [{"function": "noop"}]},
        {"task_id": "d", "device_type": "android", "actions": [{"function": "noop"}]},
    ]
    written = json.dumps({"tasks": tasks}, indent=1)
    answer = rest.post(address.format(session.pk), {"document": written})
    assert (answer.status_code, answer.json()["code"]) == (400, "plan_rejected")
    assert [(each["line"], each["key"], each["message"]) for each in answer.json()["problems"]] == [
        (line_of(written, "nowhere"), "tasks[0].target_device_id", "there is no device nowhere; there are laptop"),
        (line_of(written, "elsewhere"), "tasks[2].target_device_id", "there is no device elsewhere; there are laptop"),
        (line_of(written, "android"), "tasks[3].device_type", "no device has the type android, or any type"),
    ]


def line_of(text: str, word: str) -> int:
    return text[: text.index(word)].count("\n") + 1


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "document"),
        ({"document": None}, "document"),
        ({"document": 5}, "document"),
        ({"document": []}, "document"),
        ({"document": ""}, "document"),
        ({"document": GALAXY, "dialect": "klingon"}, "dialect"),
        ({"document": GALAXY, "session": 1}, "session"),
    ],
)
def test_a_body_that_is_none_is_refused_with_its_key(rest, body, key):
    answer = rest.post("/api/import/check", body)
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, key)


def test_a_document_larger_than_an_export_is_refused(rest):
    answer = rest.post("/api/import/check", {"document": {**GALAXY, "llm_source": "x" * MAX_JSON_BYTES}})
    assert answer.status_code == 400
    assert "10,000,000 are allowed" in answer.json()["detail"]


# Commands


@pytest.mark.django_db(transaction=True)
def test_commands_import_and_export(engine, device, session, tmp_path):
    file = tmp_path / "galaxy.json"
    file.write_text(json.dumps(GALAXY))
    out = StringIO()
    call_command("constellation_import", file, session=session.pk, stdout=out)
    engine.run()
    made = Constellation.objects.get(interaction=int(out.getvalue()))
    out = StringIO()
    call_command("constellation_export", made.pk, dialect="galaxy", states=True, stdout=out)
    assert json.loads(out.getvalue())["tasks"]["one"]["status"] == "completed"
    assert read_constellation(out.getvalue()).tasks == read_constellation(GALAXY).tasks


def test_commands_say_what_is_wrong(session, tmp_path):
    file = tmp_path / "words.json"
    file.write_text(words_alone())
    with pytest.raises(CommandError, match=r"line 9, constellation\.tasks\[3\]\.device: there is no device prod_server"):
        call_command("constellation_import", file, session=session.pk)
    with pytest.raises(CommandError, match="No such file"):
        call_command("constellation_import", tmp_path / "missing.json", session=session.pk)
    with pytest.raises(CommandError, match="there is no constellation 5"):
        call_command("constellation_export", 5)
    assert not InboxItem.objects.exists()


# What is exported can be imported


@pytest.mark.parametrize("dialect", NAMES)
def test_what_an_edit_leaves_is_exported_and_imported_again(rest, session, device, dialect):
    rule = {"when": {"event": "task_failed", "task": "x"}, "edit": [{"remove_task": {"task_id": "b"}}]}
    tied = {"from": "a", "to": "b", "type": "CONDITIONAL", "condition": "results['y'] == 1"}
    found = plant(session, *map(noop, "abxy"), dependencies=[tied])
    Constellation.objects.filter(pk=found.pk).update(
        rules=read_constellation(json.dumps({"tasks": [noop("x")], "replan": [rule]})).rules
    )
    remove = [{"op": "remove_task", "parameters": {"task_id": name}} for name in "xy"]
    edits, export = f"/api/constellations/{found.pk}/edits/", f"/api/constellations/{found.pk}/export/"
    refused = rest.post(edits, {"operations": remove})
    assert (refused.status_code, refused.json()["detail"]) == (409, "y cannot go: the condition of a>b reads its result")
    assert rest.post(edits, {"operations": remove[:1]}).status_code == 201
    document = rest.get(export, dialect=dialect).content.decode()
    answer = rest.post("/api/import/check", {"document": document, "dialect": dialect})
    assert answer.status_code == 200, answer.json()["detail"]
    assert answer.json()["plan"] == rest.get(export).json()
    assert answer.json()["plan"]["absent"] == ["x"]


@pytest.mark.attack
@pytest.mark.parametrize("dialect", NAMES)
def test_a_large_constellation_is_exported_and_imported_again(rest, session, device, dialect):
    tasks = [noop(f"task_{number}", description="x" * 400) for number in range(4_000)]
    found = plant(session, *tasks)
    answer = rest.get(f"/api/constellations/{found.pk}/export/", dialect=dialect)
    assert len(answer.content) > 1_800_000
    for document in (answer.content.decode(), answer.json()):
        checked = rest.post("/api/import/check", {"document": document, "dialect": dialect})
        assert (checked.status_code, checked.json().get("tasks")) == (200, 4_000), checked.json()["detail"]


def test_an_export_of_more_tasks_than_a_plan_has_says_so(rest, session, monkeypatch):
    monkeypatch.setattr(exports, "MAX_TASKS", 2)
    made, _ = add_constellation(session)
    answer = rest.get(f"/api/constellations/{made}/export/")
    assert answer.status_code == 409
    assert answer.json()["detail"] == (
        "a document has at most 2 tasks and 100,000 dependencies, as a plan has: more could not be imported"
    )


def test_only_a_body_with_a_document_may_be_that_large(rest, session, settings):
    body = b'{"document": "' + b" " * settings.BODY_BYTES + b'{}"}'
    assert rest.post("/api/import/check", body).status_code == 400
    assert rest.post(f"/api/sessions/{session.pk}/import/", body).status_code == 400
    assert rest.post(f"/api/sessions/{session.pk}/interactions/", body).status_code == 413
    assert rest.post("/api/import/check", b'{"document": "' + b" " * settings.IMPORT_BODY_BYTES + b'"}').status_code == 413


# Numbers


NUMBER = "1234567890" * 3


@pytest.mark.parametrize("number", [NUMBER, "9" * 400])
@pytest.mark.parametrize(
    "written",
    [
        '{"tasks": [{"task_id": "a", "tool": "noop", "arguments": {"n": %s}}]}',
        '{"tasks": [{"task_id": "a", "tool": "noop", "timeout": %s}]}',
        '{"tasks": [{"task_id": "a", "steps": [{"wait": %s}]}]}',
        '{"tasks": [{"task_id": "a", "tool": "noop"}], "replan": [{"when": {"event": "task_ended"}, '
        '"edit": [{"add_task": {"task_id": "b", "tool": "noop", "arguments": {"n": %s}}}]}]}',
        "tasks:\n  - {task_id: a, tool: noop, arguments: {n: %s}}\n",
    ],
)
def test_a_number_that_cannot_be_stored_is_refused_with_its_place(rest, session, device, written, number):
    if number == "9" * 400 and written.startswith("tasks"):
        number = "9" * 300  # the longest that YAML takes for a number
    text = written % number
    address = f"/api/sessions/{session.pk}"
    for answer in (
        rest.post("/api/import/check", {"document": text}),
        rest.post(f"{address}/import/", {"document": text}),
        rest.post(f"{address}/interactions/", {"plan": text}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, "plan_rejected")
        assert "the number is out of range" in answer.json()["detail"]
    assert not InboxItem.objects.exists()


def test_an_action_that_names_a_recipe_becomes_its_command(rest, session):
    recipes = {name: {"command": ["make", "{target}"], "parameters": {"target": {}}} for name in ("build", "noop")}
    device_create("laptop", recipes=recipes, by="system")
    actions = [{"tool": "build", "parameters": {"target": "docs"}}, {"tool": "noop"}]
    document = {"constellation": {"tasks": [{"task_id": "a", "device": "laptop", "actions": actions}]}}
    answer = rest.post("/api/import/check", {"document": document, "dialect": "seed"})
    assert answer.status_code == 200, answer.content
    assert answer.json()["plan"]["tasks"][0]["steps"] == [{"command": ["make", "docs"]}, {"tool": "noop"}]
