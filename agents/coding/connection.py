"""A device of kind `acp`: it is tried once when it is connected, and has a process of its own for each attempt."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import math
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.coding import grants
from agents.coding.frames import FramePipe
from agents.coding.profiles.known import KEYS, PROFILES
from agents.coding.profiles.profile import HOME, QUIET, AgentSettings, CodingAgent, ConnectionRejected, read_settings
from agents.coding.starting import (
    AgentProcess,
    AgentStart,
    NotIsolated,
    agent_isolation,
    find_program,
    start_agent,
)
from agents.coding.turns import VERSION, Conversation, Violated
from agents.devices import host
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH
from agents.devices.processes import AttemptMark
from agents.devices.workspace.files import FileRefused
from agents.links.kinds import LinkRefused, Opened
from agents.masks.values import resolve_environment
from agents.per_loop import one_per_loop
from agents.streams.row_types import DeviceRow
from agents.tools.calls import VIOLATION, Call, Outcome
from agents.tools.catalogue import INSTRUCTION
from agents.tools.handing import with_files
from agents.tools.workspaces import device_workspace

ROOM_LOOK_S = 1.0
"""Between two looks for memory."""
KEPT_S = 7 * 24 * 3600.0
"""Folders of attempts that nobody has gone on with are deleted after this."""
SESSION_FILE, FRAMES_FILE = "session.json", "frames.txt"
HOME_FOLDERS = ("tmp", ".config", ".local/share", ".cache")

log = logging.getLogger(__name__)
starts = one_per_loop(asyncio.Lock)
"""Agents start one after the other: each takes seconds of a processor and much of its memory at once."""


class CodingDevice:
    """The connection of one device. Nothing of it runs while no attempt does."""

    def __init__(self, row: DeviceRow, agent: CodingAgent, own: AgentSettings):
        self._row, self._agent, self._own = row, agent, own
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def closed(self) -> str:
        """Nothing ends it but whoever closes it."""
        return await self._over

    async def close(self) -> None:
        """Calls under way are ended by whoever made them."""
        if not self._over.done():
            self._over.set_result("closed")

    async def call(self, call: Call) -> Outcome:
        """Have the agent carry out an instruction: the argument `prompt`."""
        if call.tool != INSTRUCTION:
            why = f"a coding agent carries out tasks in words, and has no tool {call.tool}"
            return Outcome("failed", error=why, error_kind="missing")
        if call.inputs or call.outputs:
            return await with_files(self._carry_out, self._workspace())(call)  # type: ignore[no-any-return,misc]
        return await self._carry_out(call)

    async def _carry_out(self, call: Call) -> Outcome:
        await load_library()
        from acp.exceptions import RequestError

        folder = attempt_folder(self._row["name"], str(call.attempt))
        talk = Conversation(self._agent, call, self._workspace())
        try:
            await wait_for_room(self._agent.memory_mb)
            async with self._running(talk, call, folder) as process:
                outcome = await self._converse(talk, call, process)
        except Violated as error:
            outcome = Outcome("failed", error=f"violation: {error}", error_kind="denied", reason=VIOLATION)
        except RequestError as error:
            outcome = _broken(f"the agent refused a request: {error}")
        except (NotIsolated, OSError, ValueError) as error:
            outcome = _broken(str(error)[:2_000])
        await asyncio.to_thread(_tidy, folder, talk, outcome)
        return outcome

    def _workspace(self) -> Path:
        return device_workspace(self._own.workspace or self._row["name"]).absolute()

    @asynccontextmanager
    async def _running(self, talk: Conversation, call: Call, folder: Path) -> AsyncIterator[AgentProcess]:
        """The agent's process with a session begun, until the end of both. A cancel tells the agent first."""
        grant = await grants.make_grant(call) if self._own.edits == "propose" else None
        process: AgentProcess | None = None
        try:
            async with starts():
                process = await start_agent(self._start_of(call, folder, self._workspace()))
                self._connect(talk, process)
                await self._begin_session(talk, folder, grant)
            yield process
        except asyncio.CancelledError:
            if process is not None:
                await talk.cancel()
            raise
        except ConnectionError as error:
            raise await self._told_end(talk, process, error) from error
        finally:
            if process is not None:
                await process.end()
                await talk.connection.close()
            if grant is not None:
                await grants.end_grant(grant)

    def _connect(self, talk: Conversation, process: AgentProcess) -> None:
        from acp import connect_to_agent

        assert process.process.stdout is not None
        assert process.process.stdin is not None
        talk.pipe = FramePipe(process.process.stdout, process.process.stdin, talk.tap)
        talk.connection = connect_to_agent(NoClient(), talk.pipe)  # type: ignore[arg-type]  # it answers nothing

    async def _begin_session(self, talk: Conversation, folder: Path, grant: grants.Grant | None) -> None:
        known = _known_session(folder)
        servers = [] if grant is None else [grant.as_server()]
        session = await talk.open(str(self._workspace()), servers, known)
        (folder / SESSION_FILE).write_text(json.dumps({"session": session}))
        if grant is not None and not await grants.was_seen(grant):
            log.warning("device %s: its agent has not called our MCP server", self._row["name"])

    async def _converse(self, talk: Conversation, call: Call, process: AgentProcess) -> Outcome:
        try:
            return await talk.follow(str(call.arguments["prompt"]))
        except ConnectionError as error:
            end = await self._told_end(talk, process, error)
            if isinstance(end, AgentGone):
                return Outcome("lost", error=str(end))
            raise end from error

    async def _told_end(self, talk: Conversation, process: AgentProcess | None, error: Exception) -> Exception:
        """Why a conversation broke off: the agent is gone, or it wrote what it must not, or too much."""
        if process is None or isinstance(error, AgentGone):
            return error
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await process.process.wait()
        if process.excess:
            return ValueError(process.excess)
        if talk.pipe.fault:
            return ValueError(talk.pipe.fault)
        if "version" in str(error):
            return ValueError(str(error))
        words = process.last_words()
        return AgentGone(f"the agent has ended ({process.process.returncode})" + (f": {words[-500:]}" if words else ""))

    def _start_of(self, call: Call, folder: Path, workspace: Path) -> AgentStart:
        """Its home is made anew where there is none of an earlier try."""
        home = folder / "home"
        write_home(home, self._agent, self._own)
        workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        limits, path = self._row["limits"], self._row["limits"].get("path", DEFAULT_PATH)
        argv = list(self._own.argv or self._agent.argv)
        argv[0] = find_program(argv[0], path)
        mark = AttemptMark(host.instance_name(), call.attempt)
        seen = agent_environment(home, path, mark, self._agent, self._own)
        return AgentStart(argv, workspace, home, seen, CommandLimits.of(limits), mark)


