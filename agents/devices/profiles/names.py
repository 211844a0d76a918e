"""Names that file systems, URLs and people can bear (docs/devices.md, "Names"). Pure."""

from __future__ import annotations

import re

NAME_LENGTH = 80
"""Characters."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
"""Devices of another operating system, which takes them for no files whatever follows behind a dot."""


def name_fault(name: object) -> str:
    """What keeps a text from naming a device or a label; empty when nothing does."""
    if not isinstance(name, str):
        return "must be text"
    if not name:
        return "must not be empty"
    if len(name) > NAME_LENGTH:
        return f"has {len(name)} characters, at most {NAME_LENGTH} are allowed"
    if not NAME.fullmatch(name):
        return "takes letters from A to Z, digits, and . _ - between them; it begins and ends with a letter or a digit"
    if ".." in name:
        return "has two dots side by side"
    return "is a name that some systems keep for themselves" if RESERVED.fullmatch(name) else ""


def same_name(name: str) -> str:
    """Equal for names that people and some file systems take for the same."""
    return name.casefold()
