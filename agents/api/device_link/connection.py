"""Calls over the connection of one device: what is sent for each, and what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from agents.api.device_link.transfers import FIRST_ERRAND, Errand, keep_outputs, place_inputs
from agents.devices.protocol.fields import ProtocolError
from agents.devices.protocol.messages import (
    PIECE_BYTES,
    WINDOW,
    Ack,
    CallBegun,
    Cancel,
    FilePiece,
    Message,
    Output,
    Result,
    Update,
)
from agents.errors import AgentsError
from agents.masks.values import resolve_environment
from agents.tools.calls import Call, Outcome, check_arguments
from agents.tools.catalogue import SCHEMAS
from agents.tools.command import blackboard_environment
from agents.tools.handing import INPUT

CANCEL_S = 8.0
"""A call that is to end may take so long on the device; who waited for it goes on without it then."""

UPDATES = 40
"""Of one call that are recorded: as each comes after twice as long, a client never says so many."""

Send = Callable[[Message], Awaitable[None]]


class Awaited:
    """A call under way on the device. `printed`: characters of its output that have come, `stored` of them durably.

    `is_known`: the device has it already.
    """

    def __init__(self, printed: int = 0, *, is_known: bool = False):
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.printed = self.stored = printed
        self.is_known = is_known
        self.call: Call | None = None
        self.updates = 0

    def hear_update(self, call: Call, said: Update) -> None:
        """How far it is becomes an event of its session; whoever says that too often is not heard any more."""
        self.updates += 1
        if self.updates <= UPDATES:
            call.note(
                "call_progressed", attempt_id=call.attempt, tool=call.tool, characters=said.characters, lines=said.lines,
                seconds=said.seconds, percent=said.percent,
            )  # fmt: skip


class DeviceConnection:
    """The open connection of one device. `closed`: nothing is sent any more, and the device's calls may go on elsewhere.

    `by_call` says of calls, by key, whose connection to tell when what came of them is durable.
    """

    def __init__(self, device: int, name: str, send: Send, by_call: dict[int, DeviceConnection]):
        self.device, self.name, self._send, self._by_call = device, name, send, by_call
        self._awaited: dict[int, Awaited] = {}
        self._errands: dict[int, Errand] = {}
        self._next_errand = FIRST_ERRAND
        self.closed = False

    def expect(self, key: int, printed: int) -> None:
        """The device has this call already; of its output so much is stored."""
        self._awaited[key] = Awaited(printed, is_known=True)

    async def send(self, message: Message) -> None:
        """Also to one that is just going: then it goes nowhere."""
        if not self.closed:
            await self._send(message)

    async def call(self, call: Call) -> Outcome:
        """Carry out a call on the device (agents.links.kinds.Connection): inputs go before it, outputs come after it."""
        self._by_call[call.key] = self
        awaited = self._awaited.get(call.key)
        try:
            if awaited is None or not awaited.is_known:
                await asyncio.to_thread(_check, call)
                try:
                    await place_inputs(self, list(call.inputs))
                except (AgentsError, OSError) as error:
                    return Outcome("failed", error=f"its inputs could not be placed: {error}", error_kind=INPUT)
                awaited = self._awaited[call.key] = Awaited()
                await self.send(begun_message(call))
            awaited.call = call
            outcome = outcome_of(await awaited.result)
            if call.outputs and outcome.outcome == "completed":
                await self._keep_outputs(call, outcome)
            return outcome
        except asyncio.CancelledError:
            if awaited is not None:
                await self._cancel(call.key, awaited)
            raise
        finally:
            if awaited is not None and self._awaited.get(call.key) is awaited:
                del self._awaited[call.key]

    async def _keep_outputs(self, call: Call, outcome: Outcome) -> None:
        """What cannot be kept makes a failure of the call."""
        try:
            outcome.artifacts = [*outcome.artifacts, *await keep_outputs(self, list(call.outputs))]
        except (AgentsError, OSError) as error:
            outcome.outcome, outcome.error = "failed", f"its outputs could not be kept: {error}"

    async def begin_errand(self, message_of: Callable[[int], CallBegun]) -> Errand:
        """A call of ours, for a file; to be forgotten afterwards."""
        key, self._next_errand = self._next_errand, self._next_errand + 1
        errand = self._errands[key] = Errand(key, self.send)
        await self.send(message_of(key))
        return errand

    def forget_errand(self, errand: Errand) -> None:
        del self._errands[errand.key]

    async def _cancel(self, key: int, awaited: Awaited) -> None:
        """End it on the device too, unless it goes on there for whoever has the connection next."""
        if self.closed:
            return
        await self.send(Cancel(key))
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(CANCEL_S):
                await asyncio.shield(awaited.result)

    def hear(self, message: Message) -> Message | None:
        """Something about a call; what is to be answered at once. Raises ProtocolError."""
        awaited = self._awaited.get(message.key)  # type: ignore[attr-defined]  # all that are heard here have one
        match message:
            case Output(key=key, offset=offset, text=text):
                if awaited is None:
                    return Ack(key, offset + len(text))  # nobody wants it, and the device may forget it
                self._hear_output(awaited, message)
            case Update() if awaited is not None and awaited.call is not None:
                awaited.hear_update(awaited.call, message)
            case FilePiece(key=key) if key in self._errands:
                if not self._errands[key].hear_piece(message):
                    raise ProtocolError("too_many", "pieces of a file come without being asked for")
            case Ack(key=key, upto=int(upto)) if key in self._errands:
                self._errands[key].hear_taken(upto)
        return None

    def _hear_output(self, awaited: Awaited, said: Output) -> None:
        if said.offset > awaited.printed:
            raise ProtocolError("out_of_turn", f"output at {said.offset} came where {awaited.printed} was to follow")
        fresh = said.text[awaited.printed - said.offset :]
        awaited.printed += len(fresh)
        if awaited.printed - awaited.stored > WINDOW + PIECE_BYTES:
            raise ProtocolError("too_many", "more output is under way than the window lets")
        if fresh and awaited.call is not None:
            awaited.call.on_output(fresh)

    def take_errand(self, result: Result) -> bool:
        """Whether this is the result of an errand, also of one that nobody waits for any more."""
        errand = self._errands.get(result.key)
        if errand is not None and not errand.result.done():
            errand.result.set_result(result)
        return result.key >= FIRST_ERRAND

    def take_result(self, result: Result) -> bool:
        """Whether somebody waits for it."""
        awaited = self._awaited.get(result.key)
        if awaited is None or awaited.result.done():
            return False
        awaited.result.set_result(result)
        return True

    def stored(self, key: int, characters: int) -> Ack | None:
        """So many more characters of a call's output are durable: what the device is told of that."""
        awaited = self._awaited.get(key)
        if awaited is None:
            return None
        awaited.stored += characters
        return Ack(key, awaited.stored)


def begun_message(call: Call) -> CallBegun:
    """A call as the device gets it. Secrets of its environment go out with it, as they do to a command of this host."""
    limits: dict[str, Any] = dict(call.device["limits"])
    environment = {**blackboard_environment(call.blackboard), **resolve_environment(limits.pop("env", {}))}
    return CallBegun(
        call.key, call.attempt, call.tool, dict(call.arguments), call.timeout, limits, environment, call.scope, call.inherits,
        call.writes,
    )  # fmt: skip


def _check(call: Call) -> None:
    """Raises BadArguments. In a thread, as for tools of this host."""
    if call.tool in SCHEMAS:
        check_arguments(call.tool, dict(call.arguments))


def outcome_of(result: Result) -> Outcome:
    return Outcome(
        result.outcome, result=result.result, error=result.error, error_kind=result.error_kind, exit_code=result.exit_code,
        digest=result.digest, before=result.before, text=result.text,
    )  # fmt: skip
