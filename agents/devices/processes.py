"""Processes as /proc shows them, and which attempt's work they are (docs/engine.md, "When somebody dies").

A command carries its attempt and the installation that started it in its environment; children inherit both. Linux only.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ATTEMPT = "ORRERY_ATTEMPT"
INSTANCE = "ORRERY_INSTANCE"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
STAT_BYTES = 4096
ENVIRONMENT_BYTES = 4 << 20
"""A process's environment may be larger than this only by raising the stack's limit."""
FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.05
"""Between two looks whether killed processes are gone; doubles from the first to the longest."""
UNREADABLE_LOOKS = 4
"""A process whose environment is empty in so many looks has none; in fewer it may just be becoming another program."""


class Process(NamedTuple):
    """One line of /proc/<pid>/stat. `start` is in clock ticks since boot: with the pid it names a process for good."""

    pid: int
    zombie: bool
    parent: int
    group: int
    session: int
    start: int
    resident_bytes: int


class AttemptMark(NamedTuple):
    """Whose work a process is."""

    instance: str
    attempt_id: int


GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""A process that has ended, or another user's. Any other error (no file handles left) must not pass for "gone"."""


def _content(path: str, most: int) -> bytes:
    """The file's first `most` bytes; empty when the process is gone or not ours to read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except GONE:
        return b""
    try:
        return os.read(handle, most)
    except GONE:
        return b""
    finally:
        os.close(handle)


def list_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def read_process(pid: int) -> Process | None:
    """What /proc says of it, None when it is gone."""
    content = _content(f"/proc/{pid}/stat", STAT_BYTES)
    # The name stands in brackets and may itself hold brackets and spaces.
    fields = content[content.rfind(b")") + 2 :].split()
    if len(fields) < 22:
        return None
    zombie = fields[0] in (b"Z", b"X")
    parent, group, session = int(fields[1]), int(fields[2]), int(fields[3])
    return Process(pid, zombie, parent, group, session, int(fields[19]), int(fields[21]) * PAGE_BYTES)


def process_start(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None when none lives there (a zombie has ended)."""
    found = read_process(pid)
    return None if found is None or found.zombie else found.start


def is_same_process(pid: int, start: int | None) -> bool:
    """Whether the process recorded with this start time still lives."""
    return start is not None and process_start(pid) == start


def shared_out_bytes(pid: int) -> int | None:
    """Memory of the process with every shared page parted among those that share it (PSS); None when it cannot be read."""
    for line in _content(f"/proc/{pid}/smaps_rollup", STAT_BYTES).splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return None


UNREADABLE = AttemptMark("", 0)


def read_mark(pid: int) -> AttemptMark | None:
    """The attempt in the process's environment, None when there is none.

    UNREADABLE when the environment is empty, as it is for an instant when a process becomes another program.
    """
    content = _content(f"/proc/{pid}/environ", ENVIRONMENT_BYTES)
    if not content:
        return UNREADABLE
    if ATTEMPT.encode() not in content:
        return None
    found = dict(entry.split(b"=", 1) for entry in content.split(b"\0") if b"=" in entry)
    attempt = found.get(ATTEMPT.encode(), b"")
    if not attempt.isdigit():
        return None
    return AttemptMark(found.get(INSTANCE.encode(), b"").decode("utf-8", "surrogateescape"), int(attempt))


def kill_process(found: Process) -> None:
    """SIGKILL to exactly this process: one that has taken over its pid since is left alone."""
    if process_start(found.pid) != found.start:
        return
    try:
        os.kill(found.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_group(group: int, signum: int = signal.SIGKILL) -> None:
    """A signal to all of a process group at once; one with nobody in it is fine."""
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        pass


def pause_lengths() -> Iterator[float]:
    """Seconds to wait between looks, without end."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(pause * 2, LONGEST_PAUSE_S)


def is_unsure(found: Process, carried: AttemptMark | None) -> bool:
    """Whether a later look may find a mark. Threads of the kernel, which have session 0, and zombies never have one."""
    return carried == UNREADABLE and not found.zombie and found.session != 0


def _family(attempts: dict[AttemptMark, set[int]]) -> tuple[dict[Process, AttemptMark], bool]:
    """All living processes of `attempts`: who carries the mark, shares a session with such a one or descends from it.

    A command has a session of its own, so a process in it belongs to the attempt even if it has cleared its environment.
    `attempts` remembers the sessions from look to look: the last process with the mark may die before the others.
    Also tells whether there is a process of which it is unsure.
    """
    living = {found.pid: found for pid in list_pids() - {os.getpid()} if (found := read_process(pid)) and not found.zombie}
    family: dict[int, AttemptMark] = {}
    unsure = False
    for pid, found in living.items():
        carried = read_mark(pid)
        unsure = unsure or is_unsure(found, carried)
        if carried in attempts:
            family[pid] = carried
            attempts[carried].add(found.session)
    sessions = {session: whose for whose, several in attempts.items() for session in several}
    own = os.getsid(0)
    # Parents before their children, but for pids that began again from the lowest: the next look finds those.
    for pid, found in sorted(living.items(), key=lambda item: item[1].start):
        whose = family.get(found.parent) or (sessions.get(found.session) if found.session != own else None)
        if whose and pid not in family:
            family[pid] = whose
    return {living[pid]: whose for pid, whose in family.items()}, unsure


def attempts_at_work(instance: str) -> set[int]:
    """Attempts of `instance` that have processes on this host."""
    carried = (read_mark(pid) for pid in list_pids())
    return {found.attempt_id for found in carried if found is not None and found.instance == instance}


def end_attempts(instance: str, attempt_ids: Iterable[int], timeout_s: float = 5) -> set[int]:
    """Kill every process on this host that works for one of these attempts of `instance`, and wait until they are gone.

    Returns the ids of the attempts that still had processes. Raises TimeoutError naming the pids that outlived `timeout_s`.
    """
    attempts: dict[AttemptMark, set[int]] = {AttemptMark(instance, attempt_id): set() for attempt_id in attempt_ids}
    ended: set[int] = set()
    deadline = time.monotonic() + timeout_s
    empty_looks = 0
    for pause in pause_lengths():
        family, unsure = _family(attempts) if attempts else ({}, False)
        empty_looks = 0 if family else empty_looks + 1
        if empty_looks == UNREADABLE_LOOKS or not (family or unsure):
            break
        if family and time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(found.pid for found in family)} outlived SIGKILL for {timeout_s:g} s")
        ended |= {whose.attempt_id for whose in family.values()}
        for found in family:
            kill_process(found)
        time.sleep(pause)
    return ended
