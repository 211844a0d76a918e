"""How a command on this host is started: its workspace, its environment, and the child, which nobody has watched yet."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.devices.confinement import UID, Walls, confine_command, hand_over
from agents.devices.processes import ATTEMPT, INSTANCE, kill_group, read_process

TEMPORARY = ".tmp"
"""The folder for temporary files in a workspace."""


def command_environment(workspace: Path, attempt_id: int, instance: str, path: str, extra: Mapping[str, str]) -> dict[str, str]:
    """All that a command gets to see; nothing of this process's own environment."""
    return {
        "PATH": path,
        "HOME": str(workspace),
        "TMPDIR": str(workspace / TEMPORARY),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **extra,
        ATTEMPT: str(attempt_id),
        INSTANCE: instance,
    }


def prepare_workspace(workspace: Path, walls: Walls | None) -> Path:
    """The workspace as an absolute path, with its folder for temporary files; both exist now, for whom the command will be."""
    workspace.parent.mkdir(parents=True, exist_ok=True)
    workspace.mkdir(mode=0o700, exist_ok=True)
    (workspace / TEMPORARY).mkdir(mode=0o700, exist_ok=True)
    home = workspace.absolute()
    if walls is not None and walls.mechanism == UID:
        hand_over(home, walls)
        found = home.stat()
        os.chown(home / TEMPORARY, found.st_uid, found.st_gid, follow_symlinks=False)  # it may have been made just now
    return home


class StartedChild(NamedTuple):
    """A child that has just been started: its streams, when it began, and the handle that tells its end.

    Behind walls it is the first of their frame; `told` is then where the launcher tells how the command itself ended, else -1.
    """

    popen: subprocess.Popen
    start: int
    pidfd: int
    told: int


def start_child(
    argv: Sequence[str], workspace: Path, seen: Mapping[str, str], walls: Walls | None, memory_bytes: int,
    stdin: int = subprocess.DEVNULL,
) -> StartedChild:  # fmt: skip
    """The child, leader of a session of its own; `stdin` is as Popen takes it. Raises OSError, ValueError or TypeError; then
    nothing runs.
    """
    told, status = os.pipe() if walls else (-1, -1)
    try:
        child = subprocess.Popen(
            confine_command(argv, walls, workspace, memory_bytes, status) if walls else list(argv),
            cwd=workspace,
            env=seen,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=(status,) if walls else (),
        )
    except BaseException:
        close_handle(told)
        raise
    finally:
        close_handle(status)
    try:
        began = read_process(child.pid)  # a zombie at the least, as nobody has reaped it
        return StartedChild(child, began.start if began else 0, os.pidfd_open(child.pid), told)
    except OSError:  # no file handle left: what nobody watches must not run
        kill_group(child.pid)
        child.communicate()
        close_handle(told)
        raise


def close_handle(handle: int) -> None:
    if handle >= 0:
        os.close(handle)
