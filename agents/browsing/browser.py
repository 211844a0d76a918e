"""The connection of a browser: opened by a runner of its host, and the end of what it has for attempts that are over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection

from agents.browsing.actions import ACTIONS, page_name
from agents.browsing.desk import BrowsingFailed, Desk, Happening
from agents.browsing.gateway import Gateway
from agents.browsing.launching import Chromium
from agents.browsing.record import lost_there, pages_of
from agents.browsing.sites import SiteRejected, Sites
from agents.browsing.tools import TOOLS, offered_by_browsers, register
from agents.devices.profiles.connections import register_connection_check, takes_only
from agents.links.kinds import LinkRefused, Opened, register_kind
from agents.machines import DEVICE_AGENT
from agents.models import Agent
from agents.streams.row_types import DeviceRow
from agents.tools.calls import BadArguments, Call, Outcome
from agents.tools.catalogue import flaws_by_schema

if TYPE_CHECKING:
    from playwright.async_api import Browser

LOOK_S = 2.0
"""Between two looks which attempts are over."""
CUT_OFF_S = 3.0
"""A call whose browser has ended waits so long at most for its end."""
TOLD = {"refused": "browsing_refused", "reopened": "page_reopened", "not_reopened": "page_not_reopened"}
"""What the session's stream hears of, by what happened."""
VIEWPORT = {"width": 1280, "height": 800}

log = logging.getLogger(__name__)


@dataclass
class Held:
    """What an attempt has: its desk, its name at the gateway, its host agent, and the call under way."""

    desk: Desk
    name: str
    agent: int
    call: Call
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class BrowserConnection:
    """Of one device. Each attempt gets a context when it calls first, and loses it when its agent has ended."""

    def __init__(self, device: DeviceRow, sites: Sites, chromium: Chromium, gateway: Gateway):
        self._device, self._sites, self._chromium, self._gateway = device, sites, chromium, gateway
        self._browser: Browser | None = None
        self._held: dict[int, Held] = {}
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sweeper: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> str:
        """The browser's version. Raises LinkRefused."""
        self._browser = await self._chromium.start(await self._gateway.open(), self._end)
        self._browser.on("disconnected", lambda _: self._end("chromium has ended"))
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return self._browser.version

    # --- as agents.links.kinds.Connection

    async def call(self, call: Call) -> Outcome:
        if call.tool == "noop":
            return Outcome("completed", result=call.arguments.get("result"))
        action = ACTIONS.get(call.tool)
        if action is None:
            error = f"a browser has no tool {call.tool}; it has {', '.join(ACTIONS)}"
            return Outcome("failed", error=error, error_kind="bad_arguments")
        if flaws := flaws_by_schema(call.tool, TOOLS[call.tool][1], call.arguments):
            raise BadArguments("; ".join(f"{'.'.join(map(str, path))}: {said}".lstrip(": ") for path, said in flaws))
        from playwright.async_api import Error

        held = await self._hold(call)
        async with held.lock:
            held.call = call
            try:
                outcome = await action(call, held.desk, self._sites)
                outcome.process = await self._root_of(call, held.desk)
                return outcome
            except BrowsingFailed as error:  # the pages of a browser that ends are gone before it says so
                return await self._lost(held.desk) or _failed(held.desk, str(error), error.error_kind)
            except Error as error:
                return await self._lost(held.desk) or _failed(held.desk, _first_lines(error.message), "")
            finally:
                if call.key == call.attempt:  # a plain task is this call
                    await self._let_go(call.attempt)

    async def _lost(self, desk: Desk) -> Outcome | None:
        """How a call ended whose browser has ended, or is about to be ended for what it has used; None of any other."""
        if not self._ended.done() and not await desk.is_alive():
            self._end("chromium has ended")
        if not self._ended.done():
            return None
        # Whoever holds the device says first that it is gone, and cuts the call off then: nobody begins another meanwhile.
        await asyncio.sleep(CUT_OFF_S)
        return Outcome("lost", error=self._ended.result())

    async def _root_of(self, call: Call, desk: Desk) -> Mapping[str, Any]:
        """The process of an app agent's page; asked for once after each navigation."""
        name = str(call.app.get("page", ""))
        page = desk.pages.get(name)
        if page is None or page.is_closed():
            return {}
        if not desk.roots.get(name):
            desk.roots[name] = await self._chromium.root_of(page)
        return desk.roots[name]

    async def closed(self) -> str:
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._browser is not None:
            with contextlib.suppress(Exception):  # it may be gone already
                await self._browser.close()
        await self._gateway.close()
        await self._chromium.end()

    # --- attempts

    async def _hold(self, call: Call) -> Held:
        async with self._opening:
            if (found := self._held.get(call.attempt)) is not None:
                return found
            assert self._browser is not None
            name, password = self._gateway.let_in(lambda url, why: self._refuse(call.attempt, url, why))
            context = await self._browser.new_context(
                viewport=VIEWPORT, locale="en-US", service_workers="block", accept_downloads=False, permissions=[],  # type: ignore[arg-type]
                proxy={"server": self._gateway.address, "username": name, "password": password, "bypass": "<-loopback>"},
            )  # fmt: skip
            desk = Desk(context, self._sites, lambda happening: self._note(call.attempt, happening))
            await desk.prepare()
            held = self._held[call.attempt] = Held(desk, name, call.agent, call)
            await self._reopen(held, call)
            return held

    async def _reopen(self, held: Held, call: Call) -> None:
        """Of an attempt that begins anew after one whose browser was gone: the pages of that one.

        An attempt that goes on itself gets none: its next step would act on a page that only looks like the old one.
        """
        own = await asyncio.to_thread(pages_of, call.agent, self._device["id"]) if call.agent else {}
        held.desk.gone = frozenset(own)
        if own or not call.resumes or not await asyncio.to_thread(lost_there, call.resumes, self._device["id"]):
            return
        pages = await asyncio.to_thread(pages_of, call.resumes, self._device["id"])
        if call.tool == "browser.open":  # which shows it anew itself
            pages.pop(page_name(call), None)
        await held.desk.reopen(pages)

    async def _let_go(self, attempt: int) -> None:
        held = self._held.pop(attempt)
        self._gateway.let_out(held.name)
        with contextlib.suppress(Exception):  # it has gone with its browser
            await held.desk.close()

    def _refuse(self, attempt: int, url: str, why: str) -> None:
        if (held := self._held.get(attempt)) is not None:
            held.desk.refuse(url, why)

    def _note(self, attempt: int, happening: Happening) -> None:
        """An event of the session, in the moment it happens."""
        held = self._held.get(attempt)
        if held is not None and happening.kind in TOLD:
            told = {"device": self._device["name"], "address": happening.about, "why": happening.why}
            held.call.note(TOLD[happening.kind], attempt_id=attempt, **told)

    async def _sweep(self) -> None:
        """Let go of what attempts had that are over. One without an agent is a single call, which lets go itself."""
        while True:
            await asyncio.sleep(LOOK_S)
            resting = {attempt: held.agent for attempt, held in self._held.items() if held.agent and not held.lock.locked()}
            agents = {agent: attempt for attempt, agent in resting.items()}
            try:
                over = await asyncio.to_thread(ended_agents, list(agents)) if agents else ()
            except Exception:  # an outage: what is over is over later
                log.warning("whose attempts are over cannot be read", exc_info=True)
                continue
            for agent in over:
                await self._let_go(agents[agent])

    def _end(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)


