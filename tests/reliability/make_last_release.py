"""Makes data/last_release_*.sql.gz: a database as the release before wrote it, with sessions in every state of a working day.

`python -m tests.reliability.make_last_release`, in a clone that has the commit RELEASE, with what that requires. It makes the
file of SQLite; with the URL of an empty database of PostgreSQL as its argument, that one's file. The release's own code does
all of it, in a folder of its own: it migrates, takes requests, works, and has its runners killed in the middle. Only one thing
is changed in that copy: what waits for a person lasts a hundred years, for the file is read long after it would have expired.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from tests.reliability.release_database import SQLITE, change_database, dump_database, keep_database, read_database

RELEASE = "fc570a7"
SECRET_KEY = "the-key-that-has-signed-the-jobs-of-the-file"
LASTING = (
    ("agents/acting/asking.py", "APPROVAL_S = 24 * 3600.0", "APPROVAL_S = 100 * 365 * 86400.0"),
    ("constellations/proposals.py", "PROPOSAL_S = 24 * 3600.0", "PROPOSAL_S = 100 * 365 * 86400.0"),
    ("constellations/call_forms.py", "MAX_SECONDS = 31_536_000", "MAX_SECONDS = 100 * 365 * 86400"),
)
NOWHERE = "/nowhere"
"""In the place of the folder in which the release ran."""
PATIENCE_S = 120.0
DEVICE = "laptop"

BEGIN = """
from django.contrib.auth.models import User
from django.utils import timezone
from django_q.models import Schedule
from django_q.tasks import async_task
from agents import services
import json, sys

owner = User.objects.create_superuser("ada", password="ada-secret")
by = f"user:{owner.pk}"
services.device_create("laptop", max_concurrent=8, by=by)
for title, plan in json.loads(sys.argv[1]).items():
    session = services.session_create(owner, title, by=by)
    services.command_submit(session.pk, "interaction", f"begin-{title}", {"plan": json.dumps(plan)}, by=by)
Schedule.objects.update(next_run=timezone.now())
async_task("agents.jobs.canary", "from the release before", cluster="jobs", save=False)
"""
PAUSE = """
from agents.models import Session
from constellations.commands import constellation_pause
from constellations.models import Constellation

session = Session.objects.get(title="paused")
constellation_pause(Constellation.objects.get(session=session).pk, by=f"user:{session.owner_id}")
"""
PROPOSE = """
from datetime import timedelta
from agents import services
from agents.models import Session
from constellations.models import Constellation
from constellations.proposals import edit_propose

session = Session.objects.get(title="gated")
by = f"user:{session.owner_id}"
token, _ = services.token_create(session.owner, "watcher", ["read", "operate"], timedelta(days=36500), by=by)
task = {"task_id": "proposed", "device": "laptop", "tool": "noop", "after": ["release"]}
operations = [{"op": "add_task", "parameters": task}]
constellation = Constellation.objects.get(session=session).pk
edit_propose(constellation, operations, author=f"token:{token.token_key}", who="watcher", reason="one more")
"""
LATE = """
from agents import services
from agents.models import Session
import json, sys

