"""What a hostile command gets behind each kind of walls that this machine can put up, started by root and by nobody."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agents.devices import end_attempts
from agents.devices.confinement import BUBBLEWRAP, LANDLOCK, NONE, UID, ConfinementMissing, find_confinement
from agents.devices.processes import list_pids, read_process
from tests.project.installation import until

pytestmark = pytest.mark.attack

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("breaking_out.py").read_text()
NOBODY = 65_534
SHORT_S = 30.0
# A process of a runner's: runs one command behind walls in the state folder given, prints what comes of it. Arguments:
# mechanism, state folder, network, then the command. A cancel comes as SIGUSR1.
RUNNER = """
import asyncio, json, signal, sys
from pathlib import Path
from agents.devices import CommandLimits, run_command
from agents.devices.confinement import Walls
mechanism, state, network, *argv = sys.argv[1:]
state = Path(state)
root = Path({root!r})
walls = Walls(mechanism, (state / "artifacts" / "7",), (root / "examples",), (), (state, root), network == "network")
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
"""
# Leaves the session, the parent and the environment behind; what started it ends when the new one is well away.
HIDER = """
import os, sys, time
heard, ready = os.pipe()
os.set_inheritable(ready, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sh", ["sh", "-c", f"echo hidden; echo x >/dev/fd/{ready}; exec sleep 600"], {})
    os._exit(0)
os.read(heard, 1)
time.sleep(float(sys.argv[1]))
"""


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
    """A state folder of somebody's, with secrets in it, and the means to run commands there as this somebody."""

    def __init__(self, state: Path, mechanism: str, user: int):
        self.state, self.mechanism, self.user = state, mechanism, user
        self.python = sys.executable if user == os.getuid() and mechanism != UID else interpreter_of_everybody()
        if not self.python:
            pytest.skip("other users can run no interpreter of this version here")
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"}
        for folder in ("", "workspaces/laptop", "workspaces/other", "artifacts/7", "artifacts/8", "run/x", "logs"):
            (state / folder).mkdir(parents=True, exist_ok=True)
            (state / folder).chmod(0o700)
        for name in ("secret_key", "orrery.sqlite3", "workspaces/other/secret.txt", "artifacts/8/secret.txt", "run/x/outcomes"):
            (state / name).touch(mode=0o600)
            (state / name).write_text("secret")
        for path in (state, *state.rglob("*")):
            os.chown(path, user, user)

    def start(self, *argv: str, network: bool = True) -> subprocess.Popen:
        words = [self.python, "-c", RUNNER.format(root=str(ROOT)), self.mechanism, str(self.state)]
        return subprocess.Popen(
            [*words, "network" if network else "none", *argv], env=self.env, user=self.user, group=self.user, extra_groups=[],
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, *argv: str, network: bool = True) -> tuple[str, list]:
        """What a command printed, and how it ended: [outcome, exit code, error, survivors]."""
        runner = self.start(*argv, network=network)
        said, _ = runner.communicate(timeout=SHORT_S)
        *lines, ended = said.splitlines()
        return "\n".join(lines), json.loads(ended)

    def working(self) -> list[int]:
        """Pids of who works in the workspace: commands and what they have started, hidden or not."""
        return [pid for pid in list_pids() if is_in(self.state, pid) and not is_zombie(pid)]


def is_in(folder: Path, pid: int) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder)
    except OSError:
        return False


def is_zombie(pid: int) -> bool:
    found = read_process(pid)
    return found is None or found.zombie


