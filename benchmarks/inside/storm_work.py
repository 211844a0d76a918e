"""The work that a kill storm must not harm, and what it has come to afterwards.

Each command holds a lock on a file of its task while it lives, notes its start and its end outside of the database, and
prints lines that its attempt's output must hold. The files are among its constellation's artifacts, where it may write.
"""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from agents.models import Approval, InboxItem
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.streams.verify import verify_database
from benchmarks.inside import load
from constellations.models import Attempt, Task

DEVICES = ("east", "west")
SLOTS = 8
"""Of each device."""
SECONDS = (0.4, 2.0)
"""A command takes from the first to the second: about thirteen start in a second."""
SESSION_TASKS = 50
AT_FIRST = 25
"""Tasks of a session that wait for no other one."""
LINES = 20
"""That a command prints at its start, and again at its end."""
ON_LOST = ("retry", "retry", "fail", "retry", "retry", "retry", "ask", "retry", "retry", "retry")
SCRIPT = """
cd "$ORRERY_ARTIFACTS" || exit 3
exec 9>>"lock-$0"
flock -n 9 || echo "$ORRERY_ATTEMPT overlap $(date +%s.%N)" >>marks
echo "$ORRERY_ATTEMPT start $(date +%s.%N)" >>marks
for n in $LINES; do echo "$ORRERY_ATTEMPT begins $n"; done
sleep "$1"
for n in $LINES; do echo "$ORRERY_ATTEMPT ends $n"; done
echo "$ORRERY_ATTEMPT end $(date +%s.%N)" >>marks
""".replace("$LINES", " ".join(map(str, range(LINES))))
FINDINGS = 10
"""Of each kind, that a report shows."""


def submit(tasks: int, seed: int) -> None:
    """Devices, and sessions with `tasks` commands in all."""
    chance = random.Random(seed)
    for name in DEVICES:
        device_create(name, max_concurrent=SLOTS, by="system")
    for first in range(0, tasks, SESSION_TASKS):
        rows = [_command(number, chance) for number in range(min(SESSION_TASKS, tasks - first))]
        waits = [
            {"from": f"t{number - AT_FIRST}", "to": f"t{number}", "type": "COMPLETION_ONLY"}
            for number in range(AT_FIRST, len(rows))
        ]
        load.submit({"tasks": rows, "dependencies": waits})


def _command(number: int, chance: random.Random) -> dict[str, Any]:
    seconds = f"{chance.uniform(*SECONDS):.2f}"
    return {
        "task_id": f"t{number}", "device": DEVICES[number % len(DEVICES)], "on_lost": ON_LOST[number % len(ON_LOST)],
        "command": ["sh", "-c", SCRIPT, f"t{number}", seconds], "timeout": 60,
    }  # fmt: skip


def is_done() -> bool:
    """All requests are answered; whatever asks whether it may be tried again is told that it may."""
    for approval in Approval.objects.filter(kind="lost", state="waiting"):
        approval_decide(approval.pk, "approve", by=_by())
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def _by() -> str:
    """Who posted the work: the first user there was, as `up` makes another one."""
    return f"user:{User.objects.order_by('pk').values_list('pk', flat=True)[0]}"


@dataclass(frozen=True)
class Note:
    """A line that a command has written: `kind` is start, end or overlap, `at` in seconds since 1970."""

    attempt: int
    kind: str
    at: float


