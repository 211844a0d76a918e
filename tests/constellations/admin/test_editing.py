"""The admin's editor: one save is one edit, recorded, or a refusal where it belongs, with what was typed."""

import json
import re

import pytest

from agents.models import Event, Session
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.verify import verify_database
from constellations.models import Constellation, Dependency, Edit, Task
from constellations.plan.fitting import NO_MIND
from constellations.plan.keys.calls import NEEDS_DOING
from constellations.services.edits import edit_apply
from tests.conftest import person, rows_of
from tests.constellations.admin.admin_client import Staff, added, address, problems, row_of
from tests.constellations.planting import advance, graph_of, noop, plant, states

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]
NO_JSON = "This is no JSON: expecting property name enclosed in double quotes, line 1, column 2."
NO_WORK = f"{NEEDS_DOING}, and {NO_MIND}"


@pytest.fixture
def session(operator) -> Session:
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def laptop():
    return device_create("laptop", by="system")


@pytest.fixture
def staff(operator) -> Staff:
    return Staff(operator)


@pytest.fixture
def seed(session, laptop) -> Constellation:
    """The seeds' example: task_001 > task_002 > task_003 > task_004, of which the first two are done."""
    made = plant(
        session,
        {"task_id": "task_001", "command": ["make", "build"]},
        noop("task_002", after=["task_001"]),
        {"task_id": "task_003", "command": ["make", "it well"], "after": ["task_002"], "timeout": 60, "tips": ["a", "b"]},
        noop("task_004", after=["task_003"]),
    )
    advance(made, task_001="COMPLETED", task_002="COMPLETED")
    return made


def task(constellation, task_id) -> Task:
    return constellation.tasks.get(task_id=task_id)


def line(constellation, name) -> Dependency:
    return constellation.dependencies.get(dependency_id=name)


def edit(constellation, *operations):
    return edit_apply(constellation.pk, [{"op": op, "parameters": said} for op, said in operations], author="user:999")


# One save, one edit


def test_the_seeds_edit_is_one_save(staff, seed):
    values = added(staff.form(seed), "tasks", task_id="task_005", command="make 'the rest'", timeout="30")
    values = added(values, "dependencies", upstream="task_003", downstream="task_005")
    values[f"{row_of(values, 'task_004')}-DELETE"] = "on"
    told = staff.told(staff.save(seed, values, reason="as the seed has it"))
    made = Edit.objects.get()
    assert told == [
        "Saved as version 2: removed task task_004, added task task_005, removed dependency task_003>task_004, "
        "added dependency task_003>task_005."
    ]
    assert (made.author, made.reason, made.based_on, made.version) == (f"user:{staff.user.pk}", "as the seed has it", 1, 2)
    assert set(states(seed)) == {"task_001", "task_002", "task_003", "task_005"}
    assert task(seed, "task_005").arguments == {"argv": ["make", "the rest"]}
    assert task(seed, "task_005").timeout == 30.0
    assert Event.objects.filter(type="edited", data__has_key="author").count() == 1
    assert list(verify_database()) == []


def test_a_page_that_is_sent_back_as_it_was_makes_no_edit(staff, seed):
    edit(
        seed,
        ("update_task", {"task_id": "task_003", "description": " two\r\nlines\n", "arguments": {"argv": ["cd", "a b", ""]}}),
    )
    for row in (seed, task(seed, "task_003"), line(seed, "task_003>task_004")):
        told = staff.told(staff.save(row, staff.form(row)))
        assert told == ["Nothing was to be changed, so nothing was saved."]
    assert Edit.objects.count() == 1


def test_only_what_may_still_change_is_offered(staff, seed):
    advance(seed, task_004="SKIPPED")
    sheet = staff.page(seed).context["sheet"]
    assert list(sheet.shown.tasks) == ["task_003", "task_004"]
    assert list(sheet.shown.dependencies) == ["task_002>task_003", "task_003>task_004"]
    for name, offered in (("task_001", False), ("task_003", True), ("task_004", True)):
        assert (staff.page(task(seed, name)).context["sheet"] is not None) is offered
    for name, offered in (("task_001>task_002", False), ("task_002>task_003", True)):
        assert (staff.page(line(seed, name)).context["sheet"] is not None) is offered