KINDS = [(mechanism, user) for mechanism in (BUBBLEWRAP, LANDLOCK) for user in (0, NOBODY)] + [(UID, 0)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{'root' if kind[1] == 0 else 'nobody'}")
def ground(request):
    mechanism, user = request.param
    if os.getuid() != 0 and user != os.getuid():
        pytest.skip("only root can start commands as others")
    if mechanism == BUBBLEWRAP and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with tempfile.TemporaryDirectory(prefix="orrery-walls-") as place:  # pytest's own folders are for one user only
        Path(place).chmod(0o755)
        made = Ground(Path(place) / "state", mechanism, user)
        yield made
        for pid in made.working():
            os.kill(pid, signal.SIGKILL)


OF_THE_HOST = {"code of the server", "homes", "abstract socket"}
"""What mechanism UID leaves, where everybody may read it: docs/confinement.md, "What each does not hold"."""


def test_a_hostile_command_gets_nothing(ground):
    said, ended = ground.run(ground.python, "-c", PROGRAM, str(ROOT), str(ground.state), str(os.getpid()), "root")
    assert ended[:2] == ["completed", 0], (said, ended)
    got = set(json.loads(said))
    assert got <= (OF_THE_HOST if ground.mechanism == UID else set())


def test_a_command_has_its_workspace_its_artifacts_and_the_examples(ground):
    line = f"echo a > b && echo c > {ground.state}/artifacts/7/d && head -c 1 {ROOT}/examples/digits.yaml >/dev/null && pwd"
    said, ended = ground.run("sh", "-c", line)
    assert ended == ["completed", 0, "", []], said
    assert f"{ground.state}/workspaces/laptop" in said
    assert (ground.state / "workspaces" / "laptop" / "b").read_text() == "a\n"
    assert (ground.state / "artifacts" / "7" / "d").read_text() == "c\n"


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("exit 3", ["failed", 3, "exit code 3"]),
        ("kill -9 $$", ["lost", -9, "killed by SIGKILL from outside"]),
        ("kill -11 $$", ["failed", -11, "killed by SIGSEGV"]),
        ("exit 137", ["failed", 137, "exit code 137"]),
    ],
)
def test_how_a_command_ended_is_told_exactly(ground, line, ended):
    assert ground.run("sh", "-c", line)[1][:3] == ended


def test_a_command_that_is_not_there_is_told_as_such(ground):
    assert ground.run("no-such-program")[1] == ["failed", None, "command not found: no-such-program", []]
    assert ground.run("/etc/passwd")[1][2] == "the command cannot be started: /etc/passwd: Permission denied"


def test_nothing_that_has_hidden_itself_outlives_the_command(ground):
    said, ended = ground.run(ground.python, "-c", HIDER, "0")
    assert (said, ended[:2], ended[3]) == ("hidden", ["completed", 0], [])
    assert ground.working() == []


@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGKILL], ids=["cancelled", "runner killed"])
def test_nothing_that_has_hidden_itself_outlives_a_cancel_or_its_runner(ground, how):
    runner = ground.start(ground.python, "-c", HIDER, "600")
    assert runner.stdout.readline() == "hidden\n"
    assert len(ground.working()) >= 2
    runner.send_signal(how)
    runner.wait(SHORT_S)
    runner.stdout.close()
    until(lambda: not ground.working(), SHORT_S, lambda: f"{ground.working()} live")


def test_the_next_runner_ends_what_a_killed_one_left(ground):
    runner = ground.start("sh", "-c", "echo begun; exec sleep 600")
    assert runner.stdout.readline() == "begun\n"
    end_attempts(str(ground.state), {7})
    runner.wait(SHORT_S)
    runner.stdout.close()
    assert ground.working() == []


LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('itself')"


def test_without_a_network_a_command_reaches_only_itself(ground):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        reach = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('reached')"
        assert ground.run(ground.python, "-c", reach)[0] == "reached"
        if ground.mechanism == UID:
            return  # agents.tools.confining refuses such a command
        said, ended = ground.run(ground.python, "-c", reach, network=False)
        assert ended[0] == "failed"
        assert "reached" not in said
    assert ground.run(ground.python, "-c", LISTEN, network=False)[0] == "itself"


def test_walls_that_are_asked_for_and_missing_are_an_error(tmp_path, monkeypatch):
    from agents.devices import confinement

    monkeypatch.setenv("PATH", str(tmp_path))
    confinement._bubblewrap_options.cache_clear()
    try:
        with pytest.raises(ConfinementMissing, match=r"ORRERY_CONFINEMENT is bubblewrap, .*: bwrap is not installed"):
            find_confinement(BUBBLEWRAP, tmp_path)
        assert find_confinement("auto", tmp_path).reasons[0] == "bubblewrap: bwrap is not installed"
    finally:
        confinement._bubblewrap_options.cache_clear()


def test_walls_that_let_something_through_do_not_count(tmp_path, monkeypatch):
    """As where the system's folders show what must be hidden."""
    from agents.devices import confinement

    monkeypatch.setattr(confinement, "confine_command", lambda argv, walls, workspace, memory_bytes, status: list(argv))
    found = find_confinement("auto", tmp_path)
    assert found.mechanism == NONE
    assert [reason for reason in found.reasons if "it does not hold" in reason]
