"""Command lines of other programs as calls of ours, and back: only where both do the same. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from agents import command_lines
from agents.command_lines import NotPlain
from constellations.call_forms import COMMAND
from constellations.values import Row

LINES = {"execute_command": "command", "run_shell": "bash_command"}
"""Tools that hand a text to a shell, and the argument that holds it."""
BESIDE = {"timeout", "cwd"}
"""Their other arguments: seconds, and the folder that it runs in."""


def call(tool: Any, arguments: Row) -> Row:
    """{tool, arguments}, and maybe a timeout, of ours for what another program calls `tool`."""
    given = {key: value for key, value in arguments.items() if value is not None}
    line = given.get(LINES[tool]) if isinstance(tool, str) and tool in LINES else None
    folder = given.get("cwd", "")
    if not isinstance(line, str) or not line.strip() or not isinstance(folder, str) or given.keys() - {LINES[tool]} - BESIDE:
        return {"tool": tool, "arguments": arguments}
    argv = words(f"cd {shlex.quote(folder)} && {line}" if folder else line)
    return {"tool": COMMAND, "arguments": {"argv": argv}, **{key: given[key] for key in ("timeout",) if key in given}}


def words(line: str) -> list[str]:
    """The words of a line that needs no shell; else a shell is told the line."""
    try:
        return command_lines.split(line)
    except NotPlain:
        return command_lines.through_a_shell(line)


def line_of(tool: str, arguments: Row) -> str | None:
    """The line that does the same as a command of ours; None for what is no command, or needs more than a line."""
    argv = arguments.get("argv") if tool == COMMAND and len(arguments) == 1 else None
    if not argv:
        return None
    lines = (command_lines.line_of(argv), shlex.join(argv))
    return next((line for line in lines if line is not None and words(line) == argv), None)
