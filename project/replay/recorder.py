"""A session's run, read from its rows into what a recording's file holds. All of it is masked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from agents.llm.conversation import Message, Text, Thinking, ToolCall, ToolResult, read_conversation
from agents.llm.scripted.script import ANSWERS
from agents.models import Agent, Approval, Device, Evidence, InboxItem, Loop, ModelCall, Output, Policy, Prompt, Session
from agents.services.policies import FIELDS as POLICY_FIELDS
from constellations.limits import REOPEN
from constellations.models import Attempt, Constellation, Edit, Task
from project.replay.recording import VERSION, Fields, RecordingRejected, hide_secrets

CALLS = ("tool", "test", "poll", "observe")
"""Kinds of evidence behind which there is a call."""
KEPT_WORDS = 120
"""Characters of what was asked, by which a scripted model knows the question."""
STATUS = {"model_rate_limited": 429, "model_key_rejected": 401, "model_unknown": 404, "model_request_rejected": 400}
"""HTTP's word for a fault, for a scripted model; any other is 500."""
LEFT_OUT = ("", "cancelled", "lost")
"""Outcomes of calls that never gave anything: they were cut off, or made again."""
THINKING = ("observation", "thought")
"""Keys of an answer that decide nothing."""


def record_session(session_id: int) -> Fields:
    """{answers, recording} of a session. Raises RecordingRejected where there is none, or it has too many answers."""
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        raise RecordingRejected(f"there is no session {session_id}")
    requests = list(InboxItem.objects.filter(session=session).order_by("id"))
    if not any(item.kind == "interaction" for item in requests):
        raise RecordingRejected(f"session {session_id} was asked for nothing yet")
    recorder = _Recorder(session, requests)
    recorded: Fields = hide_secrets(recorder.record())
    if len(recorded["answers"]) > ANSWERS:
        raise RecordingRejected(f"session {session_id} has {len(recorded['answers']):,} answers of models; {ANSWERS:,} fit")
    return recorded


