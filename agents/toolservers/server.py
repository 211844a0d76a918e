"""One connection to a tool server: its tools, calls of them, and whether it still is the one that was accepted.

The library's parts belong to the task that opened them, so one task opens, watches and closes the connection; calls are made
beside it. Sampling and roots are not offered to servers: they are refused by the library.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agents.devices.limits import CommandLimits
from agents.devices.talking import TalkingProgram
from agents.links.kinds import LinkRefused
from agents.masks.values import mask_text
from agents.streams.row_types import DeviceRow
from agents.tools.calls import Call, Outcome
from agents.tools.catalogue import TOOLS
from agents.tools.handing import refuse_files, with_files
from agents.tools.namespaces import find_tool
from agents.tools.tame import tame_schema
from agents.tools.workspaces import device_workspace
from agents.toolservers.connections import namespace_of
from agents.toolservers.offers import Offer, changes_text, digest_of_all, find_changes, make_offer
from agents.toolservers.outcomes import causes_of, error_text, keep_contents, outcome_of, refusal_of
from agents.toolservers.wires import http_client, start_server, talk_over_http, talk_to_program

HEALTH_S = 30.0
"""Between two looks whether the server answers, and still offers what it did."""
ANSWER_S = 20.0
"""It has so long to list its tools."""
PAGES = 50
"""Of that list."""
LONG_S = 1.0
"""A call that has not ended after this lasts: its agent waits for it."""
PROGRESS_S = 0.5
"""Between two reports of a call's progress that say nothing new in words."""
PROGRESS = 500
"""Characters of what a report says."""
QUESTION = 2_000
"""Characters of what a server asks a person."""

log = logging.getLogger(__name__)


@dataclass(eq=False)
class UnderWay:
    """A call that the server carries out."""

    call: Call
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0
    left: int = 0
    reported_at: float = 0.0
    lasts: bool = False

    def say(self, text: str) -> None:
        """Print, as far as the device's limit of output goes."""
        shown = text[: self.left]
        self.left -= len(shown)
        if shown:
            self.call.on_output(shown)

    def last(self) -> None:
        """It takes its time: whoever made it may wait."""
        if not self.lasts:
            self.lasts = True
            self.call.on_update("waits", {})


OWN: ContextVar[UnderWay | None] = ContextVar("OWN", default=None)
"""The call in whose context a question of the server came, where the protocol says so."""


