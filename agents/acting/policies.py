"""What a call may do, by the rules of the installation and of its task. Pure: values in, values out."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agents.command_lines import commands_in, commands_of, run_by_a_shell
from agents.patterns import begins, is_found
from agents.progress.digests import canonical

TARGET_LENGTH = 20_000
"""Characters of a call's target in which a pattern is searched."""
DECISIONS = ("allow", "ask", "deny")
"""From the mildest to the strictest."""


@dataclass(frozen=True)
class Rule:
    """One rule. `tool` and `device` are patterns as in file names; `pattern` is a regular expression, empty for any target."""

    tool: str = "*"
    pattern: str = ""
    device: str = "*"
    decision: str = "allow"
    critical: bool = False
    note: str = ""


@dataclass(frozen=True)
class Judgement:
    """What the rules say of one call. `critical` counts with `ask`; `note` says why."""

    decision: str = "allow"
    critical: bool = False
    note: str = ""


def judge(rules: Sequence[Rule], own: Sequence[Rule], tool: str, target: str, device: str) -> Judgement:
    """The stricter of what the installation's `rules` and the task's `own` say: a plan can only tighten.

    Of each the first that fits counts; where none fits, the call is allowed. Patterns are checked when they are written.
    """
    return max((_first(rules, tool, target, device), _first(own, tool, target, device)), key=_strictness)


def _strictness(judgement: Judgement) -> tuple[int, bool]:
    return DECISIONS.index(judgement.decision), judgement.critical


def _first(rules: Sequence[Rule], tool: str, target: str, device: str) -> Judgement:
    for rule in rules:
        if fits(rule, tool, target, device):
            return Judgement(rule.decision, rule.critical, rule.note)
    return Judgement()


def fits(rule: Rule, tool: str, target: str, device: str) -> bool:
    """Whether `rule` is about this call.

    What a shell runs may do more than what a pattern knows of it. So a rule that allows has to fit from the shell's name on
    (`^sh -c`), and one that asks or denies is about the call where it fits any command of the shell's line, too, or one that is
    run by `env` and its like.
    """
    if not (fnmatchcase(tool, rule.tool) and fnmatchcase(device, rule.device)):
        return False
    if not rule.pattern:
        return True
    line = _line_of_shell(target)
    if rule.decision == "allow":
        return (is_found if line is None else begins)(rule.pattern, target[:TARGET_LENGTH])
    run = commands_of(target) if line is None else [target, line, *commands_in(line)]
    return any(is_found(rule.pattern, each[:TARGET_LENGTH]) for each in run)


def _line_of_shell(target: str) -> str | None:
    """The line that the command of this target has a shell run; None where it is no shell's."""
    if len(commands_of(target)) == 1:
        return None  # no program that would run another one
    try:
        return run_by_a_shell(shlex.split(target))
    except ValueError:
        return None  # no command's target


def target_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call is about, as text: a command's words quoted as for a shell, else the path, else all its arguments."""
    argv = arguments.get("argv")
    if tool == "command" and isinstance(argv, list | tuple) and all(isinstance(word, str) for word in argv):
        return shlex.join(argv)
    path = arguments.get("path")
    return path if isinstance(path, str) else canonical(arguments)


def action_digest(action: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal digits, of exactly what is to be done: equal for equal actions in any order of their keys."""
    return hashlib.sha256(canonical(action).encode("utf-8", "surrogatepass")).hexdigest()
