"""Who asks the queue for a runner: whoever has written a request, and the jobs that see that runners are there."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from agents.devices.host import instance_name
from agents.engine.leases import LEASE_S
from agents.models import Runner
from agents.streams.statements import write_transaction

RUNNERS = "runners"
"""The cluster whose workers carry one runner each; short jobs have the default cluster, whose queue all hosts share."""


def queue_of(cluster: str) -> str:
    """The queue that a cluster's jobs wait in. That of runners is the installation's own: each has its files and its workers,
    so a neighbour on the same database that took one of its jobs could only keep it from becoming a runner.
    """
    return f"{RUNNERS} {instance_name()}" if cluster == RUNNERS else cluster


def wake_a_runner() -> None:
    """Ask the queue for a runner when none has shown life lately and none has been asked for."""
    alive = timezone.now() - timedelta(seconds=LEASE_S)
    if not Runner.objects.filter(state="LIVE", renewed_at__gt=alive).exists() and not runners_asked_for():
        ask_for_runner()


def ask_for_runner() -> None:
    """Enqueue a runner; one too many returns at once."""
    with write_transaction():
        async_task("agents.jobs.run_runner", secrets.token_hex(8), cluster=RUNNERS, timeout=-1, ack_failure=True, save=False)


def runners_asked_for() -> int:
    """Runners of this installation that are enqueued and that no worker has taken up yet."""
    count: int = OrmQ.objects.filter(key=queue_of(RUNNERS)).count()
    return count
