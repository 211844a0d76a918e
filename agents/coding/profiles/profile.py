"""What is known of a coding agent, and what the owner of a device says about its own. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.coding.profiles.ends import ReadExit

KEY = "ORRERY_AGENT_KEY"
"""The variable by which an agent is given the key of its model."""
HOME = "$HOME"
"""In the value of a variable: the agent's home."""
DEAD_PORT = "http://127.0.0.1:9/"
"""Nothing answers there: an agent that wants to install something finds nothing to install."""
QUIET: Mapping[str, str] = {
    "npm_config_registry": DEAD_PORT, "npm_config_offline": "true", "NO_UPDATE_NOTIFIER": "1", "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
}  # fmt: skip
"""Of every agent: it installs nothing, updates nothing and reports nothing."""
SETTINGS = ("profile", "argv", "model", "base_url", "api_key", "env", "workspace", "edits")
"""Keys of a device's `connection`."""
EDITS = ("propose", "none")
WORDS = 100
TEXT = 2_000


class ConnectionRejected(ValueError):
    """The `connection` of a device makes no sense; the message begins with its key."""


@dataclass(frozen=True)
class AgentSettings:
    """A device's `connection`, read. `argv` is empty for the profile's own; values of `env` and `api_key` may be references to
    secrets, {"secret": NAME}. `workspace` is the local device whose workspace it works in, empty for one of its own.
    """

    profile: str
    argv: tuple[str, ...] = ()
    model: str = ""
    base_url: str = ""
    api_key: Any = ""
    env: Mapping[str, Any] = field(default_factory=dict)
    workspace: str = ""
    edits: str = "propose"


@dataclass(frozen=True)
class CodingAgent:
    """One kind of agent. `files` gives what is written into its home, by path; `env` the variables beside QUIET.

    `memory_mb` is what it needs at least; `tried` whether this version of Orrery was run with it; `session` goes along with
    each new session, as `_meta`. `read_exit` tells the exit code of its commands.
    """

    name: str
    title: str
    argv: tuple[str, ...]
    memory_mb: int
    files: Callable[[AgentSettings], Mapping[str, str]]
    env: Callable[[AgentSettings], Mapping[str, str]]
    read_exit: ReadExit
    tried: bool = True
    session: Mapping[str, Any] = field(default_factory=dict)


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def read_settings(said: Any, profiles: Sequence[str]) -> AgentSettings:
    """A device's `connection`. Raises ConnectionRejected naming what is wrong."""
    if not isinstance(said, Mapping):
        raise ConnectionRejected(": must be an object")
    for key in said:
        if key not in SETTINGS:
            raise ConnectionRejected(f"{key}: there is no such key; there are {', '.join(SETTINGS)}")
    if said.get("profile") not in profiles:
        raise ConnectionRejected(f"profile: must be one of {', '.join(profiles)}, not {said.get('profile')!r}")
    for key in ("model", "base_url", "workspace"):
        if not isinstance(said.get(key, ""), str) or len(said.get(key, "")) > TEXT:
            raise ConnectionRejected(f"{key}: must be text of at most {TEXT:,} characters")
    if said.get("edits", "propose") not in EDITS:
        raise ConnectionRejected(f"edits: must be one of {', '.join(EDITS)}, not {said['edits']!r}")
    _check_words(said.get("argv", []))
    _check_environment(said.get("env", {}))
    _check_value("api_key", said.get("api_key", ""))
    return AgentSettings(**{**said, "argv": tuple(said.get("argv", ()))})


def _check_words(argv: Any) -> None:
    words = isinstance(argv, list | tuple) and len(argv) <= WORDS and all(isinstance(word, str) and word for word in argv)
    if not words:
        raise ConnectionRejected(f"argv: must be a list of at most {WORDS} words, the program first")


def _check_environment(env: Any) -> None:
    if not isinstance(env, Mapping) or len(env) > WORDS:
        raise ConnectionRejected(f"env: must be an object of at most {WORDS} variables")
    for name, value in env.items():
        if not NAME.fullmatch(str(name)):
            raise ConnectionRejected(f"env.{name}: is no name of a variable")
        _check_value(f"env.{name}", value)


def _check_value(key: str, value: Any) -> None:
    is_secret = isinstance(value, Mapping) and set(value) == {"secret"} and isinstance(value["secret"], str)
    if not is_secret and not (isinstance(value, str) and len(value) <= TEXT):
        raise ConnectionRejected(f"{key}: must be text of at most {TEXT:,} characters, or {{secret: NAME}}")