class AgentGone(ConnectionError):
    """The agent's process has ended by itself."""


class NoClient:
    """What the SDK asks of a client: nothing is answered. Agents read, write and run within their own walls."""

    def on_connect(self, connection: Any) -> None:
        """The SDK calls this once."""


def _broken(why: str) -> Outcome:
    return Outcome("failed", error=why, error_kind="broken")


# --- what lies on the disk


def attempt_folder(device: str, name: str) -> Path:
    """Made where it is not there; Orrery's own, but for the home in it."""
    path: Path = device_workspace(device).parent.parent / "agents" / device / name
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path.absolute()


def write_home(home: Path, agent: CodingAgent, own: AgentSettings) -> None:
    """The agent's home with its configuration, which is written anew each time: the agent may have changed it."""
    for name in HOME_FOLDERS:
        (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in agent.files(own).items():
        path = home / name
        if path.is_symlink():
            path.unlink()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)


def agent_environment(home: Path, path: str, mark: AttemptMark, agent: CodingAgent, own: AgentSettings) -> dict[str, str]:
    """All that an agent gets to see; nothing of this process's own environment."""
    said = {**own.env, **({KEYS[agent.name]: own.api_key} if own.api_key else {})}
    configured = {name: value.replace(HOME, str(home)) for name, value in agent.env(own).items()}
    return {
        "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", **QUIET, **configured, **resolve_environment(said),
        "HOME": str(home), "TMPDIR": str(home / "tmp"), "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"), "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "ORRERY_ATTEMPT": str(mark.attempt_id), "ORRERY_INSTANCE": mark.instance,
    }  # fmt: skip


