"""`up`'s own logic, with real processes that stand for the web server and the clusters."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from agents.devices.host import boot_identity, process_start
from agents.models import Runner
from project.up import children
from project.up.children import SupervisedChild
from project.up.instance import AlreadyUp, Instance, InstanceRecord
from project.up.processes import MARK, Identity, end_processes, find_marked, in_session, is_alive, read_processes, send_signal
from project.up.retired import INTERRUPTED_S, SUCCESSORS_S, TOLD_S, RetiredRunners
from project.up.supervisor import ChildBroken, PortTaken, Supervisor, address_of, children_of, refuse_taken_port
from project.up.watchdog import LivingProbe

WITHIN_S = 60.0
SLEEP = ["sleep", "600"]
DEAF = "trap '' TERM; touch \"$0\"; while :; do sleep 0.1; done"
"""It ignores SIGTERM from the moment on in which the file is there."""


def until(condition: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Wait for a condition, no longer than it takes."""
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it has not come true in time"
        pause.wait(0.01)


def identity(pid: int) -> Identity:
    return Identity(pid, process_start(pid))


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts processes that are gone after the test."""
    running: list[subprocess.Popen] = []

    def start(argv: list[str], **options) -> subprocess.Popen:
        running.append(subprocess.Popen(argv, **options))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def instance(tmp_path) -> Iterator[Instance]:
    taken = Instance(tmp_path)
    taken.take()
    yield taken
    taken.release()


HOLDER = """
import os, signal, sys
from pathlib import Path
from agents.devices.host import process_start
from project.up.instance import Instance, InstanceRecord
from project.up.processes import Identity
signal.signal(signal.SIGTERM, signal.SIG_IGN)
instance = Instance(Path(sys.argv[1]))
instance.take()
instance.write(InstanceRecord(Identity(os.getpid(), process_start()), ""))
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(started, tmp_path) -> Callable[[], subprocess.Popen]:
    """Another process that has the lock and does not mind SIGTERM."""

    def hold() -> subprocess.Popen:
        argv = [sys.executable, "-c", HOLDER, str(tmp_path)]
        process = started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=settings.BASE_DIR)
        assert process.stdout.readline() == "taken\n"
        return process

    return hold


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervise(instance, tmp_path, said) -> Iterator[Callable[..., Supervisor]]:
    """A supervisor of one child with this command line; whatever it has started is gone after the test."""

    def make(argv: list[str], stop_s: float = 5.0, probe=None) -> Supervisor:
        child = SupervisedChild("child", argv, {MARK: instance.mark}, tmp_path / "child.log", probe or LivingProbe(), stop_s)
        return Supervisor(instance, [child], said.append, "http://127.0.0.1:1/")

    yield make
    end_processes(lambda seen: find_marked(instance.mark, seen))


def running(supervisor: Supervisor) -> set[Identity]:
    return supervisor.children[0].remember(read_processes())


def tick(supervisor: Supervisor) -> Supervisor:
    supervisor.tick(time.monotonic())
    return supervisor


