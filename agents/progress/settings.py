"""How patient the detection of being stuck is (docs/stuck.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from agents.progress.kinds.tools import KINDS

TEST_COMMANDS = (
    r"\bpytest\b",
    r"\bgo test\b",
    r"\b(npm|yarn|pnpm)( run)? test\b",
    r"\b(npx )?(jest|vitest|mocha)\b",
    r"\bcargo (nextest|test)\b",
    r"\bmake (check|test)\b",
    r"\bpython3? -m unittest\b",
    r"\bmanage\.py test\b",
    r"\b(mvn|gradle|gradlew)\b.*\btest\b",
    r"\b(rspec|phpunit|tox|ctest)\b",
    r"\b(dotnet|mix|swift) test\b",
)
POLL_COMMANDS = (r"^\s*(sleep|watch|wait)\b", r"\bkubectl\b.*\b(wait|rollout status)\b", r"\bgh run watch\b")
SHELL_TOOLS = ("bash", "sh", "shell", "terminal", "run", "exec", "command")
CHANGE_TOOLS = ("edit", "write", "multi_edit", "apply_patch", "str_replace", "create_file", "edit_file", "write_file")


@dataclass(frozen=True)
class Settings:
    """One agent's settings: a threshold, window or interval of 0 switches its rules off.

    Counts are of actions, except `max_recent_errors` (failed actions) and `steer_budget` (first hits answered by a steer).
    """

    enable: bool = True
    stuck_threshold: int = 3
    """The same error, message or needless repeat this often is a loop."""
    oscillation_window: int = 4
    """This many last changes of content that end where they began are an oscillation."""
    progress_check_interval: int = 10
    """This many actions without anything new are a standstill; also how often OnProgress is due."""
    max_recent_actions: int = 20
    max_recent_errors: int = 10
    steer_budget: int = 8
    """An agent is steered this often in its life; the next loop halts it."""
    test_commands: tuple[str, ...] = TEST_COMMANDS
    poll_commands: tuple[str, ...] = POLL_COMMANDS
    poll_tools: tuple[str, ...] = ("poll", "sleep", "wait")
    shell_tools: tuple[str, ...] = SHELL_TOOLS
    """Their target is a command line, not a file."""
    change_tools: tuple[str, ...] = CHANGE_TOOLS
    tool_kinds: tuple[str, ...] = ()
    """`name=kind` for tools whose name says nothing or something wrong, with a kind of agents.progress.kinds.tools."""

    @classmethod
    def of(cls, overrides: Mapping[str, Any]) -> Settings:
        """The defaults with some replaced; ValueError names a setting that is unknown, negative or of another type."""
        defaults = {field.name: field.default for field in fields(cls)}
        return cls(**{name: _checked(name, value, defaults) for name, value in overrides.items()})


def _checked(name: str, value: Any, defaults: Mapping[str, Any]) -> Any:
    if name not in defaults:
        raise ValueError(f"there is no setting {name}")
    if isinstance(defaults[name], tuple):
        if isinstance(value, str) or not all(isinstance(part, str) for part in value):
            raise ValueError(f"{name} must be a list of texts")
        if name == "tool_kinds" and any(entry.rpartition("=")[2] not in KINDS or entry[0] == "=" for entry in value):
            raise ValueError(f"tool_kinds must be of the form name=kind, with one of the kinds {', '.join(KINDS)}")
        return tuple(value)
    if type(value) is not type(defaults[name]) or value < 0:
        raise ValueError(f"{name} must be {'true or false' if name == 'enable' else 'a whole number from 0'}")
    return value
