"""A disk without room, a state folder or a database that cannot be used: said in a sentence, and no work is lost by it."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from agents.engine.bodies.outcomes import OutcomeFile, read_outcomes
from agents.models import Event
from agents.streams.verify import verify_database
from agents.tools.calls import Outcome
from constellations.models import Attempt, Task
from project.up.processes import is_alive
from tests.conftest import TestRunner
from tests.project.installation import REPAIR_S, START_S, Installation
from tests.reliability.test_faults import count

MOST = 1 << 62
SUBMIT = """
import json
from agents.services import sessions
from project.demo.demo import demo_user
user = demo_user()
for device in ("laptop", "gpu_server", "test_server", "prod_server"):
    session = sessions.session_create(user, "room", by="system")
    argv = ["sh", "-c", "sleep 0.1; echo said"]
    tasks = [{"task_id": f"t{n}", "device": device, "command": argv, "on_lost": "fail"} for n in range(20)]
    for n, task in enumerate(tasks):
        task["after"] = [f"t{n - 1}"] if n else []
    sessions.request_submit(session.pk, "interaction", "", {"plan": json.dumps({"tasks": tasks})}, by="system")
"""
"""Four chains of twenty tasks."""
WAIT = 'tasks[5]["command"] = ["sh", "-c", "while [ ! -e {} ]; do sleep 0.05; done; echo said"]'
"""The sixth task of a chain waits until a file is there."""
OPEN = "SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')"
STARTED = "SELECT count(*) FROM constellations_attempt"


@pytest.mark.attack
@pytest.mark.django_db(transaction=True)
def test_what_runs_goes_on_while_there_is_no_room_and_nothing_else_starts(engine, device, monkeypatch):
    says = ["sh", "-c", "echo begun; sleep 0.2; echo ended"]
    _, item = engine.submit({"tasks": [{"task_id": n, "device": "laptop", "command": says} for n in ("a", "b")]
                             + [{"task_id": "c", "device": "laptop", "command": says, "after": ["a", "b"]}]})  # fmt: skip
    seen: list[int] = []

    def room_again() -> None:
        seen.append(count("SELECT count(*) FROM constellations_attempt"))
        monkeypatch.setattr("agents.devices.host.ROOM_BYTES", 0)

    def no_room() -> bool:
        if not seen and runner.sessions.reports.outputs._tails:
            monkeypatch.setattr("agents.devices.host.ROOM_BYTES", MOST)
            seen.append(0)
            runner._loop.call_later(0.6, room_again)
        return runner._all_rest()

    runner = TestRunner(no_room)
    runner.run()
    item.refresh_from_db()
    assert (item.outcome, seen) == ("completed", [0, 2])
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["completed"] * 3
    assert [event.data["interrupted"] for event in Event.objects.filter(type="outage", stream__kind="system")] == [False]
    assert list(verify_database()) == []


@pytest.mark.attack
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite can be told how large its file may grow")
def test_a_database_file_that_cannot_grow_is_waited_for(engine, device):
    tasks = [{"task_id": f"t{n}", "device": "laptop", "tool": "noop", "arguments": {"result": "x" * 2000}} for n in range(300)]
    _, item = engine.submit({"tasks": tasks})
    limited: list[int] = []

    def grow() -> None:
        limited.append(count("SELECT count(*) FROM constellations_attempt WHERE outcome <> ''"))
        runner.journal._raw.execute("PRAGMA max_page_count = 1000000000")

    def limit() -> bool:
        if not limited:
            pages = count("PRAGMA page_count")
            runner.journal._raw.execute(f"PRAGMA max_page_count = {pages + 20}")
            limited.append(pages)
            runner._loop.call_later(0.3, grow)
        return len(limited) == 2 and runner._all_rest()

    runner = TestRunner(limit)
    runner.run()
    item.refresh_from_db()
    assert (item.outcome, runner.gave_up) == ("completed", False)
    assert limited[1] < 300
    assert Attempt.objects.count() == Task.objects.filter(state="COMPLETED").count() == 300
    assert list(verify_database()) == []


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of its own, of 12 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], check=False).returncode:
        pytest.skip("a small disk takes root and the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill_up(path: Path) -> None:
    """Leave not a byte of the disk."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def health_of(installation: Installation) -> dict:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{installation.port}/health/", timeout=5) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


