"""Who writes a request asks for a runner, unless there is one or one is on its way."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.engine.leases import LEASE_S
from agents.engine.summon import runners_asked_for, wake_a_runner
from agents.models import Runner

pytestmark = pytest.mark.django_db(transaction=True)


def register_runner(seconds_ago=0.0, state="LIVE"):
    now = timezone.now()
    renewed_at = now - timedelta(seconds=seconds_ago)
    Runner.objects.create(host="h", pid=1, pid_start=1, state=state, files="", started_at=now, renewed_at=renewed_at)


def test_one_runner_is_asked_for_however_often_somebody_asks():
    wake_a_runner()
    wake_a_runner()
    assert runners_asked_for() == 1


def test_a_runner_that_shows_life_is_enough():
    register_runner()
    wake_a_runner()
    assert runners_asked_for() == 0


@pytest.mark.parametrize("gone", [{"seconds_ago": LEASE_S + 1}, {"state": "ENDED"}])
def test_a_runner_that_is_gone_is_replaced(gone):
    register_runner(**gone)
    wake_a_runner()
    assert runners_asked_for() == 1
