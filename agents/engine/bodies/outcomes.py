"""The outcome file: what bodies ended with, written before it is recorded, so that a killed runner loses none of it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agents.devices import host
from agents.devices.processes import end_attempts
from agents.engine.bodies.outputs import durable_characters
from agents.faults import NO_ROOM
from agents.tools.calls import Outcome

ROTATE_BYTES = 4_000_000
"""Beyond this the file is begun anew as soon as everything in it is durable."""


def outcomes_path(folder: Path, runner: int) -> Path:
    return folder / f"outcomes-{runner}.jsonl"


class OutcomeFile:
    """Appends outcomes, one write for all that ended together."""

    def __init__(self, folder: Path, runner: int):
        self.path = outcomes_path(folder, runner)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pending: list[bytes] = []
        self._size = 0

    def add(self, key: int, outcome: Outcome) -> Outcome:
        """Take up an outcome; what it is after all, as one whose result cannot be written is a failure."""
        try:
            line = orjson.dumps({"key": key, **outcome.as_json()})
        except TypeError as error:
            outcome = replace(
                outcome, outcome="failed", result=None, error=f"its result cannot be stored: {error}", error_kind=""
            )
            line = orjson.dumps({"key": key, **outcome.as_json()})
        self._pending.append(line)
        return outcome

    def flush(self) -> None:
        """Write what was added; after it, a killed process no longer loses it. Without room it is left for the next time."""
        if not self._pending:
            return
        text = b"\n".join(self._pending) + b"\n"
        try:
            written = os.write(self._file, text)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return
        if written < len(text):  # a line that was cut off would spoil the next one
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            return
        self._size += written
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


def read_outcomes(path: Path) -> dict[int, Outcome]:
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
            if "said" in entry:  # a runner of the release before wrote the line
                entry["digest"] = entry.pop("said")
            found[key] = Outcome(**entry)
    return found


def ends_of_orphans(folder: Path, orphans: dict[int, int]) -> dict[int, Outcome]:
    """How attempts without an owner have ended, by their calls; `orphans` are attempts by calls.

    Their processes are ended first; then what they left in an outcome file counts, and the others are lost.
    """
    end_attempts(host.instance_name(), set(orphans.values()))
    left: dict[int, Outcome] = {}
    for path in folder.glob("outcomes-*.jsonl"):
        left.update(read_outcomes(path))
    found: dict[int, Outcome] = {}
    for key, attempt in orphans.items():
        outcome = left.get(key) or Outcome("lost", error="its runner ended before it did")
        outcome.attempt = attempt
        if outcome.unwritten is not None:
            begins, text = outcome.unwritten
            known = max(durable_characters(attempt), begins)
            outcome.unwritten = known, text[known - begins :]
        found[key] = outcome
    return found
