"""The client's connection to the server: dialled, kept, and dialled again after it was lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from agents.devices import readings
from agents.devices.client.calls import Calls
from agents.devices.client.place import CLIENT, ClientRefused, Place
from agents.devices.protocol.fields import ProtocolError
from agents.devices.protocol.frames import FRAME_BYTES, FrameReader, split_frames
from agents.devices.protocol.messages import (
    FOR_GOOD,
    MESSAGE_BYTES,
    VERSION,
    Ack,
    Bye,
    CallBegun,
    Cancel,
    Fault,
    FilePiece,
    Heartbeat,
    Hello,
    Message,
    Refused,
    Welcome,
    decode_message,
    encode_message,
)

FIRST_PAUSE_S = 0.2
"""After a lost connection, then twice as long each time, ..."""
LONGEST_PAUSE_S = 30.0
"""...at most; each between half of that and all, so that many devices do not come at once."""
HANDSHAKE_S = 15.0
PING_S = 30.0
"""A server that does not answer a ping for as long again is gone, whatever stands between."""
MISSING = 3
"""Heartbeats of which the network says nothing, until the connection is taken for lost."""
SETTLED_S = 10.0
"""A connection that held so long begins the pauses anew."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Server:
    """Where to dial. `token` says what to show each time; `keep` is given a new one. `device`: its name, where it is known."""

    address: str
    token: Callable[[], str]
    keep: Callable[[str], None]
    device: str = ""


def pause_s(failures: int, chance: float) -> float:
    """Before the next try; `chance` from 0 to 1."""
    return min(FIRST_PAUSE_S * 2.0 ** min(failures, 30), LONGEST_PAUSE_S) * (0.5 + chance / 2)


class Link:
    """Of one client."""

    def __init__(self, server: Server, place: Place, calls: Calls):
        self._server, self._place, self._calls = server, place, calls
        self.instance = secrets.token_hex(16)
        self._ending: str | None = None
        self._socket: ClientConnection | None = None

    async def run(self) -> None:
        """Until `end` is called; raises ClientRefused when the server will never let this client in."""
        failures = 0
        while self._ending is None:
            began = asyncio.get_running_loop().time()
            wanted_s = None
            try:
                async with connect(
                    self._server.address, additional_headers={"Authorization": f"Bearer {self._server.token()}"},
                    compression=None, max_size=FRAME_BYTES, open_timeout=HANDSHAKE_S, close_timeout=2, ping_interval=PING_S,
                    ping_timeout=PING_S, user_agent_header=CLIENT, proxy=None,
                ) as opened:  # fmt: skip
                    wanted_s = await self._serve(opened)
            except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError, ProtocolError) as error:
                log.warning("the connection was lost: %s", error or type(error).__name__)
            finally:
                self._socket = None
                self._calls.lose_connection()
            failures = 0 if asyncio.get_running_loop().time() - began > SETTLED_S else failures + 1
            if self._ending is None:
                await asyncio.sleep(max(wanted_s or 0.0, pause_s(failures, random.random())))  # noqa: S311 - no secret

    async def end(self, reason: str) -> None:
        """Say good-bye and end all calls."""
        self._ending = reason
        await self._calls.end_all()
        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                for message in (*self._calls.next_messages(), Bye(reason)):
                    await send_message(self._socket, message)
                await self._socket.close()

    # --- inside

    async def _serve(self, opened: ClientConnection) -> float | None:
        """Shake hands and serve until the connection ends; how long to wait before the next, where the server says so."""
        reader = FrameReader(MESSAGE_BYTES)
        facts = self._place.facts() | {"instance": self.instance}
        hello = Hello(VERSION, self.instance, CLIENT, self._server.device, facts, self._calls.states())
        await send_message(opened, hello)
        async with asyncio.timeout(HANDSHAKE_S):
            first = await _next_message(opened, reader)
        if isinstance(first, Refused):
            if first.code in FOR_GOOD:
                raise ClientRefused(f"the server refuses this device: {first.reason}")
            log.warning("the server refuses this device for now: %s", first.reason)
            return None
        if not isinstance(first, Welcome):
            raise ProtocolError("out_of_turn", "the server's first message is no welcome")
        if first.token:
            self._server.keep(first.token)
        log.info("connected as %s", first.device)
        self._socket = opened
        give_up_after(opened, MISSING * first.heartbeat_s)
        self._calls.resume({each["key"]: each["output"] for each in first.calls})
        loop = asyncio.get_running_loop()
        talking = [loop.create_task(self._send_all(opened)), loop.create_task(self._beat(opened, first.heartbeat_s))]
        try:
            return await self._hear_all(opened, reader)
        finally:
            for task in talking:
                task.cancel()
            await asyncio.gather(*talking, return_exceptions=True)

    async def _hear_all(self, opened: ClientConnection, reader: FrameReader) -> float | None:
        """Until the connection ends. A `bye` says when to come back."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                message = await _next_message(opened, reader)
                if isinstance(message, Bye):
                    return await self._hear_bye(message)
                self._hear(message)
        return None

    def _hear(self, message: Message) -> None:
        match message:
            case CallBegun():
                self._calls.begin(message)
            case Cancel(key=key):
                self._calls.cancel(key)
            case Ack():
                self._calls.hear_ack(message)
            case FilePiece():
                self._calls.hear_piece(message)
            case Fault(key=int(key)):
                log.warning("the server refuses what was said of call %s: %s", key, message.message)
                self._calls.forget(key)
            case Fault():
                log.info("the server says: %s", message)

    async def _hear_bye(self, bye: Bye) -> float | None:
        log.warning("the server ends the connection: %s", bye.reason)
        if bye.end_calls:
            await self._calls.end_all()
        if bye.retry_s is None:
            raise ClientRefused(f"the server has ended this device: {bye.reason}")
        return bye.retry_s

    async def _send_all(self, opened: ClientConnection) -> None:
        """Whatever the calls have to say, as it comes."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._calls.changed.wait()
                self._calls.changed.clear()
                for message in self._calls.next_messages():
                    await send_message(opened, message)

    async def _beat(self, opened: ClientConnection, every_s: float) -> None:
        before = None
        with contextlib.suppress(ConnectionClosed):
            while True:
                before = readings.take_reading(self._place.workspace, before)
                await send_message(opened, Heartbeat(shown_reading(before)))
                await asyncio.sleep(every_s)


def shown_reading(found: readings.Reading) -> dict[str, Any]:
    """As heartbeats tell it."""
    return {name: getattr(found, name) for name in ("memory_percent", "disk_percent", "cpu_percent")}


def give_up_after(opened: ClientConnection, seconds: float) -> None:
    """Let the network say so when what is sent is not taken for so long."""
    found = opened.transport.get_extra_info("socket")
    if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1_000))


async def send_message(opened: ClientConnection, message: Message) -> None:
    for frame in split_frames(encode_message(message)):
        await opened.send(frame)


async def _next_message(opened: ClientConnection, reader: FrameReader) -> Message:
    while True:
        frame = await opened.recv()
        whole = reader.take(frame if isinstance(frame, str) else None)
        if whole is not None:
            return decode_message(whole, "down")
