"""Processes are told apart by their start, and found by the attempt in their environment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.devices import end_attempts, is_same_process, process_start
from agents.devices.processes import UNREADABLE, AttemptMark, kill_process, read_mark, read_process, shared_out_bytes

ROOT = Path(__file__).resolve().parents[3]
# A process that runs one command until it is killed; the command prints its pid, a child's and one's that left the session.
RUNNER = """
import asyncio, sys
from pathlib import Path
from agents.devices import CommandLimits, run_command
asyncio.run(run_command(
    ["sh", "-c", "echo $$; sleep 600 & echo $!; setsid sh -c 'echo $$; sleep 600' & wait"],
    workspace=Path(sys.argv[1]), attempt_id=int(sys.argv[2]), instance=sys.argv[1], limits=CommandLimits(), timeout=None,
    on_output=lambda text: print(text, end="", flush=True)))
"""


@pytest.fixture
def orphans(tmp_path):
    """Pids of a command's processes whose runner was killed, for each attempt id given."""

    def orphans(attempt_id):
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(tmp_path), str(attempt_id)], cwd=ROOT, stdout=subprocess.PIPE
        )
        with runner.stdout as told:
            pids = [int(told.readline()) for _ in range(3)]
        runner.send_signal(signal.SIGKILL)
        runner.wait()
        return pids

    yield orphans
    end_attempts(str(tmp_path), range(1, 10))


@pytest.fixture
def start():
    """Starts a process and waits until it is in its program: for an instant before that, its environment cannot be read.

    It ends with the test.
    """
    children = []

    def start(seen, **options):
        program = ["/bin/sh", "-c", "echo begun; read line"]
        child = subprocess.Popen(program, env=seen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        children.append(child)
        child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def test_what_a_killed_runner_left_is_ended_by_another_process(orphans, instance, gone):
    pids = orphans(1)
    assert all(process_start(pid) for pid in pids)
    assert end_attempts(instance, {1, 2}) == {1}
    assert gone(pids)


def test_other_attempts_and_installations_are_left_alone(orphans, instance, gone):
    pids = orphans(1)
    assert end_attempts(instance, {2}) == set()
    assert end_attempts("another", {1}) == set()
    assert all(process_start(pid) for pid in pids)


def test_no_attempts_are_nothing_to_end(instance):
    assert end_attempts(instance, set()) == set()


def test_one_in_the_session_of_an_attempt_is_ended_though_its_environment_is_empty(instance, tmp_path, gone):
    seen = {"ORRERY_ATTEMPT": "5", "ORRERY_INSTANCE": instance, "PATH": os.defpath}
    command = ["sh", "-c", "(env -i sh -c 'echo $$; exec sleep 600' &); exec sleep 600"]
    leader = subprocess.Popen(command, env=seen, stdout=subprocess.PIPE, start_new_session=True)
    with leader.stdout as told:
        pids = [leader.pid, int(told.readline())]
    assert end_attempts(instance, {5}) == {5}
    assert gone(pids)
    assert leader.wait() == -signal.SIGKILL


def test_a_process_without_an_environment_is_not_waited_for_long(instance, start):
    child = start({})
    assert end_attempts(instance, {1}) == set()
    assert child.poll() is None


def test_a_process_is_itself_until_it_ends(start):
    child = start({})
    began = process_start(child.pid)
    assert is_same_process(child.pid, began)
    assert not is_same_process(child.pid, began - 1)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_same_process(child.pid, began), "a zombie has ended"
    assert read_process(child.pid).zombie
    child.wait()
    assert process_start(child.pid) is None
    assert not is_same_process(child.pid, None)


def test_a_pid_taken_over_by_another_process_is_not_killed(start):
    child = start({})
    kill_process(read_process(child.pid)._replace(start=1))
    assert child.poll() is None
    kill_process(read_process(child.pid))
    assert child.wait() == -signal.SIGKILL


def test_a_process_with_a_wild_name_is_read_right(tmp_path, start):
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sh")
    child = start({}, executable=program, start_new_session=True)
    assert "a) S 1 (b" in Path(f"/proc/{child.pid}/stat").read_text()
    found = read_process(child.pid)
    assert (found.parent, found.group, found.session) == (os.getpid(), child.pid, child.pid)


def test_a_mark_is_read_from_the_environment(start):
    child = start({"ORRERY_ATTEMPT": "12", "ORRERY_INSTANCE": "here"})
    assert read_mark(child.pid) == AttemptMark("here", 12)
    child.kill()
    child.wait()
    assert read_mark(child.pid) == UNREADABLE


def test_an_attempt_that_is_no_number_is_no_mark(start):
    assert read_mark(start({"ORRERY_ATTEMPT": "x1", "ORRERY_INSTANCE": "here"}).pid) is None


def test_memory_that_is_shared_out_is_at_most_the_resident_memory():
    assert 0 < shared_out_bytes(os.getpid()) <= read_process(os.getpid()).resident_bytes * 1.1
