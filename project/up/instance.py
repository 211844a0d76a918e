"""One `up` a database and host: the lock that says so, and the record of what it has started."""

import fcntl
import hashlib
import json
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agents.devices.host import boot_identity
from project.up.processes import (
    END_S,
    Identity,
    Look,
    end_processes,
    find_marked,
    is_alive,
    read_processes,
    send_signal,
    with_descendants,
)

REPLACE_S = 45.0
"""Seconds the `up` that is to be replaced may take to stop by itself."""
LOOK_S = 0.1


class AlreadyUp(Exception):
    """Another `up` serves this database already, at `address`."""

    def __init__(self, address: str, pid: int):
        super().__init__(f"Orrery is up on this database already at {address} (process {pid}); --replace ends that one first.")
        self.address = address


@dataclass(frozen=True)
class InstanceRecord:
    """What an `up` left on disk: itself, where it serves, and all processes it has started."""

    up: Identity
    address: str
    processes: set[Identity] = field(default_factory=set)


class Instance:
    """The `up` of one runtime folder. The lock is the truth about whether one lives: it goes with its process."""

    def __init__(self, folder: Path):
        self.mark = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
        self._lock_path, self._record_path = folder / "up.lock", folder / "up.json"
        self._lock: int | None = None
        self._written: InstanceRecord | None = None

    def take(self, *, replace: bool = False) -> None:
        """Become the one `up`; raises AlreadyUp where another lives and is not to be replaced."""
        self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._try() or (replace and self._replace()):
            return
        self.release()
        known = self.record()
        raise AlreadyUp(known.address if known else "an address not yet known", known.up.pid if known else 0)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _try(self) -> bool:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _replace(self) -> bool:
        """Ask the living `up` to stop, then end it; False where it cannot be found."""
        known = self.record()
        if known is None:
            return False
        for signum, patience_s in ((signal.SIGTERM, REPLACE_S), (signal.SIGKILL, END_S)):
            send_signal(known.up, signum)
            deadline = time.monotonic() + patience_s
            while time.monotonic() < deadline:
                if self._try():
                    return True
                time.sleep(LOOK_S)
        return False

    def record(self) -> InstanceRecord | None:
        """The last record of this host since its boot, None where there is none (or none that can be read)."""
        try:
            content = json.loads(self._record_path.read_text())
            if content["host"] != boot_identity():
                return None
            return InstanceRecord(
                Identity(*content["up"]), content["address"], {Identity(*each) for each in content["processes"]}
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, record: InstanceRecord) -> None:
        """Put the record on disk, whole or not at all, when it has changed."""
        if record == self._written:
            return
        content = {"host": boot_identity(), "up": record.up, "address": record.address, "processes": sorted(record.processes)}
        fresh = self._record_path.with_suffix(".new")
        fresh.write_text(json.dumps(content))
        fresh.replace(self._record_path)
        self._written = record

    def forget(self) -> None:
        self._record_path.unlink(missing_ok=True)
        self._written = None

    def end_leftovers(self) -> set[Identity]:
        """Kill what an earlier `up` has left: the recorded processes, those with its mark, and their descendants."""
        known = self.record()
        left = self._left(known.processes if known else (), read_processes())
        # First who carries the mark: a runner must not see the end of its commands before its own.
        ended = end_processes(lambda seen: find_marked(self.mark, seen))
        return ended | end_processes(lambda seen: self._left(left, seen))

    def _left(self, remembered: Iterable[Identity], seen: Look) -> set[Identity]:
        alive = {identity for identity in remembered if is_alive(identity)}
        return with_descendants(alive | find_marked(self.mark, seen), seen)
