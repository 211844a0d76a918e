"""What the processes of one installation share on one host: locks, outcome files, addresses for nudges."""

import hashlib
import os
import platform
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from agents.devices import processes

ROOM_BYTES = 1 << 20
"""Free space below which the disk counts as full: what is written next would not fit."""


def instance_name() -> str:
    """A short name of this installation on this database, the same in every process of it.

    Processes carry it. Two installations on one machine see each other's processes, and must not take them for theirs.
    """
    database = connection.settings_dict
    identity = f"{database['ENGINE']} {database.get('HOST')} {database.get('PORT')} {database['NAME']} {host_name()}"
    return hashlib.sha256(identity.encode()).hexdigest()[:12]


def runtime_dir() -> Path:
    """The installation's folder for this, apart for each database; made when missing, readable by its user only."""
    path = settings.STATE_DIR / "run" / instance_name()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def storage_flaw() -> str:
    """Why nothing can be written where this installation writes, empty when it can."""
    found = os.statvfs(settings.STATE_DIR)
    if found.f_flag & os.ST_RDONLY:
        return f"{settings.STATE_DIR} is read-only"
    free = found.f_bavail * found.f_frsize
    return f"the disk of {settings.STATE_DIR} is full" if free < ROOM_BYTES else ""


def host_name() -> str:
    """What local devices know this host by: ORRERY_HOST, else a name made once for this installation's folder of state.

    Two installations on one machine, each with a folder of its own, are two hosts: their devices have other workspaces.
    """
    if settings.HOST_NAME:
        return str(settings.HOST_NAME)
    path = settings.STATE_DIR / "host"
    if (known := _HOST_NAMES.get(path)) is not None:
        return known
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"host.{secrets.token_hex(4)}")
    fresh.write_text(f"{platform.node()[:80]}-{secrets.token_hex(3)}")
    try:
        os.link(fresh, path)  # of several processes that begin at once one wins
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    name = _HOST_NAMES[path] = path.read_text().strip()
    return name


def is_of_this_host(device: Mapping[str, Any]) -> bool:
    """Whether a device is a local one whose files and processes are on this host; one that no host has taken yet may be."""
    return device["kind"] == "local" and device.get("host", "") in ("", host_name())


_HOST_NAMES: dict[Path, str] = {}


def process_identity() -> str:
    """This process, unmistakably: host and boot, pid, start time."""
    return f"{boot_identity()} {os.getpid()} {process_start()}"


def is_process_gone(identity: str) -> bool:
    """Whether a process of this host has ended; False for one of another host, of which nobody here knows."""
    if not is_of_this_boot(identity):
        return False
    _, pid, start = identity.rsplit(" ", 2)
    return pid.isdecimal() and (processes.process_start(int(pid)) or 0) != int(start)


def is_of_this_boot(identity: str) -> bool:
    """Whether a process is, or was, one of this machine since its last boot."""
    return identity.rsplit(" ", 2)[0] == boot_identity()


def boot_identity() -> str:
    """This machine since its last boot: process ids mean something only there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:
        boot = "unknown"
    return f"{platform.node()}/{boot}"


def is_orphaned(pid: int) -> bool:
    """Whether the process has outlived its parent: one of another session has adopted it. Leaders of a session never count.

    Session 0 is one that cannot be seen from here, as that of a container's first process.
    """
    found = processes.read_process(pid)
    if found is None or found.session in (0, found.pid):
        return False
    parent = processes.read_process(found.parent)
    return parent is not None and parent.session != found.session


def process_start(pid: int | None = None) -> int:
    """Start time of a process (this one) in clock ticks since boot, 0 when it is gone: with it a pid is unmistakable."""
    return processes.process_start(pid or os.getpid()) or 0
