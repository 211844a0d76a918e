"""Another process that edits a constellation while a runner carries it out."""

import json
import random
import time

from agents.errors import AgentsError
from benchmarks.inside import load
from benchmarks.inside.furniture import DEVICE
from benchmarks.inside.load import SEED, WIDTH
from constellations.machines.constellation import CLOSED
from constellations.models import Constellation
from constellations.services.edits import edit_apply

EVERY_S = 0.05


def edits(session: int, tasks: int) -> dict:
    """An edit every EVERY_S while the graph executes: seconds each took, and how many were refused."""
    print(json.dumps("ready"), flush=True)
    chance, took, refused = random.Random(SEED), [], 0
    author, number = load.by(), 0
    while True:
        begun = time.monotonic()
        found = Constellation.objects.filter(session=session).values("id", "state").first()
        if found is not None and found["state"] in (*CLOSED, "CANCELLED"):
            return {"took": took, "refused": refused}
        if found is not None and found["state"] == "EXECUTING":
            number += 1
            begun = time.monotonic()
            try:
                edit_apply(found["id"], change_set(chance, tasks, number), author=author)
            except AgentsError:
                refused += 1
            took.append(time.monotonic() - begun)
        time.sleep(max(0.0, begun + EVERY_S - time.monotonic()))


def change_set(chance: random.Random, tasks: int, number: int) -> list[dict]:
    """A task more between two of the last layers but one and the last, and a change of the latter: they wait until the end."""
    above, below = chance.randrange(tasks - 2 * WIDTH, tasks - WIDTH), chance.randrange(tasks - WIDTH, tasks)
    added = {"task_id": f"e{number}", "device": DEVICE, "tool": "noop", "after": [str(above)]}
    return [
        {"add_task": added},
        {"add_dependency": {"from": f"e{number}", "to": str(below)}},
        {"update_task": {"task_id": str(below), "description": f"said by {number}"}},
    ]
