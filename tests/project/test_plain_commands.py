"""The README's plain commands, without `up`: what watches over the runners then is a schedule."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings

from project.up.processes import Identity, is_alive, send_signal
from tests.project.installation import START_S, Installation, a_database, until

pytestmark = [pytest.mark.live, pytest.mark.kill]

BACK_S = 120.0
"""The schedule is due every minute, and its cluster looks every half a minute."""
SUBMIT = """
import json
from agents.services import sessions
from project.demo.demo import demo_devices, demo_user
user = demo_user()
demo_devices()
session = sessions.session_create(user, "plain", by="system")
tasks = [{"task_id": f"t{n}", "device": "laptop", "command": ["sleep", "1"],
          "after": [f"t{n - 1}"] if n else []} for n in range(8)]
sessions.request_submit(session.pk, "interaction", "plain", {"plan": json.dumps({"tasks": tasks})}, by="system")
"""
COMPLETED = "SELECT count(*) FROM constellations_task WHERE state = 'COMPLETED'"


class PlainCommands(Installation):
    """The three programs, each started by itself."""

    def __init__(self, folder, database_url):
        super().__init__(folder, database_url)
        self.programs: list[subprocess.Popen] = []

    def start(self) -> None:
        web = ["-m", "project.web_server", "-b", "127.0.0.1", "-p", str(self.port), "project.asgi:application"]
        self.run("web", web)
        for cluster in ("jobs", "runners"):
            self.run(cluster, ["manage.py", "qcluster"], Q_CLUSTER_NAME=cluster)

    def run(self, name: str, arguments: list[str], **env: str) -> None:
        with self._output.open("a") as output:
            self.programs.append(
                subprocess.Popen(
                    [sys.executable, *arguments], cwd=settings.BASE_DIR, env={**self.env, **env}, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )
            )  # fmt: skip

    def end(self) -> None:
        """A cluster's processes are of one group; commands have groups of their own, and end by themselves."""
        for program in self.programs:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@pytest.fixture
def installation(tmp_path) -> Iterator[PlainCommands]:
    with a_database(tmp_path) as url:
        plain = PlainCommands(tmp_path, url)
        done = plain.manage("migrate", "-v", "0")
        assert done.returncode == 0, done.stderr
        plain.start()
        try:
            until(lambda: len(plain.runners()) == 2, START_S, plain.said)
            yield plain
        finally:
            plain.end()


def test_runners_that_were_ended_in_the_middle_of_a_run_come_back_and_it_goes_on(installation):
    done = installation.manage("shell", "-v", "0", "-c", SUBMIT)
    assert done.returncode == 0, done.stderr
    until(lambda: installation.rows(COMPLETED) >= [(1,)], START_S, installation.said)
    ended: set[Identity] = installation.runners()
    for runner in ended:
        send_signal(runner, signal.SIGTERM)
    until(lambda: not (installation.runners() & ended), START_S, installation.said)
    until(lambda: len(installation.runners()) == 2, BACK_S, installation.said)
    until(lambda: installation.rows(COMPLETED) == [(8,)], START_S, installation.said)


def test_a_runner_that_was_killed_is_replaced_and_its_work_goes_on(installation):
    done = installation.manage("shell", "-v", "0", "-c", SUBMIT)
    assert done.returncode == 0, done.stderr
    until(lambda: installation.rows(COMPLETED) >= [(1,)], START_S, installation.said)
    killed = installation.runners()
    for runner in killed:
        send_signal(runner, signal.SIGKILL)
    until(lambda: not any(is_alive(runner) for runner in killed), START_S, installation.said)
    until(lambda: len(installation.runners()) == 2, BACK_S, installation.said)
    until(lambda: installation.rows(COMPLETED) == [(8,)], START_S, installation.said)
    checked = installation.manage("verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
