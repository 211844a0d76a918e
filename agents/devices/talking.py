"""A program on this host that is talked to, line by line, over its standard streams for as long as it is wanted.

It is started as a command is: in a workspace, in a clean environment, behind walls, under limits of memory and processes; and
it ends as one, with all that it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from asyncio.streams import FlowControlMixin
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.devices.confinement import Walls
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH, CommandOutcome, RunningCommand, despite_cancels
from agents.devices.output import EXCERPT_BYTES, EXCERPT_CHARACTERS, EXCERPT_LINES, OutputTail
from agents.devices.processes import AttemptMark
from agents.devices.starting import command_environment, prepare_workspace, start_child

MOST_LINES = 1_000
"""That nobody has taken up yet; a program that says more in one go is ended."""


class TalkedLines:
    """What a program says: whole lines of its standard output, in order, and the last of its errors.

    At most `most` bytes in a line, and in all lines that wait. None is put in where there will be no more.
    """

    def __init__(self, most: int):
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._most, self._waiting, self._begun = most, 0, b""
        self._errors = OutputTail(EXCERPT_BYTES)

    async def take(self) -> bytes | None:
        """The next line without its end; None when the program says no more."""
        line = await self.lines.get()
        self._waiting -= len(line or b"")
        return line

    def put(self, name: str, piece: bytes) -> bool:
        if name == "stderr":
            self._errors.put(piece)
            return True
        *whole, self._begun = (self._begun + piece).split(b"\n")
        for line in whole:
            self._waiting += len(line)
            self.lines.put_nowait(line)
        return len(self._begun) + self._waiting <= self._most and self.lines.qsize() <= MOST_LINES

    def end(self, name: str) -> None:
        if name == "stdout":
            self.lines.put_nowait(None)

    def result(self) -> None:
        """There is none."""

    def text(self) -> str:
        return self._errors.bytes().decode(errors="replace")

    def fingerprint(self) -> None:
        """There is none."""

    def excerpt(self) -> str:
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return " | ".join(lines[-EXCERPT_LINES:])[-EXCERPT_CHARACTERS:]


class TalkingProgram:
    """A program that has been started; made by `start_program`."""

    def __init__(self, running: RunningCommand, lines: TalkedLines, stdin: Any):
        self._running, self._lines, self._stdin = running, lines, stdin
        self._writer: asyncio.StreamWriter | None = None
        self._ended: asyncio.Task[CommandOutcome] | None = None

    async def open(self) -> None:
        """Make it ready to be written to, and see to its end from now on."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(FlowControlMixin, self._stdin)
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        self._ended = loop.create_task(self._follow())

    async def _follow(self) -> CommandOutcome:
        await self._running.exited
        return await self._running.end()

    async def read(self) -> bytes | None:
        """What it says next, a line; None when it says no more."""
        return await self._lines.take()

    async def write(self, line: bytes) -> None:
        """Say a line to it. Raises ConnectionError where it does not listen any more."""
        assert self._writer is not None
        self._writer.write(line + b"\n")
        await self._writer.drain()

    async def ended(self) -> CommandOutcome:
        """How it has ended, once it has."""
        assert self._ended is not None
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """End it, and everything that it has started."""
        self._running.stop("failed", "ended")
        if self._writer is not None:
            self._writer.close()
        if self._ended is not None:
            await despite_cancels(self._ended)


async def start_program(
    argv: Sequence[str],
    *,
    workspace: Path,
    mark: AttemptMark,
    limits: CommandLimits,
    env: Mapping[str, str],
    path: str = DEFAULT_PATH,
    walls: Walls | None = None,
) -> TalkingProgram:
    """Start a program. `mark` says whose it is; the other arguments are those of agents.devices.local.run_command.

    Of the limits, that of output is for one line and for what waits to be read. Raises OSError, ValueError or TypeError where
    it cannot be started.
    """
    home = prepare_workspace(workspace, walls)
    seen = command_environment(home, mark.attempt_id, mark.instance, path, env)
    child = start_child(argv, home, seen, walls, limits.memory_bytes, subprocess.PIPE)
    lines = TalkedLines(limits.output_bytes)
    running = RunningCommand(argv, child, mark, limits, lines, walls.frame if walls else 0)
    running.watch()
    program = TalkingProgram(running, lines, child.popen.stdin)
    try:
        await program.open()
    except BaseException:
        running.stop("failed", "it could not be talked to")
        with contextlib.suppress(Exception):
            await running.end()
        raise
    return program
