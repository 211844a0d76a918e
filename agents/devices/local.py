"""Commands on this host: an argument list, run in a workspace, in a clean environment, under limits, ended as a whole.

Pure asyncio. A child is awaited by its pidfd on the running loop: there is no thread for it, and no child watcher is needed.
"""

import asyncio
import functools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agents.devices.limits import MB, Limits, Watched, sampler
from agents.devices.output import Output
from agents.devices.processes import ATTEMPT, INSTANCE, Mark, Process, kill, kill_group, pauses, process
from agents.transient import kind_of

READ_BYTES = 1 << 16
DRAIN_READS = 64
"""Of a stream after the command's end: a pipe holds at most 1 MB, more would come from a process that cannot be ended."""
KILL_WAIT_S = 5.0
"""A process that SIGKILL has not ended by then hangs in the kernel."""
TEMPORARY = ".tmp"
DEFAULT_PATH = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommandOutcome:
    """How a command ended.

    `outcome` is completed (exit code 0), failed, timeout or limit. `result` is the JSON value on the last line of standard
    output, None when there is none. `error` says what went wrong, empty when nothing did. `exit_code` is None when the command
    never started, negative for a signal. `survivors` are pids that could not be ended: the attempt still runs. `text` is the
    last of what it printed, `fingerprint` stands for all of that, None when it never started. `error_kind` is empty for a
    command that ended by itself; else "timeout", "bad_arguments", or why it could not be started (agents.transient).
    """

    outcome: str
    exit_code: int | None = None
    result: Any = None
    error: str = ""
    survivors: tuple[int, ...] = ()
    text: str = ""
    fingerprint: str | None = None
    error_kind: str = ""


def environment(workspace: Path, attempt_id: int, instance: str, path: str, extra: Mapping[str, str]) -> dict[str, str]:
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


def _mistake(argv: Sequence[str]) -> str:
    """What is wrong with an argument list, empty when nothing is."""
    if not argv or not argv[0]:
        return "the command is empty"
    if not all(isinstance(argument, str) for argument in argv):
        return "the command's arguments must be texts"
    return "the command holds a NUL character" if any("\0" in argument for argument in argv) else ""


def _refused(error: Exception, argv: Sequence[str]) -> CommandOutcome:
    """Why the command could not be started, for its user."""
    kind = kind_of(error)
    if isinstance(error, FileNotFoundError):
        return CommandOutcome("failed", error=f"command not found: {argv[0]}", error_kind=kind)
    reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return CommandOutcome(
        "failed", error=f"the command cannot be started: {reason}", error_kind="" if kind == "broken" else kind
    )


def _prepared(workspace: Path) -> Path:
    """The workspace as an absolute path, with its folder for temporary files; both exist now."""
    workspace.parent.mkdir(parents=True, exist_ok=True)
    workspace.mkdir(mode=0o700, exist_ok=True)
    (workspace / TEMPORARY).mkdir(mode=0o700, exist_ok=True)
    return workspace.absolute()


class Child(NamedTuple):
    """A child that has just been started: its streams, when it began, and the handle that tells its end."""

    popen: subprocess.Popen
    start: int
    pidfd: int


