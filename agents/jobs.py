"""What django-q2 runs. Every function takes ids only, is a few lines long, and a second delivery changes nothing."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from django.conf import settings
from django.db import DatabaseError

log = logging.getLogger(__name__)

ASK_S = 0.5
"""Between two tries to ask for a runner."""
RECENT_S, LONG_AGO_S = 600.0, 8 * 86_400.0
"""Attempts that have ended so long ago are looked at for long outputs, each minute and each hour."""
JOBS = frozenset(
    f"agents.jobs.{name}" for name in ("run_runner", "ensure_runners", "canary", "keep_outputs", "apply_retention")
)
"""All that is ever enqueued."""
OPTIONS = ("sync", "hook", "chain", "iter_count")
"""What of a schedule would have something run at once, or afterwards."""
PICKLED = ("args", "kwargs", "result")


def connect() -> None:
    """Every worker of the runners' cluster asks for its runner when it is born; what others write into tables is not run."""
    from django_q.models import Task
    from django_q.signals import post_spawn, pre_enqueue

    post_spawn.connect(on_spawn, dispatch_uid="orrery.runner")
    pre_enqueue.connect(on_enqueue, dispatch_uid="orrery.foreign")
    for name in PICKLED:  # without a signature, other than the jobs of the queue; and nobody needs them
        Task._meta.get_field(name).from_db_value = unread  # type: ignore[union-attr]


def unread(value: str | None, expression: Any, connection: Any) -> None:
    """What a pickle in the database is read as."""


def on_enqueue(sender, task: dict[str, Any], **kwargs) -> None:
    """A row of django-q2's schedules may name any function: one that is not ours becomes a job that says so."""
    if task["func"] in JOBS and not any(task.get(option) for option in OPTIONS):
        return
    for option in OPTIONS:
        task.pop(option, None)
    task.update(func="agents.jobs.refuse", args=(str(task["func"]),), kwargs={})


def refuse(function: str) -> None:
    """The job in place of a foreign one: it fails, and the log of the jobs says so."""
    raise PermissionError(f"{function} is none of Orrery's jobs, or was to run in a way that these do not")


def on_spawn(sender, proc_name: str, **kwargs) -> None:
    from django_q.conf import Conf

    from agents.engine.summon import RUNNERS

    if Conf.CLUSTER_NAME == RUNNERS:
        ask_patiently()


def ask_patiently() -> None:
    """Enqueue a runner as soon as the database takes it; a worker whose parent is gone has nothing to wait for."""
    from agents.engine.summon import ask_for_runner
    from agents.streams.outages import outage_refusal, with_fresh_connection

    parent = os.getppid()
    while os.getppid() == parent:
        try:
            with_fresh_connection(ask_for_runner)
            return
        except DatabaseError as error:
            if outage_refusal(error) is None:
                raise
        time.sleep(ASK_S)


def run_runner(nonce: str) -> None:
    """The job of a runner's life: it is acknowledged at once, so that it is never delivered twice."""
    from agents.errors import DatabaseBusy, DatabaseGone, StorageFull
    from agents.streams.outages import translate_outages

    try:
        with translate_outages():
            acknowledge(nonce)
            if live_runners() < settings.RUNNERS:
                from agents.engine.runner import Runner

                Runner().run()
    except (DatabaseBusy, DatabaseGone, StorageFull):
        log.warning("a runner could not begin, or not outlast the loss of its database; it is asked for again", exc_info=True)
        ask_patiently()


def acknowledge(nonce: str) -> None:
    from django_q.models import OrmQ

    from agents.engine.summon import RUNNERS, queue_of

    for queued in OrmQ.objects.filter(key=queue_of(RUNNERS)):
        if queued.task.get("args") == (nonce,):
            queued.delete()


def live_runners() -> int:
    """Runners of this installation on this machine that are alive. Those that have outlived their cluster do not count: they
    are about to end.
    """
    from django.utils import timezone

    from agents.devices import host
    from agents.engine.leases import is_dead
    from agents.models import Runner

    here = Runner.objects.filter(host=host.boot_identity(), files=str(host.runtime_dir()))
    rows = here.exclude(state="ENDED")
    now = timezone.now()
    alive = (row for row in rows if not is_dead(row.pk, row.host, row.files, (now - row.renewed_at).total_seconds()))
    return sum(not host.is_orphaned(row.pid) for row in alive)


def ensure_runners() -> None:
    """The schedule's safety net: ask for as many runners as are missing, and as nobody has asked for yet."""
    from agents.engine.summon import ask_for_runner, runners_asked_for

    for _ in range(settings.RUNNERS - live_runners() - runners_asked_for()):
        ask_for_runner()


def keep_outputs() -> None:
    """The schedule of each minute: long outputs of attempts that have just ended become artifacts."""
    from agents.services.outputs import keep_long_outputs

    keep_long_outputs(RECENT_S)


def apply_retention() -> None:
    """The schedule of each hour: artifacts that are too old or too much are let go, and outputs that were missed are kept.
    Readings of devices go after a day.
    """
    from agents.links.kept_readings import forget_old_readings
    from agents.services import outputs, retention

    forget_old_readings()
    outputs.keep_long_outputs(LONG_AGO_S)
    retention.apply_retention()


def canary(nonce: str) -> None:
    """Proves that the cluster works: the watchdog of `manage.py up` waits for the file."""
    from agents.devices import host

    (host.runtime_dir() / "canary").write_text(f"{nonce} {os.getpid()}")