class Notes:
    """What the commands have noted so far; `read` takes up what is new."""

    def __init__(self) -> None:
        self.all: list[Note] = []
        self._read: dict[Path, int] = {}

    def read(self) -> list[Note]:
        for path in (settings.STATE_DIR / "artifacts").glob("*/marks"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole = file.read().rpartition(b"\n")[0]
            self._read[path] = self._read.get(path, 0) + len(whole) + bool(whole)
            self.all += [_note(line) for line in whole.decode().splitlines()]
        return self.all

    def starts(self) -> list[float]:
        return sorted(note.at for note in self.read() if note.kind == "start")


def _note(line: str) -> Note:
    attempt, kind, at = line.split()
    return Note(int(attempt), kind, float(at))


def account(notes: list[Note], port: int, token: str) -> dict[str, Any]:
    """How everything ended: counts, and what is wrong, a line each."""
    attempts = list(Attempt.objects.select_related("task").order_by("task_id", "number"))
    wrong = {
        "lost": list(_wrongly_ended()),
        "doubled": list(_doubled(notes, attempts)),
        "overlap": list(_overlaps(notes, attempts)),
        "output": list(_incomplete(attempts, port, token)),
        "verify": list(verify_database()),
    }
    return {
        "completed": sum(attempt.outcome == "completed" for attempt in attempts),
        "lost attempts": sum(attempt.outcome == "lost" for attempt in attempts),
        "failed by on_lost": Task.objects.filter(on_lost="fail", state="FAILED", attempts__outcome="lost").distinct().count(),
        "wrong": {name: len(found) for name, found in wrong.items()},
        "findings": [f"{name}: {line}" for name, found in wrong.items() for line in found[:FINDINGS]],
    }


def _wrongly_ended() -> Iterator[str]:
    """Tasks that have not ended as their own `on_lost` says."""
    for task in Task.objects.prefetch_related("attempts"):
        outcomes = [attempt.outcome for attempt in task.attempts.order_by("number")]
        given_up = task.on_lost == "fail" and "lost" in outcomes
        expected = ("FAILED", "lost") if given_up else ("COMPLETED", "completed")
        others = set(outcomes) - {"lost", "completed"}
        if (task.state, outcomes[-1] if outcomes else "") != expected or others:
            yield f"{task.task_id} of {task.constellation_id}, on_lost {task.on_lost}: {task.state}, {outcomes}: {task.error}"


def _doubled(notes: list[Note], attempts: list[Attempt]) -> Iterator[str]:
    """Work done again that was done: an attempt that began or ended twice, or one after its task had completed."""
    seen: set[tuple[int, str]] = set()
    for note in notes:
        if (note.attempt, note.kind) in seen:
            yield f"attempt {note.attempt}: two notes of its {note.kind}"
        seen.add((note.attempt, note.kind))
    for earlier, later in pairwise(attempts):
        if earlier.task_id == later.task_id and earlier.outcome == "completed":
            yield f"{earlier.task.task_id}: attempt {later.number} after a completed one"
    for attempt in attempts:
        if attempt.outcome == "completed" and not {(attempt.pk, "start"), (attempt.pk, "end")} <= seen:
            yield f"attempt {attempt.pk} has completed without its notes"


def _overlaps(notes: list[Note], attempts: list[Attempt]) -> Iterator[str]:
    """Attempts of one task at one time: by the lock, and by the notes of their times."""
    yield from (f"attempt {note.attempt} found its task's lock taken" for note in notes if note.kind == "overlap")
    times: dict[int, list[float]] = {}
    for note in notes:
        times.setdefault(note.attempt, []).append(note.at)
    for earlier, later in pairwise(attempts):
        both = earlier.task_id == later.task_id and earlier.pk in times and later.pk in times
        if both and max(times[earlier.pk]) > min(times[later.pk]):
            yield f"attempt {later.pk} began before {earlier.pk} had ended"


def _incomplete(attempts: list[Attempt], port: int, token: str) -> Iterator[str]:
    """Completed attempts whose output, as the web server gives it, lacks something."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {token}"}
    for attempt in (attempt for attempt in attempts if attempt.outcome == "completed"):
        connection.request("GET", f"/api/tasks/{attempt.task_id}/output/?attempt={attempt.number}", headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        text = json.loads(content)["text"] if answer.status == 200 else f"{answer.status}: {content[:200]!r}"
        if text != said_by(attempt.pk):
            yield f"attempt {attempt.pk}: {len(text.splitlines())} of {2 * LINES} lines: {text[-80:]!r}"
    connection.close()


def said_by(attempt: int) -> str:
    return "".join(f"{attempt} {when} {number}\n" for when in ("begins", "ends") for number in range(LINES))