def _failed(desk: Desk, error: str, kind: str) -> Outcome:
    happened = [each.as_json() for each in desk.take_happened()]
    return Outcome("failed", error=error, error_kind=kind, result={"happened": happened} if happened else None)


def _first_lines(message: str) -> str:
    """What went wrong, without the whole log of what was tried."""
    return message.partition("\nCall log:")[0].strip()[:1_000]


def ended_agents(agents: list[int]) -> list[int]:
    """Those of these agents that have ended, or are gone. Called in a thread, which has a connection of its own."""
    try:
        alive = set(
            Agent.objects.filter(pk__in=agents).exclude(state__in=sorted(DEVICE_AGENT.terminal)).values_list("pk", flat=True)
        )
    finally:
        connection.close()
    return [agent for agent in agents if agent not in alive]


async def open_browser(device: DeviceRow) -> Opened:
    """The opener of the kind `browser`. Raises LinkRefused."""
    if flaws := list(check_connection(device["connection"])):
        raise LinkRefused("; ".join(f"connection.{key}: {message}" for key, message in flaws), fault=True)
    sites = Sites.of(device["connection"].get("allow", ()))
    chromium, gateway = Chromium(device["id"], dict(device["limits"])), Gateway(sites)
    opened = BrowserConnection(device, sites, chromium, gateway)
    try:
        version = await opened.open()
    except BaseException:
        await opened.close()
        raise
    facts = {"browser": f"Chromium {version}", "walls": chromium.walls}
    return Opened(opened, facts, list(offered_by_browsers()))


def check_connection(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the connection of a browser, {"allow": [...]}, as agents.devices.profiles.connections asks."""
    yield from takes_only("allow", "heartbeat_s")(said)
    try:
        Sites.of(said.get("allow", ()))
    except SiteRejected as error:
        yield "allow", str(error)


def register_kind_of_device() -> None:
    """Let runners open browsers, and plans name what they offer."""
    register()
    register_connection_check("browser", check_connection, is_volatile=True)
    register_kind("browser", open_browser)