@pytest.mark.live
def test_a_full_disk_ends_nothing_and_work_goes_on_when_there_is_room(small_disk, tmp_path):
    installation = Installation(small_disk, f"sqlite:///{small_disk / 'orrery.sqlite3'}")
    installation._output = tmp_path / "up.out"
    assert installation.manage("migrate", "-v", "0").returncode == 0
    installation.start()
    try:
        installation.until(installation.is_up, START_S)
        processes, runners = installation.processes(), installation.runners()
        submit = SUBMIT.replace("    for n, task", f"    {WAIT.format(tmp_path / 'mark')}\n    for n, task")
        assert installation.manage("shell", "-v", "0", "-c", submit).returncode == 0
        installation.until(lambda: installation.rows(STARTED) == [(24,)], START_S)
        fill_up(small_disk / "fill")
        installation.until(lambda: "cannot be used" in installation.said(), REPAIR_S)
        installation.until(lambda: health_of(installation)["status"] == "storage_full", REPAIR_S)
        (tmp_path / "mark").touch()
        assert installation.up.poll() is None
        (small_disk / "fill").unlink()
        installation.until(lambda: installation.rows(STARTED)[0][0] > 24, REPAIR_S)
        installation.until(lambda: installation.rows(OPEN) == [(0,)], START_S)
        outcomes = "SELECT outcome, count(*) FROM constellations_attempt GROUP BY outcome"
        assert installation.rows(outcomes) == [("completed", 80)]
        assert installation.runners() == runners
        assert [process for process in processes if not is_alive(process)] == []
        installation.until(lambda: "can be used again" in installation.said(), REPAIR_S)
        assert health_of(installation)["status"] == "ok"
        assert "Traceback" not in installation.said()
        checked = installation.manage("verify")
        assert checked.returncode == 0, checked.stdout + checked.stderr
    finally:
        installation.end()


def places(folder: Path) -> dict[str, str]:
    (folder / "corrupt.sqlite3").write_bytes(b"no database at all" * 100)
    return {
        "missing folder": f"sqlite:///{folder / 'missing' / 'x.sqlite3'}",
        "corrupt file": f"sqlite:///{folder / 'corrupt.sqlite3'}",
        "no server": "postgresql://postgres@127.0.0.1:9/orrery",
    }


@pytest.mark.attack
@pytest.mark.parametrize(
    ("command", "place"),
    [("up", "missing folder"), ("up", "corrupt file"), ("up", "no server"), ("demo", "no server"), ("qcluster", "no server"),
     ("migrate", "missing folder"), ("verify", "corrupt file")],
)  # fmt: skip
def test_a_database_that_cannot_be_used_is_one_sentence(tmp_path, command, place):
    installation = Installation(tmp_path / "state", places(tmp_path)[place])
    done = installation.manage(command)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "cannot be used: " in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.attack
@pytest.mark.parametrize(
    "argv", [["manage.py", "up"], ["-m", "daphne", "-p", "0", "project.asgi:application"]], ids=["up", "daphne"]
)
def test_a_state_folder_that_cannot_be_made_is_one_sentence(tmp_path, argv):
    (tmp_path / "file").write_text("in the way")
    env = {**os.environ, "ORRERY_STATE_DIR": str(tmp_path / "file" / "state")}
    done = subprocess.run(
        [sys.executable, *argv], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=False, timeout=START_S
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "ORRERY_STATE_DIR" in done.stderr


def test_an_outcome_that_finds_no_room_is_kept_for_the_next_time(state_dir):
    file = OutcomeFile(state_dir, 1)
    whole = os.dup(file._file)
    file.add(1, Outcome("completed"))
    file.flush()
    with Path("/dev/full").open("w") as full:
        os.dup2(full.fileno(), file._file)
    file.add(2, Outcome("failed", error="why"))
    file.flush()
    os.dup2(whole, file._file)
    assert set(read_outcomes(file.path)) == {1}
    file.flush()
    assert {key: outcome.outcome for key, outcome in read_outcomes(file.path).items()} == {1: "completed", 2: "failed"}
    file.close()
    os.close(whole)
