"""How a call of an agent's tool has really ended: some say `completed` of a command that failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ERROR = 2_000
"""Characters."""
SAID_SO = re.compile(r"^\W*Exit [Cc]ode:? +(-?\d{1,10})\s*$", re.MULTILINE)
"""How agents write the exit code of a command into what it printed."""
LETTERS = re.compile(r"\A```\w*\n|\n```\Z")


@dataclass(frozen=True)
class ToolEnd:
    """`error` is empty where it went well; `exit_code` None where it ran no command, or nobody can tell."""

    error: str = ""
    exit_code: int | None = None


ReadExit = Callable[[Any, str], int | None]
"""The exit code of a command from the raw output and the text of a call; None where it says none."""


def exit_in_metadata(raw: Any, text: str) -> int | None:
    """OpenCode: {"metadata": {"exit": 3}}."""
    found = raw.get("metadata", {}) if isinstance(raw, Mapping) else {}
    return _number(found.get("exit")) if isinstance(found, Mapping) else None


def exit_in_output(raw: Any, text: str) -> int | None:
    """Codex: {"exit_code": 3}."""
    return _number(raw.get("exit_code")) if isinstance(raw, Mapping) else None


def exit_in_text(raw: Any, text: str) -> int | None:
    """Claude Code, Qwen Code, Gemini CLI: a line `Exit code 3` or `Exit Code: 3`."""
    for said in (text, raw if isinstance(raw, str) else ""):
        if found := SAID_SO.search(said):
            return int(found[1])
    return None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def end_of_call(status: str, kind: str, raw: Any, text: str, read_exit: ReadExit) -> ToolEnd:
    """How a call that has ended, as `status` says, has really ended."""
    code = read_exit(raw, text) if kind == "execute" else None
    if status == "completed" and not code:
        return ToolEnd(exit_code=code)
    said = LETTERS.sub("", text).strip() or _words(raw)
    return ToolEnd((said or f"exit code {code}" if code else said or "failed")[:ERROR], code)


def _words(raw: Any) -> str:
    """What a raw output says, as text."""
    if isinstance(raw, str):
        return raw.strip()
    if isinstance(raw, Mapping):
        return next((str(raw[key]).strip() for key in ("error", "output", "stderr", "stdout") if raw.get(key)), "")
    return ""
