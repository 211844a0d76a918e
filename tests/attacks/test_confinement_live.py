"""A real installation, and an operator whose task wants to be more than that."""

import json
import socket
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings

from tests.project.installation import Installation, a_database

pytestmark = [pytest.mark.attack, pytest.mark.live, pytest.mark.one_database]

PROGRAM = Path(__file__).with_name("breaking_out.py").read_text()
RUN_S = 60.0


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """An installation that serves, with a token of an operator in `token`."""
    folder = tmp_path_factory.mktemp("walls")
    with a_database(folder) as url:
        installation = Installation(folder, url)
        assert installation.manage("migrate", "-v", "0").returncode == 0
        installation.start()
        try:
            installation.until(installation.is_up, 60)
            made = installation.manage("shell", "-c", OPERATOR)
            assert made.returncode == 0, made.stderr
            installation.token = installation.manage(
                "token_create", "mallory", "--scope", "read", "--scope", "operate"
            ).stdout.strip()
            yield installation
        finally:
            installation.end()


OPERATOR = (
    "from django.contrib.auth.models import Group, User; "
    "User.objects.create_user('mallory').groups.add(Group.objects.get(name='operator')); "
    "User.objects.create_superuser('root')"
)


def rest(installation, path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{installation.port}/api/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {installation.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def carried_out(installation, *tasks) -> list[dict]:
    """The tasks' rows once the plan's run has ended."""
    session = rest(installation, "sessions/", {"title": "attack"})["id"]
    asked = rest(installation, f"sessions/{session}/interactions/", {"plan": json.dumps({"tasks": list(tasks)})})

    def ended() -> bool:
        rows = rest(installation, f"sessions/{session}/interactions/")["results"]
        return [row["state"] for row in rows] in (["done"], ["refused"])

    assert asked
    installation.until(ended, RUN_S)
    return rest(installation, f"tasks/?session={session}")["results"]


def test_a_task_of_an_operator_gets_nothing_of_the_server(served):
    runner = min(one.pid for one in served.runners())
    argv = ["python", "-c", PROGRAM, str(settings.BASE_DIR), str(served.folder), str(runner), "root"]
    other = served.folder / "workspaces" / "gpu_server"
    other.mkdir(parents=True, exist_ok=True)
    (other / "secret.txt").write_text("another's")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0orrery-{runner}")
        (task,) = carried_out(served, {"task_id": "attack", "device": "laptop", "command": argv})
    assert (task["state"], task["result"]) == ("COMPLETED", []), task


def test_the_device_says_what_its_commands_are_behind(served):
    assert {device["confinement"] for device in rest(served, "devices/")["results"]} == {"confined by bubblewrap"}