def _known_session(folder: Path) -> str:
    """The session of an earlier try of the same attempt, empty where there was none."""
    try:
        return str(json.loads((folder / SESSION_FILE).read_text())["session"])
    except (OSError, ValueError, KeyError):
        return ""


def _tidy(folder: Path, talk: Conversation, outcome: Outcome) -> None:
    """What went wrong leaves its last frames; what was lost may be gone on with; nothing else stays."""
    if outcome.outcome == "completed":
        shutil.rmtree(folder, ignore_errors=True)
        return
    if outcome.outcome == "failed":  # another errand of the attempt has a conversation of its own
        (folder / SESSION_FILE).unlink(missing_ok=True)
    pipe = getattr(talk, "pipe", None)
    if pipe is not None:
        (folder / FRAMES_FILE).write_text("\n".join(pipe.last_frames()))


def delete_old_folders(device: str) -> None:
    """Those of attempts that nobody has gone on with for KEPT_S."""
    parent = device_workspace(device).parent.parent / "agents" / device
    for folder in parent.glob("*"):
        if time.time() - folder.stat().st_mtime > KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)


# --- memory


async def wait_for_room(memory_mb: int) -> None:
    """Until this host has as much memory left as an agent needs."""
    while available_mb() < memory_mb:  # noqa: ASYNC110  # nobody tells when there is more
        await asyncio.sleep(ROOM_LOOK_S)


def available_mb() -> float:
    """Memory of this host that can still be had; without end where nobody can say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) / 1024
    except (OSError, ValueError, StopIteration):
        return math.inf


# --- the device


async def load_library() -> None:
    """Import the SDK beside the loop: it is large, takes seconds on a busy machine, and most runners never need it."""
    await asyncio.to_thread(importlib.import_module, "acp")


async def open_agent(row: DeviceRow) -> Opened:
    """Try the agent: its program, its walls, its version. Raises LinkRefused."""
    try:
        own = read_settings(row["connection"], list(PROFILES))
    except ConnectionRejected as error:
        raise LinkRefused(f"connection.{error}", fault=True) from error
    agent = PROFILES[own.profile]
    device = CodingDevice(row, agent, own)
    try:
        await asyncio.to_thread(delete_old_folders, row["name"])
        told = await _shake_hands(device, agent)
        isolation = await asyncio.to_thread(agent_isolation)
    except NotIsolated as error:
        raise LinkRefused(str(error), fault=True) from error
    except (OSError, ValueError, FileRefused) as error:
        raise LinkRefused(str(error)[:2_000]) from error
    facts = {"agent": agent.title, "tried": agent.tried, "isolation": isolation, **told}
    return Opened(device, facts)


async def _shake_hands(device: CodingDevice, agent: CodingAgent) -> Mapping[str, Any]:
    """Start the agent, ask what it is, and end it. Raises OSError, ValueError, NotIsolated."""
    await load_library()
    from acp.exceptions import RequestError

    call = Call(attempt=0, session=0, tool="", arguments={}, device={}, timeout=None)
    folder = attempt_folder(device._row["name"], f"trial-{os.getpid()}-{secrets.token_hex(4)}")
    async with starts():
        process = await start_agent(device._start_of(call, folder, folder / "empty"))
        talk = Conversation(agent, call, folder)
        device._connect(talk, process)
        try:
            answer = await talk.connection.initialize(VERSION)
        except RequestError as error:
            raise ValueError(f"the agent refused to shake hands: {error}") from error
        except ConnectionError as error:
            raise ValueError(str(await device._told_end(talk, process, error))) from error
        finally:
            await process.end()
            await talk.connection.close()
            await asyncio.to_thread(shutil.rmtree, folder, True)
    if answer.protocol_version != VERSION:
        raise ValueError(f"the agent speaks version {answer.protocol_version} of the protocol, not {VERSION}")
    info = answer.agent_info
    return {"program": info.name[:100], "version": info.version[:40]} if info is not None else {}
