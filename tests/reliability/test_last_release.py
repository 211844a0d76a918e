"""A database that the release before wrote goes on under this code: its sessions, its approvals, its jobs, its schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.project.installation import a_database
from tests.reliability.make_last_release import DEVICE, SECRET_KEY, until
from tests.reliability.release_database import read_database, restore_database

pytestmark = pytest.mark.live

TASKS = (
    "constellations_task t JOIN constellations_constellation c ON c.id = t.constellation_id"
    " JOIN agents_session s ON s.id = c.session_id"
)
STATES = f"SELECT s.title, t.task_id, t.state FROM {TASKS}"
LOST = f"SELECT s.title, t.task_id FROM {TASKS} JOIN constellations_attempt a ON a.task_id = t.id WHERE a.outcome = 'lost'"
WAITING = "SELECT kind FROM agents_approval WHERE state = 'waiting' ORDER BY kind"
INTERRUPTED = (
    "SELECT c.state FROM constellations_constellation c JOIN agents_session s ON s.id = c.session_id WHERE title = 'running'"
)
UNANSWERED = "SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')"
BEFORE = {
    ("running", "t1", "COMPLETED"), ("running", "t2", "RUNNING"), ("running", "t3", "WAITING_DEPENDENCY"),
    ("paused", "t1", "RUNNING"), ("ended", "t2", "COMPLETED"),
}  # fmt: skip


class Installation:
    """This code on the release's database, with a folder of its own."""

    def __init__(self, folder: Path, url: str):
        self.url, self.state = url, folder / "state"
        self.env = {
            **os.environ, "DATABASE_URL": url, "ORRERY_STATE_DIR": str(self.state),
            "ORRERY_SECRET_KEY": SECRET_KEY, "ORRERY_RUNNERS": "1", "ORRERY_CONFINEMENT": "none",
            "ORRERY_UNCONFINED_COMMANDS": "1",
        }  # fmt: skip
        self.clusters: list[subprocess.Popen] = []
        restore_database(url)

    def run(self, *arguments: str) -> str:
        found = subprocess.run(
            [sys.executable, *arguments], cwd=settings.BASE_DIR, env=self.env, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout
        return found.stdout

    def start(self, name: str) -> None:
        """A cluster: `runners` or `jobs`."""
        with (self.state / f"{name}.log").open("a") as log:
            cluster = subprocess.Popen(
                [sys.executable, "manage.py", "qcluster"], cwd=settings.BASE_DIR, env={**self.env, "Q_CLUSTER_NAME": name},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.clusters.append(cluster)

    def kill(self) -> None:
        while self.clusters:
            cluster = self.clusters.pop()
            os.killpg(cluster.pid, signal.SIGKILL)
            cluster.wait()

    def read(self, query: str) -> list[tuple]:
        return read_database(self.url, query)


@pytest.fixture
def installation(tmp_path) -> Iterator[Installation]:
    with a_database(tmp_path) as url:
        made = Installation(tmp_path, url)
        workspace = made.state / "workspaces" / DEVICE
        workspace.mkdir(parents=True)
        for name in ("running.pid", "paused.pid"):  # the commands of the release end at once where these are there
            (workspace / name).touch()
        yield made
        made.kill()


def test_the_file_of_this_kind_of_database_holds_what_it_says(installation):
    assert set(installation.read(STATES)) >= BEFORE
    assert installation.read(WAITING) == [("edit",), ("question",), ("task",)]
    assert installation.read("SELECT func FROM django_q_schedule") == [("agents.jobs.ensure_runners",)]
    assert {key for (key,) in installation.read("SELECT key FROM django_q_ormq")} == {"jobs", "runners"}


def test_what_the_release_before_left_goes_on_and_ends(installation):
    installation.run("manage.py", "migrate", "-v", "0")
    assert "nothing differs" in installation.run("manage.py", "verify")
    schedule = installation.read("SELECT next_run FROM django_q_schedule")
    installation.start("jobs")
    installation.start("runners")
    until(lambda: [*installation.state.glob("run/*/canary")], "the job that waited in the queue is done")
    assert "from the release before" in next(installation.state.glob("run/*/canary")).read_text()
    until(lambda: installation.read("SELECT next_run FROM django_q_schedule") != schedule, "the schedule goes on")
    until(lambda: installation.read(INTERRUPTED) == [("COMPLETED",)], "what the kill had interrupted")
    installation.run("-m", "tests.reliability.answer_last_release")
    until(lambda: installation.read(UNANSWERED) == [(0,)], "everything that was asked is answered")
    installation.kill()
    assert {state for _, _, state in installation.read(STATES)} == {"COMPLETED"}
    assert set(installation.read(LOST)) == {("running", "t2"), ("paused", "t1")}
    for task in ("late", "proposed"):
        assert installation.read(f"SELECT count(*) FROM constellations_task WHERE task_id = '{task}'") == [(1,)]
    assert installation.read("SELECT reason, version FROM constellations_edit") == [("one more", 2)]
    assert "nothing differs" in installation.run("manage.py", "verify")
