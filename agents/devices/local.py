"""Commands on this host: an argument list, run in a workspace, in a clean environment, under limits, ended as a whole.

Pure asyncio. A child is awaited by its pidfd on the running loop: there is no thread for it, and no child watcher is needed.
"""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents.devices.confinement import Walls
from agents.devices.limits import MB, CommandLimits, WatchedCommand, sampler
from agents.devices.output import CommandOutput
from agents.devices.processes import AttemptMark, Process, kill_group, kill_process, pause_lengths
from agents.devices.starting import StartedChild, close_handle, command_environment, prepare_workspace, start_child
from agents.faults import error_kind_of

READ_BYTES = 1 << 16
DRAIN_READS = 64
"""Of a stream after the command's end: a pipe holds at most 1 MB, more would come from a process that cannot be ended."""
STATUS_BYTES = 1 << 10
KILL_WAIT_S = 5.0
"""A process that SIGKILL has not ended by then hangs in the kernel."""
FROM_OUTSIDE = frozenset((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT))
"""Signals that end programs which are not at fault: docs/engine.md, "What ended a command". Others are a program's own."""
BROKEN_WALLS = range(1, 128)
"""Exit codes of a frame that could not be put up. One whose processes are killed has 128 and more, or is killed itself."""
DEFAULT_PATH = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommandOutcome:
    """How a command ended.

    `outcome` is completed (exit code 0), failed, timeout, limit, or lost: neither itself nor its runner has ended it. `result`
    is the JSON value on the last line of standard output, None when there is none. `error` says what went wrong, empty when
    nothing did. `exit_code` is None when the command never started, negative for a signal. `survivors` are pids that could not
    be ended: the attempt still runs. `text` is the last of what it printed, `fingerprint` stands for all of that, None when it
    never started. `error_kind` is empty for a command that ended by itself; else "timeout", "bad_arguments", or why it could
    not be started (agents.faults). `pid` is that of the first process that was started for it, 0 where none was.
    """

    outcome: str
    exit_code: int | None = None
    result: Any = None
    error: str = ""
    survivors: tuple[int, ...] = ()
    text: str = ""
    fingerprint: str | None = None
    error_kind: str = ""
    pid: int = 0


def _refused(error: Exception, argv: Sequence[str]) -> CommandOutcome:
    """Why the command could not be started, for its user."""
    kind = error_kind_of(error)
    if isinstance(error, FileNotFoundError):
        return CommandOutcome("failed", error=f"command not found: {argv[0]}", error_kind=kind)
    reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return CommandOutcome(
        "failed", error=f"the command cannot be started: {reason}", error_kind="" if kind == "broken" else kind
    )


class Printed(Protocol):
    """Who takes what a command prints, piece by piece; as CommandOutput does."""

    def put(self, name: str, piece: bytes) -> bool:
        """A piece of `stdout` or `stderr`; False ends the command, as having printed too much."""
        ...

    def end(self, name: str) -> None: ...
    def result(self) -> Any: ...
    def text(self) -> str: ...
    def fingerprint(self) -> str | None: ...
    def excerpt(self) -> str: ...


