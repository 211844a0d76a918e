"""A conversation with an agent, that of one attempt: prompts, what it tells meanwhile, leave, and the end.

What happens is told in its order, numbered from 1, by `call.on_update`; what it says is printed as it comes. Who hears that
may answer by `call.hear`: leave that was asked for, and words that go to the agent as its next prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.coding.frames import FramePipe
from agents.coding.permits import CANCELLED, Ask, Asks, read_options
from agents.coding.profiles.ends import end_of_call
from agents.coding.profiles.profile import CodingAgent
from agents.coding.tool_calls import CHANGES, ToolCall, ToolCalls, TooManyCalls
from agents.devices.workspace.files import FileRefused, content_state
from agents.models import Agent
from agents.tools.calls import Call, Outcome

if TYPE_CHECKING:
    from acp.client.connection import ClientSideConnection

VERSION = 1
"""Of the protocol."""
SAID = 20_000
"""Characters of one message, or of one thought, that are told."""
PRINTED = 4_000_000
"""Characters that one conversation says and thinks while it does."""
PLAN_ENTRIES = 100
PLAN_TEXT = 500
CANCEL_S = 5.0
"""An agent that was told to stop may take so long."""
COMMANDS = ("command", "cmd")
"""Arguments that are what a call runs."""
STOPS: Mapping[str, str] = {
    "refusal": "the agent's model refused to go on",
    "max_tokens": "the agent's model has used up its tokens",
    "max_turn_requests": "the agent has asked its model as often as it may in one turn",
}
"""Ends of a turn that are failures, with the words for them."""

log = logging.getLogger(__name__)


class Violated(Exception):
    """The agent did what it had no leave for."""


@dataclass
class Words:
    """What is being said: chunks of one message or thought, until something else happens."""

    kind: str = ""
    message: Any = None
    parts: list[str] = field(default_factory=list)


class Conversation:
    """`connection` is the SDK's, over `pipe`, whose tap this is; both are set once there is a process."""

    pipe: FramePipe
    connection: ClientSideConnection

    def __init__(self, agent: CodingAgent, call: Call, workspace: Path):
        self._agent, self._call, self._workspace = agent, call, workspace
        self.calls, self._asks = ToolCalls(), Asks()
        self._words, self._number, self._printed = Words(), 0, 0
        self._prompts: list[str] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._silent = self._turns_back = False
        self.session, self.last_message, self.denied, self.made = "", "", 0, 0
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    # `_silent`: what is told is a transcript of before; `_turns_back`: the turn is cancelled for words that are to be heard at
    # once; `denied`: refusals since the last prompt; `made`: calls that have ended; `broken`: set by what ends it at once.

    # --- its course

    async def open(self, cwd: str, servers: list[dict[str, Any]], load: str) -> str:
        """Shake hands and begin a session, or load the one of that id; its id. Raises ConnectionError, RequestError."""
        from acp.schema import ClientCapabilities, HttpMcpServer, Implementation

        answer = await self.connection.initialize(
            VERSION, client_capabilities=ClientCapabilities(), client_info=Implementation(name="orrery", version="1")
        )
        if answer.protocol_version != VERSION:
            raise ConnectionError(f"the agent speaks version {answer.protocol_version} of the protocol, not {VERSION}")
        given = [HttpMcpServer.model_validate(server) for server in servers]
        can_load = bool(answer.agent_capabilities and answer.agent_capabilities.load_session)
        if load and can_load and await self._load(cwd, load, given):
            return load
        begun = await self.connection.new_session(cwd, mcp_servers=list(given), **self._agent.session)
        self.session = begun.session_id
        return self.session

    async def _load(self, cwd: str, session: str, servers: list[Any]) -> bool:
        """Whether the agent still knows that session. What it tells of it is passed over: it is no evidence."""
        from acp.exceptions import RequestError

        self.session, self._silent = session, True
        try:
            await self.connection.load_session(cwd, session, mcp_servers=servers, **self._agent.session)
        except RequestError:
            return False
        finally:
            self._silent = False
        self.calls = ToolCalls()
        return True

    async def follow(self, prompt: str) -> Outcome:
        """Prompt the agent and follow it to the end of its turn, and of those that somebody's words lead to."""
        self._prompts.append(prompt)
        hearing = asyncio.get_running_loop().create_task(self._hear())
        try:
            while True:
                stop = await self._take_turn(self._prompts.pop(0))
                if self._prompts:
                    continue
                return self._end(stop)
        finally:
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hearing

    async def _take_turn(self, prompt: str) -> str:
        """One prompt, and why its turn ended. Raises ConnectionError, RequestError, ValueError, Violated."""
        from acp.helpers import text_block

        self.denied, self._turns_back = 0, False
        turn = asyncio.ensure_future(self.connection.prompt(self.session, [text_block(prompt)]))
        try:
            waited: set[asyncio.Future[Any]] = {turn, self.broken}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not turn.done():
                turn.cancel()
        if self.broken.done():
            raise Violated(self.broken.result())
        stop = str(turn.result().stop_reason)
        self._end_words()
        self._tell("turn", stop=stop)
        return stop

    def _end(self, stop: str) -> Outcome:
        told = {"said": self.last_message, "stop": stop, "calls": self.made, "denied": self.denied}
        if stop in STOPS:
            return Outcome("failed", error=STOPS[stop], result=told)
        if self.denied:  # Codex says that the turn was cancelled then
            why = "the agent ended its turn after it was refused something"
            return Outcome("failed", error=why, error_kind="denied", result=told)
        if stop == "cancelled":
            return Outcome("failed", error="the agent cancelled its turn, and nobody had asked for that", result=told)
        return Outcome("completed", result=told)

    async def cancel(self) -> None:
        """Tell the agent to stop, and give it CANCEL_S to do so."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CANCEL_S):
                for ask in self._asks.take_all():
                    await self._send(ask.request, CANCELLED)
                if self.session:
                    await self.connection.cancel(self.session)

    # --- what it is told

    async def _hear(self) -> None:
        """Answers to what it asked leave for, and words for its next prompt; `steer` interrupts what it does."""
        while True:
            kind, data = await self._call.hear()
            with contextlib.suppress(ConnectionError):  # who waits for the turn is told of that
                if kind == "answer":
                    await self._answer(data.get("ask"), data.get("leave") is True)
                elif kind in ("prompt", "steer"):
                    self._prompts.append(str(data.get("text", "")))
                    if kind == "steer" and not self._turns_back:
                        self._turns_back = True
                        await self._interrupt_turn()

    async def _interrupt_turn(self) -> None:
        for ask in self._asks.take_all():
            await self._send(ask.request, CANCELLED)
        await self.connection.cancel(self.session)

    async def _answer(self, number: Any, leave: bool) -> None:
        ask = self._asks.take(number)
        if ask is None:  # answered before, or nobody waits any more
            return
        ask.call.leave = leave and ask.can_allow()
        if ask.call.leave:
            ask.call.asked_for = dict(ask.call.given)
        else:
            self.denied += 1
        await self._send(ask.request, ask.answer(leave))

    async def _send(self, request: Any, result: dict[str, Any]) -> None:
        await self.pipe.send({"jsonrpc": "2.0", "id": request, "result": result})

    # --- what it tells

    def tap(self, message: Mapping[str, Any]) -> None:
        """Every update and every request for leave, in their order."""
        params = message.get("params")
        if not isinstance(params, Mapping):
            return
        try:
            if message["method"] == "session/update":
                update = params.get("update")
                if not self._silent and params.get("sessionId") == self.session and isinstance(update, Mapping):
                    self._take_update(update)
            elif "id" in message:
                self._take_ask(message["id"], params)
        except (TooManyCalls, Violated) as error:
            self._break(str(error))
        except Exception:  # whatever an agent says, it does no harm to others
            log.warning("an agent's message cannot be taken up", exc_info=True)
            self._break("it sent a message that cannot be taken up")

    def _break(self, why: str) -> None:
        if not self.broken.done():
            self.broken.set_result(why)

    def _tell(self, what: str, /, **data: Any) -> None:
        self._number += 1
        self._call.on_update(what, {"n": self._number, **data})

    def _take_update(self, update: Mapping[str, Any]) -> None:
        """One update; kinds that are not known, or are of no use here, are passed over."""
        kind = update.get("sessionUpdate")
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            content = update.get("content")
            text = content.get("text") if isinstance(content, Mapping) else None
            if isinstance(text, str):
                self._take_words("said" if kind == "agent_message_chunk" else "thought", update.get("messageId"), text)
        elif kind in ("tool_call", "tool_call_update"):
            self._end_words()
            self._take_call(update)
        elif kind == "plan":
            self._end_words()
            self._take_plan(update.get("entries"))

    def _take_words(self, kind: str, message: Any, text: str) -> None:
        words = self._words
        if (words.kind, words.message) != (kind, message):
            self._end_words()
            words = self._words = Words(kind, message)
        words.parts.append(text)
        if self._printed < PRINTED:
            self._printed += len(text)
            (self._call.on_output if kind == "said" else self._call.on_thinking)(text)

    def _end_words(self) -> None:
        """A message, or a thought, is whole."""
        words, self._words = self._words, Words()
        text = "".join(words.parts)
        if text.strip():
            if words.kind == "said":
                self.last_message = text[-SAID:]
            (self._call.on_output if words.kind == "said" else self._call.on_thinking)("\n")
            self._tell(words.kind, text=text[:SAID])

    def _take_plan(self, entries: Any) -> None:
        """Its plan, also where it tells that as the arguments of a tool."""
        found = []
        for one in entries[:PLAN_ENTRIES] if isinstance(entries, list) else ():
            if isinstance(one, Mapping) and isinstance(one.get("content"), str):
                status = one.get("status") if one.get("status") in Agent.PLAN_STATUSES else "pending"
                found.append({"content": one["content"][:PLAN_TEXT], "status": status})
        if found:
            self._tell("plan", entries=found)

    def _take_call(self, update: Mapping[str, Any]) -> None:
        key = update.get("toolCallId")
        known = self.calls.find(key) if isinstance(key, str) else None
        had_ended = known is not None and known.has_ended
        call = self.calls.upsert(update)
        if call is None or had_ended:
            return
        self._look_before(call)
        if call.has_ended:
            self._end_call(call)

    def _look_before(self, call: ToolCall) -> None:
        """The state of the file that a call is going to change, as it is when that is first known."""
        if call.before is None and call.kind == "edit" and (path := self.place_of(call)):
            call.before = self._state_of(path)

    def place_of(self, call: ToolCall) -> str:
        """The file that a call is about, in the workspace; as it was written where it is elsewhere."""
        named = [*call.paths, *(diff["path"] for diff in call.diffs)]
        named += [str(call.given[key]) for key in ("filePath", "file_path", "filepath", "path") if call.given.get(key)]
        if not named:
            return ""
        path = Path(named[0])
        return str(path.relative_to(self._workspace)) if path.is_relative_to(self._workspace) else named[0]

    def _state_of(self, path: str) -> str | None:
        """Of a file in the workspace; None where it is none, or cannot be looked at."""
        try:
            return content_state(self._workspace, path) or None
        except (FileRefused, OSError):
            return None

    def _end_call(self, call: ToolCall) -> None:
        self.made += 1
        end = end_of_call(call.status, call.kind, call.raw, call.text, self._agent.read_exit)
        if isinstance(todos := call.given.get("todos"), list):
            self._take_plan(todos)
        after = self._state_of(self.place_of(call)) if call.before is not None else None
        self._tell(
            "tool", **self.about(call), error=end.error, exit_code=end.exit_code, text=call.text or _as_text(call.raw),
            before=call.before, after=after, leave=call.leave,
        )  # fmt: skip
        if wrong := self._without_leave(call, done=not end.error or end.exit_code is not None):
            self._tell("violation", **self.about(call), why=wrong)
            raise Violated(wrong)

    def about(self, call: ToolCall) -> dict[str, Any]:
        """What a call is, as it is told."""
        return {
            "call": call.id, "kind": call.kind, "title": call.title, "arguments": call.given, "path": self.place_of(call),
            "diffs": call.diffs,
        }  # fmt: skip

    def _without_leave(self, call: ToolCall, *, done: bool) -> str:
        """Why a call that has been made should not have been; empty where it should."""
        if call.kind not in CHANGES or not done:
            return ""
        what = f"{call.kind} {call.title!r}"
        if call.leave is None:
            return f"it did without asking: {what}"
        if not call.leave:
            return f"it did what it was refused: {what}"
        if any(call.asked_for.get(key, call.given.get(key)) != call.given.get(key) for key in COMMANDS):
            return f"it did something else than it asked leave for: {what}"
        return ""

    def _take_ask(self, request: Any, params: Mapping[str, Any]) -> None:
        """A request for leave. One that is not of this session, or names no call, is refused at once."""
        told, options = params.get("toolCall"), read_options(params.get("options"))
        mine = params.get("sessionId") == self.session and not self._silent and isinstance(told, Mapping)
        call = self.calls.upsert({**told, "status": "pending"}) if mine and isinstance(told, Mapping) else None
        if call is None or call.has_ended:
            ask = Ask(request, call or ToolCall(""), options)
            self._send_later(request, ask.answer(False))
            return
        self._end_words()
        self._look_before(call)
        self._tell("leave", **self.about(call), cwd=str(self._workspace), can_allow="allow_once" in options)
        self._asks.put(self._number, Ask(request, call, options))

    def _send_later(self, request: Any, result: dict[str, Any]) -> None:
        sending = asyncio.get_running_loop().create_task(self._send(request, result))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)


def _as_text(raw: Any) -> str:
    if isinstance(raw, str):
        return raw[:SAID]
    return str(raw["output"])[:SAID] if isinstance(raw, Mapping) and isinstance(raw.get("output"), str) else ""