class ToolServer:
    """The connection of a device of kind `mcp` (agents.links.kinds.Connection)."""

    def __init__(self, device: DeviceRow):
        self._device, self._namespace = device, namespace_of(device)
        self._most = CommandLimits.of(device["limits"])
        self._calls: set[UnderWay] = set()
        self._program: TalkingProgram | None = None
        self._client: Client | None = None
        self._changed, self._stopping = asyncio.Event(), asyncio.Event()
        self._offered: asyncio.Future[Offer] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[str] | None = None
        self.offer = Offer((), {})
        self.facts: dict[str, Any] = {}

    # --- opening and closing

    async def open(self) -> None:
        """Connect, and see what is offered. Raises LinkRefused."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            waited: list[asyncio.Future[Any]] = [self._task, self._offered]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        if not self._offered.done():
            raise LinkRefused(await self._task)
        self.offer = self._offered.result()

    async def closed(self) -> str:
        assert self._task is not None
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> str:
        """The connection from its beginning to its end; why it ended. Raises LinkRefused where it must not be used."""
        try:
            async with AsyncExitStack() as stack:
                self._client = await self._connect(stack)
                offer = await self._list()
                self._tell_facts(offer)
                self._offered.set_result(offer)
                return await self._watch(stack)
        except Exception as error:  # whatever a server and the library make of each other
            known = next((each for each in causes_of(error) if isinstance(each, LinkRefused)), None)
            if known is not None:
                raise known from error
            return await self._why(error)
        finally:
            self._client = None
            if self._program is not None:
                await self._program.close()

    async def _connect(self, stack: AsyncExitStack) -> Client:
        device = self._device
        if device["connection"]["transport"] == "http":
            client = await stack.enter_async_context(http_client(device))
            wire = talk_over_http(device, client)
        else:
            self._program = await start_server(device)
            wire = talk_to_program(self._program)
        return await stack.enter_async_context(
            Client(
                wire,  # type: ignore[arg-type]  # a context manager of the library's own kind
                message_handler=self._hear,
                elicitation_callback=self._ask,
                client_info=types.Implementation(name="orrery", version="1"),
                mode="legacy" if device["connection"].get("protocol") == "handshake" else "auto",
                cache=None,
            )
        )

    async def _why(self, error: BaseException) -> str:
        """Why the connection is over, with the last words of a program that has ended."""
        if self._program is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONG_S):
                    ended = await self._program.ended()
                    return f"the tool server has ended: {ended.error or ended.outcome}"
        return error_text(error)

    # --- what it offers

    async def _list(self) -> Offer:
        client = self._client
        assert client is not None
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        async with asyncio.timeout(ANSWER_S):
            for _ in range(PAGES):
                page = await client.list_tools(cursor=cursor)
                found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                if (cursor := page.next_cursor) is None:
                    break
        return make_offer(self._namespace, found, mask_text)

    def _tell_facts(self, offer: Offer) -> None:
        client = self._client
        assert client is not None
        about = client.server_info
        self.facts = {
            "server": mask_text(f"{about.name} {about.version}"[:200]) if about is not None else "",
            "protocol": client.protocol_version,
            "namespace": self._namespace,
            "left_out": dict(offer.left_out),
            "pinned": digest_of_all(offer.tools),
        }

    async def _watch(self, stack: AsyncExitStack) -> str:
        """Look at the server now and then, and when it says that its tools have changed; returns why it is lost."""
        client = self._client
        assert client is not None
        tools = client.server_capabilities.tools
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and tools.list_changed:
            listener = asyncio.create_task(self._listen(client))
            stack.callback(listener.cancel)
        gone = asyncio.create_task(self._program.ended()) if self._program is not None else None
        if gone is not None:
            stack.callback(gone.cancel)
        while True:
            changed = asyncio.create_task(self._changed.wait())
            waited: list[asyncio.Task[Any]] = [changed] if gone is None else [changed, gone]
            await asyncio.wait(waited, timeout=HEALTH_S, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            self._changed.clear()
            if gone is not None and gone.done():
                ended = gone.result()
                return f"the tool server has ended: {ended.error or ended.outcome}"
            refuse_changed(self.offer.tools, (await self._list()).tools)

    async def _listen(self, client: Client) -> None:
        """Servers of the newer protocol say what changes to who listens. Where that ends, the looks go on."""
        with contextlib.suppress(Exception):
            async with client.listen(tools_list_changed=True) as events:
                self._changed.set()  # what has changed before anybody listened
                async for _ in events:
                    self._changed.set()

    async def _hear(self, message: Any) -> None:
        """What an older server says by itself."""
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    # --- calls

    async def call(self, call: Call) -> Outcome:
        if call.tool == "noop":
            found: Outcome = TOOLS["noop"](call)
            return found
        tool = find_tool({"tools": self.offer.tools}, call.tool)
        if tool is None or self._client is None:
            there = ", ".join(each["name"] for each in self.offer.tools) or "none"
            error = f"{self._device['name']} is a tool server and has no tool {call.tool}; it has {there}"
            return Outcome("failed", error=error[:QUESTION], error_kind="missing")
        if not (call.inputs or call.outputs):
            return await self._make(call)
        if self._device["connection"]["transport"] != "stdio":
            return await refuse_files(call)
        made: Outcome = await with_files(self._make, device_workspace(self._device["name"]))(call)  # type: ignore[misc]
        return made

    async def _make(self, call: Call) -> Outcome:
        name = call.tool.partition(".")[2]
        seconds = self._most.seconds if call.timeout is None else min(call.timeout, self._most.seconds)
        with self._under_way(call) as mine:
            try:
                async with asyncio.timeout(seconds):
                    assert self._client is not None
                    answer = await self._client.call_tool(
                        name, dict(call.arguments), progress_callback=lambda *told: self._report(mine, *told)
                    )
            except TimeoutError:
                return Outcome("timeout", error=f"stopped after {seconds:g} s", error_kind="timeout")
            except Exception as error:  # as in `_run`
                self._changed.set()  # is it there still?
                known = next((each for each in causes_of(error) if isinstance(each, MCPError)), None)
                return refusal_of(known) if known else Outcome("failed", error=error_text(error), error_kind="broken")
            outcome, contents = outcome_of(answer)
            await keep_contents(outcome, contents, call.tool)
            mine.say(outcome.text)
            return outcome

    @contextlib.contextmanager
    def _under_way(self, call: Call) -> Iterator[UnderWay]:
        mine = UnderWay(call, left=self._most.output_bytes)
        self._calls.add(mine)
        token = OWN.set(mine)
        timer = asyncio.get_running_loop().call_later(LONG_S, mine.last)
        try:
            yield mine
        finally:
            timer.cancel()
            OWN.reset(token)
            self._calls.discard(mine)

    async def _report(self, mine: UnderWay, progress: float, total: float | None, message: str | None) -> None:
        """Progress becomes output, a line for each report; those without words not too often."""
        now = asyncio.get_running_loop().time()
        if not message and now - mine.reported_at < PROGRESS_S:
            return
        mine.reported_at = now
        mine.last()
        done = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        mine.say(f"{done} {mask_text((message or '')[:PROGRESS])}".rstrip() + "\n")

    # --- questions

    async def _ask(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """A server asks a person something: through the call that it is about, and nobody where that cannot be told."""
        mine = OWN.get() or (next(iter(self._calls)) if len(self._calls) == 1 else None)
        if mine is None or not isinstance(params, types.ElicitRequestFormParams):
            log.info("a question of %s was declined", self._device["name"])
            return types.ElicitResult(action="decline")
        async with mine.asking:
            mine.questions += 1
            question = {
                "number": mine.questions, "message": mask_text(params.message[:QUESTION]),
                "schema": tame_schema(params.requested_schema),
            }  # fmt: skip
            mine.call.on_update("question", question)
            while True:
                kind, said = await mine.call.hear()
                if kind == "answer" and said.get("number") == mine.questions:
                    return _result_of(said)


def _result_of(said: Mapping[str, Any]) -> types.ElicitResult:
    if said["action"] != "accept":
        return types.ElicitResult(action=said["action"])
    return types.ElicitResult(action="accept", content=dict(said.get("content") or {}))


def refuse_changed(pinned: Any, found: Any) -> None:
    """Raises LinkRefused, a fault, where a server does not offer what was accepted; what it offers goes with that."""
    if changes := find_changes(pinned, found):
        raise LinkRefused(changes_text(changes), fault=True, offered=list(found))