class _Recorder:
    def __init__(self, session: Session, requests: list[InboxItem]):
        self._session, self._requests = session, requests
        self._began = requests[0].created_at
        interactions = [item.pk for item in requests if item.kind == "interaction"]
        self._numbers = {key: number for number, key in enumerate(interactions, 1)}
        self._agents = {agent.pk: agent for agent in Agent.objects.filter(session=session)}
        self._constellations = list(Constellation.objects.filter(session=session).order_by("id").values_list("id", flat=True))
        self._attempts = list(Attempt.objects.filter(agent__session=session).select_related("task").order_by("id"))
        self._tasks = {attempt.agent_id: attempt.task.task_id for attempt in self._attempts}
        self._looped = set(Loop.objects.filter(agent__session=session).values_list("agent_id", flat=True))

    def record(self) -> Fields:
        calls = [row for row in ModelCall.objects.filter(session=self._session) if row.outcome not in LEFT_OUT]
        results = sorted([*self._evidence(calls), *self._plain_attempts()], key=lambda result: result["begun"])
        names = {row.profile for row in calls} | set(self._session.model_profiles.values())
        return {
            "answers": list(_answers(calls)),
            "recording": {
                "version": VERSION,
                "session": {"title": self._session.title, "model_profiles": self._session.model_profiles,
                            "start": self._session.start},
                "devices": list(map(_device, Device.objects.order_by("id"))),
                "policies": [{name: getattr(row, name) for name in POLICY_FIELDS} for row in Policy.objects.all()],
                "profiles": sorted(filter(None, names)),
                "requests": list(map(self._request, self._requests)),
                "approvals": [self._approval(row) for row in Approval.objects.filter(session=self._session).order_by("id")],
                "edits": [
                    edit for edit in self._edits()
                    if _is_a_persons(edit["author"]) and not self._follows_from_a_request(edit)
                ],
                "prompts": [
                    {"digest": row.digest, "version": row.version, "text": row.text}
                    for row in Prompt.objects.filter(digest__in={row.prompt_digest for row in calls}).order_by("digest")
                ],
                "questions": list(map(self._question, calls)),
                "results": results,
                "decisions": self._decisions(calls, results),
            },
        }  # fmt: skip

    def _seconds(self, at: datetime) -> float:
        return round((at - self._began).total_seconds(), 6)

    def _request(self, item: InboxItem) -> Fields:
        return {"at": self._seconds(item.created_at), "kind": item.kind, "payload": self._name_rows(item.payload)}

    def _name_rows(self, payload: Any) -> Any:
        """A payload with the numbers of rows as a recording names them: agents by `of`, constellations by their order."""
        if not isinstance(payload, dict):
            return payload
        named = {name: self._name_rows(value) for name, value in payload.items()}
        if payload.get("agent") in self._agents:
            named["agent"] = self.of(payload["agent"])
        for name in ("constellation", "subject"):
            if payload.get(name) in self._constellations:
                named[name] = {"constellation": self._constellations.index(payload[name])}
        return named

    def _follows_from_a_request(self, edit: Fields) -> bool:
        """Whether an edit was made with a retry, which makes it again."""
        asked = (item.payload.get(REOPEN, item.payload) for item in self._requests)
        return any(edit["reason"] == each.get("reason") and each.get("operations") for each in asked)

    def of(self, agent_id: int | None) -> Fields:
        """Who decided: as `of` stands in the file."""
        agent = self._agents.get(agent_id or 0)
        if agent is None:
            return {"request": 0, "task": "", "agent": ""}
        above: Agent | None = agent
        while above is not None and above.pk not in self._tasks:
            above = self._agents.get(above.parent_id or 0)
        task = "" if above is None else self._tasks[above.pk]
        return {"request": self._numbers.get(agent.interaction_id, 0), "task": task, "agent": agent.name}

    def _question(self, row: ModelCall) -> Fields:
        told = {
            "of": self.of(row.agent_id), "purpose": row.purpose, "profile": row.profile, "prompt": row.prompt_digest,
            "asked": "\n".join(_told(row)),
            "begun": self._seconds(row.started_at), "ended": self._seconds(row.ended_at or row.started_at),
        }  # fmt: skip
        return told if row.outcome != "failed" else told | {"error": row.error, "error_kind": row.error_kind}

    def _evidence(self, calls: Iterable[ModelCall]) -> Iterator[Fields]:
        printed = _texts_told(calls)
        rows = Evidence.objects.filter(loop__agent__session=self._session, kind__in=CALLS, ended_at__isnull=False)
        only = self._only_calls()
        for row in rows.select_related("loop").order_by("id"):
            agent = row.loop.agent_id
            waiting = printed[agent, row.tool]
            text = waiting.pop(0) if waiting else only.get(row.pk, "")
            outcome = "completed" if row.success else "timeout" if row.error_kind == "timeout" else "failed"
            assert row.ended_at is not None
            yield _without_empty({
                "of": self.of(agent), "tool": row.tool, "arguments": row.arguments,
                "begun": self._seconds(row.started_at), "ended": self._seconds(row.ended_at),
                "outcome": outcome, "result": row.result, "error": row.raw_error, "error_kind": row.error_kind,
                "exit_code": row.exit_code, "digest": row.outcome, "before": row.before, "text": text,
            })  # fmt: skip

    def _only_calls(self) -> dict[int, str]:
        """What an attempt has printed, by the one call that it made; of several nobody knows which printed what."""
        counted = defaultdict[int, list[int]](list)
        rows = Evidence.objects.filter(loop__agent__session=self._session, kind__in=("tool", "test", "poll"))
        for key, agent in rows.values_list("id", "loop__agent"):
            counted[agent].append(key)
        return {keys[0]: self._printed(agent) for agent, keys in counted.items() if len(keys) == 1}

    def _printed(self, agent: int) -> str:
        attempts = [attempt.pk for attempt in self._attempts if attempt.agent_id == agent]
        return "".join(Output.objects.filter(attempt_id__in=attempts).values_list("text", flat=True))

    def _plain_attempts(self) -> Iterator[Fields]:
        """Attempts that are one call, and so have no evidence."""
        calls = {row["id"]: row for row in Task.objects.filter(attempts__in=self._attempts).values("id", "tool", "arguments")}
        for attempt in self._attempts:
            if attempt.agent_id in self._looped or attempt.outcome in LEFT_OUT or attempt.ended_at is None:
                continue
            yield _without_empty({
                "of": self.of(attempt.agent_id), "tool": calls[attempt.task_id]["tool"],
                "arguments": calls[attempt.task_id]["arguments"],
                "begun": self._seconds(attempt.started_at), "ended": self._seconds(attempt.ended_at),
                "outcome": attempt.outcome, "result": attempt.result, "error": attempt.error, "exit_code": attempt.exit_code,
                "text": self._printed(attempt.agent_id),
            })  # fmt: skip

    def _approval(self, row: Approval) -> Fields:
        return _without_empty({
            "of": self.of(row.agent_id), "kind": row.kind, "title": row.title, "state": row.state, "reason": row.reason,
            "at": self._seconds(row.decided_at or row.asked_at), "answer": row.answer,
            "arguments": row.action.get("arguments") if row.edited else None,
        })  # fmt: skip

    def _edits(self) -> Iterator[Fields]:
        rows = Edit.objects.filter(constellation__session=self._session).select_related("constellation").order_by("id")
        for row in rows:
            number = self._numbers.get(row.constellation.interaction_id, 0)
            yield {"at": self._seconds(row.at), "request": number, "author": row.author, "reason": row.reason,
                   "operations": row.operations}  # fmt: skip

    def _decisions(self, calls: Iterable[ModelCall], results: Iterable[Fields]) -> list[Fields]:
        found = [
            {"of": self.of(row.agent_id), "at": self._seconds(row.ended_at or row.started_at), "kind": "model",
             "what": _decision_of(row)}
            for row in calls
        ]  # fmt: skip
        found += [
            {"of": each["of"], "at": each["begun"], "kind": "call", "what": {key: each[key] for key in ("tool", "arguments")}}
            for each in results
        ]  # fmt: skip
        for edit in self._edits():
            if not _is_a_persons(edit["author"]):
                of = {"request": edit["request"], "task": "", "agent": edit["author"]}
                found.append({"of": of, "at": edit["at"], "kind": "edit", "what": edit["operations"]})
        ended = Task.objects.filter(constellation__session=self._session, ended_at__isnull=False)
        for task in ended.select_related("constellation"):
            assert task.ended_at is not None
            of = {"request": self._numbers.get(task.constellation.interaction_id, 0), "task": task.task_id, "agent": ""}
            found.append({"of": of, "at": self._seconds(task.ended_at), "kind": "task", "what": task.state})
        for item in self._requests:
            if item.pk in self._numbers and item.ended_at is not None:
                of = {"request": self._numbers[item.pk], "task": "", "agent": ""}
                found.append({"of": of, "at": self._seconds(item.ended_at), "kind": "outcome", "what": item.outcome})
        return sorted(found, key=lambda each: each["at"])


