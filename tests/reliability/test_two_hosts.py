"""Two installations on one PostgreSQL, each a host with a folder of its own: one is killed whole or stands still meanwhile."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from agents.engine import summon
from agents.models import Device, Event, InboxItem, Lease
from agents.services.devices import device_create
from agents.streams.door import door
from agents.streams.verify import verify_database
from constellations.models import Attempt, Constellation, Task
from tests.reliability.cluster import Cluster, Marks, marked, until

RUN = "import django; django.setup(); from agents.engine.runner import Runner; Runner().run()"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.kill,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="two hosts share no file of SQLite's"),
]
assert connection is not None

NAMES = ("anna", "bert")
HEARTBEAT_S = 2
"""A host is missed three times as long after it has gone."""


@pytest.fixture
def marks(state_dir) -> Marks:
    return Marks(state_dir)


class Host:
    """An installation on the test's database: one runner with a name and a folder of its own, in a group of processes."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder / f"host-{name}"
        self.folder.mkdir()
        self.env = Cluster(self.folder).env | {
            "ORRERY_HOST": name, "ORRERY_WRITABLE": str(folder), "DJANGO_SETTINGS_MODULE": "project.settings",
        }  # fmt: skip
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Returns when its device is connected."""
        with (self.folder / "runner.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN], cwd=settings.BASE_DIR, env=self.env, stdout=log, stderr=log, start_new_session=True
            )
        until(lambda: state_of(self.name) == "connected", f"the device of {self.name}, see {self.folder / 'runner.log'}")

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture
def hosts(state_dir, settings):
    """An installation for each name, with one device that is called so, too."""
    made = {name: Host(name, state_dir) for name in NAMES}
    for name in NAMES:
        device = device_create(name, capabilities=["both"], max_concurrent=4, by="system")
        with door(device.pk, "system") as opened:
            fields = {"host": name, "connection": {"heartbeat_s": HEARTBEAT_S}}
            opened.turn.record("device_changed", set={"device": {str(device.pk): fields}})
    for each in made.values():
        each.start()
    yield made
    for each in made.values():
        each.kill()
    for settings.HOST_NAME in NAMES:
        for pid in marked():
            os.kill(pid, signal.SIGKILL)


def state_of(name: str) -> str:
    return Device.objects.get(name=name).state


def is_done() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def outcomes(task_id: str) -> list[str]:
    return list(Attempt.objects.filter(task__task_id=task_id).order_by("number").values_list("outcome", flat=True))


def submit_to(hosts: dict[str, Host], driver: str, engine, plan: dict) -> None:
    """Submit a plan whose session that host drives: the others stand still until it has taken it, too shortly to be missed."""
    others = [each.process.pid for name, each in hosts.items() if name != driver]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        session, _ = engine.submit(plan)
        until(lambda: Lease.objects.filter(stream=session.pk, runner__pid=hosts[driver].process.pid).exists(), "its lease")
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def leaves_its_name(task_id: str, device: str) -> dict:
    return {"task_id": task_id, "device": device, "command": ["sh", "-c", "echo here > found; sleep 0.2"]}


def test_commands_run_on_their_devices_host_whoever_drives_the_session(engine, hosts, marks):
    engine.submit({"tasks": [leaves_its_name(f"t{n}", NAMES[n % 2]) for n in range(6)]})
    until(is_done, "the run")
    assert Constellation.objects.get().state == "COMPLETED"
    for name, each in hosts.items():
        workspaces = each.folder / "workspaces"
        assert (workspaces / name / "found").read_text() == "here\n"
        assert [path.name for path in workspaces.iterdir()] == [name]
    assert list(verify_database()) == []


@pytest.mark.parametrize("killed", NAMES)
def test_a_host_that_is_killed_whole_takes_its_devices_along_and_nobody_runs_its_tasks(engine, hosts, marks, killed):
    other = next(name for name in NAMES if name != killed)
    engine.submit({"tasks": [marks.command("gone", killed, 15, on_lost="retry"), marks.command("stays", other, 8)]})
    until(lambda: marks.count("start") == 2, "both commands")
    hosts[killed].kill()
    until(lambda: state_of(killed) == "disconnected", "the device of the host that has gone")
    until(lambda: outcomes("stays") == ["completed"], "the other host's command, which nobody has interrupted")
    lost = outcomes("gone")
    assert set(lost) == {"lost"}
    assert marks.count("start") == 2, "nobody has run it anywhere else"
    assert Task.objects.get(task_id="gone").state == "PENDING"
    assert not (hosts[other].folder / "workspaces" / killed).exists()
    hosts[killed].start()
    until(is_done, "the run, after the host has come back")
    assert outcomes("gone") == [*lost, "completed"]
    assert outcomes("stays") == ["completed"]
    assert not (hosts[other].folder / "workspaces" / killed).exists()
    marks.check()
    assert list(verify_database()) == []


@pytest.mark.parametrize("driver", NAMES)
def test_what_a_host_that_stood_still_has_done_is_refused_and_recorded(engine, hosts, marks, driver):
    """Its tasks wait, and begin when nothing is left of the lost ones. If it drove the session, the other host takes that."""
    stopped = hosts["anna"].process.pid
    anywhere_but_there = marks.command("any", "", 3, on_lost="retry") | {"capabilities": ["both"], "not_device": ["bert"]}
    del anywhere_but_there["device"]
    submit_to(hosts, driver, engine, {"tasks": [marks.command("only", "anna", 30, on_lost="retry"), anywhere_but_there]})
    until(lambda: marks.count("start") == 2, "both commands")
    os.kill(stopped, signal.SIGSTOP)
    try:
        until(lambda: state_of("anna") == "disconnected", "the device of the host that stands still")
        until(lambda: outcomes("only") == ["lost"], "the attempt there")
        assert Task.objects.get(task_id="only").state == "PENDING"
    finally:
        os.kill(stopped, signal.SIGCONT)
    until(lambda: state_of("anna") == "connected", "the device, once its host goes on")
    until(lambda: marks.count("start") == 4, "the attempts after those that were lost")
    attempts = Attempt.objects.filter(outcome="").values_list("task__task_id", "number")
    assert set(attempts) == {("only", 2), ("any", 2)}
    until(lambda: outcomes("any") == ["lost", "completed"], "the short one")
    at_work = {name for name in NAMES if (hosts[name].folder / "workspaces" / name).exists()}
    assert at_work == {"anna"}
    times = marks.times()
    first, second = Attempt.objects.filter(task__task_id="only").order_by("number")
    assert "end" not in times[first.pk]
    assert times[second.pk]["start"] > times[first.pk]["start"]
    assert Event.objects.filter(stream=Device.objects.get(name="anna").pk, data__event="lost").count() == 1


def test_a_cluster_leaves_the_jobs_of_another_hosts_runners_to_that_host(state_dir, settings):
    """Whichever cluster saw it first would keep it: its one worker carries a runner, and takes no second job."""
    clusters = {}
    for name in NAMES:
        folder = state_dir / f"cluster-{name}"
        folder.mkdir()
        clusters[name] = Cluster(folder, runners=1)
        clusters[name].env |= {"ORRERY_HOST": name}
    queued = {}
    for name in reversed(NAMES):  # the one that is to be left alone waits longer
        settings.HOST_NAME = name
        queued[name] = summon.queue_of(summon.RUNNERS)
    anna, bert = (OrmQ.objects.filter(key=queued[name]) for name in NAMES)
    try:
        clusters["anna"].start()
        for settings.HOST_NAME in reversed(NAMES):
            summon.ask_for_runner()
        until(lambda: anna.filter(lock__gt=timezone.now()).exists(), "the job of the cluster that runs")
        assert bert.filter(lock__lt=timezone.now()).count() == 1, "that of the other is as it was"
        clusters["bert"].start(among=2)
        assert {row.files.split("cluster-")[1].split("/")[0] for row in clusters["bert"].runners()} == set(NAMES)
    finally:
        for each in clusters.values():
            each.kill()