def test_every_field_of_a_task_is_on_its_page(staff, seed):
    row = task(seed, "task_003")
    values = staff.form(row)
    values |= {
        "tasks-0-name": "Third", "tasks-0-description": "one\r\ntwo", "tasks-0-device": "laptop", "tasks-0-command": "",
        "tasks-0-tool": "noop", "tasks-0-arguments": '{"result": [1, "ä"]}', "tasks-0-priority": "3", "tasks-0-timeout": "",
        "tasks-0-deadline": "90.5", "tasks-0-max_attempts": "3", "tasks-0-backoff": "0.5", "tasks-0-confirm": "on",
        "tasks-0-on_lost": "ask", "tasks-0-tips": "look\r\nlisten",
    }  # fmt: skip
    staff.told(staff.save(row, values))
    row.refresh_from_db()
    assert (row.name, row.description, row.wanted_device, row.tool) == ("Third", "one\ntwo", "laptop", "noop")
    assert (row.arguments, row.priority, row.timeout, row.deadline) == ({"result": [1, "ä"]}, 3, None, 90.5)
    assert (row.max_attempts, row.backoff, row.confirm, row.on_lost, row.tips) == (3, 0.5, True, "ask", ["look", "listen"])
    assert Edit.objects.get().version == 2
    assert list(verify_database()) == []


def test_the_steps_of_a_task_are_edited_as_json(staff, session, laptop):
    made = plant(session, {"task_id": "a", "steps": [{"say": "hello"}]})
    row = task(made, "a")
    values = staff.form(row)
    page = staff.save(row, {**values, "tasks-0-phases": '[{"steps": [{"say": 1}]}]'})
    assert problems(page) == {"a.phases": ["phases[0].steps[0].say: must be text, not the number 1; put it in quotes"]}
    staff.told(staff.save(row, {**values, "tasks-0-phases": '[{"steps": [{"say": "bye"}]}]'}))
    row.refresh_from_db()
    assert row.phases[0]["steps"][0]["text"] == "bye"


def test_a_task_of_one_call_becomes_one_in_steps_and_the_other_way_round(staff, session, laptop):
    row = task(plant(session, {"task_id": "a", "command": ["make", "it"]}), "a")
    values = {**staff.form(row), "tasks-0-phases": '[{"steps": [{"say": "hello"}]}]'}
    found = problems(staff.save(row, values))
    assert found == {"a.command": ["a task has phases or a command or tool, not both: command beside phases"]}
    staff.told(staff.save(row, {**values, "tasks-0-command": ""}))
    row.refresh_from_db()
    assert (row.tool, row.arguments, row.phases[0]["steps"][0]["text"]) == ("steps", {}, "hello")
    values = {**staff.form(row), "tasks-0-phases": ""}
    assert problems(staff.save(row, values)) == {
        "a.command": ["names no program: give one and its arguments, as in [make, test]"]
    }
    staff.told(staff.save(row, {**values, "tasks-0-command": "make it"}))
    row.refresh_from_db()
    assert (row.tool, row.arguments, row.phases) == ("command", {"argv": ["make", "it"]}, [])
    assert list(verify_database()) == []


