"""Prompts as files: readable text with $names to be filled in, and a version in the first line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from string import Template

FIRST_LINE = "version: "


class PromptTemplate:
    """A file whose first line is `version: NAME`; the rest is the text, in which `$name` stands for a value.

    `text` is what the file holds, where that is kept elsewhere. Raises ValueError for one that does not begin so.
    """

    def __init__(self, path: Path, text: str | None = None):
        head, _, body = (path.read_text() if text is None else text).partition("\n")
        if not head.startswith(FIRST_LINE):
            raise ValueError(f"{path.name}: its first line must be `{FIRST_LINE}NAME`")
        self.number = head.removeprefix(FIRST_LINE).strip()
        self.version = f"{path.stem}/{self.number}"
        self._template = Template(body.strip() + "\n")

    def find_flaw(self, known: Collection[str]) -> str:
        """Why it cannot be filled in with values of the `known` names; empty where it can."""
        if not self._template.is_valid():
            return "has a dollar sign that begins no name; $$ stands for one"
        unknown = sorted(set(self._template.get_identifiers()) - set(known))
        return f"has no value for ${unknown[0]}; there are {', '.join(f'${name}' for name in known)}" if unknown else ""

    def render(self, values: Mapping[str, object]) -> str:
        """The text with all its names filled in; raises KeyError for one without a value."""
        return self._template.substitute(values)


@cache
def load_template(path: Path) -> PromptTemplate:
    """Read once in a process."""
    return PromptTemplate(path)
