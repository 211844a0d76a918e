"""Constellations made without a runner, as the tests of editing want them."""

from __future__ import annotations

import json

from agents.models import Session
from agents.streams.door import door
from agents.streams.tables import TABLES
from constellations.editor.editor import Changes
from constellations.live.live import LiveGraph
from constellations.machines import CONSTELLATION, TASK
from constellations.models import Constellation, Task
from constellations.services.plans import read_plan
from tests.agents.conftest import add_agents, add_interaction


def noop(task_id: str, **more) -> dict:
    return {"task_id": task_id, "tool": "noop", **more}


def plant(session: Session, *tasks: dict, dependencies=()) -> Constellation:
    """An executing constellation of these tasks, as the engine begins one; nobody works on it."""
    interaction, agent = add_interaction(session), add_agents(session)[0]
    plan = read_plan({"plan": json.dumps({"tasks": list(tasks), "dependencies": list(dependencies)})})
    with door(session.pk, "system") as opened:
        turn = opened.turn
        fields = {
            "id": turn.take(), "session_id": session.pk, "interaction_id": interaction, "agent_id": agent,
            "name": "digits", "created_at": turn.at, "entered_at": turn.at,
        }  # fmt: skip
        row = TABLES["constellation"].whole(fields)
        turn.record("constellation_created", add={"constellation": [fields]})
        LiveGraph(row, lambda node: None).build(turn, Changes(added_tasks=plan.tasks, added_dependencies=plan.dependencies))
        for event in ("validated", "start"):
            turn.transition(CONSTELLATION, "constellation", row, event)
    return Constellation.objects.get(pk=row["id"])


def advance(constellation: Constellation, **states: str) -> None:
    """Bring tasks into states, each by events of its machine; what follows for others does not."""
    events = {"RUNNING": ("start",), "COMPLETED": ("start", "succeed"), "PENDING": ("ready",), "SKIPPED": ("skip",)}
    with door(constellation.session_id, "system") as opened:
        for task_id, state in states.items():
            task = Task.objects.get(constellation=constellation, task_id=task_id)
            row = {"id": task.pk, "state": task.state, "reason": "", "entered_at": opened.turn.at}
            if row["state"] == "WAITING_DEPENDENCY" and state in ("RUNNING", "COMPLETED"):
                opened.turn.transition(TASK, "task", row, "ready")
            for event in events[state]:
                opened.turn.transition(TASK, "task", row, event, reason="skipped: by hand" if event == "skip" else "")


def graph_of(constellation: Constellation) -> dict:
    """Tasks and dependencies as they are in effect, without ids, versions and times."""
    hidden = {"id", "constellation_id", "version", "created_at", "entered_at", "ended_at"}
    tasks = {
        row["task_id"]: {key: value for key, value in row.items() if key not in hidden} for row in constellation.tasks.values()
    }
    lines = constellation.dependencies.values_list(
        "dependency_id", "upstream__task_id", "downstream__task_id", "type", "condition", "description"
    )
    return {"tasks": tasks, "dependencies": {line[0]: line[1:] for line in lines}}


def states(constellation: Constellation) -> dict[str, str]:
    return dict(constellation.tasks.values_list("task_id", "state"))
