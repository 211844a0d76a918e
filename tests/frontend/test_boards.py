"""The pages of tables: runners and queues, models and cost, policies, agents that were taken for stuck."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.models import Task as Job

from agents.models import Agent, Lease, Loop, Runner, Spending
from agents.services.model_profiles import model_profile_create
from agents.services.policies import policy_create
from agents.services.sessions import session_create
from tests.agents.conftest import add_agents, add_evidence, add_loop, add_model_calls

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]
VERDICT = {
    "rule": "exact_repeat", "identity": "a", "rows": [1, 2], "sentence": "The same call came back alike.", "action": "halt",
}  # fmt: skip


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def runner_of(age_s: float, **fields) -> Runner:
    at = timezone.now() - timedelta(seconds=age_s)
    whole = {"host": "anna 1f2e", "pid": 77, "pid_start": 5, "files": "/nowhere", "started_at": at, "renewed_at": at}
    return Runner.objects.create(**{**whole, **fields})


def held_by(session, runner, wake_s: float) -> None:
    wake_at = timezone.now() + timedelta(seconds=wake_s)
    Lease.objects.update_or_create(stream_id=session.pk, defaults={"runner": runner, "wake_at": wake_at})


def test_runners_tell_who_holds_what_and_what_nobody_holds(operator, viewer):
    kept, lost, hidden = (session_create(owner, title, by="system") for owner, title in
                          ((operator, "kept"), (operator, "lost"), (viewer, "of another")))  # fmt: skip
    living, silent = runner_of(1), runner_of(40)
    held_by(kept, living, 60)
    held_by(lost, silent, -30)
    held_by(hidden, None, -30)
    page = signed_in(operator).get("/runners/")
    shown = {row["id"]: row for row in page.context["runners"]}
    assert (shown[living.pk]["sessions"], shown[living.pk]["is_silent"]) == (1, False)
    assert shown[silent.pk]["is_silent"]
    assert [row["title"] for row in page.context["unheld"]] == ["lost"]
    assert {row["title"] for row in page.context["held"]} == {"kept", "lost"}
    assert "of another" not in page.content.decode()
    assert b"silent, its sessions are taken over" in page.content


def test_queues_tell_what_waits_what_is_under_way_and_what_failed(operator):
    now = timezone.now()
    OrmQ.objects.create(key="jobs", payload="x", lock=now - timedelta(days=30))
    OrmQ.objects.create(key="jobs", payload="x", lock=now)
    for number, success in enumerate((True, True, False)):
        Job.objects.create(
            id=f"{number:032x}", name=f"n{number}", func="agents.jobs.canary", started=now, stopped=now, success=success,
            cluster="jobs",
        )  # fmt: skip
    page = signed_in(operator).get("/runners/")
    jobs = next(row for row in page.context["queues"] if row["name"] == "jobs")
    assert (jobs["waiting"], jobs["under_way"], jobs["done"], jobs["failed"]) == (1, 1, 2, 1)


def test_schedules_tell_what_they_run_and_how_often_in_words(operator):
    next_run = timezone.now()
    periods = {"watering": ("I", 15), "tidying": ("D", None), "counting": ("BW", None)}
    for name, (kind, minutes) in periods.items():
        Schedule.objects.create(name=name, func="agents.jobs.canary", schedule_type=kind, minutes=minutes, next_run=next_run)
    page = signed_in(operator).get("/runners/")
    told = {row["name"]: (row["func"], row["how_often"], row["next_run"]) for row in page.context["schedules"]}
    assert told["watering"] == ("agents.jobs.canary", "every 15 minutes", next_run)
    assert (told["tidying"][1], told["counting"][1]) == ("every day", "biweekly")
    assert told["orrery: keep outputs"][1] == "every minute"
    assert told["orrery: retention"][1] == "every hour"
    assert "<td>every 15 minutes</td>" in page.content.decode()


def test_the_pages_of_tables_cost_a_bounded_number_of_queries(operator, django_assert_max_num_queries):
    client = signed_in(operator)
    runner = runner_of(1)
    for number in range(20):
        session = session_create(operator, f"s{number}", by="system")
        held_by(session, runner, -1)
        agent = add_agents(session)[0]
        add_evidence(add_loop(agent, session), session, {}, {"verdict": VERDICT})
    for path, most in (("/runners/", 14), ("/models/", 16), ("/policies/", 8)):
        with django_assert_max_num_queries(most):
            assert client.get(path).status_code == 200


def test_what_models_cost_is_told_to_whom_it_belongs(operator, viewer, admin_user):
    day = f"{timezone.now():%Y-%m-%d}"
    mine, other = session_create(operator, "mine", by="system"), session_create(viewer, "of another", by="system")
    for scope, key, period, micros in (
        ("installation", 0, day, 5_000_000), ("user", operator.pk, day, 2_000_000), ("session", mine.pk, "", 2_000_000),
        ("session", other.pk, "", 3_000_000), ("user", viewer.pk, "", 3_000_000),
    ):  # fmt: skip
        Spending.objects.create(scope=scope, key=key, period=period, micros=micros, calls=1, input_tokens=10, output_tokens=5)
    model_profile_create("fast", provider="anthropic", model="small", by="system")
    add_model_calls(
        Agent.objects.get(pk=add_agents(mine)[0]),
        mine,
        {"cost": 2, "profile": "fast"},
        {"error_kind": "timeout", "profile": "fast"},
    )
    page = signed_in(operator).get("/models/")
    assert page.context["whole"]["cost"] == 2.0
    assert [row["title"] for row in page.context["spent"]["sessions"]] == ["mine"]
    assert page.context["spent"]["users"] == []
    ((row),) = page.context["spent"]["profiles"]
    assert (row["profile"], row["calls"], row["failed"]) == ("fast", 2, 1)
    whole = signed_in(admin_user).get("/models/")
    assert whole.context["whole"]["cost"] == 5.0
    assert {row["title"] for row in whole.context["spent"]["sessions"]} == {"mine", "of another"}
    assert [row["user"] for row in whole.context["spent"]["users"]] == [viewer.username]


def test_policies_stand_in_the_order_in_which_they_count(operator):
    policy_create(tool="command", decision="ask", order=5, by="system")
    policy_create(tool="write_file", decision="deny", order=1, by="system")
    page = signed_in(operator).get("/policies/")
    assert [row.tool for row in page.context["policies"]] == ["write_file", "command"]
    assert b"Change them in the admin" not in page.content


def test_who_has_no_role_sees_none_of_what_is_everybodys(django_user_model):
    client = signed_in(django_user_model.objects.create_user("nobody"))
    assert [client.get(path).status_code for path in ("/runners/", "/models/", "/policies/")] == [403] * 3


@pytest.fixture
def loop(operator) -> Loop:
    session = session_create(operator, "mine", by="system")
    agent = add_agents(session)[0]
    loop = add_loop(agent, session)
    add_evidence(loop, session, {"target": "make"}, {"target": "make", "verdict": VERDICT}, {"target": "elsewhere"})
    return Loop.objects.get(pk=loop)


def test_an_agent_that_was_stuck_is_shown_with_its_evidence_and_is_labelled(operator, viewer, loop):
    client = signed_in(operator)
    page = client.get("/stuck/")
    ((found),) = page.context["results"]
    assert (found["loop"], found["verdict"]["about"]) == (loop.pk, "the same call with the same outcome")
    assert [row["number"] for row in found["evidence"]] == [1, 2]
    assert page.context["rules"] == [("exact_repeat", "the same call with the same outcome", 1)]
    said = client.put(f"/api/agents/{loop.agent_id}/label", {"stuck": True, "since": 1, "reason": "seen"}, "application/json")
    assert (said.status_code, said.json()["label"]["since"]) == (200, 1)
    assert b"was stuck since row 1" in client.get("/stuck/").content
    assert signed_in(viewer).get("/stuck/").context["results"] == []
    assert b"It was stuck" not in signed_in(viewer).get("/stuck/").content


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("rule=exact_repeat", 1), ("rule=oscillation", 0), ("said=open", 1), ("said=stuck", 0), ("said=free", 0),
        ("said=nonsense", 1), ("before=1", 0), ("before=x", 1), ("before=99999999999999999999", 1), ("rule=%00", 1),
    ],
)  # fmt: skip
def test_stuck_agents_are_narrowed_down(operator, loop, query, found):
    assert len(signed_in(operator).get(f"/stuck/?{query}").context["results"]) == found


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"stuck": True}, "name its number"), ({"stuck": True, "since": 9}, "row 9 is no action"),
        ({"stuck": False, "since": 1}, "since no row"), ({"stuck": "yes"}, "stuck"), ({}, "stuck"),
    ],
)  # fmt: skip
def test_a_label_that_cannot_be_is_refused_with_the_reason(operator, loop, body, word):
    answer = signed_in(operator).put(f"/api/agents/{loop.agent_id}/label", body, "application/json")
    assert answer.status_code == 400
    assert word in answer.content.decode()
    assert Loop.objects.get(pk=loop.pk).label is None
