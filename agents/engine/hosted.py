"""The devices of this host that one runner holds: taken, connected, renewed, and given back (docs/devices.md, "Hosts").

Calls on local devices of this host need no holder: whichever runner drives the session makes them itself. What it holds it
also serves to runners elsewhere (agents.links.serving).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agents.devices.host import host_name, is_process_gone, process_identity
from agents.engine.leftovers import end_left_of_calls, end_left_of_sessions, end_left_on_device
from agents.errors import AgentsError
from agents.links.away import AwayCalls
from agents.links.dialled import record_late
from agents.links.holders import lose_silent_devices, release_link, renew_links, take_link
from agents.links.kept_readings import keep_readings, span_now
from agents.links.kinds import OPENERS, Connection, LinkRefused, Opened
from agents.links.moves import REACHED, move_device_through, try_move_device
from agents.links.serving import Serving
from agents.machines import TransitionNotAllowed
from agents.models import Device, Runner
from agents.streams.door import door
from agents.streams.row_types import DeviceRow
from agents.streams.tables import fold_rows
from agents.tools.calls import Call, Outcome, Tool, missing_tool
from agents.tools.catalogue import TOOLS
from agents.tools.handing import refuse_files, takes_files, tool_with_files

RETRY_S = 5.0
"""A device that could not be connected is tried again after this, then after twice as long each time, ..."""
LONGEST_RETRY_S = 300.0
"""...at most."""
LIVED_S = 60.0
"""A connection that was over sooner than this is opened again only after such a pause."""
OPEN_S = 60.0
"""Opening a connection may take so long."""
RENEW_S = 3.0
"""Between two renewals of what is held."""
SESSIONS_KNOWN = 1000
"""Sessions driven elsewhere of which is remembered that nothing is left at work here, the latest."""
WALLED = ("local", "acp")
"""Kinds of devices whose programs are behind the walls of their host."""
SILENT_S = 3.0
"""Between two looks for devices of which nothing is heard."""

log = logging.getLogger(__name__)


@dataclass
class HeldDevice:
    """`connection` None: a local device, whose calls are made by the tools."""

    fence: int
    connection: Connection | None = None
    watch: asyncio.Task[None] | None = None


class HostedDevices:
    """Of one runner. `in_thread` calls a function that uses the database in a thread of its own.

    `lose(device, why)` ends the calls that the runner itself makes on a device that is gone.
    """

    def __init__(self, in_thread: Callable[..., Awaitable[Any]], lose: Callable[[int, str], None]):
        self._in_thread, self._lose = in_thread, lose
        self._host = host_name()
        self._held: dict[int, HeldDevice] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._tries: dict[int, tuple[int, float]] = {}
        self._silent_at = self._renew_at = 0.0
        self._kept = 0
        self._settled: dict[int, tuple[int, asyncio.Future[Any]]] = {}
        self._errands: set[asyncio.Future[Any]] = set()
        self.away = AwayCalls(in_thread)
        self.serving = Serving(in_thread, self._was_late)

    def carrier_of(self, call: Call) -> Tool | None:
        """Who carries a call to its device; None: its tool makes it here."""
        if call.adopted is not None:
            return self.away.wait
        if not takes_files(call):
            return refuse_files
        device = call.device
        if device.get("kind", "local") == "local" and device.get("host", "") in ("", self._host):
            return tool_with_files(call)
        held = self._held.get(device["id"])
        return self.away.carry if held is None or held.connection is None else held.connection.call

    async def look(self) -> None:
        """Take what nobody holds, let go of what is another's, and lose what is silent."""
        now, held = asyncio.get_running_loop().time(), dict(self._held)
        wanted: list[DeviceRow] = await self._in_thread(devices_of_host, self._host)
        known = {row["id"] for row in wanted}
        for device in held.keys() - known:
            await self._let_go(device, held[device], "it is not connected any more")
        for row in wanted:
            if row["id"] in held and row["state"] not in REACHED:  # lost while this process stood still
                await self._lose_held(row, held[row["id"]])
            if row["id"] in self._held or row["id"] in self._opening or self._tries.get(row["id"], (0, 0.0))[1] > now:
                continue
            if row["kind"] == "local":
                await self._join(row)
            elif row["kind"] in OPENERS:
                self._opening[row["id"]] = asyncio.get_running_loop().create_task(self._open(row))
        if now >= self._silent_at:
            self._silent_at = now + SILENT_S
            await self._in_thread(lose_silent_devices)
            if (span := span_now()) != self._kept:
                await self._in_thread(keep_readings, span)
                self._kept = span

    async def renew(self) -> None:
        """Say, now and then, that what is held here is alive."""
        now = asyncio.get_running_loop().time()
        if self._held and now >= self._renew_at:
            self._renew_at = now + RENEW_S
            before = dict(self._held)
            fences = {device: held.fence for device, held in before.items()}
            for device in await self._in_thread(renew_links, fences):
                await self._let_go(device, before[device], "another process holds it")

    async def note_walls(self, runner: int, before: str, now: str) -> None:
        """Commands that this runner starts are behind other walls from now on."""
        await self._in_thread(record_walls, self._host, runner, before, now)

    async def release_all(self) -> None:
        """The runner ends: what it holds is anybody's."""
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await self.serving.close()
        for device, held in list(self._held.items()):
            await self._close(held)
            await self._in_thread(release_link, device, held.fence)
        self._held.clear()

    # --- inside

    async def _join(self, row: DeviceRow) -> None:
        """Hold a local device of this host. Where it was lost, what still works for it is ended before it takes work again."""
        device = row["id"]
        try:
            fence = await self._in_thread(join_local, row, self._host)
            if fence is not None:
                self._held[device] = HeldDevice(fence)
                self.serving.hold(device, fence, self._make_for_another)
                await self.serving.fail_left(device, fence, "the process that made it has ended", end_left_of_calls)
        except TimeoutError:
            log.warning("device %s stays away: a process of it cannot be ended", row["name"], exc_info=True)

    async def _make_for_another(self, call: Call) -> Outcome:
        """Make a call on a local device for a session that is driven elsewhere."""
        await self._settle_session(call)
        tool = tool_with_files(call) or TOOLS.get(call.tool)
        if tool is None:
            return missing_tool(call)
        outcome = tool(call)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _settle_session(self, call: Call) -> None:
        """Once for each owner of a session: what an earlier one has left at work here is ended before anything begins."""
        fence, settled = self._settled.pop(call.session, (0, None))
        if settled is None or fence < call.fence:
            fence, settled = call.fence, asyncio.ensure_future(self._in_thread(end_left_of_sessions, {call.session}))
        self._settled[call.session] = fence, settled
        if len(self._settled) > SESSIONS_KNOWN:
            del self._settled[next(iter(self._settled))]
        try:
            await asyncio.shield(settled)
        except Exception:  # the next call asks again
            self._settled.pop(call.session, None)
            raise

    def _was_late(self, key: int, outcome: Outcome) -> None:
        """An outcome that nobody waits for any more goes into the device's history."""
        if outcome.outcome not in ("lost", "cancelled"):
            errand = asyncio.ensure_future(self._in_thread(record_late, key, outcome))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    async def _lose_held(self, row: DeviceRow, held: HeldDevice) -> None:
        """A device that is held here was lost: whatever is under way on it here ends before it may be held again."""
        why = row["reason"] or f"{row['name']} is {row['state']}"
        if self._held.get(row["id"]) is held:
            self._lose(row["id"], why)
            await self._let_go(row["id"], held, why)
            await self.serving.gone(row["id"])

    async def _open(self, row: DeviceRow) -> None:
        """Dial a device, shake hands, and serve its calls."""
        device = row["id"]
        try:
            fence = await self._in_thread(begin_dial, row, self._host)
            if fence is None:
                return
            try:
                async with asyncio.timeout(OPEN_S):
                    opened = await OPENERS[row["kind"]](row)
            except TimeoutError:
                await self._refuse(device, fence, "timeout", f"nothing after {OPEN_S:g} s")
            except LinkRefused as error:
                await self._refuse(device, fence, "fault" if error.fault else "refused", str(error), error.offered)
            except Exception as error:  # a broken kind is a refused device, never a broken runner
                log.warning("device %s cannot be connected", device, exc_info=True)
                await self._refuse(device, fence, "refused", f"{type(error).__name__}: {error}"[:500])
            else:
                if not await self._in_thread(accept_device, device, opened):
                    await opened.connection.close()
                    await self._in_thread(release_link, device, fence)
                    return
                held = self._held[device] = HeldDevice(fence, opened.connection)
                self.serving.hold(device, fence, opened.connection.call)
                await self.serving.fail_left(device, fence, "the process that made it has ended")
                held.watch = asyncio.get_running_loop().create_task(self._watch(device, held))
        finally:
            self._opening.pop(device, None)

    def _put_off(self, device: int) -> None:
        """It is tried again after a pause, which grows from try to try."""
        count = self._tries.get(device, (0, 0.0))[0]
        pause = min(RETRY_S * 2**count, LONGEST_RETRY_S)
        self._tries[device] = count + 1, asyncio.get_running_loop().time() + pause

    async def _refuse(
        self, device: int, fence: int, event: str, reason: str, offered: list[dict[str, Any]] | None = None
    ) -> None:  # fmt: skip
        await self._in_thread(try_refuse, device, event, reason, offered)
        await self._in_thread(release_link, device, fence)
        self._put_off(device)

    async def _watch(self, device: int, held: HeldDevice) -> None:
        """Until the connection is over by itself."""
        assert held.connection is not None
        event, offered, since = "lost", None, asyncio.get_running_loop().time()
        try:
            why = await held.connection.closed()
        except LinkRefused as error:
            event, why, offered = "fault" if error.fault else "lost", str(error), error.offered
        except Exception as error:  # as in `_open`
            why = f"{type(error).__name__}: {error}"[:500]
        if asyncio.get_running_loop().time() - since > LIVED_S:
            self._tries.pop(device, None)  # it was well: it may come back at once
        else:
            self._put_off(device)
        if self._held.get(device) is held:
            held.watch = None
            await self._in_thread(try_refuse, device, event, why, offered)
            await self._let_go(device, held, why)

    async def _let_go(self, device: int, held: HeldDevice, why: str) -> None:
        """Who watches a connection and who looks at the rows may both find that it is over: whoever is first does this."""
        if self._held.get(device) is not held:
            return
        del self._held[device]
        self.serving.drop(device, why)
        if held.connection is not None:
            self._lose(device, why)
        await self._close(held)
        await self._in_thread(release_link, device, held.fence)

    async def _close(self, held: HeldDevice) -> None:
        if held.watch is not None:
            held.watch.cancel()
        if held.connection is not None:
            try:
                await held.connection.close()
            except Exception:
                log.warning("a connection ended badly", exc_info=True)


