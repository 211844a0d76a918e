"""The entrance for devices that dial in: one connection, from its first message to its end (docs/device-protocol.md).

The token stands in the request's header, as `Authorization: Bearer`. Neither a cookie nor a user's token opens anything here.
Closes: 4400 not as the protocol says, 4401 the token, 4403 not now or not this device, 4409 another client has the device,
4500 our fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import Error as DatabaseError

from agents.access.logins import token_in_scope
from agents.api.device_link.connection import DeviceConnection, outcome_of
from agents.api.device_link.hub import HeldConnection, device_hub
from agents.devices.protocol.fields import ProtocolError
from agents.devices.protocol.frames import FrameReader, split_frames
from agents.devices.protocol.messages import (
    FOR_GOOD,
    HELLO_BYTES,
    MESSAGE_BYTES,
    VERSION,
    Ack,
    Bye,
    Fault,
    Heartbeat,
    Hello,
    Message,
    Refused,
    Result,
    Welcome,
    decode_message,
    encode_message,
)
from agents.errors import AgentsError
from agents.links.dialled import Dialling, DialRefused, LetIn, let_in, lose_dialled, refuse_dial
from agents.links.holders import heartbeat_s
from agents.models import Device
from agents.rates import Allowance
from agents.services.device_tokens import EnrolmentRefused, enrol, find_device

HELLO_S = 10.0
"""Within which the first message comes."""
AT_ONCE = 4_000
PER_S = 400
"""Messages of one device."""
MOST_REFUSED = 300
"""Results of one connection that nobody waits for; with the next it ends."""
CLOSES = {"bad_token": 4401, "malformed": 4400, "bad_version": 4400, "too_many": 4400, "already_connected": 4409, "busy": 4500}

log = logging.getLogger(__name__)
Scope = dict[str, Any]


class Ended(Exception):
    """This side ends the connection, with these words."""

    def __init__(self, bye: Bye):
        super().__init__(bye.reason)
        self.bye = bye


async def answer_device(scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """The ASGI application at /ws/devices/."""
    await DeviceSocket(scope, receive, send).run()


class DeviceSocket:
    """One websocket."""

    def __init__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]):
        self._scope, self._receive, self._send = scope, receive, send
        self._reader = FrameReader(HELLO_BYTES)
        self._allowance = Allowance(AT_ONCE, PER_S, time.monotonic())
        self._sending = asyncio.Lock()
        self._open = True
        self._refused = 0
        self._bye: Bye | None = None
        self._until = asyncio.timeout(None)

    # `_until` is what ends the hearing when somebody else wants the connection to end: with `_bye`.

    async def run(self) -> None:
        """From the request to the end of the connection."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        try:
            async with asyncio.timeout(HELLO_S):
                hello = await self._next()
            if not isinstance(hello, Hello):
                raise ProtocolError("out_of_turn", "the first message is `hello`")
            held = await self._let_in(hello)
        except DialRefused as refused:
            await self._refuse(refused.reason_code, str(refused))
        except ProtocolError as error:
            await self._refuse("malformed", str(error))
        except (ConnectionResetError, TimeoutError):
            await self._close(4400)
        except (DatabaseError, AgentsError):  # it does not answer, or not in time
            log.warning("a device could not be let in", exc_info=True)
            await self._refuse("busy", "the server cannot let devices in for now; try again")
        else:
            await self._serve(held)

    # --- the handshake

    async def _let_in(self, hello: Hello) -> HeldConnection:
        """Who it is, whether it may come in now, and what it goes on with. Raises DialRefused."""
        hub = device_hub()
        device, fresh = await hub.in_thread(find_or_enrol, token_in_scope(self._scope))
        if hello.protocol != VERSION:
            reason = f"the client speaks version {hello.protocol} of the protocol, the server {VERSION}"
            await hub.in_thread(refuse_dial, device, reason)
            raise DialRefused("bad_version", reason)
        known = frozenset(each["key"] for each in hello.calls)
        said = Dialling(hello.instance, hello.client, self._peer(), hello.facts, known)
        async with hub.turn_of(device):
            before = hub.held(device)
            if before is not None and before.instance == hello.instance:  # the device knows of its end before we do
                before.end(Bye("the same client has come again", retry_s=0))
                await hub.leave(before)
            found = await hub.in_thread(admit, device, hello.device, said)
            if before is not None:
                before.end(Bye("another client has come", retry_s=0))
                await hub.leave(before)
            connection = DeviceConnection(device, found.device["name"], self._say, hub.by_call)
            held = HeldConnection(connection, hello.instance, found, self._end)
            await self._say(welcome_message(found, fresh))
            hub.join(held, found)
        self._reader.most = MESSAGE_BYTES
        return held

    async def _refuse(self, code: str, reason: str) -> None:
        log.warning("a device at %s is refused: %s: %s", self._peer(), code, reason)
        await self._say(Refused(code, reason[:1_000]))
        await self._close(CLOSES.get(code, 4403))

    def _peer(self) -> str:
        return ":".join(str(part) for part in self._scope.get("client") or ())

    # --- the connection

    async def _serve(self, held: HeldConnection) -> None:
        """Until it ends. A connection that is only lost leaves everything as it is, for whoever the device reaches next."""
        hub, device, lost, event = device_hub(), held.connection.device, "", "lost"
        try:
            try:
                async with self._until:
                    await self._hear_all(held.connection)
            except TimeoutError:
                assert self._bye is not None
                lost = self._bye.reason if self._bye.end_calls else ""
                await self._say(self._bye)
            except Ended as ended:  # by the device
                lost = ended.bye.reason or "its client has ended"
            except ProtocolError as error:
                lost, event = f"protocol: {error}", "fault"
                log.warning("device %s at %s: %s", device, self._peer(), lost)
                await self._say(Bye(lost[:1_000], end_calls=True, retry_s=60))
            if lost and self._bye is None:
                await hub.in_thread(_lose, device, held.fence, lost, event)
        except ConnectionResetError:
            log.info("the connection of device %s was lost", device)
        finally:
            async with hub.turn_of(device):
                await hub.leave(held, lost=lost)
            await self._close(4400 if event == "fault" else 1000)

    async def _hear_all(self, connection: DeviceConnection) -> None:
        """Raises ConnectionResetError, ProtocolError and Ended."""
        hub = device_hub()
        while True:
            message = await self._next()
            match message:
                case Heartbeat(readings=readings):
                    hub.heard(connection.device, readings)
                case Result():
                    await self._take_result(connection, message)
                case Bye():
                    raise Ended(message)
                case Hello():
                    raise ProtocolError("out_of_turn", "`hello` is the first message, and no other")
                case _:
                    if (answer := connection.hear(message)) is not None:
                        await self._say(answer)

    async def _take_result(self, connection: DeviceConnection, result: Result) -> None:
        if connection.take_errand(result):
            await self._say(Ack(result.key, None))
            return
        if connection.take_result(result):
            return
        self._refused += 1
        if self._refused > MOST_REFUSED:
            raise ProtocolError("too_many", "too many results that nobody waits for")
        verdict = await device_hub().judge_late(connection, result.key, outcome_of(result))
        if verdict in ("foreign", "open"):
            log.warning("device %s tells the result of call %s, which is not its own", connection.device, result.key)
            await self._say(Fault("foreign_call", f"call {result.key} is none that this device was given", result.key))
        elif verdict == "late":
            await self._say(Fault("ended_call", f"call {result.key} had ended without this device", result.key))

    def _end(self, bye: Bye) -> None:
        """Let the connection end from this side."""
        if self._bye is None:
            self._bye = bye
            self._until.reschedule(0.0)

    # --- messages

    async def _next(self) -> Message:
        """The next message; raises ProtocolError, and ConnectionResetError at the end."""
        while True:
            event = await self._receive()
            if event["type"] != "websocket.receive":
                self._open = False
                raise ConnectionResetError
            if not self._allowance.take(time.monotonic()):
                raise ProtocolError("too_many", f"more than {PER_S} messages a second")
            if (whole := self._reader.take(event.get("text"))) is not None:
                return decode_message(whole, "up")

    async def _say(self, message: Message) -> None:
        async with self._sending:  # the parts of a message stay together
            for frame in split_frames(encode_message(message)):
                if self._open:
                    await self._send({"type": "websocket.send", "text": frame})

    async def _close(self, code: int) -> None:
        if self._open:
            self._open = False
            with contextlib.suppress(Exception):  # it may have gone meanwhile
                await self._send({"type": "websocket.close", "code": code})


