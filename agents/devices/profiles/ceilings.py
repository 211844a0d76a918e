"""How far whoever may make devices raises their limits; only admins go beyond (docs/devices.md, "Ceilings"). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from agents.devices.limits import DEFAULT_MEMORY_MB, DEFAULT_OUTPUT_MB, DEFAULT_PROCESSES, DEFAULT_SECONDS
from agents.devices.readings import DEFAULTS, HOLD_S

SESSION_SLOTS = 1000
"""Slots that one session has at one time at most, whatever is said."""
MAX_CONCURRENT = 4
"""Slots of a device that says nothing."""
CEILINGS: dict[str, float] = {
    "seconds": 86_400, "memory_mb": 16_384, "output_mb": 100, "processes": 512, "max_concurrent": 64,
    "pause_memory_percent": 95, "pause_disk_percent": 95, "pause_hold_s": 300,
}  # fmt: skip
"""Unless the installation says otherwise (ORRERY_DEVICE_CEILINGS)."""
UNSAID: dict[str, float] = {
    "seconds": DEFAULT_SECONDS, "memory_mb": DEFAULT_MEMORY_MB, "output_mb": DEFAULT_OUTPUT_MB,
    "processes": DEFAULT_PROCESSES, "max_concurrent": MAX_CONCURRENT, "pause_hold_s": HOLD_S,
    **{f"pause_{name}_percent": percent for name, percent in DEFAULTS.items()},
}  # fmt: skip
"""What counts where nothing is said."""
POWERS = ("env", "path")
"""Limits that are none: what commands see, and where their programs are found. Only admins give them."""
SWITCHES = ("network",)
"""Limits that are true or false."""
LIMITS = frozenset(UNSAID) - {"max_concurrent"} | {*POWERS, *SWITCHES}
"""All that limits may say."""


def find_excesses(
    limits: Mapping[str, Any], before: Mapping[str, Any] | None, ceilings: Mapping[str, float]
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """(limit, what is wrong) for each that only an admin may set so.

    Both mappings are a device's limits together with its `max_concurrent`; what stays as it was `before` is no matter.
    """
    for name, ceiling in ceilings.items():
        wanted, had = _reach(name, limits), _reach(name, before) if before is not None else -math.inf
        if wanted > ceiling and wanted > had:
            unsaid = "" if name in limits else " unless it is given"
            shown = "without end" if wanted == math.inf else f"{wanted:,g}"
            yield name, f"is {shown}{unsaid}; beyond {ceiling:,g} only an admin may raise it"
    for name in POWERS:
        if limits.get(name) != (before or {}).get(name):
            yield name, "says what commands see or run: only an admin may set it"
    if (before or {}).get("network", True) is False and limits.get("network", True):
        yield "network", "was taken away: only an admin may give it back"


def _reach(name: str, limits: Mapping[str, Any]) -> float:
    value = limits.get(name, UNSAID[name])
    return math.inf if not value and name.endswith("_percent") else value or 0
