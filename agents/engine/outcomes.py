"""The outcome file: what bodies ended with, written before it is recorded, so that a killed runner loses none of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import orjson

from agents.engine.tools import Outcome

ROTATE_BYTES = 4_000_000
"""Beyond this the file is begun anew as soon as everything in it is durable."""


def path_of(folder: Path, runner: int) -> Path:
    return folder / f"outcomes-{runner}.jsonl"


class OutcomeFile:
    """Appends outcomes, one write for all that ended together."""

    def __init__(self, folder: Path, runner: int):
        self.path = path_of(folder, runner)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pending: list[bytes] = []
        self._size = 0

    def add(self, key: int, outcome: Outcome) -> Outcome:
        """Take up an outcome; what it is after all, as one whose result cannot be written is a failure."""
        try:
            line = orjson.dumps({"key": key, **outcome.as_json()})
        except TypeError as error:
            outcome = Outcome("failed", error=f"its result cannot be stored: {error}", exit_code=outcome.exit_code)
            line = orjson.dumps({"key": key, **outcome.as_json()})
        self._pending.append(line)
        return outcome

    def flush(self) -> None:
        """Write what was added; after it, a killed process no longer loses it."""
        if self._pending:
            text = b"\n".join(self._pending) + b"\n"
            self._size += os.write(self._file, text)
            self._pending.clear()

    def settled(self) -> None:
        """Everything written so far is durable in the database."""
        if self._size > ROTATE_BYTES:
            os.ftruncate(self._file, 0)
            self._size = 0

    def close(self) -> None:
        os.close(self._file)

    def remove(self) -> None:
        """Everything in it is durable, and nobody needs it any more."""
        self.path.unlink(missing_ok=True)


def read(path: Path) -> dict[int, Outcome]:
    """Outcomes by the row they belong to (Call.key); a line that was cut off is no outcome."""
    found: dict[int, Outcome] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return found
    for line in lines[:-1]:
        with contextlib.suppress(orjson.JSONDecodeError):
            entry: dict[str, Any] = orjson.loads(line)
            key = entry.pop("key")
            found[key] = Outcome(**entry)
    return found
