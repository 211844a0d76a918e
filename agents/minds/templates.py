"""Prompts as files: readable text with $names to be filled in, and a version in the first line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

FIRST_LINE = "version: "


class PromptTemplate:
    """A file whose first line is `version: NAME`; the rest is the text, in which `$name` stands for a value."""

    def __init__(self, path: Path):
        head, _, text = path.read_text().partition("\n")
        if not head.startswith(FIRST_LINE):
            raise ValueError(f"{path.name}: its first line must be `{FIRST_LINE}NAME`")
        self.version = f"{path.stem}/{head.removeprefix(FIRST_LINE).strip()}"
        self._template = Template(text.strip() + "\n")

    def render(self, values: Mapping[str, object]) -> str:
        """The text with all its names filled in; raises KeyError for one without a value."""
        return self._template.substitute(values)


@cache
def load_template(path: Path) -> PromptTemplate:
    """Read once in a process."""
    return PromptTemplate(path)