def _answers(calls: Iterable[ModelCall]) -> Iterator[Fields]:
    """The answers as a scripted model gives them; `when` says to which question, for a reader and for `scripted_model`."""
    turns = defaultdict[int, int](int)
    for row in calls:
        if row.purpose in ("creation", "editing") and not row.asked_again:  # a conversation of its own
            turns[row.agent_id] = 0
        told = _told(row)
        when = {"turn": turns[row.agent_id]} | _without_empty({"last": told[-1].strip()[-KEPT_WORDS:].strip() if told else ""})
        turns[row.agent_id] += bool(row.reply)
        if row.outcome == "failed":
            yield {"when": when, "times": 1, "fail": {"status": STATUS.get(row.error_kind, 500), "message": row.error}}
            continue
        said = [part for each in _messages(row.reply) for part in each.parts]
        tokens = {"input": row.input_tokens or 0, "output": row.output_tokens or 0}
        yield {"when": when, "times": 1, "tokens": tokens} | _without_empty({
            "think": _words(said, Thinking), "say": _as_object(_words(said, Text)),
            "call": [{"tool": part.tool, "arguments": part.arguments} for part in said if isinstance(part, ToolCall)],
        })  # fmt: skip


def _told(row: ModelCall) -> list[str]:
    """Texts and results that came into the conversation with a call."""
    return [part.text for each in _messages(row.added) for part in each.parts if isinstance(part, Text | ToolResult)]


def _as_object(text: str) -> Any:
    """A text that is a JSON object as that object, which is easier to read; any other as it is."""
    found = _read_json(text) if text.lstrip().startswith("{") else text
    return found if isinstance(found, dict) and found else text


def _messages(stored: Any) -> list[Message]:
    return read_conversation(stored) if stored else []


def _words(parts: Iterable[Any], kind: type[Text] | type[Thinking]) -> str:
    return "".join(part.text for part in parts if isinstance(part, kind))


def _texts_told(calls: Iterable[ModelCall]) -> dict[tuple[int, str], list[str]]:
    """What models were told of the results of their calls, by agent and tool, in order."""
    told = defaultdict[tuple[int, str], list[str]](list)
    for row in calls:
        parts = (part for each in _messages(row.added) for part in each.parts if isinstance(part, ToolResult))
        for part in parts:
            told[row.agent_id, part.tool].append(part.text)
    return told


def _decision_of(row: ModelCall) -> Any:
    """What an answer decides: its object or its calls, without what the model thought and how it put it."""
    if row.outcome == "failed":
        return {"failed": row.error_kind}
    said = [part for each in _messages(row.reply) for part in each.parts]
    calls = [{"tool": part.tool, "arguments": _read_json(part.arguments)} for part in said if isinstance(part, ToolCall)]
    text = _words(said, Text)
    found = _read_json(text[text.find("{") : text.rfind("}") + 1])
    if isinstance(found, dict):
        decided: Any = {key: value for key, value in found.items() if key not in THINKING}
        return {"answer": decided, "calls": calls} if calls else decided
    return {"calls": calls} if calls else {"said": text}


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _device(row: Device) -> Fields:
    names = ("name", "platform", "type", "capabilities", "labels", "recipes", "limits", "unasked", "max_concurrent")
    return {name: getattr(row, name) for name in names}


def _is_a_persons(author: str) -> bool:
    return author.startswith(("user:", "token:"))


def _without_empty(fields: Mapping[str, Any]) -> Fields:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}
