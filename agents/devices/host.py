"""What the processes of one installation share on one host: locks, outcome files, addresses for nudges."""

import hashlib
import os
import platform
from pathlib import Path

from django.conf import settings
from django.db import connection

from agents.devices import processes

ROOM_BYTES = 1 << 20
"""Free space below which the disk counts as full: what is written next would not fit."""


def instance_name() -> str:
    """A short name of this database, the same in every process that uses it."""
    database = connection.settings_dict
    identity = f"{database['ENGINE']} {database.get('HOST')} {database.get('PORT')} {database['NAME']}"
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