def devices_of_host(host: str) -> list[DeviceRow]:
    """Devices that a runner of this host is to hold: its own, and those that no host has yet."""
    rows: list[DeviceRow] = fold_rows("device", "is_off = %s AND kind != %s AND host IN (%s, %s)", False, "remote", host, "")
    return [row for row in rows if row["state"] in ("disconnected", "connecting", *REACHED)]


def join_local(row: DeviceRow, host: str) -> int | None:
    """Hold a local device of this host, which is connected by that; None where another process holds it. Raises TimeoutError.

    What is left to end on it is known only once it is held: another runner may have connected it since `row` was read.
    """
    fence = take_link(row["id"])
    if fence is None:
        return None
    try:
        row = fold_rows("device", "id = %s", row["id"])[0]
        if row["state"] not in REACHED:
            end_left_on_device(row["id"])
            events = ("dial", "accepted") if row["state"] == "disconnected" else ("accepted",)
            move_device_through(row["id"], events, host=host)
        elif not row["host"]:
            set_device(row["id"], "device_changed", host=host)
    except (TransitionNotAllowed, AgentsError):  # somebody was first, or it has no stream: what it is shows the next look
        release_link(row["id"], fence)
        return None
    except TimeoutError:
        release_link(row["id"], fence)
        raise
    return fence


