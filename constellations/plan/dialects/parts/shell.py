"""Command lines of other programs as calls of ours, and back: only where both do the same. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from agents.devices import command_lines
from agents.devices.command_lines import NotPlain
from agents.tools import catalogue
from constellations.plan.keys.calls import COMMAND
from constellations.plan.values import MAX_STRANGE_KEYS, SHOWN, Finding, Row, did_you_mean, value_kind

LINES = {"execute_command": "command", "run_shell": "bash_command"}
"""Tools that hand a text to a shell, and the argument that holds it."""
BESIDE = ("timeout", "cwd")
"""Their other arguments: seconds, and the folder that it runs in."""


def translate_call(tool: Any, arguments: Row) -> tuple[Row, list[Finding]]:
    """{tool, arguments}, and maybe a timeout, of ours for what another program calls `tool`; what is wrong with its arguments.

    A tool of such a name that there is here takes what it takes.
    """
    if not isinstance(tool, str) or tool not in LINES:
        return {"tool": tool, "arguments": arguments}, []
    given = {key: value for key, value in arguments.items() if value is not None}
    if findings := list(_flaws(tool, given)):
        return ({"tool": tool, "arguments": arguments}, []) if tool in catalogue.TOOLS else ({}, findings)
    line, folder = given[LINES[tool]], given.get("cwd", "")
    argv = line_words(f"cd {shlex.quote(folder)} && {line}" if folder else line)
    return {"tool": COMMAND, "arguments": {"argv": argv}, **{key: given[key] for key in ("timeout",) if key in given}}, []


def _flaws(tool: str, given: Row) -> Iterator[Finding]:
    key = LINES[tool]
    takes = f"{tool} takes {key} (a text), {', '.join(BESIDE)}; here is"
    strange = [other for other in given if other != key and other not in BESIDE]
    for other in strange[:MAX_STRANGE_KEYS]:
        yield (other,), f"{takes} {str(other)[:SHOWN]}{did_you_mean(str(other), (key, *BESIDE))}"
    if key not in given and not strange:
        yield (), f"{takes} no {key}"
    elif isinstance(given.get(key), list):
        yield (key,), f"{takes} a list; for an argument list call {COMMAND} with argv"
    elif key in given and not isinstance(given[key], str):
        yield (key,), f"{takes} {value_kind(given[key])}"
    elif key in given and not given[key].strip():
        yield (key,), f"{takes} an empty text"
    if not isinstance(given.get("cwd", ""), str):
        yield ("cwd",), f"{takes} {value_kind(given['cwd'])}; cwd is a text, too"


def line_words(line: str) -> list[str]:
    """The words of a line that needs no shell; else a shell is told the line."""
    try:
        return command_lines.split_line(line)
    except NotPlain:
        return command_lines.shell_arguments(line)


def line_of(tool: str, arguments: Row) -> str | None:
    """The line that does the same as a command of ours; None for what is no command, or needs more than a line."""
    argv = arguments.get("argv") if tool == COMMAND and len(arguments) == 1 else None
    if not argv:
        return None
    lines = (command_lines.shell_line_of(argv), shlex.join(argv))
    return next((line for line in lines if line is not None and line_words(line) == argv), None)
