"""What other processes do to a session while a runner works in it, and what must be true of its stream afterwards."""

from __future__ import annotations

import time
from random import Random
from threading import Event, Thread

from django.db import connections

from agents.errors import AgentsError
from agents.services.sessions import request_submit
from agents.streams import fold
from agents.streams.fold import read_rows
from agents.streams.tables import Fields
from constellations.live.live import LiveGraph
from constellations.machines.task import ENDED
from constellations.services.edits import edit_apply

OPERATOR = "user:1"
WAIT_S = 0.05
"""An outsider waits so long at most for the session to move before it acts again."""
LOOK_S = 0.0005


def edit(live: LiveGraph, operations: list[Fields], edit_id: str) -> bool:
    """An operator's edit of the graph as it is by now. False when it is refused, or changes nothing."""
    try:
        return edit_apply(live.constellation["id"], operations, author=OPERATOR, reason="by hand", edit_id=edit_id)[1]
    except AgentsError:
        return False


def newest_graph(session: int) -> LiveGraph | None:
    """The session's newest constellation, from its rows."""
    rows = read_rows(session, ("constellation", "task", "dependency"))
    if not rows["constellation"]:
        return None
    newest = max(rows["constellation"].values(), key=lambda row: row["id"])
    live = LiveGraph(newest, lambda node: None)
    live.load(*([r for r in rows[name].values() if r["constellation_id"] == newest["id"]] for name in ("task", "dependency")))
    return live


class Outsider(Thread):
    """Another process, as it were: acts on the sessions at random moments, on a connection of its own."""

    def __init__(self, sessions: list[int], random: Random, actions: int, devices: list[str], commands: tuple[str, ...]):
        super().__init__(daemon=True)
        self.sessions, self.random, self.actions, self.devices, self.commands = sessions, random, actions, devices, commands
        self.added: dict[int, set[str]] = {session: set() for session in sessions}
        self.removed: dict[int, set[str]] = {session: set() for session in sessions}
        self.edits = dict.fromkeys(sessions, 0)
        self.error: BaseException | None = None
        self.finished = Event()

    def run(self) -> None:
        try:
            for number in range(self.actions):
                session = self.random.choice(self.sessions)
                self._wait(session)
                self._act(session, number)
            for session in self.sessions:
                self._command(session, "resume")
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()
            self.finished.set()

    def _wait(self, session: int) -> None:
        """Until the session has moved by some events, or for a while."""
        target = fold.stream_head(session) + self.random.randint(0, 12)
        deadline, pause = time.monotonic() + WAIT_S, Event()
        while fold.stream_head(session) < target and time.monotonic() < deadline:
            pause.wait(LOOK_S)

    def _act(self, session: int, number: int) -> None:
        if self.random.random() < 0.3:
            self._command(session, self.random.choice(self.commands))
            return
        with fold.consistent_read():
            live = newest_graph(session)
        if live is not None:
            operations = [self._operation(live, number, part) for part in range(self.random.randint(1, 3))]
            if edit(live, operations, f"by-hand-{number}"):
                self._note(session, operations)

    def _command(self, session: int, kind: str) -> None:
        try:
            request_submit(session, kind, "", {}, by=OPERATOR)
        except AgentsError:
            return  # the actor has ended: so did the session

    def _operation(self, live: LiveGraph, number: int, part: int) -> Fields:
        keys = sorted(live.nodes)
        one, other = self.random.choice(keys), self.random.choice(keys)
        device = self.random.choice(self.devices)
        shape = self.random.choice(("add", "add", "remove", "depend", "depend", "undepend", "update"))
        if shape == "undepend" and live.edges:
            edge = live.edges[self.random.choice(sorted(live.edges))]
            return {"op": "remove_dependency", "parameters": {"from": edge.up.key, "to": edge.down.key}}
        operations: dict[str, tuple[str, Fields]] = {
            "add": ("add_task", {**nap(f"x{number}_{part}", self.random, device), "after": [one]}),
            "remove": ("remove_task", {"task_id": one}),
            "depend": (
                "add_dependency",
                {"from": one, "to": other, "type": self.random.choice(("SUCCESS_ONLY", "UNCONDITIONAL"))},
            ),
            "update": ("update_task", {"task_id": one, "priority": self.random.choice(("LOW", "CRITICAL")), "device": device}),
        }
        op, parameters = operations.get(shape, operations["remove"])
        return {"op": op, "parameters": parameters}

    def _note(self, session: int, operations: list[Fields]) -> None:
        self.edits[session] += 1
        for operation in operations:
            key = operation["parameters"].get("task_id")
            if operation["op"] == "add_task":
                self.added[session].add(key)
            elif operation["op"] == "remove_task":
                self.removed[session].add(key)


