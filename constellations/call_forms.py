"""What tasks and steps say alike: a call of a tool, a condition, prose. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from constellations import conditions
from constellations.errors import ConditionRejected
from constellations.values import Finding, Misfit, Row, list_of, text

MAX_WORD = 80
"""Characters of the name of a device, a type, a capability, a tool."""
MAX_PROSE = 20_000
"""Characters of a description, a tip, a reason, a word of a command."""
MAX_WORDS = 1_000
"""Words of a command."""
MAX_SECONDS = 31_536_000
"""A year: the longest timeout, deadline, back-off, wait, expected duration."""

COMMAND = "command"
"""The tool that runs an argument list, `argv`, on its device."""

prose = text(MAX_PROSE)


def argv(value: Any) -> list[str]:
    """A command's words: an argument list, or a text that is split as a shell splits it (no shell runs it)."""
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            raise Misfit(f"cannot be split into words: {str(error).lower()}") from error
    words = list_of(_word_of_command, MAX_WORDS)(value)
    if not words or not words[0]:
        raise Misfit("names no program")
    return words


def _word_of_command(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return prose(value)


def condition(value: Any) -> str:
    prose(value)
    if value:
        try:
            conditions.check(value)
        except ConditionRejected as error:
            raise Misfit(str(error)) from error
    return value


def call(fields: Row, what: str) -> list[Finding]:
    """Makes `command` among the fields of a task or a step (`what`) the tool of that name, in place; findings."""
    findings: list[Finding] = []
    if COMMAND in fields:
        both = f"a {what} has a command or a tool, not both"
        findings += [((other,), f"{both}: {other} beside command") for other in ("tool", "arguments") if other in fields]
        fields["arguments"] = {"argv": fields.pop(COMMAND)}
        fields["tool"] = COMMAND
    elif fields.get("tool") == COMMAND and "arguments" in fields:
        findings += _check_arguments(fields["arguments"])
    if fields.get("tool") == "":
        findings.append((("tool",), "is empty"))
    return findings


def _check_arguments(arguments: Row) -> list[Finding]:
    try:
        arguments["argv"] = argv(arguments.get("argv", []))
    except Misfit as misfit:
        return [(("arguments", "argv", *misfit.path), str(misfit))]
    return []
