"""A command on this host: what it sees, what it tells, how it ends."""

import asyncio
import os
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

from agents.devices import CommandLimits, launcher
from agents.devices.processes import list_pids, read_process

# Says its pid, and sleeps far longer than any test takes.
SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


async def test_a_command_that_ends_well_is_completed(run):
    outcome = await run(["true"])
    assert (outcome.outcome, outcome.exit_code, outcome.error, outcome.survivors) == ("completed", 0, "", ())


async def test_the_last_line_of_standard_output_is_the_result(python):
    outcome = await python("print('working'); print('{\"accuracy\": 0.92}')")
    assert outcome.result == {"accuracy": 0.92}


async def test_a_last_line_that_is_no_json_is_no_result(run):
    assert (await run(["echo", "done"])).result is None


async def test_standard_error_is_never_a_result(python):
    outcome = await python("import sys; print(1); print(2, file=sys.stderr)")
    assert outcome.result == 1


async def test_a_failed_command_keeps_its_result_and_says_what_it_wrote_last(python, printed):
    outcome = await python("import sys; print('{\"at\": 3}'); print('no such data', file=sys.stderr); sys.exit(2)")
    assert (outcome.outcome, outcome.exit_code, outcome.result) == ("failed", 2, {"at": 3})
    assert outcome.error == "exit code 2: no such data"
    assert sorted("".join(printed).splitlines()) == ["no such data", '{"at": 3}']


async def test_a_command_that_a_signal_ends_names_the_signal(python):
    outcome = await python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (outcome.outcome, outcome.exit_code, outcome.error) == ("failed", -11, "killed by SIGSEGV")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGPIPE", "SIGUSR1"])
async def test_a_program_that_breaks_has_failed(python, name):
    outcome = await python(
        f"import os, signal; signal.signal(signal.{name}, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})"
    )
    assert (outcome.outcome, outcome.error) == ("failed", f"killed by {name}")


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
async def test_a_command_that_neither_it_nor_its_runner_has_ended_is_lost(run, name):
    """It cannot be seen who sent the signal: the operator, the machine short of memory, `up`, or the command itself."""
    outcome = await run(["sh", "-c", f"echo said; kill -{name.removeprefix('SIG')} $$"])
    assert (outcome.outcome, outcome.exit_code) == ("lost", -getattr(signal, name))
    assert outcome.error == f"killed by {name} from outside: said"


@pytest.mark.parametrize("generation", [0, 1])
async def test_a_command_whose_walls_are_killed_from_outside_is_lost(run, walls, generation):
    """What stood in front of it has told nothing of its end: neither its 137, as of a shell, nor its 0 is the command's."""
    if walls is None:
        pytest.skip("nothing stands in front of it")
    said, before = asyncio.Event(), set(list_pids())
    command = asyncio.create_task(run(["sh", "-c", "echo said; exec sleep 600"], on_output=lambda _: said.set()))
    await said.wait()
    began = [found for pid in list_pids() if pid not in before and (found := read_process(pid))]
    frame = [found.pid for found in began if found.parent == os.getpid() and found.pid == found.session]
    for _ in range(generation):
        frame = [pid for pid in list_pids() if (found := read_process(pid)) and found.parent == frame[0]]
    (front,) = frame
    os.kill(front, signal.SIGKILL)
    outcome = await command
    assert (outcome.outcome, outcome.exit_code, outcome.error) == ("lost", None, "its exit code is not known: said")


@pytest.fixture
def broken_launcher(tmp_path, monkeypatch):
    """It gets as far as the command, and no further."""
    program = Path(launcher.__file__).read_text()
    broken = tmp_path / "launcher.py"
    broken.write_text(program.replace("if __name__", "def start_command(wanted):\n    sys.exit('no walls')\n\n\nif __name__"))
    monkeypatch.setattr("agents.devices.confinement._program", lambda: [sys.executable, "-I", "-S", str(broken)])


async def test_a_command_whose_walls_cannot_be_put_up_has_failed(run, walls, broken_launcher):
    if walls is None:
        pytest.skip("it has none")
    outcome = await run(["true"])
    assert (outcome.outcome, outcome.exit_code, outcome.error) == ("failed", 1, "exit code 1: no walls")


async def test_what_a_command_makes_of_the_end_of_its_own_processes_is_its_own(run):
    outcome = await run(["sh", "-c", "sh -c 'kill -KILL $$'; exit $?"])
    assert (outcome.outcome, outcome.exit_code) == ("failed", 137)


async def test_output_is_told_before_the_command_ends(python, tmp_path):
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    told = []

    def answer(text):
        told.append(text)
        if "first" in text:
            os.close(os.open(seen, os.O_WRONLY))

    outcome = await python(f"print('first'); open({str(seen)!r}).read(); print('second')", on_output=answer)
    assert outcome.outcome == "completed"
    assert "".join(told) == "first\nsecond\n"


async def test_a_character_is_never_parted_and_other_bytes_are_replaced(python, printed):
    program = "import sys; out = sys.stdout.buffer; out.write(b'\\xc3'); out.flush(); out.write(b'\\xa9 \\xff \\x00\\n')"
    await python(program)
    assert "".join(printed) == "é \ufffd \ufffd\n"


