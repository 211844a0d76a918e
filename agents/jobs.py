"""What django-q2 runs. Every function takes ids only, is a few lines long, and a second delivery changes nothing."""

from __future__ import annotations

import os
import secrets

from django.conf import settings

RUNNERS = "runners"
"""The cluster whose workers carry one runner each; short jobs have the default cluster."""


def connect() -> None:
    """Let every worker of the runners' cluster ask for its runner when it is born."""
    from django_q.signals import post_spawn

    post_spawn.connect(on_spawn, dispatch_uid="orrery.runner")


def on_spawn(sender, proc_name: str, **kwargs) -> None:
    from django_q.conf import Conf

    if Conf.CLUSTER_NAME == RUNNERS:
        ask_for_runner()


def ask_for_runner() -> None:
    """Enqueue a runner; one too many returns at once."""
    from django_q.tasks import async_task

    async_task("agents.jobs.run_runner", secrets.token_hex(8), cluster=RUNNERS, timeout=-1, ack_failure=True, save=False)


def runners_asked_for() -> int:
    """Runners that are enqueued and that no worker has taken up yet."""
    from django_q.models import OrmQ

    return OrmQ.objects.filter(key=RUNNERS).count()


def run_runner(nonce: str) -> None:
    """The job of a runner's life: it is acknowledged at once, so that it is never delivered twice."""
    acknowledge(nonce)
    if live_runners() < settings.RUNNERS:
        from agents.engine.runner import Runner

        Runner().run()


def acknowledge(nonce: str) -> None:
    from django_q.models import OrmQ

    for queued in OrmQ.objects.filter(key=RUNNERS):
        if queued.task.get("args") == (nonce,):
            queued.delete()


def live_runners() -> int:
    """Runners of this host that are alive."""
    from django.utils import timezone

    from agents import runtime
    from agents.engine.leases import is_dead
    from agents.models import Runner

    rows = Runner.objects.filter(host=runtime.host()).exclude(state="ENDED")
    now = timezone.now()
    return sum(not is_dead(row.pk, row.host, row.files, (now - row.renewed_at).total_seconds()) for row in rows)


def ensure_runners() -> None:
    """The schedule's safety net: ask for as many runners as are missing, and as nobody has asked for yet."""
    for _ in range(settings.RUNNERS - live_runners() - runners_asked_for()):
        ask_for_runner()


def canary(nonce: str) -> None:
    """Proves that the cluster works: the watchdog of `manage.py up` waits for the file."""
    from agents import runtime

    (runtime.runtime_dir() / "canary").write_text(f"{nonce} {os.getpid()}")
