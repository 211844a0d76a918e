"""How the states of tasks look: a word and a shape, so that colour is never the only sign. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constellations.editor.draft import is_skipped

RING = "M2 8a6 6 0 1 0 12 0a6 6 0 1 0-12 0"
LOOKS = {
    "RUNNING": ("Running", "M5.5 3.5v9L12.5 8z"),
    "FAILED": ("Failed", "M4 4l8 8M12 4l-8 8"),
    "PENDING": ("Pending", f"M8 4.2V8l2.6 1.8{RING}"),
    "WAITING_DEPENDENCY": ("Waiting", "M3.2 8h.1M8 8h.1M12.8 8h.1"),
    "COMPLETED": ("Completed", "M3 8.6L6.3 12L13 4.6"),
    "SKIPPED": ("Skipped", "M3.4 4l4 4l-4 4M8.6 4l4 4l-4 4"),
    "CANCELLED": ("Cancelled", f"M3.8 12.2l8.4-8.4{RING}"),
}
"""The word and the shape, in a box of 16 x 16, of each state: first what is at work, what went wrong, what comes next."""


def shown_state(task: Mapping[str, Any]) -> str:
    """Its state, or SKIPPED for one that was cancelled because it could never start."""
    return "SKIPPED" if is_skipped(task) else task["state"]