class RunningCommand:
    """A command between its start and its end."""

    def __init__(
        self,
        argv: Sequence[str],
        child: StartedChild,
        mark: AttemptMark,
        limits: CommandLimits,
        output: Printed,
        frame: int,
    ):
        self._loop = asyncio.get_running_loop()
        self._argv = argv
        self._child = child.popen
        self._pidfd = child.pidfd
        self._told = child.told
        self._refusal: OSError | None = None
        self._exit_code: int | None = None
        self._output = output
        self._limits = limits
        self._stopped: tuple[str, str] | None = None
        self._fault: Exception | None = None
        self._streams: dict[str, Any] = {"stdout": child.popen.stdout, "stderr": child.popen.stderr}
        stop = functools.partial(self.stop, "limit")
        self._watched = WatchedCommand(child.popen.pid, child.start, mark, limits, stop, frame)
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
        self._kill_group()
        self._patience = self._patience or self._loop.call_later(KILL_WAIT_S, self._on_exit)

    def _kill_group(self) -> None:
        # Its leader is reaped last, so until then the id cannot be another group's.
        if self._pidfd < 0:
            return
        if self._watched.frame == 1 and self._patience is None:  # a launcher outside all namespaces ends them all, if asked
            kill_group(self._child.pid, signal.SIGTERM)
        else:
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
            elif self._fault is None and not self._output.put(name, piece):
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
            if self._stopped and self._watched.frame == 1:
                await self.exited  # the launcher ends all others before itself
            survivors = await self._end_processes()
            for name in list(self._streams):
                for _ in range(DRAIN_READS):
                    if not self._read(name):
                        break
        finally:
            self._release()
        if self._fault is not None:
            raise self._fault
        return self._outcome(tuple(sorted(member.pid for member in survivors)))

    async def _end_processes(self) -> list[Process]:
        """Kill until none is left; those that SIGKILL does not end in KILL_WAIT_S."""
        deadline = self._loop.time() + KILL_WAIT_S
        for pause in pause_lengths():
            self._kill_group()
            living = [member for member in sampler().look().get(self._watched, []) if not member.zombie]
            if not (living or sampler().unsure) or self._loop.time() > deadline:
                break
            for member in living:
                kill_process(member)
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
        try:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        except ChildProcessError:  # reaped by somebody else: Popen would call that exit code 0
            self._child.returncode = 0
        else:
            if pid:
                self._exit_code = self._child.returncode = os.waitstatus_to_exitcode(status)
        if self._told >= 0:
            self._hear_launcher()

    def _hear_launcher(self) -> None:
        """What the launcher told. Of a silent one only BROKEN_WALLS says anything: else its end was that of the command, and
        nobody knows how, unless both were killed here.
        """
        if self._exit_code not in BROKEN_WALLS:
            self._exit_code = -signal.SIGKILL if self._stopped else None
        os.set_blocking(self._told, False)
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._told, STATUS_BYTES).splitlines():
                kind, number = line.split()
                if kind == b"errno":
                    self._refusal = OSError(int(number), os.strerror(int(number)), self._argv[0])
                else:
                    self._exit_code = os.waitstatus_to_exitcode(int(number))
        close_handle(self._told)
        self._told = -1

    def _outcome(self, survivors: tuple[int, ...]) -> CommandOutcome:
        if self._refusal is not None and not self._stopped:
            return _refused(self._refusal, self._argv)
        code = self._exit_code
        result = self._output.result()
        if self._stopped:
            outcome, error = self._stopped
        elif code is None or -code in FROM_OUTSIDE:
            outcome, error = "lost", self._failure(code)
        else:
            outcome, error = ("completed", "") if code == 0 else ("failed", self._failure(code))
        return CommandOutcome(
            outcome, code, result, error, survivors, self._output.text(), self._output.fingerprint(),
            error_kind="timeout" if outcome == "timeout" else "", pid=self._child.pid,
        )  # fmt: skip

    def _failure(self, code: int | None) -> str:
        if code is None:
            what = "its exit code is not known"
        elif code < 0:
            names = {known.value: known.name for known in signal.Signals}  # a real-time signal has no name
            what = f"killed by {names.get(-code, f'signal {-code}')}" + (" from outside" if -code in FROM_OUTSIDE else "")
        else:
            what = f"exit code {code}"
        excerpt = self._output.excerpt()
        return f"{what}: {excerpt}" if excerpt else what


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
    limits: CommandLimits,
    timeout: float | None,  # noqa: ASYNC109 - the command's, which is an outcome and not an error
    on_output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    path: str = DEFAULT_PATH,
    walls: Walls | None = None,
) -> CommandOutcome:
    """Run `argv` in `workspace` (made if it is missing, for this user only) to its end and the end of all it started.

    `timeout` is in seconds and at most `limits.seconds`. `on_output` gets both streams' text while it runs, on this loop; what
    it raises ends the command and is raised here. `path` finds the programs. `env` comes on top of the clean environment, but
    not of its attempt and instance. `walls` are what it may touch; None is all that this process may. What is wrong with a
    command is an outcome, never raised. A cancel kills, then propagates.
    """
    mistake = ""
    if not argv or not argv[0]:
        mistake = "the command is empty"
    elif not all(isinstance(argument, str) for argument in argv):
        mistake = "the command's arguments must be texts"
    elif any("\0" in argument for argument in argv):
        mistake = "the command holds a NUL character"
    if mistake:
        return CommandOutcome("failed", error=mistake, error_kind="bad_arguments")
    try:
        home = prepare_workspace(workspace, walls)
        seen = command_environment(home, attempt_id, instance, path, env or {})
        child = start_child(argv, home, seen, walls, limits.memory_bytes)
    except (OSError, ValueError, TypeError) as error:
        return _refused(error, argv)
    output = CommandOutput(on_output, limits.output_bytes)
    running = RunningCommand(argv, child, AttemptMark(instance, attempt_id), limits, output, walls.frame if walls else 0)
    running.watch()
    return await _to_its_end(running, limits.seconds if timeout is None else min(timeout, limits.seconds))


async def _to_its_end(running: RunningCommand, seconds: float) -> CommandOutcome:
    clock = asyncio.get_running_loop().call_later(seconds, running.stop, "timeout", f"stopped after {seconds:g} s")
    try:
        await asyncio.shield(running.exited)
        clock.cancel()
        return await running.end()
    except asyncio.CancelledError:
        running.stop("failed", "cancelled")
        if error := await despite_cancels(asyncio.ensure_future(running.end())):
            log.error("a cancelled command ended badly", exc_info=error)
        raise
    finally:
        clock.cancel()
