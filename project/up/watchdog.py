"""How `up` knows that its children work, not only live.

A process that is killed while it waits at a queue of django-q2 takes the queue's lock with it: everything lives and
nothing runs (seen with django-q2 1.11). So each child has a probe that asks for work done: the web server answers a
request, the cluster `jobs` brings a canary job back, each worker of the cluster `runners` has a runner that renews its row.
A cluster whose processes have just changed must show it soon; else it may be busy for as long as a job is allowed to be.
"""

import http.client
import signal
from datetime import datetime
from typing import Protocol

from django.conf import settings
from django_q.models import Task
from django_q.tasks import async_task

from agents.devices.host import boot_identity
from agents.models import Runner
from project.up.processes import Identity, send_signal

START_S = 30.0
"""Seconds a child may take to its first sign of work."""
SHAKEN_S = 4.0
"""Seconds for a sign of work after one of a cluster's processes has gone or come."""
CANARY_EVERY_S = 5.0
CANARY = "agents.jobs.canary"
BUSY_S = settings.JOB_TIMEOUT_S + 10.0
"""Seconds for a canary that may have to wait behind a long job."""
RUNNERS_EVERY_S = 0.5
FRESH_S = 10.0
"""A runner that has not renewed its row for this long does not work: its leases have ended by then."""
WEB_EVERY_S = 5.0
WEB_STARTING_S = 0.25
WEB_ANSWER_S = 2.0
WEB_SILENT_S = 30.0


class Probe(Protocol):
    """Says what is wrong with a child. Times are of one monotonic clock, in seconds."""

    ready: bool

    def started(self, now: float) -> None:
        """A new process begins; nothing is known of it."""

    def look(self, now: float, cluster: set[Identity]) -> str:
        """What is wrong, for people; empty when nothing is, or nothing is known yet. May raise a database's errors."""

    def excused(self, now: float) -> None:
        """It could not work, without its fault: what it owes is counted from now on."""

    def farewell(self, cluster: set[Identity]) -> None:
        """The child will be asked to stop now."""

    def at_work(self, cluster: set[Identity]) -> set[Identity]:
        """Those in it that work on although the child has fallen."""


class LivingProbe:
    """For a program that works while it lives."""

    ready = False

    def started(self, now: float) -> None:
        self.ready = True

    def look(self, now: float, cluster: set[Identity]) -> str:
        return ""

    def excused(self, now: float) -> None:
        """Nothing is owed."""

    def farewell(self, cluster: set[Identity]) -> None:
        """Nobody has to be told."""

    def at_work(self, cluster: set[Identity]) -> set[Identity]:
        return set()


class CanaryProbe(LivingProbe):
    """A job sent through broker, pusher, worker and monitor of the cluster `jobs`, again and again."""

    def __init__(self) -> None:
        self.started(0.0)

    def started(self, now: float) -> None:
        self.ready = False
        self._limit_s = START_S
        self._cluster: set[Identity] = set()
        self._job = ""
        self._sent_at = self._send_at = now

    def look(self, now: float, cluster: set[Identity]) -> str:
        if self.ready and cluster != self._cluster:
            # The canary that is out may have died with its worker, so another one counts.
            self._job, self._send_at, self._limit_s = "", now, SHAKEN_S
        self._cluster = cluster
        if not self._job:
            if now >= self._send_at:
                self._job = async_task(CANARY, str(now), task_name="canary", cluster="jobs")
                self._sent_at = now
        elif Task.objects.filter(id=self._job).exists():  # it has come back
            Task.objects.filter(func=CANARY).delete()
            self.ready, self._job, self._limit_s = True, "", BUSY_S
            self._send_at = now + CANARY_EVERY_S
        elif now - self._sent_at > self._limit_s:
            return f"no job came back within {self._limit_s:g} s"
        return ""

    def excused(self, now: float) -> None:
        self._job, self._send_at, self._limit_s = "", now, SHAKEN_S if self.ready else START_S


class RunnersProbe(LivingProbe):
    """Each of the cluster's workers carries a runner, and each runner renews its row."""

    def __init__(self, wanted: int):
        self._wanted = wanted
        self.working: set[Identity] = set()
        self.started(0.0)

    def started(self, now: float) -> None:
        self.ready = False
        self._limit_s = START_S
        self._renewals: dict[int, tuple[datetime, float]] = {}
        self._whole_at = self._look_at = now

    def look(self, now: float, cluster: set[Identity]) -> str:
        if now < self._look_at:
            return ""
        self._look_at = now + RUNNERS_EVERY_S
        self.working = self._fresh(now, cluster)
        if len(self.working) >= self._wanted:
            self.ready, self._limit_s, self._whole_at = True, SHAKEN_S, now
        elif now - self._whole_at > self._limit_s:
            return f"{len(self.working)} of {self._wanted} runners for {self._limit_s:g} s"
        return ""

    def excused(self, now: float) -> None:
        self._whole_at = self._look_at = now
        self._limit_s = SHAKEN_S if self.ready else START_S
        self._renewals = {runner: (renewed_at, now) for runner, (renewed_at, _) in self._renewals.items()}

    def _fresh(self, now: float, cluster: set[Identity]) -> set[Identity]:
        """The cluster's runners that have renewed within FRESH_S of our own clock, whatever the clocks of others say."""
        renewals = {}
        fresh = set()
        for runner in Runner.objects.filter(host=boot_identity()).exclude(state="ENDED"):
            known = self._renewals.get(runner.pk)
            since = known[1] if known and known[0] == runner.renewed_at else now
            renewals[runner.pk] = (runner.renewed_at, since)
            identity = Identity(runner.pid, runner.pid_start)
            if identity in cluster and now - since <= FRESH_S:
                fresh.add(identity)
        self._renewals = renewals
        return fresh

    def farewell(self, cluster: set[Identity]) -> None:
        """SIGTERM to the cluster's main process tells its workers nothing, so the runners are told here, each once.

        One that has begun since the last look gets it by its row: in a worker without a runner the signal would kill.
        """
        told = {identity for identity in self.working & cluster if send_signal(identity, signal.SIGTERM)}
        pids = [identity.pid for identity in cluster - told]
        Runner.objects.filter(host=boot_identity(), pid__in=pids).exclude(state="ENDED").update(stop_wanted=True)

    def at_work(self, cluster: set[Identity]) -> set[Identity]:
        return self.working & cluster


class WebProbe(LivingProbe):
    """Any answer will do: whether it is a good one is for /health/ to say to people."""

    def __init__(self, bind: str, port: int):
        self._bind = "127.0.0.1" if bind in ("0.0.0.0", "") else "::1" if bind == "::" else bind
        self._port = port
        self.started(0.0)

    def started(self, now: float) -> None:
        self.ready = False
        self._answered_at = self._ask_at = now

    def look(self, now: float, cluster: set[Identity]) -> str:
        if now < self._ask_at:
            return ""
        if self._answers():
            self.ready, self._answered_at = True, now
        self._ask_at = now + (WEB_EVERY_S if self.ready else WEB_STARTING_S)
        limit_s = WEB_SILENT_S if self.ready else START_S
        return f"no answer for {limit_s:g} s" if now - self._answered_at > limit_s else ""

    def excused(self, now: float) -> None:
        self._answered_at = now

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._bind, self._port, timeout=WEB_ANSWER_S)
        try:
            connection.request("GET", "/health/", headers={"Host": "localhost"})
            return connection.getresponse().status < 600
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
