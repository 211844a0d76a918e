"""The tasks of a plan while a model still writes it: pieces of text go in, whole tasks come out. Pure.

What comes out is for the eye: nothing is checked but that it is an object, and the plan is read as a whole when it is there.
"""

from __future__ import annotations

import json
import re
from typing import Any

CHARACTERS = 1_000_000
"""Of a text that are looked at; what follows is left to the plan's reader."""
TASKS = re.compile(r'"tasks"\s*:\s*\[')
LONGEST_KEY = 40
"""Characters at the end of a text in which the key `tasks` may have begun."""


class TaskReader:
    """Reads one text. The list of tasks may stand at any depth, after any other words; the first one counts."""

    def __init__(self) -> None:
        self._text = ""
        self._size = 0
        self._at = 0
        self._depth = 0
        self._begun = 0
        self._in_string = self._escaped = False
        self._in_list = self._done = False

    # `_text`: what is still to be looked at, and the task that is being written, from `_begun` on; `_at`: how far it has been
    # looked at; `_depth`: of brackets within the list; `_size`: characters so far.

    def feed(self, piece: str) -> list[dict[str, Any]]:
        """The tasks that are complete with this piece, as they are written."""
        if self._done:
            return []
        self._size += len(piece)
        if self._size > CHARACTERS:
            self._done = True
            return []
        self._text += piece
        found = self._read_tasks() if self._in_list or self._find_list() else []
        self._drop_read()
        return found

    def _drop_read(self) -> None:
        """Keep of the text only what is still needed."""
        in_list = self._begun if self._depth > 0 else self._at
        keep = in_list if self._in_list else max(0, len(self._text) - LONGEST_KEY)
        self._text, self._at, self._begun = self._text[keep:], max(0, self._at - keep), 0

    def _find_list(self) -> bool:
        found = TASKS.search(self._text)
        self._in_list = found is not None
        self._at = 0 if found is None else found.end()
        return self._in_list

    def _read_tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for at in range(self._at, len(self._text)):
            sign = self._text[at]
            if self._in_string:
                self._in_string = self._escaped or sign != '"'
                self._escaped = sign == "\\" and not self._escaped
            elif sign == '"':
                self._in_string = True
            elif sign in "{[":
                if not self._depth:
                    self._begun = at
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                if self._depth < 0:  # the list ends
                    self._done = True
                    break
                if not self._depth:
                    found += _read_task(self._text[self._begun : at + 1])
        self._at = len(self._text)
        return found


def _read_task(text: str) -> list[dict[str, Any]]:
    """The object that a text is; nothing where it is none."""
    try:
        task = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [task] if isinstance(task, dict) else []
