"""The one address that needs no login."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from agents.models import Runner
from project.health import RUNNER_DEAD_S

pytestmark = pytest.mark.django_db


def add_runner(age_s=0, state="LIVE"):
    now = timezone.now()
    renewed = now - timedelta(seconds=age_s)
    Runner.objects.create(host="h", pid=1, pid_start=1, state=state, files="f", started_at=now, renewed_at=renewed)


def test_health_needs_no_login_and_counts_the_runners_that_are_alive(client):
    assert client.get("/health/").json() == {"status": "no_runner", "database": "ok", "storage": "ok", "runners": 0}
    add_runner()
    add_runner(age_s=RUNNER_DEAD_S + 1)
    add_runner(state="ENDED")
    answer = client.get("/health/")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "database": "ok", "storage": "ok", "runners": 1})


def test_a_database_that_does_not_answer_is_503(client, monkeypatch):
    def lost(*args, **kwargs):
        raise OperationalError("gone")

    monkeypatch.setattr(Runner.objects, "filter", lost)
    monkeypatch.setattr("project.health.connection", type("Connection", (), {"close": staticmethod(lambda: None)}))
    answer = client.get("/health/")
    assert (answer.status_code, answer.json()["database"]) == (503, "unreachable")
    assert "gone" not in answer.content.decode()


def test_health_cannot_be_posted_to(client):
    assert client.post("/health/").status_code == 405


def test_a_state_folder_without_room_is_503(client, monkeypatch):
    monkeypatch.setattr("agents.devices.host.ROOM_BYTES", 1 << 62)
    answer = client.get("/health/")
    assert (answer.status_code, answer.json()["status"], answer.json()["storage"]) == (503, "storage_full", "full")
