"""The pages of the state machines."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from agents.machines import MACHINES as REGISTERED
from agents.models import Agent, InboxItem
from agents.services import sessions
from constellations.models import Constellation, Task
from frontend.views.machines import count_states, note_parts, state_rows
from frontend.words import LINES, MACHINES

NAMES = [machine.name for machine in MACHINES]


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user, name: str) -> str:
    return signed_in(user).get(f"/machines/{name}/").content.decode()


def work_of(user, tasks=(), agents=()):
    """A session with a constellation whose tasks, and with device agents, that are in these states."""
    session, now = sessions.session_create(user, "work", by=f"user:{user.pk}"), timezone.now()
    first = (session.pk << 24) + 1_000
    item = InboxItem.objects.create(id=first, session=session, client_id="one", kind="interaction", by="system", created_at=now)
    shared = {"session": session, "interaction": item, "created_at": now, "entered_at": now}
    planner = Agent.objects.create(id=first, machine="constellation_agent", name="planner", state="CONTINUE", **shared)
    constellation = Constellation.objects.create(id=first, agent=planner, state="EXECUTING", **shared)
    for number, state in enumerate(tasks, start=first):
        Task.objects.create(
            id=number, constellation=constellation, task_id=str(number), state=state, created_at=now, entered_at=now
        )
    for number, state in enumerate(agents, start=first + 1):
        Agent.objects.create(id=number, machine="device_agent", name="worker", state=state, **shared)
    return session


def shown_counts(html: str) -> dict[str, int]:
    found = re.findall(r'<th scope="row"><code>(\w+)</code></th><td class="number"[^>]*>(\d+)</td>', html)
    return {state: int(count) for state, count in found}


@pytest.mark.parametrize("path", ["/reference/", "/machines/task/"])
def test_the_pages_need_a_login(client, db, path):
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


@pytest.mark.parametrize("path", ["/reference/", "/machines/task/"])
def test_the_pages_are_only_for_reading(viewer, path):
    assert signed_in(viewer).post(path).status_code == 405


def test_every_registered_machine_has_its_line_and_its_page(viewer):
    assert set(NAMES) == set(LINES) == set(REGISTERED)
    html = signed_in(viewer).get("/reference/").content.decode()
    assert re.findall(r'href="/machines/(\w+)/"', html) == NAMES
    assert all(line in html for _, line in LINES.values())


def test_the_navigation_leads_there_from_every_page_of_somebody_logged_in(viewer):
    assert b'href="/reference/"' in signed_in(viewer).get("/").content
    assert b'href="/reference/"' not in Client().get("/login/").content


@pytest.mark.parametrize("name", ["nothing", "Task", "9", "task%20"])
def test_a_machine_that_does_not_exist_is_not_found(viewer, name):
    assert signed_in(viewer).get(f"/machines/{name}/").status_code == 404


@pytest.mark.parametrize("machine", MACHINES, ids=NAMES)
def test_a_page_has_every_state_and_every_row(viewer, machine):
    html = page(viewer, machine.name)
    assert set(shown_counts(html)) == set(machine.states)
    assert html.count('<code class="event">') == len(machine.rows)
    assert html.count('class="state" data-kind="terminal"') == len(machine.terminal)
    assert all(f"<code>{fact}</code>" in html for fact in machine.facts)


def test_tasks_are_counted_by_state(operator):
    work_of(operator, tasks=["RUNNING", "RUNNING", "COMPLETED"])
    html = page(operator, "task")
    assert {state: count for state, count in shown_counts(html).items() if count} == {"RUNNING": 2, "COMPLETED": 1}
    assert "<title>2 in RUNNING now</title>" in html
    assert "in FAILED now" not in html


def test_agents_are_counted_with_those_of_their_own_machine(operator):
    work_of(operator, agents=["CONTINUE", "PENDING"])
    assert {state: n for state, n in shown_counts(page(operator, "device_agent")).items() if n} == {"CONTINUE": 1, "PENDING": 1}
    assert {state: n for state, n in shown_counts(page(operator, "constellation_agent")).items() if n} == {"CONTINUE": 1}
    assert set(shown_counts(page(operator, "tool_loop")).values()) == {0}


def test_only_what_the_reader_may_see_is_counted(operator, viewer, admin_user):
    work_of(operator, tasks=["RUNNING"])
    work_of(viewer, tasks=["RUNNING", "FAILED"])
    assert shown_counts(page(operator, "task"))["FAILED"] == 0
    assert shown_counts(page(viewer, "task"))["RUNNING"] == 1
    assert shown_counts(page(admin_user, "task"))["RUNNING"] == 2
    assert shown_counts(page(viewer, "constellation"))["EXECUTING"] == 1


def test_actors_are_counted(engine, device):
    engine.carry_out({"tasks": [{"task_id": "one", "tool": "noop", "device": "laptop"}]})
    assert shown_counts(page(engine.owner, "actor"))["idle"] == 1


def test_the_page_of_the_tool_loop_counts_loops_and_no_agents(engine, viewer, device):
    steps = {"task_id": "a", "device": "laptop", "steps": [{"say": "hello"}]}
    engine.carry_out({"tasks": [steps, {**steps, "task_id": "b"}, {"task_id": "plain", "tool": "noop"}]})
    counted = shown_counts(page(engine.owner, "tool_loop"))
    assert {state: count for state, count in counted.items() if count} == {"Idle": 2}
    assert set(shown_counts(page(viewer, "tool_loop")).values()) == {0}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_costs_four_queries_however_much_there_is(operator, name, django_assert_num_queries):
    client = signed_in(operator)
    work_of(operator, tasks=["RUNNING"] * 5, agents=["CONTINUE"] * 5)
    work_of(operator, tasks=["PENDING"] * 5, agents=["PENDING"] * 5)
    with django_assert_num_queries(4):  # login session, user, groups for what is visible, the states
        client.get(f"/machines/{name}/")


def test_a_state_that_the_table_no_longer_has_does_not_break_the_page():
    """The database takes none; what an older one counted is passed over."""
    rows = state_rows(REGISTERED["device_agent"], {"DREAMING": 1, "PENDING": 2})
    assert {row.node.name: row.count for row in rows if row.count} == {"PENDING": 2}


def test_a_badge_counts_many_in_thousands():
    rows = state_rows(REGISTERED["task"], {"COMPLETED": 12_345, "RUNNING": 9_999})
    badges = {row.node.name: row.badge for row in rows}
    assert (badges["COMPLETED"], badges["RUNNING"], badges["FAILED"]) == ("12k", "9999", "0")


def test_nobody_sees_nothing(db, operator):
    from django.contrib.auth.models import AnonymousUser

    from agents.models import Session

    work_of(operator, tasks=["RUNNING"])
    assert count_states("task", Session.objects.visible_to(AnonymousUser())) == {}


def test_what_stands_between_backquotes_in_a_note_is_code():
    assert note_parts("reason `cancelled` twice") == [(False, "reason "), (True, "cancelled"), (False, " twice")]
    assert note_parts("") == []


def test_the_pages_hold_no_inline_script_or_style(operator):
    client = signed_in(operator)
    for path in ("/reference/", *(f"/machines/{name}/" for name in NAMES)):
        html = client.get(path).content.decode()
        assert re.findall(r"<script(?![^>]*src=)|\sstyle=|<style|\son[a-z]+=", html) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_comes_as_numbers_of_the_same_states(db, django_user_model, name):
    found = signed_in(django_user_model.objects.create_user("ann")).get(f"/machines/{name}/diagram/").json()
    machine = next(machine for machine in MACHINES if machine.name == name)
    assert set(machine.states) <= {node["name"] for node in found["nodes"]}
    assert all(0 < node["x"] < found["width"] and 0 < node["y"] < found["height"] for node in found["nodes"])
    assert {(edge["source"], edge["target"]) for edge in found["edges"]} <= {
        (one["name"], other["name"]) for one in found["nodes"] for other in found["nodes"]
    }


def test_there_is_no_drawing_of_an_unknown_machine(db, django_user_model):
    assert signed_in(django_user_model.objects.create_user("ann")).get("/machines/none/diagram/").status_code == 404
