"""How `up` judges its children. Times are given, so that nobody waits."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Task

from agents.devices.host import boot_identity, process_start
from agents.models import Runner
from project.up.processes import Identity
from project.up.watchdog import (
    BUSY_S,
    CANARY,
    CANARY_EVERY_S,
    FRESH_S,
    RUNNERS_EVERY_S,
    SHAKEN_S,
    START_S,
    WEB_SILENT_S,
    CanaryProbe,
    RunnersProbe,
    WebProbe,
)

MAIN, WORKER, ANOTHER, FRESH = (Identity(pid, 1) for pid in (100, 101, 102, 103))
CLUSTER = {MAIN, WORKER, ANOTHER}


def come_back() -> None:
    """What the cluster does with the canary that waits: run it, save its result, acknowledge it."""
    package = OrmQ.objects.get()
    job = package.task
    Task.objects.create(
        id=job["id"], name=job["name"], func=job["func"], started=timezone.now(), stopped=timezone.now(), success=True
    )
    package.delete()


@pytest.mark.django_db
class TestCanary:
    @pytest.fixture
    def canary(self) -> CanaryProbe:
        """Of a cluster that has brought its first canary back at 1."""
        canary = CanaryProbe()
        canary.started(0.0)
        assert canary.look(0.0, CLUSTER) == ""
        come_back()
        assert canary.look(1.0, CLUSTER) == ""
        return canary

    def test_a_cluster_works_once_a_job_has_come_back_through_all_of_it(self):
        canary = CanaryProbe()
        canary.started(0.0)
        assert canary.look(0.0, CLUSTER) == ""
        assert not canary.ready
        assert OrmQ.objects.get().key == "jobs"
        come_back()
        assert canary.look(0.1, CLUSTER) == ""
        assert canary.ready

    def test_canaries_leave_nothing_behind(self, canary):
        assert not Task.objects.filter(func=CANARY).exists()
        assert not OrmQ.objects.exists()

    def test_the_next_canary_goes_out_when_it_is_time(self, canary):
        canary.look(1.0 + CANARY_EVERY_S - 0.1, CLUSTER)
        assert not OrmQ.objects.exists()
        canary.look(1.0 + CANARY_EVERY_S, CLUSTER)
        assert OrmQ.objects.count() == 1

    def test_a_cluster_that_may_be_busy_gets_as_long_as_a_job_may_take(self, canary):
        sent = 1.0 + CANARY_EVERY_S
        canary.look(sent, CLUSTER)
        assert canary.look(sent + BUSY_S - 1, CLUSTER) == ""
        assert canary.look(sent + BUSY_S + 1, CLUSTER) == f"no job came back within {BUSY_S:g} s"

    def test_a_cluster_that_lost_a_process_must_show_soon_that_it_works(self, canary):
        assert canary.look(2.0, {MAIN, WORKER}) == ""
        assert canary.look(2.5, {MAIN, WORKER, FRESH}) == ""
        assert canary.look(2.6, {MAIN, WORKER, FRESH}) == ""
        assert canary.look(2.5 + SHAKEN_S, {MAIN, WORKER, FRESH}) == ""
        assert canary.look(2.7 + SHAKEN_S, {MAIN, WORKER, FRESH}) == f"no job came back within {SHAKEN_S:g} s"

    def test_a_canary_that_may_have_died_with_its_worker_does_not_count(self, canary):
        canary.look(1.0 + CANARY_EVERY_S, CLUSTER)
        canary.look(6.5, {MAIN, ANOTHER, FRESH})
        assert OrmQ.objects.count() == 2

    def test_a_cluster_that_never_brings_one_back_gets_the_time_of_a_start(self):
        canary = CanaryProbe()
        canary.started(0.0)
        canary.look(0.0, CLUSTER)
        assert canary.look(START_S - 1, CLUSTER) == ""
        assert canary.look(START_S + 1, CLUSTER) == f"no job came back within {START_S:g} s"


@pytest.mark.django_db
class TestRunners:
    def runner(self, process: Identity, state: str = "LIVE") -> Runner:
        long_ago = timezone.now() - timedelta(days=400)
        return Runner.objects.create(
            host=boot_identity(),
            pid=process.pid,
            pid_start=process.start,
            state=state,
            files="",
            started_at=long_ago,
            renewed_at=long_ago,
        )

    @pytest.fixture
    def probe(self) -> RunnersProbe:
        """Of a cluster whose two workers have their runners, seen at 0."""
        probe = RunnersProbe(wanted=2)
        probe.started(0.0)
        self.runner(WORKER)
        self.runner(ANOTHER)
        assert probe.look(0.0, CLUSTER) == ""
        assert probe.ready
        return probe

    def renew(self) -> None:
        for runner in Runner.objects.all():
            Runner.objects.filter(pk=runner.pk).update(renewed_at=runner.renewed_at + timedelta(seconds=3))

    def test_a_cluster_works_when_each_worker_has_a_runner(self):
        probe = RunnersProbe(wanted=2)
        probe.started(0.0)
        self.runner(WORKER)
        probe.look(0.0, CLUSTER)
        assert not probe.ready
        self.runner(ANOTHER)
        probe.look(RUNNERS_EVERY_S, CLUSTER)
        assert probe.ready
        assert probe.working == {WORKER, ANOTHER}

    @pytest.mark.parametrize("dead", [{"state": "ENDED"}, {"host": "elsewhere/00000000"}, {"pid": 999}, {"pid_start": 2}])
    def test_a_runner_that_is_not_this_clusters_living_process_does_not_count(self, probe, dead):
        Runner.objects.filter(pid=WORKER.pid).update(**dead)
        probe.look(1.0, CLUSTER)
        assert probe.working == {ANOTHER}

    def test_a_missing_runner_is_missed_after_a_few_seconds(self, probe):
        for second in range(1, 10):
            self.renew()
            trouble = probe.look(float(second), {MAIN, ANOTHER, FRESH})
            if trouble:
                break
        assert trouble == f"1 of 2 runners for {SHAKEN_S:g} s"
        assert second <= SHAKEN_S + 1

    def test_a_runner_that_no_longer_renews_is_missed_whatever_its_clock_says(self, probe):
        for second in range(1, int(FRESH_S) + 1):
            probe.look(float(second), CLUSTER)
        assert probe.working == {WORKER, ANOTHER}
        probe.look(FRESH_S + 1, CLUSTER)
        assert probe.working == set()
        assert probe.look(FRESH_S + SHAKEN_S + 1, CLUSTER) == f"0 of 2 runners for {SHAKEN_S:g} s"

    def test_runners_that_drain_are_still_at_work(self, probe):
        Runner.objects.filter(pid=WORKER.pid).update(state="DRAINING")
        probe.look(1.0, CLUSTER)
        assert probe.working == {WORKER, ANOTHER}

    def test_at_the_farewell_this_clusters_runners_are_told_to_stop_and_no_others(self, probe):
        self.runner(Identity(999, 1))
        probe.farewell(CLUSTER)
        assert set(Runner.objects.filter(stop_wanted=True).values_list("pid", flat=True)) == {WORKER.pid, ANOTHER.pid}

    def test_at_the_farewell_a_runner_is_told_once(self, probe):
        """A second telling would interrupt what it runs."""
        with subprocess.Popen(["sleep", "600"]) as process:
            living = Identity(process.pid, process_start(process.pid))
            self.runner(living)
            probe.look(1.0, {MAIN, living})
            probe.farewell({MAIN, living})
            assert process.wait() == -signal.SIGTERM
        assert not Runner.objects.get(pid=living.pid).stop_wanted

    def test_the_runners_of_a_cluster_that_has_fallen_are_still_at_work(self, probe):
        assert probe.at_work(CLUSTER) == {WORKER, ANOTHER}
        assert probe.at_work({MAIN, ANOTHER}) == {ANOTHER}


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/health/" else 404)
        self.end_headers()

    def log_message(self, *args) -> None:
        """Nothing: the test says what matters."""


class TestWeb:
    @pytest.fixture
    def server(self) -> Iterator[HTTPServer]:
        server = HTTPServer(("127.0.0.1", 0), Answer)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
        server.server_close()

    def test_a_server_works_when_it_answers_even_that_it_is_not_well(self, server):
        probe = WebProbe("0.0.0.0", server.server_port)
        probe.started(0.0)
        assert probe.look(0.0, set()) == ""
        assert probe.ready

    def test_one_that_does_not_answer_gets_the_time_of_a_start(self):
        probe = WebProbe("127.0.0.1", free_port())
        probe.started(0.0)
        assert probe.look(START_S - 1, set()) == ""
        assert not probe.ready
        assert probe.look(START_S + 1, set()) == f"no answer for {START_S:g} s"

    def test_one_that_has_fallen_silent_is_missed(self, server):
        probe = WebProbe("127.0.0.1", server.server_port)
        probe.started(0.0)
        probe.look(0.0, set())
        probe._port = free_port()
        assert probe.look(WEB_SILENT_S - 1, set()) == ""
        assert probe.look(WEB_SILENT_S + 10, set()) == f"no answer for {WEB_SILENT_S:g} s"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]