class TestProcesses:
    def test_a_process_that_took_over_a_pid_is_not_signalled(self, started):
        process = started(SLEEP)
        real = identity(process.pid)
        assert not send_signal(Identity(real.pid, real.start + 1), signal.SIGKILL)
        assert is_alive(real)

    def test_a_process_that_has_ended_and_waits_for_its_parent_is_not_alive(self, started):
        process = started(SLEEP)
        known = identity(process.pid)
        process.send_signal(signal.SIGKILL)
        until(lambda: not is_alive(known))
        assert process.returncode is None

    def test_orphans_are_found_by_their_session(self, started):
        parent = started(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
        until(lambda: len(in_session(parent.pid, read_processes())) == 2)
        parent.kill()
        parent.wait()
        (orphan,) = in_session(parent.pid, read_processes())
        assert end_processes(lambda seen: in_session(parent.pid, seen)) == {orphan}
        assert not is_alive(orphan)

    def test_a_mark_must_be_the_whole_value(self, started):
        process = started(SLEEP, env={**os.environ, MARK: "abc"})
        until(lambda: identity(process.pid) in find_marked("abc", read_processes()))
        assert find_marked("ab", read_processes()) == set()


class TestInstance:
    def test_a_second_up_is_refused_with_the_address_of_the_first(self, instance, tmp_path):
        instance.write(InstanceRecord(identity(os.getpid()), "http://127.0.0.1:8123/"))
        with pytest.raises(AlreadyUp, match=r"up on this database already at http://127.0.0.1:8123/ \(process \d+\)"):
            Instance(tmp_path).take()

    def test_the_lock_goes_with_its_process(self, tmp_path, holder):
        process = holder()
        with pytest.raises(AlreadyUp):
            Instance(tmp_path).take()
        process.kill()
        process.wait()
        following = Instance(tmp_path)
        following.take()
        following.release()

    def test_one_that_is_to_be_replaced_is_asked_and_then_killed(self, tmp_path, holder, monkeypatch):
        process = holder()
        monkeypatch.setattr("project.up.instance.REPLACE_S", 0.2)
        following = Instance(tmp_path)
        following.take(replace=True)
        following.release()
        assert process.wait(WITHIN_S) == -signal.SIGKILL

    def test_what_was_recorded_is_ended(self, instance, started):
        left = started(SLEEP)
        known = identity(left.pid)
        instance.write(InstanceRecord(Identity(1, 0), "", {known}))
        assert instance.end_leftovers() == {known}
        assert left.wait(WITHIN_S) == -signal.SIGKILL

    def test_a_recorded_pid_that_another_process_has_now_is_left_alone(self, instance, started):
        innocent = started(SLEEP)
        instance.write(InstanceRecord(Identity(1, 0), "", {Identity(innocent.pid, process_start(innocent.pid) - 1)}))
        assert instance.end_leftovers() == set()
        assert innocent.poll() is None

    def test_what_carries_the_mark_is_ended_without_a_record(self, instance, started):
        left = started(SLEEP, env={**os.environ, MARK: instance.mark})
        other = started(SLEEP, env={**os.environ, MARK: "another"})
        until(lambda: identity(left.pid) in find_marked(instance.mark, read_processes()))
        assert {ended.pid for ended in instance.end_leftovers()} == {left.pid}
        assert other.poll() is None

    def test_a_record_from_before_the_last_boot_names_nobody(self, instance, tmp_path, started):
        innocent = started(SLEEP)
        instance.write(InstanceRecord(Identity(1, 0), "", {identity(innocent.pid)}))
        content = json.loads((tmp_path / "up.json").read_text())
        assert content["host"] == boot_identity()
        (tmp_path / "up.json").write_text(json.dumps({**content, "host": "elsewhere/00000000"}))
        assert instance.end_leftovers() == set()
        assert innocent.poll() is None

    def test_a_damaged_record_is_like_none(self, instance, tmp_path):
        for damage in (
            "",
            "{",
            "[]",
            '{"host": 1}',
            json.dumps({"host": boot_identity(), "up": 3, "address": "", "processes": []}),
        ):
            (tmp_path / "up.json").write_text(damage)
            assert instance.record() is None


class TestChildren:
    def test_a_child_that_died_is_started_again(self, supervise, said):
        supervisor = supervise(SLEEP)
        until(lambda: running(tick(supervisor)))
        (first,) = running(supervisor)
        send_signal(first, signal.SIGKILL)
        until(lambda: first not in running(tick(supervisor)) and running(supervisor))
        assert "child: ended with signal 9; it will be started again" in said
        assert "child: next start in 0.1 s" in said

    def test_orphans_of_a_child_are_gone_before_it_starts_again(self, supervise):
        supervisor = supervise(["sh", "-c", "sleep 600 & setsid sleep 600 & wait"])
        until(lambda: len(running(tick(supervisor))) == 3)
        child = supervisor.children[0]
        before = running(supervisor)
        send_signal(identity(child.process.pid), signal.SIGKILL)
        until(lambda: tick(supervisor) and child.process is None)
        assert [identity for identity in before if is_alive(identity)] == []

    def test_all_processes_are_on_disk_while_they_run(self, supervise, instance):
        supervisor = supervise(["sh", "-c", "sleep 600 & wait"])
        until(lambda: len(running(tick(supervisor))) == 2)
        until(lambda: tick(supervisor) and instance.record().processes == running(supervisor))
        assert instance.record().up == identity(os.getpid())

    def test_the_last_lines_of_a_dead_child_are_shown(self, supervise, said):
        supervisor = supervise(["sh", "-c", "echo the disk is full >&2; exit 3"])
        until(lambda: tick(supervisor) and "  | the disk is full" in said)
        assert "child: ended with code 3; it will be started again" in said

    def test_a_child_that_never_works_is_given_up(self, supervise, tmp_path, monkeypatch):
        monkeypatch.setattr(children, "FIRST_DELAY_S", 0.001)
        supervisor = supervise(["false"], probe=NeverReady())
        with pytest.raises(ChildBroken, match=r"child does not start; its output is in .*child\.log"):
            until(lambda: not tick(supervisor))
        assert supervisor.children[0].falls == children.TRIES

    def test_the_delay_doubles_up_to_its_bound_and_is_forgotten_after_steady_work(self, supervise):
        child = supervise(SLEEP).children[0]
        delays = [child.fell(now=0.0) for _ in range(11)]
        assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]
        child.was_ready, child.started_at = True, 100.0
        assert child.fell(now=100.0 + children.STEADY_S + 1) == 0.1

    def test_the_log_of_the_run_before_is_kept(self, supervise, tmp_path):
        child = supervise(SLEEP).children[0]
        child.log.write_text("before")
        child.begin_log()
        assert (child.log.read_text(), (tmp_path / "child.log.1").read_text()) == ("", "before")

    def test_a_log_does_not_grow_without_bound(self, supervise, tmp_path, monkeypatch):
        monkeypatch.setattr(children, "LOG_BYTES", 100)
        child = supervise(SLEEP).children[0]
        child.log.write_text("x" * 101)
        child.bound_log()
        assert (child.log.read_text(), (tmp_path / "child.log.1").read_text()) == ("", "x" * 101)


