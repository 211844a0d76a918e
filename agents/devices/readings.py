"""How much of a device's memory, disk and processors is in use, and when that is too much to go on working.

`Pressure` is pure: it judges by the readings it is given and their own times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOLD_S = 30.0
"""A limit counts when exceeded so long without interruption."""
ENDS_BELOW = 5.0
"""Percentage points below its limit at which a resource is no longer short; half the limit where that is more."""
DEFAULTS = {"memory": 95.0, "disk": 95.0, "cpu": 0.0}
"""Limits in percent; 0 is no limit."""
MOST_HOLD_S = 86_400.0
PROC_BYTES = 1 << 16
"""Of a file in /proc that is looked at."""

Ticks = tuple[int, int]
"""The processors' busy and all ticks since the boot."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one device at `at` (seconds of the host's monotonic clock). In percent; None is what could not be read.

    `ticks` is what the next reading's processors are measured against.
    """

    memory_percent: float | None
    disk_percent: float | None
    cpu_percent: float | None
    at: float
    ticks: Ticks | None = None


def take_reading(workspace: Path, before: Reading | None = None) -> Reading:
    """As things are now; the processors' since `before`, None without it. The disk is the workspace's."""
    ticks = cpu_ticks(_proc("stat"))
    cpu = cpu_percent(before.ticks if before else None, ticks)
    return Reading(memory_percent(_proc("meminfo")), disk_percent(workspace), cpu, time.monotonic(), ticks)


def memory_percent(meminfo: str) -> float | None:
    """Of the memory, what is not available, from the text of /proc/meminfo."""
    sizes = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    try:
        total, available = (int(sizes[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    except (KeyError, IndexError, ValueError):
        return None
    return _percent(total - available, total)


def cpu_ticks(stat: str) -> Ticks | None:
    """From the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (guests count as user)."""
    try:
        name, *parts = stat.split("\n", 1)[0].split()
        ticks = [int(part) for part in parts[:8]]
    except ValueError:
        return None
    return (sum(ticks) - ticks[3] - ticks[4], sum(ticks)) if name == "cpu" and len(ticks) >= 5 else None


def cpu_percent(before: Ticks | None, now: Ticks | None) -> float | None:
    return _percent(now[0] - before[0], now[1] - before[1]) if before and now else None


def disk_percent(workspace: Path) -> float | None:
    """Of the file system of `workspace` (or where it would be), as df counts: what is kept for root is no free space."""
    try:
        found = os.statvfs(next(path for path in (workspace, *workspace.parents) if path.exists()))
    except (OSError, StopIteration):
        return None
    used = found.f_blocks - found.f_bfree
    return _percent(used, used + found.f_bavail)


def uptime_s() -> float | None:
    """Seconds since the host's boot."""
    try:
        return float(_proc("uptime").split()[0])
    except (IndexError, ValueError):
        return None


def _percent(part: int, whole: int) -> float | None:
    return round(min(max(100 * part / whole, 0.0), 100.0), 1) if whole > 0 else None


def _proc(name: str) -> str:
    """The beginning of a file in /proc; empty when it cannot be read."""
    try:
        with open(f"/proc/{name}", encoding="ascii", errors="replace") as file:
            return file.read(PROC_BYTES)
    except OSError:
        return ""


@dataclass(slots=True)
class Pressure:
    """Says when a device is low on something. `limits` are percentages by resource (memory, disk, cpu); 0 is no limit."""

    limits: Mapping[str, float] = field(default_factory=lambda: DEFAULTS)
    hold_s: float = HOLD_S
    _since: dict[str, float] = field(default_factory=dict)
    _low: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, limits: Mapping[str, Any]) -> Pressure:
        """From a device's limits: pause_memory_percent, pause_disk_percent, pause_cpu_percent, pause_hold_s, each optional.

        Raises ValueError naming the key whose value is not a number in its range.
        """
        percentages = {name: _number(limits, f"pause_{name}_percent", default, 100) for name, default in DEFAULTS.items()}
        return cls(percentages, _number(limits, "pause_hold_s", HOLD_S, MOST_HOLD_S))

    def take(self, reading: Reading) -> str:
        """Why the device is low ("memory 97.1% for 30 s, limit 95%"), as it was when that began; empty when it is not.

        What could not be read is not low, and interrupts what was exceeded.
        """
        low = []
        for name, limit in self.limits.items():
            if not limit:
                continue
            used: float | None = getattr(reading, f"{name}_percent")
            # What is short stays short until it is clearly below its limit, so that work does not begin and stop by turns.
            ends = max(limit - ENDS_BELOW, limit / 2) if name in self._low else limit
            if used is None or not used > ends:
                self._since.pop(name, None)
                self._low.pop(name, None)
                continue
            since = self._since.setdefault(name, reading.at)
            if name not in self._low and reading.at - since >= self.hold_s:
                self._low[name] = f"{name} {used:.1f}% for {self.hold_s:g} s, limit {limit:g}%"
            if name in self._low:
                low.append(self._low[name])
        return "; ".join(low)


def _number(limits: Mapping[str, Any], key: str, default: float, most: float) -> float:
    value = limits.get(key, default)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{key} must be a number from 0 to {most:g}, not {value!r}")
    return float(value)
