"""The platforms of devices: what kind of agent works on one. Pure."""

from __future__ import annotations

PLATFORMS = ("shell", "mcp", "acp", "browser")
"""A shell with a workspace, a server of tools, a coding agent, a browser."""
OF_KIND = {"local": "shell", "remote": "shell", "mcp": "mcp", "acp": "acp", "browser": "browser"}


def platform_of_kind(kind: str) -> str:
    """The platform of a device whose profile says none; that of an unknown kind is unknown, too, and named like it."""
    return OF_KIND.get(kind, kind)
