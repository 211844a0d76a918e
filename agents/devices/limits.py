"""What a command may use: the limits, and the one sampler of an event loop that holds all its commands to them.

Of time, memory, output and processes. What a command prints is counted where it is read (`local`), the rest by the sampler.
Every SAMPLE_S it reads /proc once for all commands. A limit counts for everything a command has started, also what has left
its process group: whoever shares its session, descends from it or carries its attempt is its process (RLIMIT_NPROC
does nothing for root, and a limit for each process is none for the group).
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.devices.processes import (
    UNREADABLE_LOOKS,
    AttemptMark,
    Process,
    is_unsure,
    list_pids,
    read_mark,
    read_process,
    shared_out_bytes,
)
from agents.per_loop import one_per_loop

SAMPLE_S = 0.1
STALE_S = 1.0
"""A pid seen this long ago may be another process's by now."""
MB = 1 << 20
DEFAULT_SECONDS = 3600.0
DEFAULT_MEMORY_MB = 2048.0
DEFAULT_OUTPUT_MB = 10.0
DEFAULT_PROCESSES = 64
LARGEST = 1e12
"""Of any limit, in its unit."""


@dataclass(frozen=True)
class CommandLimits:
    """Of one command with all its processes. `seconds` is wall time; output is what it prints on both streams.

    Without `network` it reaches nothing but itself (agents.devices.confinement).
    """

    seconds: float = DEFAULT_SECONDS
    memory_bytes: int = int(DEFAULT_MEMORY_MB * MB)
    output_bytes: int = int(DEFAULT_OUTPUT_MB * MB)
    processes: int = DEFAULT_PROCESSES
    network: bool = True

    @classmethod
    def of(cls, wanted: Mapping[str, Any]) -> "CommandLimits":
        """From a device's limits: seconds, memory_mb, output_mb, processes, network, each optional; other keys are not limits.

        Raises ValueError naming the key whose value is not a positive number, or for `network` neither true nor false.
        """
        for key in ("seconds", "memory_mb", "output_mb", "processes"):
            value = wanted.get(key, 1)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST:
                raise ValueError(f"{key} must be a positive number, not {value!r}")
            if key == "processes" and value != int(value):
                raise ValueError(f"processes must be a whole number, not {value!r}")
        if not isinstance(network := wanted.get("network", True), bool):
            raise ValueError(f"network must be true or false, not {network!r}")
        return cls(
            seconds=float(wanted.get("seconds", DEFAULT_SECONDS)),
            memory_bytes=int(wanted.get("memory_mb", DEFAULT_MEMORY_MB) * MB),
            output_bytes=int(wanted.get("output_mb", DEFAULT_OUTPUT_MB) * MB),
            processes=int(wanted.get("processes", DEFAULT_PROCESSES)),
            network=network,
        )


@dataclass(eq=False)
class WatchedCommand:
    """A command that runs. `stop` is called with the reason when a limit is exceeded; `members` are its processes' starts.

    The first `frame` generations of its processes are those of its walls: `pid`, and where it is 2 the child of that.
    """

    pid: int
    start: int
    mark: AttemptMark
    limits: CommandLimits
    stop: Callable[[str], None]
    frame: int = 0
    members: dict[int, int] = field(default_factory=dict)


def own_processes(watched: WatchedCommand, members: list[Process]) -> list[Process]:
    """Those that the command itself has started: what holds it up does not count against its limits."""
    return [
        member for member in members
        if not (watched.frame >= 1 and member.pid == watched.pid) and not (watched.frame >= 2 and member.parent == watched.pid)
    ]  # fmt: skip


def find_excess(limits: CommandLimits, members: list[Process]) -> str | None:
    """The limit that these processes exceed, as a sentence; None when they are within."""
    if len(members) > limits.processes:
        return f"{limits.processes} processes exceeded"
    # Shared pages count once for each process in the resident size, so it is only the cheap first look.
    if sum(member.resident_bytes for member in members) <= limits.memory_bytes:
        return None
    used = sum(map(_memory_bytes, members))
    return f"memory {limits.memory_bytes / MB:g} MB exceeded" if used > limits.memory_bytes else None


def _memory_bytes(member: Process) -> int:
    """Its part of the memory that it shares; where that cannot be read, all that it has now: nothing, once it has ended.

    What it had a moment ago would count shared pages twice: the part of one that ends is at once that of the others.
    """
    part = shared_out_bytes(member.pid)
    if part is not None:
        return part
    now = read_process(member.pid)
    return now.resident_bytes if now is not None and now.start == member.start else 0


class Sampler:
    """Knows the processes of all commands of one event loop. Runs only while there are any."""

    def __init__(self) -> None:
        self._by_session: dict[int, WatchedCommand] = {}
        self._by_mark: dict[AttemptMark, WatchedCommand] = {}
        self._foreign: set[int] = set()
        self.unsure: dict[int, int] = {}
        """Looks in which a process had no readable environment, by pid: whose it is may still show."""
        self._looked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, watched: WatchedCommand) -> None:
        self._by_session[watched.pid] = watched
        self._by_mark[watched.mark] = watched
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAMPLE_S, self._sample)

    def forget(self, watched: WatchedCommand) -> None:
        self._by_session.pop(watched.pid, None)
        self._by_mark.pop(watched.mark, None)
        if not self._by_session and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> dict[WatchedCommand, list[Process]]:
        """Every command's processes, zombies too, by one pass over /proc that reads only what is new or ours."""
        present = list_pids()
        if time.monotonic() - self._looked_at > STALE_S:
            self._foreign.clear()
            self.unsure.clear()
        self._looked_at = time.monotonic()
        self._foreign &= present
        self.unsure = {pid: looks for pid, looks in self.unsure.items() if pid in present}
        oldest = min((watched.start for watched in self._by_session.values()), default=0)
        found: dict[WatchedCommand, list[Process]] = {watched: [] for watched in self._by_session.values()}
        new = [seen for pid in present - self._foreign if (seen := read_process(pid)) is not None]
        for seen in sorted(new, key=lambda one: (one.start, one.pid)):  # parents before their children, also past the last pid
            if owner := self._owner(seen, oldest):
                owner.members[seen.pid] = seen.start
                found[owner].append(seen)
        for watched, members in found.items():
            watched.members = {member.pid: member.start for member in members}
        return found

    def _owner(self, seen: Process, oldest: int) -> WatchedCommand | None:
        """Once a command's process it stays one, whatever it does to its session, parent and environment."""
        if (owner := self._by_session.get(seen.session)) is not None:
            return owner
        if seen.start < oldest:
            self._foreign.add(seen.pid)
            return None
        for watched in self._by_session.values():
            if watched.members.get(seen.pid) == seen.start or seen.parent in watched.members:
                return watched
        carried = read_mark(seen.pid)
        if is_unsure(seen, carried) and self.unsure.get(seen.pid, 0) < UNREADABLE_LOOKS:
            self.unsure[seen.pid] = self.unsure.get(seen.pid, 0) + 1
            return None
        self.unsure.pop(seen.pid, None)
        if carried not in self._by_mark:
            self._foreign.add(seen.pid)
        return self._by_mark.get(carried) if carried else None

    def _sample(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SAMPLE_S, self._sample)
        for watched, members in self.look().items():
            if reason := find_excess(watched.limits, own_processes(watched, members)):
                watched.stop(reason)


sampler = one_per_loop(Sampler)
"""The running loop's."""
