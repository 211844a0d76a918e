"""Command lines of other programs as calls of ours, and back: only where both do the same. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from constellations.call_forms import COMMAND
from constellations.values import Row

LINES = {"execute_command": "command", "run_shell": "bash_command"}
"""Tools that hand a text to a shell, and the argument that holds it."""
OF_THE_SHELL = frozenset([
    "!", ".", ":", "alias", "bg", "break", "case", "cd", "continue", "declare", "dirs", "eval", "exec", "exit", "export",
    "fg", "for", "function", "getopts", "hash", "if", "jobs", "let", "local", "popd", "pushd", "read", "readonly",
    "return", "select", "set", "shift", "shopt", "source", "times", "time", "trap", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
])  # fmt: skip
"""First words that a shell does not look for among the programs."""


def call(tool: Any, arguments: Row) -> Row:
    """{tool, arguments} of ours for what another program calls `tool`."""
    line = arguments.get(LINES[tool]) if isinstance(tool, str) and tool in LINES and len(arguments) == 1 else None
    if not isinstance(line, str) or not line.strip():
        return {"tool": tool, "arguments": arguments}
    return {"tool": COMMAND, "arguments": {"argv": words(line)}}


def words(line: str) -> list[str]:
    """The words of a line that needs no shell; else a shell is told the line."""
    try:
        found = shlex.split(line)
    except ValueError:
        return ["sh", "-c", line]
    if shlex.join(found) != line or found[0] in OF_THE_SHELL or "=" in found[0]:
        return ["sh", "-c", line]
    return found


def line_of(tool: str, arguments: Row) -> str | None:
    """The line that does the same as a command of ours; None for what is no command, or needs more than a line."""
    argv = arguments.get("argv") if tool == COMMAND and len(arguments) == 1 else None
    if not argv:
        return None
    line = shlex.join(argv)
    return line if words(line) == argv else None