def begin_dial(row: DeviceRow, host: str) -> int | None:
    """Hold a device whose connection is about to be opened; None where that is another process's, or not wanted any more.

    One that was connected stays so: its holder was gone, and this process is in time to take it up.
    """
    holder = Device.objects.filter(pk=row["id"]).values_list("link__holder", flat=True).first()
    if row["state"] == "connecting" and holder and not is_process_gone(holder) and holder != process_identity():
        return None
    fence = take_link(row["id"])
    if fence is None:
        return None
    if row["state"] == "disconnected" and not try_move_device(row["id"], "dial", host=host):
        release_link(row["id"], fence)
        return None
    return fence


def accept_device(device: int, opened: Opened) -> bool:
    """The handshake is done: what the device told goes into its row; False where it is not wanted any more."""
    fields: dict[str, Any] = {"facts": dict(opened.facts)}
    if opened.tools is not None:
        fields["tools"] = opened.tools
    if try_move_device(device, "accepted", **fields):
        return True
    row = Device.objects.filter(Q(pk=device), Q(state__in=REACHED)).values("facts", "tools").first()
    if row is None:
        return False
    if any(row[name] != value for name, value in fields.items()):  # type: ignore[literal-required]
        set_device(device, "device_changed", **fields)
    return True


def try_refuse(device: int, event: str, reason: str, offered: list[dict[str, Any]] | None = None) -> None:
    """What went wrong with a connection, in whatever state that has met the device; `offered` waits among its facts."""
    fields: dict[str, Any] = {}
    if offered is not None:
        facts = Device.objects.filter(pk=device).values_list("facts", flat=True).first() or {}
        fields = {"facts": {**facts, "offered": offered}}
    if not try_move_device(device, event, reason=reason, **fields):
        try_move_device(device, "lost", reason=reason)


def record_walls(host: str, runner: int, before: str, now: str) -> None:
    """Say in the runner's row, and in the history of each device whose commands run on this host, what they are behind now."""
    Runner.objects.filter(pk=runner).update(confinement=now)
    for device in Device.objects.filter(host=host, kind__in=WALLED).exclude(state="retired").values_list("pk", flat=True):
        with door(device, "system") as opened:
            opened.turn.record("walls_changed", runner=runner, before=before, now=now)


def set_device(device: int, event: str, **fields: Any) -> None:
    """Set fields of a device's row, told as `event`."""
    with door(device, "system") as opened:
        opened.turn.record(event, set={"device": {str(device): fields}})
