"""What tasks and steps say alike: a call of a tool, a condition, prose. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.crews.script import says_where
from agents.devices import command_lines
from agents.devices.command_lines import NotPlain
from agents.tools import catalogue
from agents.tools.namespaces import is_namespaced
from constellations import conditions
from constellations.errors import ConditionRejected
from constellations.plan.values import Finding, Misfit, Path, Row, findings_under, list_reader, text_reader, value_kind

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
STEPS = "steps"
"""The tool of a task in steps."""
INSTRUCTION = catalogue.INSTRUCTION
"""The tool of a task in words, which an agent with a model carries out."""
NEEDS_DOING = "a task needs a command, a tool or steps; one in words alone needs a language model"

prose = text_reader(MAX_PROSE)


SHELL = "shell"
"""The key that has a shell run a command which is written as one text."""
BESIDE = "give an argument list to have it as it stands, or `shell: true` beside it to have `sh -c` run it"
"""What can be done about a line of which a shell would understand more than words."""


def read_argv(value: Any, ways_out: str = BESIDE) -> list[str]:
    """A command's words: an argument list, or a text of which a shell would do no more than split it.

    Where it would do more, the refusal names `ways_out`.
    """
    if isinstance(value, str):
        try:
            value = command_lines.split_line(prose(value))
        except NotPlain as error:
            raise Misfit(f"{error}: {ways_out}" if error.is_shells else f"{error}; close it") from error
    words = list_reader(_word_of_command, MAX_WORDS)(value)
    if not words or not words[0]:
        raise Misfit("names no program: give one and its arguments, as in [make, test]")
    return words


def read_command(value: Any) -> str | list[str]:
    """A command as it is written, a text or words; `make_call` makes an argument list of it, with a shell or without."""
    if not isinstance(value, str | list | tuple):
        raise Misfit(f"must be a list of words or a text, not {value_kind(value)}")
    return prose(value) if isinstance(value, str) else read_argv(value)


def _word_of_command(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        raise Misfit("must be text, not an object; put a word that has a colon in quotes")
    return prose(value)


def read_condition(value: Any) -> str:
    condition = prose(value)
    if condition:
        try:
            conditions.check_condition(condition)
        except ConditionRejected as error:
            raise Misfit(str(error)) from error
    return condition


def make_call(fields: Row, what: str, is_whole: bool = True) -> list[Finding]:
    """Makes `command` among the fields of a task or a step (`what`) the tool of that name, in place; findings.

    The fields of an update are not the whole call: what stays as it is may be the arguments, or the tool.
    """
    findings: list[Finding] = []
    by_shell = fields.pop(SHELL, False)
    if COMMAND in fields:
        both = f"a {what} has a command or a tool, not both"
        findings += [((other,), f"{both}: {other} beside command") for other in ("tool", "arguments") if other in fields]
        fields["tool"], written = COMMAND, fields.pop(COMMAND)
        fields["arguments"] = {"argv": _words(written, by_shell, (COMMAND,), findings)}
        return findings
    if fields.get("tool") == COMMAND and "arguments" in fields:
        arguments = fields["arguments"]
        findings += findings_under(("arguments",), catalogue.argument_flaws(COMMAND, {**arguments, "argv": ["any"]}))
        if "argv" in arguments or not findings:
            arguments["argv"] = _words(arguments.get("argv", []), by_shell, ("arguments", "argv"), findings)
    elif by_shell:
        findings.append(((SHELL,), "shell: true is said of a command that is a text, and there is none beside it"))
    if "tool" in fields and not findings and not (what == "task" and fields["tool"] == STEPS):
        findings += call_findings(what, fields["tool"], fields.get("arguments", {}) if is_whole else fields.get("arguments"))
    return findings


def call_findings(what: str, tool: str, arguments: Row | None) -> list[Finding]:
    """Whether there is such a tool, and whether it takes these arguments, where they are given."""
    if not tool:
        return [(("tool",), f"is empty: give the {what} a command or a tool")]
    if said := catalogue.unknown_tool_text(tool):
        return [(("tool",), said)]
    found = catalogue.argument_flaws(tool, arguments) if arguments is not None else []
    return findings_under(("arguments",), found) if found else []


def delegated_wish(step: Mapping[str, Any]) -> tuple[Row, tuple[str, ...]]:
    """Where the app agent of a step that delegates is to work, in the words of a task, and the tools of servers it calls."""
    wanted = {
        "wanted_device": step.get("device", ""), "device_type": step.get("device_type", ""),
        "capabilities": step.get("capabilities") or [], "not_device": [],
    }  # fmt: skip
    work: Row = {"tool": STEPS, "phases": [{"description": "", "steps": list(step.get("steps") or ())}]}
    if step.get("instruction"):
        work = {"tool": INSTRUCTION, "arguments": {}, "phases": []}
    return {**wanted, **work}, tuple(sorted({tool for _, tool, _ in server_calls(work)}))


def delegated_elsewhere(task: Mapping[str, Any]) -> Iterator[tuple[Path, Row]]:
    """The steps of a task that delegate to another device, each with its place; also those inside of others."""
    if task["tool"] == STEPS:
        for path, step in _all_steps(task):
            if says_where(step):
                yield path, step


Called = tuple[Path, str, Mapping[str, Any]]
"""A call: where it stands in a task, the tool, the arguments."""


def tool_calls(task: Mapping[str, Any]) -> Iterator[Called]:
    """The calls of tools that a task makes."""
    if task["tool"] != STEPS:
        yield (), task["tool"], task["arguments"]
        return
    yield from (
        # one that could not be read does nothing, and is a problem of its own
        (path, step["tool"], step["arguments"]) for path, step in _all_steps(task, here=True) if step.get("do") == "call"
    )  # fmt: skip


def _all_steps(task: Mapping[str, Any], *, here: bool = False) -> Iterator[tuple[Path, Row]]:
    """The steps of a task, also of what they delegate and how they recover. `here`: not those that are made elsewhere."""
    phases = task["phases"]
    is_list = len(phases) == 1 and not phases[0]["description"]
    todo: list[tuple[Path, Row]] = [
        (("steps", place) if is_list else ("phases", number, "steps", place), step)
        for number, phase in enumerate(phases)
        for place, step in enumerate(phase["steps"])
    ]
    while todo:
        path, step = todo.pop()
        yield path, step
        if here and says_where(step):
            continue
        for key in ("recover", "steps"):
            todo += [((*path, key, place), each) for place, each in enumerate(step.get(key) or ())]


def server_calls(task: Mapping[str, Any]) -> list[Called]:
    """Those of them that are tools of tool servers."""
    if task["tool"] != STEPS and not is_namespaced(task["tool"]):
        return []  # most tasks
    return [called for called in tool_calls(task) if is_namespaced(called[1])]


def _words(written: Any, by_shell: bool, path: Path, findings: list[Finding]) -> list[str]:
    """The argument list of a command; none, and a finding, where it has none."""
    try:
        if not by_shell:
            return read_argv(written)
        if not isinstance(written, str):
            raise Misfit("is an argument list, which no shell reads: leave shell: true out, or give the command as a text")
        if not written.strip():
            raise Misfit("is empty, and so there is nothing for a shell to run")
        return command_lines.shell_arguments(prose(written))
    except Misfit as misfit:
        findings.append(((*path, *misfit.path), str(misfit)))
    return []
