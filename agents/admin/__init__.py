"""The admin's read-only, searchable view of every row of `agents`. Django finds it by its name; nothing else calls it."""

from agents.admin import queue, rows, work

__all__ = ["queue", "rows", "work"]