def find_or_enrol(token: str) -> tuple[int, str]:
    """The device whose token this is, and its own new one where this was for its enrolment. Raises DialRefused."""
    if (device := find_device(token)) is not None:
        return device, ""
    try:
        fresh = enrol(token)
    except EnrolmentRefused as error:
        raise DialRefused("bad_token", "this token is none of a device, or has ended") from error
    found = find_device(fresh)
    assert found is not None  # it was made just now
    return found, fresh


def admit(device: int, name: str, said: Dialling) -> LetIn:
    """As `let_in`; a client that takes itself for another device is refused. What is refused for good is in the history."""
    try:
        if name and Device.objects.filter(pk=device).values_list("name", flat=True).get() != name:
            raise DialRefused("wrong_device", f"this token is not one of device {name}")
        return let_in(device, said)
    except DialRefused as refused:
        if refused.reason_code in FOR_GOOD:
            refuse_dial(device, str(refused))
        raise


def welcome_message(found: LetIn, token: str) -> Welcome:
    going_on = [{"key": call.key, "output": printed} for call, printed in found.going_on]
    return Welcome(found.device["name"], heartbeat_s(found.device), going_on, token)


def _lose(device: int, fence: int, reason: str, event: str) -> None:
    lose_dialled(device, fence, reason[:1_000], event=event)
