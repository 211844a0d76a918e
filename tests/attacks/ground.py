"""A state folder with secrets in it, and the means to run something there as root and as nobody, behind each kind of walls."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.devices.confinement import BUBBLEWRAP, LANDLOCK, UID
from agents.devices.processes import list_pids, read_process

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
BREAKING_OUT = Path(__file__).with_name("breaking_out.py").read_text()
"""What a hostile program tries."""
OF_THE_HOST = {"code of the server", "homes", "abstract socket"}
"""What mechanism UID leaves, where everybody may read it: docs/confinement.md, "What each does not hold"."""
NOBODY = 65_534
PATIENCE_S = 120.0
"""Far above what it takes: what is bounded is that it ends at all, on a busy machine too."""
WALLED = [(mechanism, user) for mechanism in (BUBBLEWRAP, LANDLOCK) for user in (0, NOBODY)]
KINDS = [*WALLED, (UID, 0)]
"""Mechanisms, and who puts them up."""
SECRETS = ("secret_key", "orrery.sqlite3", "workspaces/other/secret.txt", "artifacts/8/secret.txt", "run/x/outcomes")


# A process of a runner's: runs one command behind walls in the state folder given, prints what comes of it. Arguments:
# mechanism, state folder, --alone for no network, then the command. A cancel comes as SIGUSR1.
RUNNER_OF_COMMANDS = """
import asyncio, json, signal, sys
from pathlib import Path
from agents.devices import CommandLimits, run_command
from agents.devices.confinement import Walls
mechanism, state, *argv = sys.argv[1:]
network = argv[0] != "--alone"
argv = argv[not network:]
state = Path(state)
root = Path(ROOT)
walls = Walls(mechanism, (state / "artifacts" / "7",), (root / "examples",), (), (state, root), network)
async def main():
    task = asyncio.ensure_future(run_command(
        argv, workspace=state / "workspaces" / "laptop", attempt_id=7, instance=str(state), limits=CommandLimits(), timeout=60,
        on_output=lambda text: print(text, end="", flush=True), walls=walls))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, task.cancel)
    try:
        ended = await task
    except asyncio.CancelledError:
        return
    print(json.dumps([ended.outcome, ended.exit_code, ended.error, list(ended.survivors)]))
asyncio.run(main())
""".replace("ROOT", repr(str(ROOT)))


def name_kind(kind: tuple[str, int]) -> str:
    return f"{kind[0]}-{'root' if kind[1] == 0 else 'nobody'}"


def interpreter_of_everybody() -> str:
    """This interpreter where everybody may run it, else the system's, if it is the same; else nothing."""
    for program in (sys.executable, "/usr/bin/python3"):
        version = f"import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
        try:
            tried = subprocess.run([program, "-c", version], user=NOBODY, group=NOBODY, check=False, capture_output=True)
        except OSError:
            continue
        if tried.returncode == 0:
            return program
    return ""


class Ground:
    """A state folder of somebody's, with secrets in it, and the means to run commands there as this somebody.

    `runner` is the program of a process that puts up the walls. Its arguments: mechanism, state folder, and those of `start`.
    What it prints last is JSON.
    """

    def __init__(self, state: Path, mechanism: str, user: int, runner: str):
        self.state, self.mechanism, self.user, self._runner = state, mechanism, user, runner
        self.python = sys.executable if user == os.getuid() and mechanism != UID else interpreter_of_everybody()
        if not self.python:
            pytest.skip("other users can run no interpreter of this version here")
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{PACKAGES}", "PYTHONDONTWRITEBYTECODE": "1"}
        for folder in ("", "workspaces/laptop", "workspaces/other", "artifacts/7", "artifacts/8", "run/x", "logs"):
            (state / folder).mkdir(parents=True, exist_ok=True)
            (state / folder).chmod(0o700)
        for name in SECRETS:
            (state / name).touch(mode=0o600)
            (state / name).write_text("secret")
        for path in (state, *state.rglob("*")):
            os.chown(path, user, user)

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.python, "-c", self._runner, self.mechanism, str(self.state), *arguments], env=self.env, user=self.user,
            group=self.user, extra_groups=[], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[str, Any]:
        """What was printed, and what the runner told at its end."""
        said, _ = self.start(*arguments).communicate(timeout=PATIENCE_S)
        *lines, told = said.splitlines()
        return "\n".join(lines), json.loads(told)

    def break_out(self) -> list[str]:
        """The command line of a program that tries to; what went well is its output."""
        return [self.python, "-c", BREAKING_OUT, str(ROOT), str(self.state), str(os.getpid()), "root"]

    def working(self) -> list[int]:
        """Pids of who works in the workspace: commands and what they have started, hidden or not."""
        return [pid for pid in list_pids() if is_in(self.state, pid) and not is_zombie(pid)]


@contextmanager
def laid_out(kind: tuple[str, int], runner: str) -> Iterator[Ground]:
    """A ground for one of KINDS; the test is skipped where this machine cannot have it."""
    mechanism, user = kind
    if os.getuid() != 0 and user != os.getuid():
        pytest.skip("only root can start commands as others")
    if mechanism == BUBBLEWRAP and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with tempfile.TemporaryDirectory(prefix="orrery-walls-") as place:  # pytest's own folders are for one user only
        Path(place).chmod(0o755)
        made = Ground(Path(place) / "state", mechanism, user, runner)
        yield made
        for pid in made.working():
            os.kill(pid, signal.SIGKILL)


def is_in(folder: Path, pid: int) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder)
    except OSError:
        return False


def is_zombie(pid: int) -> bool:
    found = read_process(pid)
    return found is None or found.zombie
