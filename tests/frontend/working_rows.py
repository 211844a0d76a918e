"""Rows of a session at work, written through the door: what the pages of approvals and agents show."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Approval, Device, Session
from agents.progress.digests import canonical_json
from agents.services import sessions
from agents.streams.door import Door, door

STEPS = [
    {"do": "say", "text": "I begin with the tests"},
    {"do": "call", "tool": "command", "arguments": {"argv": ["pytest", "-q", "tests/it's here"]}, "tries": 3, "recover": []},
    {"do": "ask", "question": "Which branch?", "options": ["main", "next"], "timeout": 60.0},
    {"do": "wait", "seconds": None, "for": "the review", "timeout": 60.0},
    {"do": "observe"},
    {
        "do": "delegate", "name": "writer", "on_failure": "continue",
        "steps": [{"do": "call", "tool": "write_file", "arguments": {"path": "notes.md", "text": "done"}}],
    },
]  # fmt: skip
PHASES = [
    {"description": "Mend the tests", "expected_duration": 90.0, "steps": STEPS},
    {
        "description": "Publish",
        "expected_duration": None,
        "steps": [{"do": "call", "tool": "command", "arguments": {"argv": ["make"]}}],
    },
]
COMMAND = {"tool": "command", "arguments": {"argv": ["git", "push", "--force", "origin", "it's main"]}}
PROGRAM = "from sklearn import svm\n\n\ndef train(images, labels):\n    return svm.SVC(gamma=0.001).fit(images, labels)\n"
FILE = {"tool": "write_file", "arguments": {"path": "src/digits/train.py", "content": PROGRAM}}
OBSERVED = {
    "files": [
        {"path": "src/digits/train.py", "size": 1234, "modified": "2026-11-21T09:58:00.000000Z", "digest": "0123456789abcdef"},
        {"path": "README.md", "size": 640, "modified": "2026-11-20T18:00:00.000000Z"},
    ],
    "files_total": 2,
    "system": {
        "load_1m": 0.52,
        "memory_percent": 41.0,
        "disk_percent": 63.5,
        "cpu_count": 2,
        "uptime_s": 86400.0,
        "processes": 120,
    },
    "at": "2026-11-21T10:00:00.000000Z",
}
VERDICT = {
    "rule": "same_error", "identity": "same_error:0123456789abcdef", "rows": [2, 3, 4], "action": "steer", "first": True,
    "sentence": "make test failed 3 times with the same error: no module named sklearn.",
}  # fmt: skip


def before(seconds: float) -> str:
    """The time so many seconds ago, as events write it."""
    return (timezone.now() - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


class Working:
    """A session in which a device agent works on a task: its rows by name, and more of them on demand."""

    def __init__(self, owner, device: Device, title: str = "Digits, in three phases"):
        self.session = sessions.session_create(owner, title, by=f"user:{owner.pk}")
        with self._door() as opened:
            self._graph(opened, device)
            self._agents(opened, device)

    def _door(self):
        return door(self.session.pk, "system")

    def _graph(self, opened: Door, device: Device) -> None:
        shared = {"session_id": self.session.pk, "created_at": before(300), "entered_at": before(300)}
        item, planner, graph, self.task = (opened.take() for _ in range(4))
        request = {
            "id": item, "session_id": self.session.pk, "client_id": f"c{item}", "kind": "interaction", "by": "system",
            "state": "done", "outcome": "completed", "payload": {}, "created_at": before(300),
        }  # fmt: skip
        agent = {
            "id": planner,
            "interaction_id": item,
            "machine": "constellation_agent",
            "name": "planner",
            "state": "CONTINUE",
        }
        constellation = {"id": graph, "interaction_id": item, "agent_id": planner, "name": "digits", "state": "EXECUTING"}
        task = {
            "id": self.task, "constellation_id": graph, "task_id": "train", "name": "Train the model", "tool": "steps",
            "phases": PHASES, "state": "RUNNING", "attempt": 1, "device_id": device.pk, "created_at": before(300),
            "entered_at": before(200), "started_at": before(200), "accepted": ["same_error:accepted"],
        }  # fmt: skip
        self.interaction = item
        opened.turn.record("interaction_started", add={"inbox": [request]})
        opened.turn.record("agent_created", add={"agent": [{**agent, **shared}]})
        opened.turn.record("constellation_created", add={"constellation": [{**constellation, **shared}]})
        opened.turn.record("constellation_built", add={"task": [task]})

    def _agents(self, opened: Door, device: Device) -> None:
        self.agent, self.child, self.loop, attempt = (opened.take() for _ in range(4))
        shared = {
            "session_id": self.session.pk, "interaction_id": self.interaction, "machine": "device_agent", "platform": "shell",
            "device_id": device.pk, "state": "CONTINUE", "created_at": before(200), "entered_at": before(60),
        }  # fmt: skip
        host = {**shared, "id": self.agent, "name": "Train the model", "blackboard": {"accuracy": 0.93, "branch": "main"}}
        child = {**shared, "id": self.child, "name": "writer", "parent_id": self.agent}
        started = {
            "id": attempt, "task_id": self.task, "number": 1, "agent_id": self.agent, "device_id": device.pk, "fence": 1,
            "started_at": before(200),
        }  # fmt: skip
        loop = {
            "id": self.loop,
            "agent_id": self.agent,
            "state": "ExecutingTool",
            "created_at": before(200),
            "entered_at": before(5),
        }
        opened.turn.record("agent_created", add={"agent": [host], "attempt": [started]})
        opened.turn.record("agent_created", add={"agent": [child]})
        opened.turn.record("loop_created", add={"loop": [loop]})
        self._moves(opened)

    def _moves(self, opened: Door) -> None:
        agent = {"machine": "device_agent", "id": self.agent, "reason": ""}
        opened.turn.record("state_changed", **agent, from_state="CONTINUE", to_state="PENDING", event="wait", spent=30.0)
        opened.turn.record("state_changed", **agent, from_state="PENDING", to_state="CONTINUE", event="received", spent=12.5)
        for source, target, event, spent in (
            ("Idle", "ProcessingPrompt", "prompt", 0.5), ("ProcessingPrompt", "StreamingResponse", "responding", 8.0),
            ("StreamingResponse", "ExecutingTool", "tool_allowed", 6.0), ("ExecutingTool", "ProgressCheck", "returned", 40.0),
            ("ProgressCheck", "ErrorRecovery", "stuck", 1.0), ("ErrorRecovery", "ExecutingTool", "retry", 3.0),
        ):  # fmt: skip
            told = {"machine": "tool_loop", "id": self.loop, "reason": "", "spent": spent}
            opened.turn.record("state_changed", **told, from_state=source, to_state=target, event=event)

    def add_actor(self) -> None:
        """An actor that takes commands; without one nobody carries anything out in this session."""
        with self._door() as opened:
            times = dict.fromkeys(("created_at", "entered_at", "active_at"), opened.turn.at)
            row = {"id": opened.take(), "session_id": self.session.pk, "epoch": 1, "state": "idle", **times}
            opened.turn.record("actor_created", add={"actor": [row]})

    def add_work(self) -> None:
        """Two phases, the first over, and evidence with a verdict."""
        with self._door() as opened:
            first = {
                "id": opened.take(), "agent_id": self.agent, "number": 1, "total": 2, "description": "Mend the tests",
                "expected_s": 90.0, "started_at": before(200), "ended_at": before(80), "outcome": "completed_with_issues",
                "files_changed": ["src/digits/train.py", "README.md"], "blockers": ["took more than twice as long as expected"],
                "tests": [{"name": "pytest -q", "passed": True}, {"name": "make lint", "passed": False}],
            }  # fmt: skip
            second = {
                "id": opened.take(), "agent_id": self.agent, "number": 2, "total": 2, "description": "Publish",
                "started_at": before(80),
            }  # fmt: skip
            opened.turn.record("phase_started", add={"phase": [first]})
            opened.turn.record("phase_started", add={"phase": [second]})
        self.act()

    def act(self) -> None:
        """Five actions: three fail alike, the fourth has a verdict, the fifth is under way."""
        with self._door() as opened:
            for number in range(1, 6):
                self._act(opened, number)

    def _act(self, opened: Door, number: int) -> None:
        failed = number in (2, 3, 4)
        row: dict[str, Any] = {
            "id": opened.take(), "loop_id": self.loop, "number": number, "phase": 1, "kind": "test" if failed else "tool",
            "tool": "command", "target": "make test" if failed else "git status", "started_at": before(60 - number),
        }  # fmt: skip
        opened.turn.record("evidence_began", add={"evidence": [row]})
        if number == 5:
            return
        ended: dict[str, Any] = {"success": not failed, "ended_at": before(59.5 - number), "exit_code": int(failed)}
        if failed:
            ended |= {"error_kind": "missing", "raw_error": "ModuleNotFoundError: No module named 'sklearn'"}
        if number == 4:
            ended["verdict"] = VERDICT
        opened.turn.record("evidence_ended", set={"evidence": {str(row["id"]): ended}})
        if number == 4:
            opened.turn.record("stuck", **VERDICT, agent_id=self.agent)

    def ask(self, kind: str, title: str, action: dict[str, Any] | None = None, **fields: Any) -> int:
        """An approval that waits; its id."""
        with self._door() as opened:
            row = {
                "id": opened.take(), "session_id": self.session.pk, "agent_id": self.agent, "kind": kind,
                "subject_id": self.task, "title": title, "action": action or {},
                "digest": hashlib.sha256(canonical_json(action or {}).encode()).hexdigest(), "asked_at": opened.turn.at,
        **fields,
            }  # fmt: skip
            opened.turn.record("approval_asked", add={"approval": [row]})
        return row["id"]

    def decide(self, approval: int, state: str, by: str) -> None:
        row = Approval.objects.get(pk=approval)
        with self._door() as opened:
            fields = {"state": state, "decided_at": opened.turn.at, "decided_by": by}
            told = {"approval_id": approval, "kind": row.kind, "decision": state, "title": row.title}
            opened.turn.record("approval_decided", set={"approval": {str(approval): fields}}, **told)

    def ask_everything(self) -> dict[str, int]:
        """One of each kind that a person is asked; ids by kind, and the free question as `words`."""
        soon = before(-45)
        asked = {"asked_at": before(130)}
        return {
            "task": self.ask(
                "task", "Train the model: begin?", {"phases": PHASES}, observed=OBSERVED, expires_at=before(-3600), **asked
            ),
            "tool": self.ask("tool", "Push to origin by force", COMMAND, observed=OBSERVED, expires_at=soon, **asked),
            "file": self.ask("tool", "Write src/digits/train.py", FILE, expires_at=before(-600)),
            "lost": self.ask("lost", "Attempt 1 of train was lost: run it again?", {}),
            "question": self.ask("question", "Which branch shall it go to?", {}, options=["main", "next", "none of them"]),
            "words": self.ask("question", "What shall the release be called?", {}),
            "callback": self.ask("callback", "the review", {}),
        }


def working_for(username: str) -> str:
    """For a process of its own (`manage.py shell`): a session of that user's at work on the first device, as JSON."""
    working = Working(User.objects.get(username=username), Device.objects.order_by("id").first())
    return json.dumps({**vars(working), "session": working.session.pk})


def working_again(ids: dict[str, int]) -> Working:
    """The same again, in another process."""
    working = object.__new__(Working)
    vars(working).update(ids, session=Session.objects.get(pk=ids["session"]))
    return working
