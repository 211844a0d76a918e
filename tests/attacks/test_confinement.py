"""What a hostile command gets behind each kind of walls that this machine can put up, started by root and by nobody."""

import json
import signal

import pytest

from agents.devices import end_attempts
from agents.devices.confinement import BUBBLEWRAP, NONE, UID, ConfinementMissing, find_confinement
from tests.attacks.ground import KINDS, OF_THE_HOST, PATIENCE_S, ROOT, RUNNER_OF_COMMANDS, laid_out, name_kind
from tests.project.installation import until

pytestmark = pytest.mark.attack

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


@pytest.fixture(params=KINDS, ids=name_kind)
def ground(request):
    with laid_out(request.param, RUNNER_OF_COMMANDS) as made:
        yield made


def test_a_hostile_command_gets_nothing(ground):
    said, ended = ground.run(*ground.break_out())
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
    runner.wait(PATIENCE_S)
    runner.stdout.close()
    until(lambda: not ground.working(), PATIENCE_S, lambda: f"{ground.working()} live")


def test_the_next_runner_ends_what_a_killed_one_left(ground):
    runner = ground.start("sh", "-c", "echo begun; exec sleep 600")
    assert runner.stdout.readline() == "begun\n"
    end_attempts(str(ground.state), {7})
    runner.wait(PATIENCE_S)
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
        said, ended = ground.run("--alone", ground.python, "-c", reach)
        assert ended[0] == "failed"
        assert "reached" not in said
    assert ground.run("--alone", ground.python, "-c", LISTEN)[0] == "itself"


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