def test_a_shell_runs_a_command_where_the_form_says_so_and_the_form_shows_it_again(staff, session, laptop):
    row = task(plant(session, {"task_id": "a", "command": ["make", "it"]}), "a")
    values = {**staff.form(row), "tasks-0-command": "make it > log\r\nls *"}
    assert problems(staff.save(row, values)) == {
        "a.command": [
            "`>` means something to a shell, and no shell reads a command that is given as a text: give an argument list to "
            "have it as it stands, or `shell: true` beside it to have `sh -c` run it"
        ]
    }
    staff.told(staff.save(row, {**values, "tasks-0-shell": "on"}))
    row.refresh_from_db()
    assert row.arguments == {"argv": ["sh", "-c", "make it > log\nls *"]}
    values = staff.form(row)
    assert (values["tasks-0-command"].replace("\r\n", "\n"), values["tasks-0-shell"]) == ("make it > log\nls *", "on")
    staff.told(staff.save(row, {**values, "tasks-0-name": "Make"}))
    row.refresh_from_db()
    assert (row.name, row.arguments) == ("Make", {"argv": ["sh", "-c", "make it > log\nls *"]})
    assert [sorted(entry["fields"]) for entry in Edit.objects.order_by("version").last().diff] == [["name"]]
    values = {key: value for key, value in staff.form(row).items() if key != "tasks-0-shell"}
    staff.told(staff.save(row, {**values, "tasks-0-command": "make it"}))
    row.refresh_from_db()
    assert row.arguments == {"argv": ["make", "it"]}
    assert list(verify_database()) == []