def nap(task_id: str, random: Random, device: str) -> Fields:
    """A task that takes a moment, or none, and sometimes fails."""
    kind = random.choice(("nap", "nap", "noop"))
    arguments = {"fails": random.random() < 0.1, "s": random.choice((0, 0.002, 0.01))} if kind == "nap" else {}
    return {"task_id": task_id, "device": device, "tool": kind, "arguments": arguments}


def plan(random: Random, devices: list[str], tasks: int) -> Fields:
    """A random graph with about one and a half edges a task."""
    dependencies: list[Fields] = []
    for number in range(1, tasks):
        for upstream in {random.randrange(number) for _ in range(random.choice((0, 1, 2, 3)))}:
            kind = random.choice(("SUCCESS_ONLY", "UNCONDITIONAL", "COMPLETION_ONLY"))
            dependencies.append({"from": f"t{upstream}", "to": f"t{number}", "type": kind})
    return {
        "tasks": [nap(f"t{number}", random, random.choice(devices)) for number in range(tasks)],
        "dependencies": dependencies,
        "replan": [rule(random, number, random.choice(devices), tasks) for number in range(4)],
    }


def rule(random: Random, number: int, device: str, tasks: int) -> Fields:
    """The planner edits too: after some task's end it adds another, behind it and in front of the last."""
    task = f"t{random.randrange(tasks)}"
    edits: list[Fields] = [
        {"add_task": {**nap(f"r{number}", random, device), "after": [task]}},
        {"add_dependency": {"from": f"r{number}", "to": f"t{tasks - 1}", "type": "UNCONDITIONAL"}},
    ]
    return {"name": f"r{number}", "when": {"event": "task_ended", "task": task}, "edit": edits[: random.choice((1, 2))]}


# --- what must hold


def check_story(session: int) -> None:
    """Fold the session's stream event by event: no start before its dependencies, no edit of what had started."""
    rows: dict[str, dict[str, Fields]] = {}
    seq = 0
    while events := fold.events_since(session, seq):
        for event in events:
            data, seq = event["data"], event["seq"]
            if event["type"] == "edited":
                check_edit(data, rows)
            if data.get("machine") == "task" and data["event"] == "start":
                check_start(data, rows)
            fold.apply_event(data, rows)


def check_edit(data: Fields, rows: dict[str, dict[str, Fields]]) -> None:
    tasks = rows["task"]
    touched = {int(key) for key in data.get("set", {}).get("task", {})} | set(data.get("del", {}).get("task", ()))
    for key in touched:
        state, reason = tasks[str(key)]["state"], tasks[str(key)]["reason"]
        assert state in ("PENDING", "WAITING_DEPENDENCY") or reason.startswith("skipped"), (key, state, reason)


def check_start(data: Fields, rows: dict[str, dict[str, Fields]]) -> None:
    for edge in rows.get("dependency", {}).values():
        if edge["downstream_id"] == data["id"]:
            state = rows["task"][str(edge["upstream_id"])]["state"]
            assert state == "COMPLETED" or (state in ENDED and edge["type"] != "SUCCESS_ONLY"), (data["id"], edge, state)
