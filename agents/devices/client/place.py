"""Where a client works: its workspace, what its calls hand to each other, its walls, and its token."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.devices.confinement import NONE, UID, Confinement, Walls
from agents.devices.limits import CommandLimits
from agents.devices.processes import attempts_at_work, end_attempts

CLIENT = "orrery-device 9.0"
"""Name and version, as the handshake tells them."""


class ClientRefused(Exception):
    """The client cannot work here, or not as it was asked to; the message is for whoever started it."""


@dataclass(frozen=True)
class Place:
    """Of one client. `mark` is what its commands carry in their environment, whichever process of it has started them."""

    workspace: Path
    state: Path
    confinement: Confinement

    @property
    def mark(self) -> str:
        return hashlib.sha256(str(self.state.absolute()).encode()).hexdigest()[:12]

    def walls(self, limits: CommandLimits, shared: Path) -> Walls | None:
        """What a command is behind; raises ClientRefused where it is to have no network, and cannot be kept from it."""
        if not limits.network and self.confinement.mechanism in (NONE, UID):
            raise ClientRefused(f"commands are to have no network, and that cannot be: here they are {self.confinement.told}")
        if self.confinement.mechanism == NONE:
            return None
        return Walls(self.confinement.mechanism, (shared,), hidden=(self.state,), network=limits.network)

    def shared_folder(self, scope: str, inherits: str) -> Path:
        """What the calls of one scope hand to each other here; a new one begins as a copy of that which it inherits from."""
        for name in (scope, inherits):
            if name and not name.isdecimal():
                raise ClientRefused(f"scopes have numbers, and {name!r} is none")
        path = self.state / "artifacts" / (scope or "0")
        if not path.exists():
            if inherits and (source := path.with_name(inherits)).exists():
                shutil.copytree(source, path, symlinks=True)
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def end_leftovers(self) -> None:
        """Kill what an earlier process of this client has left running: nobody would ever hear how it ended."""
        end_attempts(self.mark, attempts_at_work(self.mark))

    def facts(self) -> dict[str, Any]:
        """What this machine is, for the server to show."""
        system = platform.uname()
        return {
            "os": system.system, "release": system.release[:200], "machine": system.machine, "node": system.node[:200],
            "python": platform.python_version(), "cpu_count": os.cpu_count(), "memory_mb": memory_mb(),
            "confinement": self.confinement.told, "client": CLIENT,
        }  # fmt: skip


def memory_mb() -> int:
    """Of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


@contextlib.contextmanager
def only_client_of(state: Path):
    """Hold the folder of state. Raises ClientRefused where another client does: the two would be one device."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClientRefused(f"another client works with {state}; give this one a --state of its own") from None
        yield


class TokenFile:
    """The device's token, kept for its user only. A one-time token is remembered by its digest: it is exchanged once."""

    def __init__(self, state: Path, server: str):
        self._path, self._server = state / "token.json", server

    def token_for(self, given: str) -> str:
        """What to show to the server: what was got for `given` before, else `given`; without one what is kept."""
        kept = self._read()
        if kept.get("server") == self._server and (not given or kept.get("given") == _digest(given)):
            return str(kept["token"])
        if not given:
            raise ClientRefused("there is no token yet: give --token, or ORRERY_DEVICE_TOKEN")
        return given

    def keep(self, token: str, given: str) -> None:
        """Whole or not at all."""
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"server": self._server, "token": token, "given": _digest(given)}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._path)

    def _read(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return {}
        except ValueError:
            print(f"{self._path} cannot be read; its token is forgotten", file=sys.stderr)
            return {}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