def test_what_watches_over_a_tasks_calls_is_edited_on_its_page(staff, seed):
    row = task(seed, "task_003")
    values = staff.form(row)
    assert (values["tasks-0-policies"], values["tasks-0-progress"]) == ("", "")
    values["tasks-0-policies"] = '[{"tool": "command", "pattern": "rm -rf", "decision": "deny"}, {"decision": "ask"}]'
    values["tasks-0-progress"] = '{"stuck_threshold": 5, "poll_commands": ["^wait"]}'
    staff.told(staff.save(row, values))
    row.refresh_from_db()
    assert row.policies == [
        {"tool": "command", "pattern": "rm -rf", "decision": "deny"}, {"tool": "*", "pattern": "", "decision": "ask"},
    ]  # fmt: skip
    assert row.progress == {"stuck_threshold": 5, "poll_commands": ["^wait"]}
    assert staff.told(staff.save(row, staff.form(row))) == ["Nothing was to be changed, so nothing was saved."]
    staff.told(staff.save(row, {**staff.form(row), "tasks-0-policies": "", "tasks-0-progress": "{}"}))
    row.refresh_from_db()
    assert (row.policies, row.progress) == ([], {})
    assert Edit.objects.count() == 2
    assert list(verify_database()) == []


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("policies", "{}", "This must be a list: [...]."),
        ("policies", "[{]", "This is no JSON: expecting property name enclosed in double quotes, line 1, column 3."),
        ("policies", '[{"tool": "x"}]', "policies[0]: a policy needs a decision: one of allow, ask, deny"),
        ("policies", '[{"decision": "maybe"}]', "policies[0].decision: must be one of allow, ask, deny, not the text 'maybe'"),
        ("policies", '[{"decision": "ask", "pattern": "("}]', "policies[0].pattern: it is no regular expression: missing ): ("),
        ("progress", '{"enabled": true}', "progress.enabled: there is no key enabled here; did you mean enable?"),
        ("progress", '{"stuck_threshold": -1}', "progress.stuck_threshold: stuck_threshold must be a whole number from 0"),
        ("progress", "[]", "This must be an object: {...}."),
        ("on_lost", "shrug", "Select a valid choice. shrug is not one of the available choices."),
        ("deadline", "-1", "is -1.0; it must be above 0 and at most 31,536,000"),
        ("backoff", "soon", "Enter a number."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_field_of_a_tasks_own_page_is_told_there(staff, seed, field, text, told):
    row = task(seed, "task_003")
    page = refused(staff, row, {**staff.form(row), f"tasks-0-{field}": text}, seed)
    assert problems(page) == {f"task_003.{field}": [told]}
    assert 'class="o-field o-{field} errors"'.replace("{field}", field) in page.content.decode()


def test_a_dependency_is_edited_on_its_page_and_a_condition_makes_it_conditional(staff, seed):
    row = line(seed, "task_003>task_004")
    values = {**staff.form(row), "dependencies-0-condition": "accuracy > 0.95", "dependencies-0-description": "good enough"}
    staff.told(staff.save(row, values))
    row.refresh_from_db()
    assert (row.type, row.condition, row.description) == ("CONDITIONAL", "accuracy > 0.95", "good enough")
    staff.told(staff.save(row, {**staff.form(row), "dependencies-0-type": "UNCONDITIONAL", "dependencies-0-condition": ""}))
    row.refresh_from_db()
    assert (row.type, row.condition) == ("UNCONDITIONAL", "")


def test_the_same_page_sent_twice_is_one_edit(staff, seed):
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    staff.told(staff.save(seed, values))
    assert staff.told(staff.save(seed, values)) == ["That was saved already, as version 2."]
    assert Edit.objects.count() == 1


def test_a_row_that_is_added_and_left_empty_or_removed_again_is_nothing(staff, seed):
    values = added(staff.form(seed), "tasks")
    values = added(values, "dependencies", upstream="", downstream="")
    values = added(values, "tasks", task_id="not this", DELETE="on")
    assert staff.told(staff.save(seed, values)) == ["Nothing was to be changed, so nothing was saved."]


def test_who_removes_a_row_on_its_own_page_is_led_to_the_constellation(staff, seed):
    row = task(seed, "task_004")
    answer = staff.save(row, {**staff.form(row), "tasks-0-DELETE": "on"})
    assert answer["Location"] == address(seed)
    assert staff.told(answer) == ["Saved as version 2: removed task task_004, removed dependency task_003>task_004."]


# Refusals


def refused(staff, row, values, constellation):
    """What the page says; nothing has been written."""
    before = rows_of(constellation.session_id)
    page = staff.save(row, values)
    assert page.status_code == 200
    assert rows_of(constellation.session_id) == before
    assert "Nothing was saved. What you typed is still here." in page.content.decode()
    return page


def test_a_save_that_comes_too_late_says_so_at_its_row_and_writes_nothing(staff, seed):
    values = staff.form(seed)
    prefix = row_of(values, "task_003")
    values = added({**values, f"{prefix}-timeout": "5"}, "tasks", task_id="extra", tool="noop")
    advance(seed, task_003="RUNNING")
    page = refused(staff, seed, values, seed)
    assert problems(page) == {"task_003.__all__": ["task_003 already runs"]}
    assert f'name="{prefix}-timeout" value="5"' in page.content.decode()
    assert 'value="extra"' in page.content.decode()
    assert not Edit.objects.exists()


def test_a_page_of_a_task_that_has_started_meanwhile_is_shown_again(staff, seed):
    row = task(seed, "task_003")
    values = {**staff.form(row), "tasks-0-name": "Typed"}
    advance(seed, task_003="RUNNING")
    page = refused(staff, row, values, seed)
    assert problems(page) == {"task_003.__all__": ["task_003 already runs"]}
    assert 'value="Typed"' in page.content.decode()


def test_a_cycle_is_told_as_a_path_at_the_row_that_closes_it(staff, seed):
    values = added(staff.form(seed), "dependencies", upstream="task_004", downstream="task_003")
    found = problems(refused(staff, seed, values, seed))
    assert found == {"new.__all__": ["the tasks would wait for each other: task_004 > task_003 > task_004"]}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"arguments": "{]", "tool": "noop", "command": ""}, {"arguments": NO_JSON}),
        ({"arguments": "[1]", "tool": "noop", "command": ""}, {"arguments": "This must be an object: {...}."}),
        ({"arguments": '{"a": NaN}', "tool": "noop", "command": ""}, {"arguments": "This is no JSON: NaN is no number."}),
        ({"device": "moon"}, {"device": "there is no device moon; there are laptop"}),
        ({"timeout": "-1"}, {"timeout": "is -1.0; it must be above 0 and at most 31,536,000"}),
        ({"timeout": "soon"}, {"timeout": "Enter a number."}),
        ({"max_attempts": "1000"}, {"max_attempts": "is 1000; it must be from 1 to 100"}),
        ({"command": "make 'it"}, {"command": "cannot be split into words: no closing quotation; close it"}),
        ({"command": ""}, {"command": "names no program: give one and its arguments, as in [make, test]"}),
        ({"tool": "noop"}, {"tool": "a task has a command or a tool, not both: tool beside command"}),
        ({"name": "x" * 201}, {"name": "has 201 characters; 200 are allowed"}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_field_is_told_there(staff, seed, fields, told):
    values = staff.form(seed)
    prefix = row_of(values, "task_003")
    page = refused(staff, seed, values | {f"{prefix}-{name}": value for name, value in fields.items()}, seed)
    assert problems(page) == {f"task_003.{name}": [message] for name, message in told.items()}


def test_what_is_wrong_with_a_dependency_is_told_there(staff, seed):
    values = staff.form(seed)
    prefix = row_of(values, "task_003>task_004")
    found = problems(refused(staff, seed, {**values, f"{prefix}-condition": "accuracy >"}, seed))
    assert list(found) == ["task_003>task_004.condition"]
    values = added(values, "dependencies", upstream="task_003", downstream="task_04")
    found = problems(refused(staff, seed, values, seed))
    assert found == {"new.downstream": ["there is no task task_04; did you mean task_004?"]}


def test_a_task_without_an_id_or_without_work_is_refused(staff, seed):
    found = problems(refused(staff, seed, added(staff.form(seed), "tasks", name="nameless"), seed))
    assert found == {"new.task_id": ["is empty"]}
    found = problems(refused(staff, seed, added(staff.form(seed), "tasks", task_id="extra", name="idle"), seed))
    assert [NO_WORK] in found.values()


def test_a_reason_that_is_too_long_is_told(staff, seed):
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    page = refused(staff, seed, {**values, "reason": "x" * 2001}, seed)
    assert list(problems(page)) == ["reason"]


# Others edit too


def test_changes_that_commute_are_applied_on_top_of_what_others_did(staff, seed):
    values = staff.form(seed)
    edit(seed, ("update_task", {"task_id": "task_004", "name": "theirs"}))
    told = staff.told(staff.save(seed, {**values, f"{row_of(values, 'task_003')}-name": "mine"}))
    assert told == [
        "Saved as version 3: updated task task_003. Others had edited since version 1; your changes were applied on top of "
        "version 2 by user:999 (updated task task_004 (name))."
    ]
    assert (task(seed, "task_003").name, task(seed, "task_004").name) == ("mine", "theirs")


def test_what_others_changed_is_not_set_back_by_a_field_that_was_not_touched(staff, seed):
    values = staff.form(seed)
    edit(seed, ("update_task", {"task_id": "task_003", "name": "theirs", "timeout": 7}))
    assert staff.told(staff.save(seed, values)) == ["Nothing was to be changed, so nothing was saved."]
    assert task(seed, "task_003").name == "theirs"


def test_a_change_of_what_others_changed_is_refused_with_their_edit_and_may_be_put_on_top(staff, seed):
    values = staff.form(seed)
    edit(seed, ("update_task", {"task_id": "task_003", "name": "theirs", "timeout": 7}))
    values[f"{row_of(values, 'task_003')}-name"] = "mine"
    page = refused(staff, seed, values, seed)
    assert problems(page) == {"__all__": ["user:999 changed task_003 (version 2)"]}
    assert "Save mine on top of version 2" in page.content.decode()
    staff.told(staff.save(seed, values, onto="2"))
    assert (task(seed, "task_003").name, task(seed, "task_003").timeout) == ("mine", 7.0)
    assert Edit.objects.get(version=3).based_on == 2


def test_a_row_that_others_have_made_impossible_says_so_and_offers_the_newest_version(staff, seed):
    edit(seed, *(("add_task", noop(name)) for name in "xy"))
    values = staff.form(seed)
    edit(seed, ("add_dependency", {"from": "y", "to": "x"}))
    page = refused(staff, seed, added(values, "dependencies", upstream="x", downstream="y"), seed)
    assert problems(page) == {
        "new.__all__": ["the tasks would wait for each other: x > y > x"],
        "__all__": ["also since: version 3 by user:999 (added dependency y>x)"],
    }
    assert "Save mine on top of version 3" in page.content.decode()


def test_a_task_that_others_removed_is_told(staff, seed):
    values = staff.form(seed)
    edit(seed, ("remove_task", {"task_id": "task_004"}))
    values[f"{row_of(values, 'task_004')}-name"] = "mine"
    page = refused(staff, seed, values, seed)
    assert problems(page) == {"__all__": ["user:999 changed task_004 (version 2)"]}
    found = problems(refused(staff, seed, {**values, "onto": "2"}, seed))
    assert list(found) == ["task_004.__all__"]
    assert "there is no task task_004" in found["task_004.__all__"][0]


# Rights


def test_a_viewer_reads_and_does_not_save(seed, roles):
    vic = person("vic", "viewer")
    Session.objects.filter(pk=seed.session_id).update(owner=vic)
    staff = Staff(vic)
    for row in (seed, task(seed, "task_003"), line(seed, "task_003>task_004")):
        page = staff.page(row)
        assert (page.status_code, page.context["sheet"]) == (200, None)
        assert "Save as one edit" not in page.content.decode()
        assert staff.save(row, {"version": "1"}).status_code == 403
    assert not Edit.objects.exists()


def test_another_operators_constellation_is_not_there(staff, seed, roles):
    other = Staff(person("other", "operator"))
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    for row in (seed, task(seed, "task_003"), line(seed, "task_003>task_004")):
        assert other.page(row).status_code == 302
        assert other.save(row, values)["Location"] == "/admin/"
        assert other.client.post(address(row, "delete"), {"confirmed": "yes"}).status_code in (302, 403)
    assert not Edit.objects.exists()
    assert "task_003" in states(seed)


def test_operators_who_are_not_staff_stay_outside(operator, seed):
    staff = Staff(operator, staff=False)
    answer = staff.save(seed, {"version": "1"})
    assert answer.status_code == 302
    assert "/admin/login/" in answer["Location"]


def test_rows_of_another_constellation_in_a_forged_page_are_refused(staff, seed, operator, roles):
    stranger = sessions.session_create(person("other", "operator"), "theirs", by="system")
    theirs = plant(stranger, noop("secret"), noop("behind", after=["secret"]))
    before = graph_of(theirs)
    values = staff.form(seed)
    values |= {"tasks-0-task_id": "secret", "tasks-0-name": "mine", "dependencies-0-dependency_id": "secret>behind"}
    values |= {"tasks-1-task_id": str(task(theirs, "secret").pk), "tasks-1-DELETE": "on"}
    page = refused(staff, seed, values, seed)
    assert page.context["sheet"].tasks.forms[0].errors == {"__all__": ["There was no task secret on this page."]}
    assert graph_of(theirs) == before


@pytest.mark.parametrize(
    "forged",
    [
        {"tasks-TOTAL_FORMS": "x"},
        {"tasks-TOTAL_FORMS": "999999", "tasks-INITIAL_FORMS": "999999"},
        {"tasks-INITIAL_FORMS": "٣"},
        {"version": "0"},
        {"version": "9"},
        {"version": "x\x00"},
        {"tasks-0-task_id": "\x00"},
        {"onto": "99999999999999999999999", "tasks-0-name": "x"},
    ],
)
def test_a_forged_page_is_refused_and_not_an_error_of_ours(staff, seed, forged):
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    refused(staff, seed, values | forged, seed)


def test_an_ended_constellation_is_read_only_and_a_save_says_why(staff, seed):
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    Constellation.objects.update(state="COMPLETED")
    assert staff.page(seed).context["sheet"] is None
    found = problems(staff.save(seed, values))
    assert found == {"__all__": ["digits has ended (COMPLETED); work is added to it by reopening it"]}


# What would follow


def test_a_look_ahead_writes_nothing_and_says_what_would_follow(staff, seed):
    before = rows_of(seed.session_id)
    values = added(staff.form(seed), "tasks", task_id="extra", tool="noop")
    values[f"{row_of(values, 'task_004')}-DELETE"] = "on"
    page = staff.send(seed, {**values, "_preview": "1"})
    text = page.content.decode()
    assert "removed task task_004" in text
    assert "Ready to start: extra" in text
    assert "Longest chain: 4 tasks before, 3 after." in text
    assert 'value="extra"' in text
    assert rows_of(seed.session_id) == before
    page = staff.send(seed, {**staff.form(seed), "_preview": "1"})
    assert "Nothing was changed on this page." in page.content.decode()


# Lists and pages


def test_removing_asks_first_and_is_one_edit(staff, seed):
    row = task(seed, "task_004")
    page = staff.client.get(address(row, "delete"))
    assert "Remove task?" in page.content.decode()
    assert "task_004" in states(seed)
    assert staff.client.post(address(row, "delete"), {}).status_code == 200
    answer = staff.client.post(address(row, "delete"), {"confirmed": "yes", "reason": "not needed", "once": "abc"})
    assert staff.told(answer) == ["Saved as version 2: removed task task_004, removed dependency task_003>task_004."]
    assert Edit.objects.get().reason == "not needed"


def test_many_are_removed_by_one_edit_or_none(staff, seed):
    extra = plant(seed.session, noop("x"), noop("y"), noop("z"))
    chosen = [task(extra, "x").pk, task(extra, "y").pk, task(seed, "task_004").pk]
    sent = {"action": "remove", "_selected_action": chosen}
    page = staff.client.post(address(seed.tasks.first(), "changelist"), sent)
    assert "Remove 3 tasks?" in page.content.decode()
    assert not Edit.objects.exists()
    told = staff.told(staff.client.post(address(seed.tasks.first(), "changelist"), {**sent, "confirmed": "yes", "once": "o1"}))
    assert sorted(told)[0].startswith("Saved as version 2: removed task")
    assert Edit.objects.count() == 2
    assert set(states(extra)) == {"z"}
    sent["_selected_action"] = [task(seed, "task_001").pk, task(seed, "task_003").pk]
    told = staff.told(staff.client.post(address(seed.tasks.first(), "changelist"), {**sent, "confirmed": "yes", "once": "o2"}))
    assert len(told) == 1
    assert "nothing was removed" in told[0]
    assert "task_001 has ended (COMPLETED)" in told[0]
    assert "task_003" in states(seed)
    assert list(verify_database()) == []


def test_dependencies_are_removed_from_their_list(staff, seed):
    row = line(seed, "task_003>task_004")
    sent = {"action": "remove", "_selected_action": [row.pk], "confirmed": "yes", "once": "o1"}
    told = staff.told(staff.client.post(address(row, "changelist"), sent))
    assert told == ["Saved as version 2: removed dependency task_003>task_004."]
    assert states(seed)["task_004"] == "PENDING"


def test_lists_are_narrowed_down_to_a_constellation_and_to_what_may_change(staff, seed):
    other = plant(seed.session, noop("elsewhere"))
    shown = staff.client.get(address(task(seed, "task_001"), "changelist"), {"constellation": seed.pk, "editable": "yes"})
    assert [row.task_id for row in shown.context["cl"].result_list] == ["task_004", "task_003"]
    shown = staff.client.get(
        address(line(seed, "task_003>task_004"), "changelist"), {"constellation": seed.pk, "editable": "no"}
    )
    assert [row.dependency_id for row in shown.context["cl"].result_list] == ["task_001>task_002"]
    shown = staff.client.get(address(task(seed, "task_001"), "changelist"), {"session": seed.session_id, "editable": "?"})
    assert len(shown.context["cl"].result_list) == 5
    for term in ("x", "٣", "-1", "9" * 40):
        shown = staff.client.get(address(task(other, "elsewhere"), "changelist"), {"constellation": term})
        assert len(shown.context["cl"].result_list) == 0
        shown = staff.client.get(address(task(other, "elsewhere"), "changelist"), {"session": term})
        assert len(shown.context["cl"].result_list) == 0


def test_an_edit_tells_what_it_did_and_is_taken_back_and_done_again(staff, seed):
    edit(seed, ("update_task", {"task_id": "task_003", "timeout": 5}), ("remove_task", {"task_id": "task_004"}))
    made = Edit.objects.get()
    text = staff.page(made).content.decode()
    assert "<del>60</del> <ins>5</ins>" in text
    assert "removed task task_004" in text
    told = staff.told(staff.client.post(address(made), {"reason": "was wrong"}))
    assert told[0].startswith("Taken back, as version 3: updated task task_003, added task task_004")
    undo = Edit.objects.get(version=3)
    assert (undo.undoes_id, undo.author, undo.reason) == (made.pk, f"user:{staff.user.pk}", "was wrong")
    assert staff.told(staff.client.post(address(made))) == ["What this edit did is taken back already."]
    assert "It was taken back by" in staff.page(made).content.decode()
    assert list(verify_database()) == []
    advance(seed, task_003="RUNNING")
    assert staff.told(staff.client.post(address(undo))) == ["cannot undo: task_003 already runs"]


def test_an_edit_is_not_taken_back_by_somebody_who_may_only_look(seed, roles):
    edit(seed, ("remove_task", {"task_id": "task_004"}))
    vic = person("vic", "viewer")
    Session.objects.filter(pk=seed.session_id).update(owner=vic)
    staff = Staff(vic)
    assert "Undo this edit" not in staff.page(Edit.objects.get()).content.decode()
    assert staff.client.post(address(Edit.objects.get())).status_code == 403
    assert staff.client.post(address(task(seed, "task_003"), "delete"), {"confirmed": "yes"}).status_code == 403
    assert Edit.objects.count() == 1


def test_the_history_of_a_row_is_that_of_its_constellations_edits(staff, seed):
    answer = staff.client.get(address(seed, "history"))
    assert answer["Location"] == f"/admin/constellations/edit/?constellation={seed.pk}"
    assert staff.client.get(answer["Location"]).status_code == 200


# The picture


def test_the_page_has_the_rows_that_the_dashboards_drawing_takes(staff, seed):
    advance(seed, task_003="RUNNING")
    page = staff.page(seed)
    drawn = json.loads(re.search(r'<script id="picture" type="application/json">(.*?)</script>', page.content.decode())[1])
    assert [(row["task_id"], row["state"]) for row in drawn["rows"]["task"]] == [
        ("task_001", "COMPLETED"), ("task_002", "COMPLETED"), ("task_003", "RUNNING"), ("task_004", "WAITING_DEPENDENCY"),
    ]  # fmt: skip
    assert drawn["counts"] == {"RUNNING": 1, "WAITING_DEPENDENCY": 1, "COMPLETED": 2}
    assert [row["dependency_id"] for row in drawn["rows"]["dependency"]] == list(
        Dependency.objects.filter(constellation=seed).order_by("id").values_list("dependency_id", flat=True)
    )
    assert drawn["task"].replace("/0/", f"/{task(seed, 'task_003').pk}/") == address(task(seed, "task_003"))
    assert page.context["picture"].left_out == 0


def test_the_picture_of_a_large_graph_is_bounded_and_says_what_is_left_out(staff, session, laptop, monkeypatch):
    monkeypatch.setattr("constellations.admin.picture.DRAWN", 3)
    made = plant(session, *(noop(f"t{number}", after=[f"t{number - 1}"] if number else []) for number in range(9)))
    advance(made, t0="COMPLETED", t1="RUNNING")
    page = staff.page(made)
    assert [row["task_id"] for row in page.context["picture"].rows["task"]] == ["t1", "t2", "t3"]
    assert "3 of 9 tasks are drawn" in page.content.decode()
    assert "6 are left out" in page.content.decode()


@pytest.mark.parametrize(
    ("number", "message"), [("9" * 30, "n[0]: the number is out of range"), ("9" * 5_000, "This is no JSON")]
)
def test_a_number_that_cannot_be_stored_is_refused_in_its_field(staff, seed, number, message):
    row = task(seed, "task_003")
    values = staff.form(row) | {
        "tasks-0-tool": "noop", "tasks-0-command": "", "tasks-0-arguments": f'{{"n": [{number}]}}',
    }  # fmt: skip
    assert message in staff.save(row, values).content.decode()
    assert not Edit.objects.exists()
