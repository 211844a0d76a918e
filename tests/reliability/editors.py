"""Editors as processes of the operating system: each makes random edits, and notes what it asked for and what it was told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from django.conf import settings

from agents.errors import AgentsError
from agents.streams.fold import consistent_read
from agents.streams.tables import Fields
from constellations.errors import StaleEdit
from constellations.live.kept import read_graph
from constellations.live.live import LiveGraph
from constellations.models import Edit
from constellations.services.edits import edit_apply
from constellations.services.undo import edit_undo
from tests.reliability.random_edits import Chance

PROGRAM = (
    "import django, json, sys; django.setup(); from tests.reliability import editors; editors.work(**json.loads(sys.argv[1]))"
)
END_S = 120
"""Far above what an editor takes."""
KINDS = {"now": 30, "seen": 20, "older": 15, "behind": 8, "again": 8, "shared": 5, "undo": 10, "broken": 4, "so": 3}
"""What an editor does, by weight; see `Editor.ask`."""
STEADY_KINDS = {"now": 60, "seen": 30, "older": 5, "undo": 5}
DEALT = 50
"""Change sets of an editor among which is each kind: as often as its weight says, and at least once."""


STEADY_LOOK = 5
"""Of so many edits at a given pace one is made after another look at the graph."""


# --- in the process


def work(
    name: str, seed: int, constellations: list[int], devices: list[str], notes: str, count: int, every_s: float = 0,
) -> None:  # fmt: skip
    """Make `count` change sets; with `every_s` one in so many seconds, else one after the other."""
    editor = Editor(name, Random(seed), constellations, devices, Path(notes), steady=every_s > 0)
    begun, pause = time.monotonic(), Event()
    for number in range(count):
        pause.wait(max(0.0, begun + number * every_s - time.monotonic()))
        editor.act(number)


class Editor:
    def __init__(self, name: str, random: Random, constellations: list[int], devices: list[str], notes: Path, steady: bool):
        self.name, self.random, self.constellations = name, random, constellations
        self.chance = Chance(random, name, devices, steady)
        self.kinds = STEADY_KINDS if steady else KINDS
        self._dealt: list[str] = []
        self.asked: list[Fields] = []
        self.seen: dict[int, LiveGraph] = {}
        self.looks_every = STEADY_LOOK if steady else 1
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def act(self, number: int) -> None:
        kind = self._next_kind()
        constellation = self.random.choice(self.constellations)
        if number % self.looks_every == 0 or constellation not in self.seen:
            with consistent_read():
                self.seen[constellation] = read_graph(constellation)
        for part, ask in enumerate(self.ask(kind, self.seen[constellation])):
            self.carry_out(f"{number}.{part}", {"kind": kind, "edit_id": f"{self.name}-{number}-{part}", **ask})

    def _next_kind(self) -> str:
        if not self._dealt:
            share = DEALT / sum(self.kinds.values())
            self._dealt = [kind for kind, weight in self.kinds.items() for _ in range(max(1, int(weight * share)))]
            self.random.shuffle(self._dealt)
        return self._dealt.pop()

    def ask(self, kind: str, live: LiveGraph) -> list[Fields]:
        """What to do; `so` asks for what is so already, `behind` is one edit and, made on the version before it, another of
        the same task.
        """
        constellation, version = live.constellation["id"], live.constellation["version"]
        plain: Fields = {"constellation": constellation, "operations": self.chance.change_set(live), "based_on": None}
        if kind == "behind" and (open_ones := self.chance.open_tasks(live)):
            task_id = self.random.choice(open_ones)
            return [{**plain, "operations": [self.chance.a_change(task_id)], "based_on": base} for base in (None, version)]
        if kind == "again" and self.asked:
            return [self.random.choice(self.asked)]
        if kind == "undo":
            return self._undo(constellation)
        if kind == "shared":
            edit_id, operations = self.chance.shared(live)
            return [{**plain, "edit_id": edit_id, "operations": operations}]
        if kind == "broken":
            return [{**plain, "operations": self.chance.broken(live)}]
        if kind == "so":
            node = live.nodes[self.chance.task(live)]
            same = {"op": "update_task", "parameters": {"task_id": node.key, "on_lost": node.row["on_lost"]}}
            return [{**plain, "operations": [same]}]
        bases = {"seen": version, "older": max(1, version - self.random.randint(1, 6))}
        return [{**plain, "based_on": bases.get(kind)}]

    def _undo(self, constellation: int) -> list[Fields]:
        edits = Edit.objects.filter(constellation=constellation).order_by("-version").values_list("edit_id", flat=True)[:20]
        return [{"constellation": constellation, "undoes": self.random.choice(list(edits))}] if edits else []

    def carry_out(self, number: str, ask: Fields) -> None:
        """Between two notes, each one write: so a killed editor has noted what it was about to do."""
        self.note({"number": number, "author": self.name, **ask})
        self.asked.append(ask)
        self.note({"number": number, "told": self.told(ask)})

    def told(self, ask: Fields) -> Fields:
        try:
            if "undoes" in ask:
                made, changed = edit_undo(ask["constellation"], ask["undoes"], self.name, undo_id=ask["edit_id"])
            else:
                said = {"author": self.name, "edit_id": ask["edit_id"], "based_on": ask["based_on"]}
                made, changed = edit_apply(ask["constellation"], ask["operations"], **said)
        except StaleEdit as error:
            return {"answer": "stale", "status": error.status, "newest": error.members["version"]}
        except AgentsError as error:
            return {"answer": "refused", "status": error.status, "code": error.code, "message": str(error)}
        if made is None:
            return {"answer": "nothing"}
        return {"answer": "applied" if changed else "there", "version": made.version, "edit_id": made.edit_id}

    def note(self, said: Fields) -> None:
        os.write(self._notes, json.dumps(said).encode() + b"\n")


# --- beside it


@dataclass
class Note:
    """One edit that was asked for; `told` is empty when its editor was killed before it had noted the answer."""

    asked: Fields
    told: Fields = field(default_factory=dict)

    @property
    def answer(self) -> str:
        return self.told.get("answer", "")


class EditorProcess:
    """An editor on the test's database."""

    def __init__(self, env: dict[str, str], folder: Path, name: str, **arguments: Any):
        self.name, self.notes_at = name, folder / f"notes-{name}"
        self.notes_at.touch()
        said = {"name": name, "notes": str(self.notes_at), **arguments}
        self.log_at = folder / f"log-{name}"
        with self.log_at.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(said)],
                cwd=settings.BASE_DIR, env={**env, "DJANGO_SETTINGS_MODULE": "project.settings"}, stderr=log,
            )  # fmt: skip

    def result(self) -> list[Note]:
        """What it noted, once it has ended well."""
        code = self.process.wait(END_S)
        assert code == 0, f"{self.name}: {self.log_at.read_text()[-2000:]}"
        return self.notes()

    def kill(self) -> list[Note]:
        """SIGKILL; what it had noted until then."""
        self.process.kill()
        self.process.wait()
        return self.notes()

    def count(self) -> int:
        """Edits it has been told about."""
        return self.notes_at.read_text().count('"told"')

    def notes(self) -> list[Note]:
        found: dict[str, Note] = {}
        for line in self.notes_at.read_text().splitlines():
            said = json.loads(line)
            if "told" in said:
                found[said["number"]].told = said["told"]
            else:
                found[said["number"]] = Note(said)
        return list(found.values())
