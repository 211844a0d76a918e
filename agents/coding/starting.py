"""An agent's process: behind walls, with a home of its own, in namespaces that die whole, and held to its device's limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from django.conf import settings

from agents.coding.frames import FRAME_BYTES
from agents.devices.confinement import BUBBLEWRAP, FRAME, LANDLOCK, Walls, confine_command, folders_of_program
from agents.devices.limits import CommandLimits, WatchedCommand, sampler
from agents.devices.processes import AttemptMark, kill_group, read_process
from agents.errors import AgentsError
from agents.tools.confining import current_confinement

FOLLOWED = ("opencode.json", "opencode.jsonc", ".opencode", ".claude", ".mcp.json", ".qwen", ".gemini", ".codex")
"""What agents take their orders from where it lies in a workspace, whatever they are told: plugins, hooks, leave for all."""
COVER = """
for path in "$@"; do
    shift
    [ "$path" = -- ] && break
    if [ -d "$path" ]; then mount -t tmpfs tmpfs "$path"; else mount --bind /dev/null "$path"; fi || exit 126
done
exec "$@"
"""
"""Covers what stands in front of `--`, and becomes what stands behind it."""
NAMESPACES, NOTHING = "namespaces", "none"
UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL")
"""Namespaces of processes and mounts, where no walls hold: what runs there ends whole, and can write what this process can."""
PROBE_S = 10.0
ERRORS_KEPT = 8_000
"""The last bytes of what an agent writes to its standard error."""
HOW_TO_ISOLATE = (
    "install bubblewrap (apt install bubblewrap), or set ORRERY_UNISOLATED_AGENTS=1 so that agents may run without walls here"
)


class NotIsolated(AgentsError):
    """An agent cannot be kept apart on this host."""

    code = "not_isolated"
    status = 403


def agent_isolation() -> str:
    """What agents are kept apart by here: bubblewrap, landlock, namespaces alone, or none.

    Raises NotIsolated where that is none and the installation has not said that it will do.
    """
    found = current_confinement().mechanism
    if found in (BUBBLEWRAP, LANDLOCK):
        return found
    if _namespaces_hold():
        return NAMESPACES
    if settings.UNISOLATED_AGENTS:
        return NOTHING
    raise NotIsolated(f"a coding agent cannot be kept apart on this host: {HOW_TO_ISOLATE}")


def _namespaces_hold() -> bool:
    """Whether they can be made here; a trial that took too long says nothing, and is made again the next time."""
    try:
        return _try_namespaces()
    except subprocess.TimeoutExpired:
        return False


@cache
def _try_namespaces() -> bool:
    """Once in each process. Raises TimeoutExpired."""
    try:
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False, timeout=PROBE_S)
    except OSError:
        return False
    return tried.returncode == 0


def find_program(name: str, path: str) -> str:
    """Where a program is. Raises FileNotFoundError where it is nowhere."""
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(f"there is no program {name} in {path}")
    return os.path.abspath(found)


def files_to_cover(workspace: Path, *, can_cover: bool) -> tuple[Path, ...]:
    """What of a workspace an agent must not follow. Raises NotIsolated where that is there and cannot be covered."""
    found = tuple(path for name in FOLLOWED if (path := workspace / name).exists() or path.is_symlink())
    for path in found:
        if not can_cover or path.is_symlink():
            raise NotIsolated(f"the workspace holds {path.name}, which an agent would follow, and it cannot be covered here")
    return found


@dataclass(frozen=True)
class AgentStart:
    """What is started: `argv` with a whole path first, where, seeing what."""

    argv: Sequence[str]
    workspace: Path
    home: Path
    env: Mapping[str, str]
    limits: CommandLimits
    mark: AttemptMark


@dataclass(eq=False)
class AgentProcess:
    """An agent that runs. `excess` is the limit that it has exceeded, empty while it has not."""

    process: asyncio.subprocess.Process
    frame: int
    excess: str = ""
    _errors: deque[bytes] = field(default_factory=deque)
    _watched: WatchedCommand | None = None
    _drain: asyncio.Task[None] | None = None

    def watch(self, start: AgentStart) -> None:
        """Hold it to its limits, and read what it writes to its standard error: nobody may make it wait for that."""
        self._drain = asyncio.get_running_loop().create_task(self._drain_errors())
        began = read_process(self.process.pid)
        if began is not None:
            self._watched = WatchedCommand(
                self.process.pid, began.start, start.mark, start.limits, self._stop, self.frame
            )  # fmt: skip
            sampler().watch(self._watched)

    def last_words(self) -> str:
        """The last that it wrote to its standard error."""
        return b"".join(self._errors).decode(errors="replace")[-ERRORS_KEPT:].strip()

    async def end(self) -> None:
        """End it with all that it has started."""
        if self._watched is not None:
            sampler().forget(self._watched)
        kill_group(self.process.pid)
        await self.process.wait()
        if self._drain is not None:
            self._drain.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._drain

    def _stop(self, reason: str) -> None:
        self.excess = reason
        kill_group(self.process.pid)

    async def _drain_errors(self) -> None:
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(ERRORS_KEPT):
            self._errors.append(piece)
            while sum(map(len, self._errors)) > 2 * ERRORS_KEPT:
                self._errors.popleft()


async def start_agent(start: AgentStart) -> AgentProcess:
    """Start it. Raises NotIsolated, and OSError where it cannot be started."""
    isolation = await asyncio.to_thread(agent_isolation)
    told, status = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *_command_line(start, isolation, status),
            cwd=start.workspace, env=dict(start.env), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True, pass_fds=(status,), limit=FRAME_BYTES,
        )  # fmt: skip
    finally:
        os.close(told)
        os.close(status)
    running = AgentProcess(process, FRAME.get(isolation, 2 if isolation == NAMESPACES else 0))
    running.watch(start)
    return running


def _command_line(start: AgentStart, isolation: str, status: int) -> list[str]:
    covered = files_to_cover(start.workspace, can_cover=isolation in (BUBBLEWRAP, NAMESPACES))
    if isolation == NOTHING:
        return list(start.argv)
    if isolation == NAMESPACES:
        return [*UNSHARE, "--mount", "--", "sh", "-c", COVER, "sh", *map(str, covered), "--", *start.argv]
    hidden = (settings.STATE_DIR, settings.BASE_DIR)
    readable = (*folders_of_program(start.argv, hidden), *settings.READABLE)
    walls = Walls(isolation, (start.home,), readable, settings.WRITABLE, hidden, start.limits.network, covered)
    return confine_command(start.argv, walls, start.workspace, start.limits.memory_bytes, status)
