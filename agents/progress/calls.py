"""What a call is, by its tool's name and its command line: does it test, wait, only look, or reach out of the machine?"""

import re
from functools import lru_cache
from typing import Literal

from agents.patterns import is_found
from agents.progress.settings import Settings

LOOKING = frozenset({
    "view", "read", "cat", "open", "show", "stat", "list", "ls", "tree", "glob", "find", "grep", "rg", "search",
    "query", "fetch", "get", "head", "tail", "diff", "status", "inspect",
})  # fmt: skip
"""Words of tools' names that say: this only looks."""
WAITING = frozenset({"poll", "wait", "sleep", "watch"})
LOOKING_PROGRAMS = frozenset({
    "ls", "cat", "head", "tail", "grep", "egrep", "rg", "ag", "find", "fd", "pwd", "whoami", "id", "wc", "file", "stat",
    "tree", "which", "type", "env", "printenv", "date", "du", "df", "ps", "uname", "hostname", "od", "xxd", "less",
    "more", "sort", "uniq", "cut", "jq", "nl", "diff", "cmp", "echo", "true", "test",
})  # fmt: skip
LOOKING_GIT = frozenset({
    "status", "diff", "log", "show", "blame", "branch", "ls-files", "ls-tree", "rev-parse", "describe", "reflog",
    "grep", "shortlog",
})  # fmt: skip
INFRASTRUCTURE = frozenset({"rate_limit", "server_error", "connection_lost"})
"""Kinds of error that say nothing about the agent: they go to retry and are no evidence."""
CACHED = 4096
"""Names and command lines whose kind is remembered."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WRITES = re.compile(r"(?<![0-9&])>(?!\s*/dev/null|&)|-delete\b|-exec\b|\btee\b")


def is_infrastructure(error_kind: str) -> bool:
    return error_kind in INFRASTRUCTURE


def kind_of_status(status: int) -> str:
    """The kind of error an HTTP status is; empty when it is not a fault of the infrastructure."""
    if status == 429:
        return "rate_limit"
    return "server_error" if 500 <= status <= 599 else ""


def kind_of_call(tool: str, target: str, settings: Settings) -> Literal["poll", "test", "tool"]:
    """`poll`, `test` or `tool`, for a call whose step does not declare it."""
    if tool in settings.poll_tools or _words(tool) & WAITING:
        return "poll"
    if tool in settings.shell_tools:
        if _matches(target, settings.poll_commands):
            return "poll"
        if _matches(target, settings.test_commands):
            return "test"
    return "tool"


def is_look(tool: str, target: str, settings: Settings) -> bool:
    """Whether the call can only bring information: what it says is all it does."""
    if tool in settings.shell_tools:
        return _looking_command(target)
    return tool not in settings.change_tools and bool(_words(tool) & LOOKING)


def program_name(tool: str, target: str, settings: Settings) -> str:
    """The program of a shell's command line, empty for other tools."""
    return _programs(target)[0] if tool in settings.shell_tools and _programs(target) else ""


@lru_cache(CACHED)
def _words(tool: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(tool))


@lru_cache(CACHED)
def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(is_found(pattern, text) for pattern in patterns)


@lru_cache(CACHED)
def _looking_command(line: str) -> bool:
    programs = _programs(line)
    return bool(programs) and not _WRITES.search(line) and all(_looks(one) for one in programs)


def _looks(one: str) -> bool:
    if one.startswith("git "):
        return one.removeprefix("git ") in LOOKING_GIT
    return one in LOOKING_PROGRAMS


@lru_cache(CACHED)
def _programs(line: str) -> tuple[str, ...]:
    """The programs a command line runs; git with its verb; without changes of folder and assignments before it."""
    parts = (_program(part.split()) for part in re.split(r"&&|\|\||[;|\n]", line))
    return tuple(name for name in parts if name and name != "cd")


def _program(words: list[str]) -> str:
    while words and ("=" in words[0] or words[0] in ("sudo", "time", "nohup")):
        words = words[1:]
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1]
    verbs = [word for word in words[1:] if not word.startswith("-")]
    return f"git {verbs[0]}" if name == "git" and verbs else name
