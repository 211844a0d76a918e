"""The two ways to a tool server, as transports of the library: a program behind walls, and guarded HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import mcp_types as types
from django.conf import settings
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from agents.devices import host
from agents.devices.confinement import folders_of_program
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH
from agents.devices.processes import AttemptMark, end_attempts
from agents.devices.talking import TalkingProgram, start_program
from agents.links.kinds import LinkRefused
from agents.masks.values import resolve_environment
from agents.outside.transport import CONNECT_S, GuardedTransport, guarded_client
from agents.streams.row_types import DeviceRow
from agents.tools import confining
from agents.tools.workspaces import device_workspace

SILENCE_S = 300.0
"""Between two bytes of an answer; a stream of events is opened again after it."""
WRITE_S = 30.0

log = logging.getLogger(__name__)


# --- a program here


async def start_server(device: DeviceRow) -> TalkingProgram:
    """The program of a stdio server, in the workspace of its device and behind the walls that commands have.

    What an earlier runner left of it is ended first. Raises LinkRefused.
    """
    connection, limits = device["connection"], device["limits"]
    instance, place, path = host.instance_name(), device_workspace(device["name"]), limits.get("path", DEFAULT_PATH)
    try:
        walls = confining.command_walls(limits, place)
        if walls is None and not settings.UNCONFINED_COMMANDS:
            raise LinkRefused(f"a tool server is a program, and nothing confines it here. {confining.HOW_TO_CONFINE}")
        if walls is not None:
            program = shutil.which(connection["argv"][0], path=path) or connection["argv"][0]
            own = folders_of_program([program, *connection["argv"][1:]], walls.hidden)
            walls = replace(walls, shared=(), readable=(*own, *walls.readable))
        await asyncio.to_thread(end_attempts, instance, {device["id"]})
        return await start_program(
            connection["argv"],
            workspace=place,
            mark=AttemptMark(instance, device["id"]),
            limits=CommandLimits.of(limits),
            env=resolve_environment(connection.get("env", {})),
            path=path,
            walls=walls,
        )
    except (OSError, ValueError, TypeError, confining.NotConfined) as error:
        raise LinkRefused(f"{connection['argv'][0]} cannot be started: {error}") from error


@asynccontextmanager
async def talk_to_program(program: TalkingProgram) -> AsyncIterator[TransportStreams]:
    """Its lines as messages. What it prints and is none is dropped."""
    to_us, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, to_it = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        async with to_us:
            while (line := await program.read()) is not None:
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    log.debug("a tool server printed what is no message: %.200r", line)
                    continue
                try:
                    await to_us.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return

    async def speak() -> None:
        with contextlib.suppress(ConnectionError):
            async with to_it:
                async for each in to_it:
                    await program.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    tasks = [asyncio.create_task(listen()), asyncio.create_task(speak())]
    try:
        yield heard, said
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (heard, said, to_us, to_it):
            stream.close()


# --- HTTP


def _refuse(name: str, address: str) -> LinkRefused:
    return LinkRefused(f"{name} is {address}, an address inside; name it in ORRERY_TOOL_SERVERS if it is a tool server")


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Answers of at most `most` bytes; a stream of events is bounded by the library, event by event."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, most: int):
        self._inner, self._most = inner, most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(answer.stream, httpx2.AsyncByteStream)
            answer.stream = BoundedStream(answer.stream, self._most, request)
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most: int, request: httpx2.Request):
        self._inner, self._left, self._request = inner, most, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._left -= len(piece)
            if self._left < 0:
                raise httpx2.ReadError("the answer is too large", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def http_client(device: DeviceRow) -> httpx2.AsyncClient:
    """The client of one server: it goes only where the installation allows, and follows nobody elsewhere."""
    most = CommandLimits.of(device["limits"]).output_bytes
    transport = BoundedTransport(GuardedTransport(lambda: settings.TOOL_SERVERS, _refuse), most)
    timeout = httpx2.Timeout(WRITE_S, connect=CONNECT_S, read=SILENCE_S)
    headers: Mapping[str, Any] = resolve_environment(device["connection"].get("headers", {}))
    return guarded_client(transport, timeout, headers=dict(headers))


def talk_over_http(device: DeviceRow, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[TransportStreams]:
    """The wire of a server over streamable HTTP."""
    most = CommandLimits.of(device["limits"]).output_bytes
    return streamable_http_client(device["connection"]["url"], http_client=client, max_sse_event_size=most)
