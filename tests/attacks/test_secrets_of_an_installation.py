"""A whole installation, with files as an older version left them and a secret that its tasks print, log and fail with."""

import json
import re
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.project.installation import START_S, STOP_S, Installation, a_database

pytestmark = [pytest.mark.live, pytest.mark.attack, pytest.mark.one_database]

VALUE = "vErY-sEcReT-4711-of-an-installation"
KEY = "ghp_fOrMpLaNtEd0123456789abcdefghij"
MAKE = """
from datetime import timedelta
from django.contrib.auth.models import Group, User
from agents.services import devices, tokens
user = User.objects.create_user("ann")
user.groups.add(Group.objects.get(name="operator"))
devices.device_create("d", by="system", limits={"env": {"API_TOKEN": {"secret": "DEPLOY"}}})
devices.device_create("lacking", by="system", limits={"env": {"API_TOKEN": {"secret": "NOWHERE"}}})
print("token:", tokens.token_create(user, "t", ["read", "operate"], timedelta(days=1), by="system")[1])
"""
PRINT = f'echo "$API_TOKEN {KEY}"; umask; echo "$API_TOKEN" > kept; exit 3'
HOOK = "tests.attacks.printing_hook.print_it"


@pytest.fixture
def installation(tmp_path, monkeypatch) -> Iterator[Installation]:
    monkeypatch.setenv("ORRERY_SECRET_DEPLOY", VALUE)
    monkeypatch.setenv("ORRERY_ON_STATE_CHANGE", HOOK)
    with a_database(tmp_path) as url:
        made = Installation(tmp_path, url)
        assert made.manage("migrate", "-v", "0").returncode == 0
        assert made.manage("collectstatic", "--noinput", "-v", "0").returncode == 0
        yield made
        made.end()


def ask(installation: Installation, token: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{installation.port}/api/{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def open_to_others(folder: Path) -> set[str]:
    """What others may read of a state folder, but for what stands in a command's own folder, which is closed as a whole."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.lstat().st_mode & 0o077}
    return {name for name in found if not re.match("(workspaces|artifacts)/[^/]+/", name)}


def test_an_installation_keeps_its_files_and_what_its_tasks_say_to_itself(installation):
    folder = installation.folder
    (folder / "logs").mkdir(exist_ok=True)
    old = [folder / "logs" / "web.log", folder / "logs" / "old.log.1", *folder.glob("*.sqlite3*")]
    for path in old:
        path.touch()
        path.chmod(0o644)
    (folder / "logs").chmod(0o755)
    token = installation.manage("shell", "-c", MAKE).stdout.split("token: ")[1].split()[0]
    installation.start()
    installation.until(installation.is_up, START_S)
    assert "Closed " in installation.said()
    tasks = [
        {"task_id": "a", "device": "d", "command": ["sh", "-c", PRINT]},
        {"task_id": "b", "device": "lacking", "command": ["ls"]},
    ]
    made = ask(installation, token, "sessions/", {"plan": json.dumps({"tasks": tasks})})["id"]
    requests = f"sessions/{made}/interactions/"
    installation.until(lambda: ask(installation, token, requests)["results"][0]["state"] == "done", START_S)
    shown = {task["task_id"]: task for task in ask(installation, token, f"tasks/?session={made}")["results"]}
    assert "the secret NOWHERE is not there" in shown["b"]["error"]
    task = ask(installation, token, f"tasks/{shown['a']['id']}/")
    stored = installation.rows("SELECT error FROM constellations_task WHERE task_id = 'a'")[0][0]
    assert VALUE in stored
    assert KEY in stored
    everything = json.dumps([task, ask(installation, token, f"sessions/{made}/?snapshot=1")])
    everything += json.dumps(ask(installation, token, f"sessions/{made}/events/"))
    assert "exit code 3" in everything
    leftovers = installation.manage("shell", "-c", f"import logging; logging.error('it is %s', '{VALUE} {KEY}')").stderr
    assert "0077" in stored
    assert open_to_others(folder) == set()
    installation.up.send_signal(signal.SIGTERM)
    installation.up.wait(STOP_S)
    logs = "".join(path.read_text(errors="replace") for path in (folder / "logs").iterdir())
    assert "hook was told" in logs
    for said in (everything, logs, installation.said(), leftovers):
        assert VALUE not in said
        assert KEY not in said
    assert token not in logs + installation.said()
    assert open_to_others(folder) == set()