def _spawn(argv: Sequence[str], workspace: Path, seen: Mapping[str, str]) -> Child:
    """The child, leader of a session of its own. Raises OSError, ValueError or TypeError; then nothing runs."""
    child = subprocess.Popen(
        list(argv),
        cwd=workspace,
        env=seen,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    try:
        began = process(child.pid)  # a zombie at the least, as nobody has reaped it
        return Child(child, began.start if began else 0, os.pidfd_open(child.pid))
    except OSError:  # no file handle left: what nobody watches must not run
        kill_group(child.pid)
        child.communicate()
        raise


class Running:
    """A command between its start and its end."""

    def __init__(self, child: Child, mark: Mark, limits: Limits, on_output: Callable[[str], None]):
        self._loop = asyncio.get_running_loop()
        self._child = child.popen
        self._pidfd = child.pidfd
        self._exit_code: int | None = None
        self._output = Output(on_output, limits.output_bytes)
        self._limits = limits
        self._stopped: tuple[str, str] | None = None
        self._fault: Exception | None = None
        self._streams: dict[str, Any] = {"stdout": child.popen.stdout, "stderr": child.popen.stderr}
        self._watched = Watched(child.popen.pid, child.start, mark, limits, functools.partial(self.stop, "limit"))
        self._patience: asyncio.TimerHandle | None = None
        self.exited: asyncio.Future[None] = self._loop.create_future()

    def watch(self) -> None:
        """From now on its output, its end and its limits are seen."""
        self._loop.add_reader(self._pidfd, self._on_exit)
        for name, stream in self._streams.items():
            os.set_blocking(stream.fileno(), False)
            self._loop.add_reader(stream.fileno(), self._read, name)
        sampler().watch(self._watched)

    def stop(self, outcome: str, error: str) -> None:
        """Kill the group; the first reason given is the outcome. What has left the group is ended by `end`."""
        self._stopped = self._stopped or (outcome, error)
        self._patience = self._patience or self._loop.call_later(KILL_WAIT_S, self._on_exit)
        self._kill_group()

    def _kill_group(self) -> None:
        # Its leader is reaped last, so until then the id cannot be another group's.
        if self._pidfd >= 0:
            kill_group(self._child.pid)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        if not self.exited.done():
            self.exited.set_result(None)

    def _read(self, name: str) -> bool:
        """Take what one stream holds; False when it is empty for now or has ended."""
        try:
            piece = os.read(self._streams[name].fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        try:
            if not piece:
                self._close(name)
            elif not self._output.put(name, piece):
                self.stop("limit", f"output {self._limits.output_bytes / MB:g} MB exceeded")
                self._close(name)
        except Exception as error:  # the caller's on_output: raised to the caller by `end`
            self._fault = error
            self.stop("failed", "its output could not be taken")
            self._close(name, tell=False)
        return bool(piece) and name in self._streams

    def _close(self, name: str, tell: bool = True) -> None:
        stream = self._streams.pop(name)
        self._loop.remove_reader(stream.fileno())
        stream.close()
        if tell:
            self._output.end(name)

    async def end(self) -> CommandOutcome:
        """End everything the command started, take the last of its output and say how it ended. May be called again."""
        try:
            survivors = await self._end_processes()
            self._drain()
        finally:
            self._release()
        if self._fault is not None:
            raise self._fault
        return self._outcome(tuple(sorted(member.pid for member in survivors)))

    def _drain(self) -> None:
        for name in list(self._streams):
            for _ in range(DRAIN_READS):
                if not self._read(name):
                    break

    async def _end_processes(self) -> list[Process]:
        """Kill until none is left; those that SIGKILL does not end in KILL_WAIT_S."""
        deadline = self._loop.time() + KILL_WAIT_S
        for pause in pauses():
            self._kill_group()
            living = [member for member in sampler().look().get(self._watched, []) if not member.zombie]
            if not (living or sampler().unsure) or self._loop.time() > deadline:
                break
            for member in living:
                kill(member)
            await asyncio.sleep(pause)
        if living:
            log.error("processes %s of %s outlived SIGKILL", [member.pid for member in living], self._watched.mark)
        return living

    def _release(self) -> None:
        """Give back every handle and reap the child."""
        for name in list(self._streams):
            self._close(name)
        sampler().forget(self._watched)
        if self._pidfd < 0:
            return
        if self._patience is not None:
            self._patience.cancel()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        self._reap()

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        except ChildProcessError:  # reaped by somebody else: Popen would call that exit code 0
            self._child.returncode = 0
            return
        if pid:
            self._exit_code = self._child.returncode = os.waitstatus_to_exitcode(status)

    def _outcome(self, survivors: tuple[int, ...]) -> CommandOutcome:
        code = self._exit_code
        result = self._output.result()
        if self._stopped:
            outcome, error = self._stopped
        else:
            outcome, error = ("completed", "") if code == 0 else ("failed", self._failure(code))
        return CommandOutcome(
            outcome, code, result, error, survivors, self._output.text(), self._output.fingerprint(),
            error_kind="timeout" if outcome == "timeout" else "",
        )  # fmt: skip

    def _failure(self, code: int | None) -> str:
        if code is None:
            what = "its exit code is not known"
        elif code < 0:
            what = f"killed by {_signal_name(-code)}"
        else:
            what = f"exit code {code}"
        excerpt = self._output.excerpt()
        return f"{what}: {excerpt}" if excerpt else what


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


async def despite_cancels(work: asyncio.Future[Any]) -> BaseException | None:
    """Wait for `work`, which is bounded, however often the waiting task is cancelled meanwhile. What it raised, if it did."""
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue
    return work.exception()


async def run_command(
    argv: Sequence[str],
    *,
    workspace: Path,
    attempt_id: int,
    instance: str,
    limits: Limits,
    timeout: float | None,  # noqa: ASYNC109 - the command's, which is an outcome and not an error
    on_output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    path: str = DEFAULT_PATH,
) -> CommandOutcome:
    """Run `argv` in `workspace` (made if it is missing, for this user only) to its end and the end of all it started.

    `timeout` is in seconds and at most `limits.seconds`. `on_output` gets both streams' text while it runs, on this loop; what
    it raises ends the command and is raised here. `path` finds the programs. `env` comes on top of the clean environment, but
    not of its attempt and instance. What is wrong with a command is an outcome, never raised. A cancel kills, then propagates.
    """
    if mistake := _mistake(argv):
        return CommandOutcome("failed", error=mistake, error_kind="bad_arguments")
    try:
        home = _prepared(workspace)
        child = _spawn(argv, home, environment(home, attempt_id, instance, path, env or {}))
    except (OSError, ValueError, TypeError) as error:
        return _refused(error, argv)
    running = Running(child, Mark(instance, attempt_id), limits, on_output)
    running.watch()
    return await _to_its_end(running, limits.seconds if timeout is None else min(timeout, limits.seconds))


async def _to_its_end(running: Running, seconds: float) -> CommandOutcome:
    clock = asyncio.get_running_loop().call_later(seconds, running.stop, "timeout", f"stopped after {seconds:g} s")
    try:
        await running.exited
        clock.cancel()
        return await running.end()
    except asyncio.CancelledError:
        running.stop("failed", "cancelled")
        if error := await despite_cancels(asyncio.ensure_future(running.end())):
            log.error("a cancelled command ended badly", exc_info=error)
        raise
    finally:
        clock.cancel()
