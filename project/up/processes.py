"""The processes that one `up` has started on this host, and ending them for certain.

Everything `up` starts carries MARK in its environment and runs in a session of its own, so that it is found again after
its parent's death: whoever has the session, descends from somebody in it, or carries the mark. A process is known by pid
and start time; one that took over a pid is never touched.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from agents.devices.processes import Process, list_pids, read_process

MARK = "ORRERY_UP"
ENVIRONMENT_BYTES = 1 << 20
END_S = 5.0
"""Seconds a killed process may take to be gone."""
LOOK_S = 0.02

Look = dict[int, Process]


class Identity(NamedTuple):
    """One process, for good: `start` is in clock ticks since boot."""

    pid: int
    start: int


def read_processes() -> Look:
    """All living processes of this host by pid."""
    seen = (read_process(pid) for pid in list_pids())
    return {found.pid: found for found in seen if found is not None and not found.zombie}


def is_alive(identity: Identity) -> bool:
    found = read_process(identity.pid)
    return found is not None and not found.zombie and found.start == identity.start


def in_session(session: int, seen: Look) -> set[Identity]:
    """Who is in the session a process led, also after its death: the number is not given out before all are gone."""
    return {Identity(found.pid, found.start) for found in seen.values() if found.session == session}


def with_descendants(roots: Iterable[Identity], seen: Look) -> set[Identity]:
    """`roots` and all that descend from them."""
    children: dict[int, list[int]] = {}
    for found in seen.values():
        children.setdefault(found.parent, []).append(found.pid)
    family, waiting = set(roots), [root.pid for root in roots]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            member = Identity(pid, seen[pid].start)
            if member not in family:
                family.add(member)
                waiting.append(pid)
    return family


def find_marked(mark: str, seen: Look) -> set[Identity]:
    """Who carries MARK with this value."""
    wanted = f"{MARK}={mark}".encode()
    return {Identity(pid, found.start) for pid, found in seen.items() if wanted in _environment(pid)}


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(ENVIRONMENT_BYTES).split(b"\0")
    except OSError:  # gone, or another user's
        return []


def send_signal(identity: Identity, signum: int) -> bool:
    """Signal exactly this process; False where it is gone. The open pidfd keeps the pid from meaning another one."""
    try:
        handle = os.pidfd_open(identity.pid)
    except (ProcessLookupError, OSError):
        return False
    try:
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def end_processes(find: Callable[[Look], set[Identity]], within_s: float = END_S) -> set[Identity]:
    """SIGKILL whoever `find` finds, again until nobody is left: a process may fork while it is looked for.

    Returns those that were there. Raises TimeoutError with the pids that outlive `within_s`.
    """
    ended: set[Identity] = set()
    deadline = time.monotonic() + within_s
    while alive := {identity for identity in find(read_processes()) if identity.pid != os.getpid() and is_alive(identity)}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(identity.pid for identity in alive)} outlived SIGKILL for {within_s:g} s")
        ended |= alive
        for identity in alive:
            send_signal(identity, signal.SIGKILL)
        time.sleep(LOOK_S)
    return ended