RUNNERS = 30
RECORDS = f"""
for n in $(seq {RUNNERS}); do
    (env -i setsid -w sleep 600; echo "runner $n saw the end of its command" >>"$0") &
    echo begun >>"$0.begun"
done
wait
"""
"""Stands for a cluster: runners in its session, each with a command in a session of its own, whose end it records."""


class TestWhoEndsFirst:
    """A runner that saw the end of its command would record it as the command's own."""

    @pytest.fixture
    def records(self, tmp_path) -> Path:
        return tmp_path / "records"

    def commands(self) -> list[Identity]:
        return [
            Identity(found.pid, found.start) for found in read_processes().values() if _argv(found.pid) == b"sleep\x00600\x00"
        ]

    @pytest.fixture
    def cluster(self, supervise, records) -> Iterator[Supervisor]:
        supervisor = supervise(["sh", "-c", RECORDS, str(records)])
        before = set(self.commands())
        until(lambda: tick(supervisor) and len(set(self.commands()) - before) == RUNNERS)
        yield supervisor
        end_processes(lambda seen: set(self.commands()) - before)

    def test_in_a_child_that_is_killed(self, cluster, records):
        cluster.children[0].kill()
        assert not records.exists()
        assert running(cluster) == set()

    def test_in_what_an_earlier_up_has_left(self, cluster, records, instance):
        cluster._look(time.monotonic())
        instance.end_leftovers()
        assert not records.exists()
        assert [one for one in running(cluster) if is_alive(one)] == []


