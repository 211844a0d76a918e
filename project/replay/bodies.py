"""The bodies of a replay: each call gives what the recording has for it. It is the seam: no tool and no process is started."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from agents.engine.bodies.reports import Reports
from agents.engine.sessions import Sessions
from agents.llm.conversation import Message, Part, Text, Thinking, ToolCall, write_conversation
from agents.llm.scripted.script import PreparedAnswer
from agents.minds.question import Question
from agents.models import Agent, Evidence, ModelCall
from agents.tools.calls import Call, Outcome
from constellations.models import Attempt
from project.replay.ordering import Order
from project.replay.recording import Recording, hide_secrets

ASKS = "ask_model"
"""The name of a call that asks a model."""
Who = tuple[str, str]


class RecordedCalls:
    """What calls gave, in their order by task and agent; each is given once. With `asks_models` models are really asked."""

    def __init__(self, recording: Recording, asks_models: bool):
        content, self._asks_models = recording.content, asks_models
        questions, results = content["questions"], content["results"]
        self.order = Order([(each["begun"], each["ended"]) for each in (*questions, *results)])
        self._given = dict[int, Outcome]()
        self._left = defaultdict[Who, list[tuple[int, Mapping[str, Any], PreparedAnswer | None]]](list)
        for number, (question, answer) in enumerate(zip(questions, recording.script.answers, strict=True)):
            self._left[_who(question["of"])].append((number, question, answer))
        for number, result in enumerate(results, len(questions)):
            self._left[_who(result["of"])].append((number, result, None))

    def replace_body(self, call: Call) -> None:
        """Let the call give what is recorded, or ask its model in the place of the recorded question."""
        if call.tool == ASKS and self._asks_models:
            assert call.body is not None
            call.body = partial(self._ask, call.body)
        else:
            call.body, call.timeout = self.give, None

    async def _ask(self, body: Callable[[Call], Awaitable[Outcome]], call: Call) -> Outcome:
        """Really ask. What came after the recorded answer comes after this one."""
        left = self._left[await sync_to_async(_asker_of)(call)]
        number = next((number for number, _, answer in left if answer is not None), None)
        if number is None:
            return await body(call)
        left[:] = [each for each in left if each[0] != number]
        self.order.begin(number)
        self.order.asking += 1
        try:
            outcome = await body(call)
        finally:
            self.order.asking -= 1
        await self.order.end(number)
        return outcome

    async def give(self, call: Call) -> Outcome:
        """The body of a call; a call that is tried once more gives the same again."""
        if call.key not in self._given:
            who = await sync_to_async(_asker_of)(call)
            self._given[call.key] = await self._take(who, call)
        return self._given[call.key]

    async def _take(self, who: Who, call: Call) -> Outcome:
        left = self._left[who]
        arguments = hide_secrets(dict(call.arguments)) if call.tool != ASKS else {}
        for place, (number, told, answer) in enumerate(left):
            same = answer is not None if call.tool == ASKS else told.get("tool") == call.tool and (
                told.get("arguments", {}) == arguments
            )  # fmt: skip
            if same:
                del left[place]
                self.order.begin(number)
                await self.order.end(number)
                return _outcome_of(told) if answer is None else _answer_of(call, told, answer)
        what = "answer" if call.tool == ASKS else f"result of {call.tool} {json.dumps(arguments, default=str)[:200]}"
        return Outcome("failed", error=f"the recording has no more {what} for {' '.join(filter(None, who))}")


def _who(of: Mapping[str, Any]) -> Who:
    return of["task"], of["agent"]


def _asker_of(call: Call) -> Who:
    """The task and the agent of a call, as `of` stands in a recording."""
    if call.tool == ASKS:
        agent = ModelCall.objects.select_related("agent").get(pk=call.key).agent
    elif call.key == call.attempt:
        agent = Attempt.objects.select_related("agent").get(pk=call.key).agent
    else:
        agent = Evidence.objects.select_related("loop__agent").get(pk=call.key).loop.agent
    return who_is(agent)


def who_is(agent: Agent | None) -> Who:
    """The id of the task that an agent, or one above it, works on, and its name; both empty where there is none."""
    above = agent
    while above is not None:
        attempt = Attempt.objects.filter(agent=above).select_related("task").first()
        if attempt is not None:
            return attempt.task.task_id, agent.name if agent is not None else ""
        above = above.parent
    return "", agent.name if agent is not None else ""


def _outcome_of(told: Mapping[str, Any]) -> Outcome:
    names = ("result", "error", "exit_code", "error_kind", "digest", "before", "text")
    return Outcome(told["outcome"], **{name: told[name] for name in names if name in told})


def _answer_of(call: Call, told: Mapping[str, Any], answer: PreparedAnswer) -> Outcome:
    """As `agents.minds.asking` gives it."""
    question: Question = call.arguments["question"]
    parts: list[Part] = [Thinking("".join(answer.think))] if answer.think else []
    parts += [Text("".join(answer.say))] if answer.say else []
    parts += [ToolCall(f"call_{call.key}_{place}", each.tool, each.arguments) for place, each in enumerate(answer.calls)]
    text = "".join(answer.say)
    given, made = answer.tokens
    result = {
        "profile": question.profiles[0].name, "model": question.profiles[0].model,
        "reply": write_conversation([Message("assistant", tuple(parts))]) if parts else None,
        "text": text, "schema_text": text or next((each.arguments for each in answer.calls), ""),
        "finish": "tool_call" if answer.calls else "stop", "input_tokens": given, "output_tokens": made, "call_s": 0.0,
    }  # fmt: skip
    if answer.fail is None:
        return Outcome("completed", result=result)
    return Outcome("failed", result=result, error=told.get("error", ""), error_kind=told.get("error_kind", ""))


class RecordedReports(Reports):
    """Begins calls with the bodies of a recording."""

    calls: RecordedCalls

    def begin(self, call: Call) -> None:
        self.calls.replace_body(call)
        super().begin(call)


class RecordedSessions(Sessions):
    """Sessions whose calls a recording answers."""

    reports_type = RecordedReports
    reports: RecordedReports