session = Session.objects.get(title="ended")
plan = json.dumps({"tasks": [{"task_id": "late", "device": "laptop", "tool": "noop"}]})
services.command_submit(session.pk, "interaction", "late", {"plan": plan}, by=f"user:{session.owner_id}")
"""


FIRST_TIME = 'test -e "$0" || { echo $$ >"$0"; exec sleep 600; }'
"""Ends at once where its file is there already, which is the case for whoever goes on."""


def chain(*files: str) -> dict:
    """Tasks one after the other: those with a file last until they are killed, the others do nothing."""
    tasks: list[dict] = []
    for number, file in enumerate(files):
        work = {"command": ["sh", "-c", FIRST_TIME, file]} if file else {"tool": "noop"}
        after = {"after": [tasks[-1]["task_id"]]} if tasks else {}
        tasks.append({"task_id": f"t{number}", "device": DEVICE, "on_lost": "retry", **work, **after})
    return {"tasks": tasks}


PLANS = {
    "ended": chain("", "", ""),
    "running": chain("", "", "running.pid", "", ""),
    "paused": chain("", "paused.pid", "", ""),
    "gated": {"tasks": [{"task_id": "release", "device": DEVICE, "tool": "noop", "confirm": True}]},
    "asking": {
        "tasks": [
            {
                "task_id": "publish", "device": DEVICE,
                "steps": [{"ask": "Publish it?", "options": ["yes", "no"], "timeout": 100 * 365 * 86400}, {"tool": "noop"}],
            }
        ]
    },
}  # fmt: skip


class Release:
    """The release's code in a folder, and its database."""

    def __init__(self, folder: Path, url: str):
        self.folder, self.code, self.url = folder, folder / "code", url
        self.env = {
            **os.environ, "DATABASE_URL": url, "ORRERY_STATE_DIR": str(folder / "state"),
            "ORRERY_SECRET_KEY": SECRET_KEY, "ORRERY_RUNNERS": "1", "ORRERY_CONFINEMENT": "none",
            "ORRERY_UNCONFINED_COMMANDS": "1", "Q_CLUSTER_NAME": "runners",
        }  # fmt: skip

    def unpack(self) -> None:
        self.code.mkdir()
        archive = subprocess.run(["git", "archive", RELEASE], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(self.code)], input=archive, check=True)
        for path, old, new in LASTING:
            text = (self.code / path).read_text()
            assert text.count(old) == 1
            (self.code / path).write_text(text.replace(old, new))

    def manage(self, *arguments: str) -> None:
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=self.code, env=self.env, check=True)

    def run(self, script: str, *arguments: str) -> None:
        """In a process of the release, once Django is ready."""
        begin = "import os, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'project.settings'; django.setup()"
        subprocess.run([sys.executable, "-c", f"{begin}\n{script}", *arguments], cwd=self.code, env=self.env, check=True)

    def pid_files(self) -> list[Path]:
        """Of the commands at work, which outlive their runner."""
        return [path for path in (self.folder / "state").rglob("*.pid") if path.parent.name == DEVICE]

    def read(self, query: str) -> list[tuple]:
        return read_database(self.url, query)


def until(condition: Callable[[], object], what: str) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, Event()
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s"
        pause.wait(0.02)


def has_state(release: Release, title: str, task_id: str, state: str) -> bool:
    query = (
        "SELECT 1 FROM constellations_task t JOIN constellations_constellation c ON c.id = t.constellation_id"
        " JOIN agents_session s ON s.id = c.session_id"
        f" WHERE s.title = '{title}' AND t.task_id = '{task_id}' AND t.state = '{state}'"
    )
    return bool(release.read(query))


def work_as_release(folder: Path, url: str) -> None:
    """Leave in the database what a day of the release leaves there."""
    release = Release(folder, url)
    release.unpack()
    release.manage("migrate", "-v", "0")
    release.run(BEGIN, json.dumps(PLANS))
    cluster = subprocess.Popen(
        [sys.executable, "manage.py", "qcluster"], cwd=release.code, env=release.env, start_new_session=True
    )  # fmt: skip
    try:
        until(lambda: has_state(release, "paused", "t1", "RUNNING"), "the session to be paused is at work")
        release.run(PAUSE)
        waiting = "SELECT count(*) FROM agents_approval WHERE state = 'waiting'"
        until(lambda: release.read(waiting) == [(2,)], "both approvals wait")
        release.run(PROPOSE)
        until(lambda: has_state(release, "ended", "t2", "COMPLETED"), "one has ended")
        until(lambda: has_state(release, "running", "t2", "RUNNING"), "one is in the middle of its chain")
        until(lambda: len(release.pid_files()) == 2, "both commands have begun")
    finally:
        os.killpg(cluster.pid, signal.SIGKILL)
        cluster.wait()
        for path in release.pid_files():
            os.kill(int(path.read_text()), signal.SIGKILL)
    assert has_state(release, "running", "t2", "RUNNING")
    assert release.read("SELECT count(*) FROM constellations_constellation WHERE state = 'PAUSED'") == [(1,)]
    assert release.read(waiting) == [(3,)]
    release.run(LATE)
    change_database(url, f"UPDATE agents_runner SET host = 'elsewhere', files = '{NOWHERE}'")
    assert str(folder) not in dump_database(url), "the file is to name no folder of this machine"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"{SQLITE}{folder}/orrery.sqlite3"
        work_as_release(Path(folder), url)
        kept = keep_database(url)
    print(f"{kept.name}: {kept.stat().st_size} bytes")


if __name__ == "__main__":
    main()
