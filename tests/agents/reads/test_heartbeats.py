"""Actors that show no sign of life for two minutes are shown as stale, over REST and in the dashboard."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Actor, Lease, Runner
from tests.agents.conftest import add_actor

pytestmark = pytest.mark.django_db(transaction=True)


def runner_of(session, renewed_ago_s: float) -> None:
    now = timezone.now()
    runner = Runner.objects.create(
        host="here", pid=1, pid_start=1, files="/", started_at=now, renewed_at=now - timedelta(seconds=renewed_ago_s)
    )
    Lease.objects.filter(stream=session.pk).update(runner=runner)


def last_step(session, ago_s: float, state: str = "running") -> None:
    add_actor(session, state)
    Actor.objects.filter(session=session).update(active_at=timezone.now() - timedelta(seconds=ago_s))


@pytest.mark.parametrize(
    ("step_s", "renewed_s", "stale"),
    [(60, None, False), (121, None, True), (600, 3, False), (600, 121, True), (60, 900, False)],
)
def test_a_heartbeat_is_the_last_step_or_the_runners_renewal(rest, session, step_s, renewed_s, stale):
    last_step(session, step_s)
    if renewed_s is not None:
        runner_of(session, renewed_s)
    actor = rest.get(f"/api/sessions/{session.pk}/").json()["actors"][0]
    assert actor["stale"] is stale
    assert [row["stale"] for row in rest.get("/api/sessions/").json()["results"]] == [stale]
    beat = timezone.now() - timezone.datetime.fromisoformat(actor["heartbeat_at"])
    assert beat.total_seconds() == pytest.approx(min(step_s, renewed_s or step_s), abs=30)


def test_what_has_ended_is_not_stale_whatever_its_sessions_runner_does(rest, session):
    last_step(session, 600, "completed")
    assert rest.get(f"/api/sessions/{session.pk}/").json()["actors"][0]["stale"] is False
    assert rest.get("/api/sessions/").json()["results"][0]["stale"] is False


def test_a_session_without_an_actor_is_not_stale(rest, session):
    assert (rest.get("/api/sessions/").json()["results"][0]["stale"], rest.get("/").status_code) == (False, 200)


@pytest.mark.parametrize(("ago_s", "shown"), [(60, False), (300, True)])
def test_the_list_of_the_dashboard_says_so(operator, session, ago_s, shown):
    last_step(session, ago_s)
    client = Client()
    client.force_login(operator)
    ((row),) = client.get("/api/home/").json()["results"]
    assert row["stale"] is shown
    beat = timezone.now() - timezone.datetime.fromisoformat(row["heartbeat_at"])
    assert beat.total_seconds() == pytest.approx(ago_s, abs=30)
