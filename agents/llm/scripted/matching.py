"""Which requests an answer of a script is for, and what of a request comes back in its answer. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request, in whichever protocol.

    `last` is all that came after the model's last turn: words and results of tools. `said` is that of the whole conversation,
    without the system prompt; `turn` counts the turns that the model has had. `pictures` are the SHA-256 digests of all that it
    is shown, in their order.
    """

    model: str
    system: str
    last: str
    tools: tuple[str, ...]
    key: str
    body: Mapping[str, Any]
    said: str = ""
    turn: int = 0
    pictures: tuple[str, ...] = ()


def digest_of_base64(text: str) -> str:
    """The SHA-256 digest of what a request holds as base64; raises ValueError where it is none."""
    return hashlib.sha256(base64.b64decode(text, validate=True)).hexdigest()


@dataclass(frozen=True)
class When:
    """Which requests an answer is for: all that is given must hold. `matches` is looked for in the whole conversation."""

    last: str = ""
    said: str = ""
    system: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    turn: int | None = None
    pictures: int | None = None
    matches: re.Pattern[str] | None = None

    def find(self, asked: Asked) -> Mapping[str, str] | None:
        """The named groups of `matches` where the request is one of these; None where it is not."""
        fits = (
            self.last in asked.last
            and self.said in asked.said
            and self.system in asked.system
            and self.model in ("", asked.model)
            and set(self.tools) <= set(asked.tools)
            and self.turn in (None, asked.turn)
            and self.pictures in (None, len(asked.pictures))
        )
        if not fits or self.matches is None:
            return {} if fits else None
        found = self.matches.search(asked.said)
        return None if found is None else {name: text or "" for name, text in found.groupdict().items()}


def fill_text(text: str, groups: Mapping[str, str]) -> str:
    """`text` with the groups in place of their `$names`; other dollar signs stay."""
    return Template(text).safe_substitute(groups) if groups else text


def fill_json(text: str, groups: Mapping[str, str]) -> str:
    """The same where `text` is JSON and the names stand in its strings."""
    return fill_text(text, {name: json.dumps(value)[1:-1] for name, value in groups.items()})
