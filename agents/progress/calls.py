"""What a call is, by its tool's name and its command line: does it test, wait, only look, or reach out of the machine?"""

import re
from functools import lru_cache
from typing import Literal

from agents.patterns import is_found
from agents.progress.kinds.commands import (
    begins_with_sleep,
    is_looking_line,
    is_rewriting_line,
    is_stepping_line,
    list_programs,
    unwrap_line,
)
from agents.progress.kinds.tools import KINDS, ToolKind, kind_of_name
from agents.progress.settings import Settings

INFRASTRUCTURE = frozenset({"rate_limit", "server_error", "connection_lost"})
"""Kinds of error that say nothing about the agent: they go to retry and are no evidence."""
ANSWERING = frozenset({
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "find", "diff", "cmp", "test", "[", "[[", "pgrep", "which", "git diff",
    "git grep", "head", "tail", "wc", "sort", "xargs",
})  # fmt: skip
"""Programs that say "nothing found" or "no" by an exit code, without a word: an answer, and no failure."""
NO = (1, 123)
"""Exit codes by which they say it; xargs has one of its own."""
CACHED = 4096
"""Command lines whose kind is remembered."""

_ONLY_A_CODE = re.compile(
    r"^\W*(?:(?:command|process) )?(?:(?:failed|exited|returned) )?(?:with )?(?:exit )?(?:(?:code|status):? )?(\d{1,3})\b\W*"
    r"(?:(?:command|process) exited with code \d+)?\W*$",
    re.IGNORECASE,
)
_READING = re.compile(r"^[\s(]*(select|show|desc|describe|explain|with|pragma)\b", re.IGNORECASE)
_SEARCHING = frozenset({"grep", "egrep", "rg", "ag", "find", "fd", "git grep"})
_SEARCH_NAMES = re.compile(r"search|grep|\b(find|glob|query|lookup)\b", re.IGNORECASE)
_GESTURES = re.compile(r"\b(click|typ|press|tap|fill|select|hover|drag|submit)(e|ed|s|ing|ped)?\b", re.IGNORECASE)
_WATCHING = re.compile(r"status|progress|health|\blogs?\b|\binfo\b|queue|\bwait|\bstate\b", re.IGNORECASE)
_PAGING = re.compile(r"\b(scroll\w*|next|more|page(s|d|up|down)?|forward|back)\b", re.IGNORECASE)


def is_infrastructure(error_kind: str) -> bool:
    return error_kind in INFRASTRUCTURE


def kind_of_status(status: int) -> str:
    """The kind of error an HTTP status is; empty when it is not a fault of the infrastructure."""
    if status == 429:
        return "rate_limit"
    return "server_error" if 500 <= status <= 599 else ""


def kind_of_tool(tool: str, settings: Settings) -> ToolKind:
    """What kind of tool this is: as the settings say, else by the table of known names."""
    return _named_kinds(settings.tool_kinds).get(tool) or _listed_kind(tool, settings) or kind_of_name(tool)


def _listed_kind(tool: str, settings: Settings) -> ToolKind | None:
    if tool in settings.poll_tools:
        return "poll"
    if tool in settings.shell_tools:
        return "shell"
    return "change" if tool in settings.change_tools else None


@lru_cache(CACHED)
def _named_kinds(entries: tuple[str, ...]) -> dict[str, ToolKind]:
    named = (entry.rpartition("=") for entry in entries)
    return {name: kind for name, _, said in named for kind in KINDS if kind == said}


def kind_of_call(tool: str, target: str, settings: Settings) -> Literal["poll", "test", "tool"]:
    """`poll`, `test` or `tool`, for a call whose step does not declare it."""
    kind = kind_of_tool(tool, settings)
    if kind == "poll":
        return "poll"
    if kind == "shell":
        line = unwrap_line(target)
        if begins_with_sleep(line) or _matches(line, settings.poll_commands):
            return "poll"
        if _matches(line, settings.test_commands):
            return "test"
    return "tool"


def is_sleep(tool: str, target: str, settings: Settings) -> bool:
    """Whether the call does nothing but wait: the next one asks what has become of something."""
    kind = kind_of_tool(tool, settings)
    if kind == "shell":
        return set(list_programs(target)) in ({"sleep"}, {"sleep", "echo"}, {"wait"})
    return kind == "poll" and tool.rsplit("_", 1)[-1].casefold() in ("sleep", "wait")


def is_look(tool: str, target: str, settings: Settings) -> bool:
    """Whether the call can only bring information: what it says is all it does."""
    kind = kind_of_tool(tool, settings)
    if kind == "shell":
        return is_looking_line(target)
    return kind == "look" and ("sql" not in tool.casefold() or bool(_READING.match(target)))


def is_gesture(tool: str, target: str) -> bool:
    """Whether the call touches a page or a screen: what it did shows at once, and doing it again does not help."""
    return bool(_GESTURES.search(tool.replace("_", " ")) or ("browser" in tool.casefold() and _GESTURES.match(target)))


def is_rewriting(tool: str, target: str, settings: Settings) -> bool:
    """Whether a shell is used to give a file another content."""
    return kind_of_tool(tool, settings) == "shell" and is_rewriting_line(target)


def is_step(tool: str, target: str, settings: Settings) -> bool:
    """Whether the same call goes on to the next thing each time, as `git bisect good` does."""
    return kind_of_tool(tool, settings) == "shell" and is_stepping_line(target)


def is_search(tool: str, program: str) -> bool:
    """Whether the call looks for what it is given: other questions should find other things."""
    return program in _SEARCHING or bool(_SEARCH_NAMES.search(tool.replace("_", " ")))


def is_watching(target: str) -> bool:
    """Whether a command line speaks of something that moves by itself."""
    return bool(_WATCHING.search(target))


def is_paging(tool: str, target: str) -> bool:
    """Whether the same call brings the next part of something each time."""
    return bool(_PAGING.search(target) or _PAGING.search(tool.replace("_", " ")))


def bare_code(error: str) -> int | None:
    """The exit code, of an error that says nothing else."""
    found = _ONLY_A_CODE.match(error)
    return int(found[1]) if found else None


def is_answer_by_code(tool: str, target: str, error: str, settings: Settings) -> bool:
    """Whether a failed call says "nothing found" or "no" by its exit code alone, as grep and diff do."""
    if kind_of_tool(tool, settings) != "shell" or bare_code(error) not in NO:
        return False
    programs = list_programs(target)
    return bool(programs) and programs[-1] in ANSWERING


def run_programs(tool: str, target: str, settings: Settings) -> tuple[str, ...]:
    """All programs of a shell's command line, none for other tools."""
    return list_programs(target) if kind_of_tool(tool, settings) == "shell" else ()


@lru_cache(CACHED)
def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(is_found(pattern, text) for pattern in patterns)