async def test_a_command_sees_a_clean_environment(run, printed, monkeypatch, tmp_path, instance):
    monkeypatch.setenv("ORRERY_SECRET_KEY", "secret")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "project.settings")
    await run(["env"], env={"PYTHONPATH": "/somewhere"}, path="/usr/bin:/bin")
    seen = dict(line.split("=", 1) for line in "".join(printed).splitlines())
    workspace = str(tmp_path / "workspace")
    assert seen == {
        "PATH": "/usr/bin:/bin",
        "HOME": workspace,
        "TMPDIR": f"{workspace}/.tmp",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": "/somewhere",
        "ORRERY_ATTEMPT": "7",
        "ORRERY_INSTANCE": instance,
    }


async def test_a_device_cannot_change_whose_attempt_a_command_is(run, printed):
    await run(["sh", "-c", "echo $ORRERY_ATTEMPT"], env={"ORRERY_ATTEMPT": "8"})
    assert "".join(printed) == "7\n"


async def test_a_command_runs_in_a_workspace_for_this_user_only(run, printed, tmp_path):
    workspace = tmp_path / "devices" / "laptop"
    await run(["pwd"], workspace=workspace)
    assert "".join(printed) == f"{workspace}\n"
    assert stat.S_IMODE(workspace.stat().st_mode) == 0o700


async def test_a_command_has_a_session_of_its_own_and_nothing_to_read(python, printed):
    await python("import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '')")
    assert "".join(printed) == "True True\n"


async def test_a_command_inherits_no_open_file(run, printed, tmp_path):
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        await run(["sh", "-c", "ls -l /proc/$$/fd"])
    assert "secret" not in "".join(printed)


async def test_programs_are_found_in_the_path_given(run, printed, tmp_path):
    own = tmp_path / "python"
    own.write_text("#!/bin/sh\necho another interpreter\n")
    own.chmod(0o755)
    await run(["python"], path=f"{tmp_path}:/usr/bin:/bin")
    assert "".join(printed) == "another interpreter\n"


async def test_python_is_this_interpreter_by_default(run, printed):
    await run(["python", "-c", "import sys; print(sys.prefix)"])
    assert "".join(printed) == f"{sys.prefix}\n"


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "the command is empty"),
        ([""], "the command is empty"),
        (["echo", "a\0b"], "the command holds a NUL character"),
        (["echo", 3], "the command's arguments must be texts"),
        (["no-such-program", "--help"], "command not found: no-such-program"),
        (["/etc/passwd"], "the command cannot be started: /etc/passwd: Permission denied"),
    ],
)
async def test_a_command_that_cannot_start_fails_and_says_why(run, argv, error):
    outcome = await run(argv)
    assert (outcome.outcome, outcome.exit_code, outcome.error) == ("failed", None, error)


async def test_a_workspace_that_is_a_file_is_named(run, tmp_path):
    (tmp_path / "file").touch()
    outcome = await run(["true"], workspace=tmp_path / "file")
    assert outcome.error == f"the command cannot be started: {tmp_path / 'file'}: File exists"


@pytest.mark.parametrize("env", [{"A": "b\0c"}, {"A=B": "c"}, {"A": 3}])
async def test_an_environment_that_cannot_be_set_fails_the_command(run, env):
    outcome = await run(["true"], env=env)
    assert outcome.outcome == "failed"
    assert outcome.error.startswith("the command cannot be started: ")


async def test_a_listener_that_breaks_ends_the_command_and_is_heard(python, gone):
    pids = []

    def broken(text):
        pids.extend(int(pid) for pid in text.split())
        raise RuntimeError("no room left")

    with pytest.raises(RuntimeError, match="no room left"):
        await python(SLEEPER, on_output=broken)
    assert gone(pids)


async def test_a_cancelled_command_is_gone_before_the_cancel_is_seen(python, gone):
    pids = []
    started = asyncio.Event()

    def told(text):
        pids.extend(int(pid) for pid in text.split())
        started.set()

    task = asyncio.create_task(python(SLEEPER, on_output=told))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pids)


async def test_a_second_cancel_does_not_leave_a_process_behind(python, gone):
    pids = []
    started = asyncio.Event()

    def told(text):
        pids.extend(int(pid) for pid in text.split())
        started.set()

    task = asyncio.create_task(python(SLEEPER, on_output=told))
    await started.wait()
    loop = asyncio.get_running_loop()
    task.cancel()
    loop.call_soon(task.cancel)
    loop.call_soon(loop.call_soon, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pids)


async def test_fifty_commands_at_once_need_no_thread_and_leave_no_handle(run):
    await run(["true"])
    threads, handles = threading.active_count(), len(os.listdir("/proc/self/fd"))
    most = []
    outcomes = await asyncio.gather(
        *(run(["echo", str(n)], attempt_id=n, on_output=lambda _: most.append(threading.active_count())) for n in range(1, 51))
    )
    assert [outcome.result for outcome in outcomes] == list(range(1, 51))
    assert max(most) == threads
    assert len(os.listdir("/proc/self/fd")) == handles


async def test_the_result_is_whole_when_much_is_printed_before_it(python):
    outcome = await python("print('x' * 3_000_000); print('[1, 2]')", limits=CommandLimits(output_bytes=4_000_000))
    assert (outcome.outcome, outcome.result) == ("completed", [1, 2])
