"""The shells of the pages: who sees what, at what price."""

import json
import re

import pytest
from django.test import Client

from agents.services import sessions
from frontend.examples import EXAMPLE_BYTES, EXAMPLES_LIMIT, SUMMARY, list_examples, plan_summary


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def session_of(user, title: str = "a session"):
    return sessions.session_create(user, title, by=f"user:{user.pk}")


def page_data(html: str, name: str):
    """What the page hands to its script (json_script)."""
    return json.loads(re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', html, re.S)[1])


@pytest.mark.parametrize("path", ["/", "/sessions/1/"])
def test_a_page_needs_a_login(client, db, path):
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"] == f"/login/?next={path}"


def test_the_login_page_leads_back_to_where_one_wanted_to_go(client, operator):
    form = {"username": "operator", "password": "operator-secret", "next": "/sessions/3/"}
    assert b'name="password"' in client.get("/login/").content
    assert client.post("/login/", form)["Location"] == "/sessions/3/"


def test_a_wrong_password_is_refused_on_the_page(client, operator):
    answer = client.post("/login/", {"username": "operator", "password": "guess"})
    assert answer.status_code == 200
    assert b'role="alert"' in answer.content


def test_logging_out_needs_a_post_and_ends_the_session(operator):
    client = signed_in(operator)
    assert client.get("/logout/").status_code == 405
    client.post("/logout/")
    assert client.get("/").status_code == 302


def test_a_user_sees_only_their_own_sessions(operator, viewer):
    session_of(operator, "of the operator")
    session_of(viewer, "of the viewer")
    found = signed_in(viewer).get("/api/home/").json()["results"]
    assert [row["title"] for row in found] == ["of the viewer"]


def test_an_admin_sees_all_sessions(admin_user, operator):
    session = session_of(operator, "of the operator")
    client = signed_in(admin_user)
    assert [row["title"] for row in client.get("/api/home/").json()["results"]] == ["of the operator"]
    assert client.get(f"/sessions/{session.pk}/").status_code == 200


def test_ones_own_recent_requests_are_offered_again_each_once(operator, viewer, admin_user):
    session = session_of(operator, "the first")
    for client_id, plan in (("a", "tasks: [{task_id: a, tool: noop}]"), ("b", "tasks: [{task_id: a, tool: noop}]")):
        sessions.request_submit(session.pk, "interaction", client_id, {"plan": plan}, by=f"user:{operator.pk}")
    sessions.request_submit(session.pk, "interaction", "c", {"plan": "tasks: [{task_id: b, tool: noop}]"}, by="token:abc")
    recent = page_data(signed_in(operator).get("/").content.decode(), "recent")
    assert recent == [{"name": "the first", "text": "tasks: [{task_id: a, tool: noop}]"}]
    assert page_data(signed_in(admin_user).get("/").content.decode(), "recent") == []


def test_the_session_of_another_is_not_found(operator, viewer):
    session = session_of(operator)
    assert signed_in(viewer).get(f"/sessions/{session.pk}/").status_code == 404


@pytest.mark.parametrize("number", ["0", "999", "9223372036854775808", "9" * 40])
def test_a_session_that_does_not_exist_is_not_found(operator, number):
    assert signed_in(operator).get(f"/sessions/{number}/").status_code == 404


def test_a_title_is_text_and_never_markup(operator):
    session = session_of(operator, "<script>alert(1)</script>")
    client = signed_in(operator)
    for path in ("/", f"/sessions/{session.pk}/"):
        assert "<script>alert" not in client.get(path).content.decode()


def test_only_those_who_may_operate_get_a_request_box(operator, viewer):
    session, other = session_of(operator), session_of(viewer)
    assert b'name="plan"' in signed_in(operator).get(f"/sessions/{session.pk}/").content
    assert b'name="plan"' not in signed_in(viewer).get(f"/sessions/{other.pk}/").content
    assert b'name="plan"' not in signed_in(viewer).get("/").content


def test_the_examples_are_offered_with_their_text(operator):
    html = signed_in(operator).get("/").content.decode()
    offered = page_data(html, "examples")
    assert "digits" in [example["name"] for example in offered]
    assert '<option value="digits">digits: Train a reader of handwritten digits' in html
    assert "replan:" in next(example["text"] for example in offered if example["name"] == "digits")


def test_examples_are_bounded_in_number_and_size(tmp_path):
    for number in range(EXAMPLES_LIMIT + 5):
        (tmp_path / f"plan_{number:02}.yaml").write_text(f"name: plan {number}\n")
    (tmp_path / "plan_00.yaml").write_text("#" * (EXAMPLE_BYTES + 1))
    (tmp_path / "notes.txt").write_text("no plan")
    found = list_examples(tmp_path)
    assert len(found) == EXAMPLES_LIMIT - 1
    assert found[0] == {"name": "plan_01", "summary": "", "text": "name: plan 1\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A test fails. Then more.\nname: x\n", "A test fails"),
        ("# A test fails.\n# More.\n", "A test fails"),
        ("name: x\n# A test fails.\n", ""),
        ("#" + " x" * SUMMARY, "x " * (SUMMARY // 2)),
    ],
)
def test_an_example_is_offered_with_its_first_sentence(text, said):
    assert plan_summary(text) == said


def test_an_example_that_changed_is_read_again(tmp_path):
    import os

    path = tmp_path / "plan.yaml"
    path.write_text("name: before\n")
    assert list_examples(tmp_path)[0]["text"] == "name: before\n"
    path.write_text("name: after\n")
    os.utime(path, ns=(1, 1))
    assert list_examples(tmp_path)[0]["text"] == "name: after\n"


def test_the_script_of_a_session_gets_what_it_begins_with(operator, device):
    session = session_of(operator)
    config = page_data(signed_in(operator).get(f"/sessions/{session.pk}/").content.decode(), "config")
    assert config["session"] == session.pk
    assert config["may_operate"] is True
    assert [(row["name"], row["labels"]) for row in config["devices"]] == [("laptop", [])]
    assert config["defaults"]["task"]["state"] == "WAITING_DEPENDENCY"
    assert config["actor_choices"]["idle"] == ["ProcessInteraction", "Pause", "InactivityTimeout", "Fault", "Cancel"]


def test_the_page_costs_the_same_queries_however_many_sessions_there_are(operator, django_assert_num_queries):
    client = signed_in(operator)
    for number in range(20):
        session_of(operator, f"number {number}")
    with django_assert_num_queries(4):  # login session, user, groups for the role, recent requests
        client.get("/")


def test_the_page_of_a_session_costs_few_queries(operator, django_assert_num_queries):
    session = session_of(operator)
    client = signed_in(operator)
    with django_assert_num_queries(7):  # as above, the devices, and what these are behind
        client.get(f"/sessions/{session.pk}/")


def test_pages_hold_no_inline_script_or_style(operator):
    session = session_of(operator)
    client = signed_in(operator)
    for path in ("/", f"/sessions/{session.pk}/", "/login/"):
        html = client.get(path).content.decode()
        scripts = re.findall(r"<script(?![^>]*(?:src=|application/json))", html)
        assert scripts == []
        assert re.findall(r"\sstyle=|<style|\son[a-z]+=", html) == []


def test_a_browser_that_asks_for_an_icon_by_itself_is_sent_to_ours(client):
    assert client.get("/favicon.ico")["Location"].endswith("frontend/orrery.svg")


def test_only_staff_are_led_to_the_admin(client, operator):
    client.force_login(operator)
    session = sessions.session_create(operator, "mine", by="system")
    for is_staff in (False, True):
        operator.is_staff = is_staff
        operator.save()
        page = client.get(f"/sessions/{session.pk}/").content.decode()
        leads_to_row = "/admin/constellations/constellation/0/change/" in page
        assert ('href="/admin/"' in page, leads_to_row) == (is_staff, is_staff)