def _argv(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


class Working(LivingProbe):
    """Of a cluster whose processes, but for the main one, are runners that work on. It is ready when a test says so."""

    def started(self, now: float) -> None:
        self.ready = False

    def at_work(self, cluster: set[Identity]) -> set[Identity]:
        return {one for one in cluster if _argv(one.pid).startswith(b"sleep")}


def row_of(runner: Identity) -> None:
    """The runner's row, which says that it has not ended."""
    now = timezone.now()
    Runner.objects.create(
        host=boot_identity(), pid=runner.pid, pid_start=runner.start, files="", started_at=now, renewed_at=now
    )


@pytest.mark.django_db
class TestRetired:
    """What works goes on beside the cluster that is started in its place."""

    @pytest.fixture
    def fallen(self, supervise) -> tuple[Supervisor, Identity]:
        """A supervisor whose cluster has lost its main process, and the runner that is left of it."""
        supervisor = supervise(["sh", "-c", "sleep 600 & wait"], probe=Working())
        until(lambda: len(running(tick(supervisor))) == 2)
        child = supervisor.children[0]
        main = identity(child.process.pid)
        (runner,) = running(supervisor) - {main}
        until(lambda: supervisor.children[0].probe.at_work({runner}))
        row_of(runner)
        send_signal(main, signal.SIGKILL)
        until(lambda: child.exit_code() is not None)
        return supervisor, runner

    def test_a_runner_works_on_until_there_are_others(self, fallen):
        supervisor, runner = fallen
        child = supervisor.children[0]
        until(lambda: tick(supervisor) and child.retired and child.process is not None)
        tick(supervisor)
        assert is_alive(runner)
        child.probe.ready = True
        until(lambda: tick(supervisor) and not child.retired)
        assert not is_alive(runner)

    def test_one_that_does_not_come_to_an_end_is_told_again_and_killed(self, started, tmp_path):
        deaf = started(["sh", "-c", DEAF, str(tmp_path / "deaf")])
        until((tmp_path / "deaf").exists)
        known = identity(deaf.pid)
        row_of(known)
        group = RetiredRunners({known}, now=0.0)
        assert group.look(1.0, True)
        assert group.look(1.0 + TOLD_S, True)
        assert deaf.poll() is None
        group.look(1.0 + TOLD_S + INTERRUPTED_S, True)
        assert deaf.wait(WITHIN_S) == -signal.SIGKILL
        assert not group.look(2.0 + TOLD_S + INTERRUPTED_S, True)

    def test_without_successors_it_is_told_in_the_end(self, started):
        process = started(SLEEP)
        known = identity(process.pid)
        row_of(known)
        group = RetiredRunners({known}, now=0.0)
        assert group.look(SUCCESSORS_S - 1, False)
        assert process.poll() is None
        group.look(SUCCESSORS_S, False)
        assert process.wait(WITHIN_S) == -signal.SIGTERM

    def test_a_worker_whose_runner_has_ended_is_killed(self, started):
        process = started(SLEEP)
        RetiredRunners({identity(process.pid)}, now=0.0).look(1.0, False)
        assert process.wait(WITHIN_S) == -signal.SIGKILL


class NeverReady(LivingProbe):
    def started(self, now: float) -> None:
        self.ready = False


class TestStopping:
    def test_one_signal_ends_everything(self, supervise, instance, said):
        supervisor = supervise(["sh", "-c", "sleep 600 & setsid sleep 600 & wait"], stop_s=0.2)
        seen: set[Identity] = set()

        def interrupt_when_all_run() -> None:
            seen.update(running(supervisor))
            if len(seen) == 3:
                os.kill(os.getpid(), signal.SIGTERM)

        assert supervisor.run(interrupt_when_all_run) == 0
        assert len(seen) == 3
        assert [identity for identity in seen if is_alive(identity)] == []
        assert instance.record() is None
        assert said[-1].startswith("Stopped after")

    def test_an_exit_code_ends_everything(self, supervise):
        supervisor = supervise(SLEEP)
        assert supervisor.run(lambda: 3 if running(supervisor) else None) == 3
        assert running(supervisor) == set()

    def test_a_child_that_does_not_stop_is_killed_when_its_time_is_over(self, supervise, tmp_path):
        supervisor, deaf = supervise(["sh", "-c", DEAF, str(tmp_path / "deaf")], stop_s=0.5), tmp_path / "deaf"
        began = time.monotonic()
        assert supervisor.run(lambda: 0 if deaf.exists() else None) == 0
        assert time.monotonic() - began >= 0.5
        assert running(supervisor) == set()

    def test_a_second_signal_ends_everything_at_once(self, supervise, said, tmp_path):
        supervisor, deaf = supervise(["sh", "-c", DEAF, str(tmp_path / "deaf")], stop_s=600.0), tmp_path / "deaf"
        again = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

        def interrupt() -> None:
            if deaf.exists() and not again.ident:
                os.kill(os.getpid(), signal.SIGINT)
                again.start()

        supervisor.run(interrupt)
        assert running(supervisor) == set()

    def test_an_error_ends_everything_too(self, supervise):
        supervisor = supervise(SLEEP)

        def fail() -> None:
            if running(supervisor):
                raise ValueError("a mistake")

        with pytest.raises(ValueError, match="a mistake"):
            supervisor.run(fail)
        assert running(supervisor) == set()

    def test_the_handlers_of_before_are_back_afterwards(self, supervise):
        before = signal.getsignal(signal.SIGTERM)
        supervise(SLEEP).run(lambda: 0)
        assert signal.getsignal(signal.SIGTERM) is before


class TestAddress:
    def test_a_taken_port_is_refused_by_name(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(PortTaken, match=f"cannot listen on 127.0.0.1 port {port}: .*; choose another with --port"):
                refuse_taken_port("127.0.0.1", port)
        refuse_taken_port("127.0.0.1", port)

    @pytest.mark.parametrize(
        ("bind", "address"),
        [("127.0.0.1", "http://127.0.0.1:80/"), ("0.0.0.0", "http://localhost:80/"), ("::1", "http://[::1]:80/")],
    )
    def test_the_address_is_one_a_browser_can_open(self, bind, address):
        assert address_of(bind, 80) == address


def test_logs_are_in_the_state_folder(instance):
    logs = {child.name: child.log for child in children_of(instance, "127.0.0.1", 1, 2)}
    assert logs == {name: Path(settings.STATE_DIR) / "logs" / f"{name}.log" for name in ("web", "jobs", "runners")}


@pytest.mark.parametrize(
    ("said", "bind", "address"),
    [
        (None, "127.0.0.1", "http://127.0.0.1:8123/mcp"),
        (None, "0.0.0.0", "http://localhost:8123/mcp"),
        ("https://orrery.example/mcp", "127.0.0.1", "https://orrery.example/mcp"),
        ("", "127.0.0.1", ""),
    ],
)
def test_coding_agents_find_the_mcp_server_of_this_installation_unless_the_setting_says_another(
    monkeypatch, tmp_path, said, bind, address
):
    monkeypatch.delenv("ORRERY_MCP_URL", raising=False)
    if said is not None:
        monkeypatch.setenv("ORRERY_MCP_URL", said)
    children = children_of(Instance(tmp_path), bind, 8123, 2)
    assert {child.env["ORRERY_MCP_URL"] for child in children} == {address}
