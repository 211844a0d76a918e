"""Edits of many operations on a graph at rest: how long until one is made, and until it is previewed."""

import random
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from agents.streams.door import door
from agents.streams.tables import TABLES
from benchmarks.inside import load
from benchmarks.inside.furniture import DEVICE
from benchmarks.inside.load import SEED, WIDTH
from benchmarks.inside.tools import clock
from constellations.editor.editor import Changes
from constellations.live.live import LiveGraph
from constellations.machines import CONSTELLATION
from constellations.models import Constellation, Edit
from constellations.services.edits import edit_apply
from constellations.services.plans import read_plan
from constellations.services.preview import edit_preview
from constellations.services.undo import edit_undo

AUTHOR = "user:1"


def measure(tasks: int, operations: int, trials: int) -> dict[str, list[float]]:
    """Seconds of each preview and each edit, in turn. Every edit is another one; each adds tasks and takes others away."""
    plan = load.layered(tasks)
    constellation = at_rest(plan)
    found: dict[str, list[float]] = {"previewed": [], "applied": []}
    for number in range(trials):
        wanted = change_set(plan, number, operations)
        found["previewed"].append(_timed(edit_preview, constellation, wanted))
        found["applied"].append(_timed(edit_apply, constellation, wanted, author=AUTHOR))
    assert Constellation.objects.get().version == trials + 1, "an edit has changed nothing"
    return found


def build(tasks: int, shape: str) -> dict[str, float]:
    """Seconds until one edit has added `tasks` as a "chain" or a "star", of which under the lock, until undone and redone."""
    constellation = at_rest(load.layered(WIDTH))
    after = ["0"] if shape == "star" else []
    rows: list[dict] = [{"task_id": f"n{part}", "device": DEVICE, "tool": "noop", "after": after} for part in range(tasks)]
    for part, row in enumerate(rows[1:] if shape == "chain" else []):
        row["after"] = [f"n{part}"]
    wanted = [{"build_constellation": {"clear": False, "tasks": rows}}]
    found = {"made": _timed(edit_apply, constellation, wanted, author=AUTHOR, edit_id="made")}
    found["locked"] = (timezone.now() - Edit.objects.get().at).total_seconds()  # an edit's time is when it got the lock
    found["undone"] = _timed(edit_undo, constellation, "made", AUTHOR, undo_id="undone")
    found["redone"] = _timed(edit_undo, constellation, "undone", AUTHOR)
    assert Constellation.objects.get().tasks.count() == WIDTH + tasks, "the redo has not brought everything back"
    return found


def at_rest(plan: load.Plan) -> int:
    """A constellation as the engine begins one, which no runner knows of; returns its id."""
    read, session = read_plan(load.payload(plan)), load.session()
    with door(session, "system") as opened:
        turn = opened.turn
        asked = {"session_id": session, "client_id": "", "kind": "interaction", "by": "system", "state": "running"}
        agent = {"session_id": session, "machine": "constellation_agent", "state": "CONTINUE", "entered_at": turn.at}
        asked, agent = ({"id": turn.take(), "created_at": turn.at, **row} for row in (asked, agent))
        agent["interaction_id"] = asked["id"]
        own = {"session_id": session, "interaction_id": asked["id"], "agent_id": agent["id"], "entered_at": turn.at}
        row = TABLES["constellation"].whole({"id": turn.take(), "created_at": turn.at, **own})
        turn.record("constellation_created", add={"inbox": [asked], "agent": [agent], "constellation": [dict(row)]})
        LiveGraph(row, lambda node: None).build(turn, Changes(added_tasks=read.tasks, added_dependencies=read.dependencies))
        for event in ("validated", "start"):
            turn.transition(CONSTELLATION, "constellation", row, event)
    return row["id"]


def change_set(plan: load.Plan, number: int, operations: int) -> list[dict]:
    """Six kinds of operations in turn, on tasks all over the graph: always the same for a number."""
    chance = random.Random(SEED + number)
    return [KINDS[part % len(KINDS)](chance, plan["tasks"], number, part // len(KINDS)) for part in range(operations)]


def _add(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    after = [row["task_id"] for row in chance.sample(rows[:-WIDTH], 2)]
    return {"add_task": {"task_id": f"n{number}-{part}", "device": DEVICE, "tool": "noop", "after": after}}


def _link(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    return {"add_dependency": {"from": f"n{number}-{part}", "to": chance.choice(rows[-WIDTH:])["task_id"]}}


def _update(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    return {"update_task": {"task_id": chance.choice(rows)["task_id"], "description": f"said by {number}-{part}"}}


def _change_edge(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    row = chance.choice(rows[WIDTH:])
    kind = chance.choice(("SUCCESS_ONLY", "UNCONDITIONAL"))
    ends = {"from": row["after"][0], "to": row["task_id"]}
    return {"update_dependency": {**ends, "type": kind, "description": f"said by {number}-{part}"}}


def _remove(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    """What the edit before has added; there is none before the first."""
    return {"remove_task": {"task_id": f"n{number - 1}-{part}"}} if number else _update(chance, rows, number, part)


def _unlink(chance: random.Random, rows: list[dict], number: int, part: int) -> dict:
    row = chance.choice(rows[WIDTH:])
    return {"remove_dependency": {"from": row["after"][1], "to": row["task_id"]}}


KINDS = (_add, _link, _update, _change_edge, _remove, _unlink)


def _timed(function: Callable[..., Any], *arguments: Any, **more: Any) -> float:
    begun = clock()
    function(*arguments, **more)
    return clock() - begun
