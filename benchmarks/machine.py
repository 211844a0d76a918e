"""The machine under the benchmarks, and what a process takes of its memory."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def shape() -> dict[str, str]:
    """What numbers of this machine should be read with."""
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _field("/proc/cpuinfo", "model name"),
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "0 unknown"


def memory(pid: int) -> tuple[float, float]:
    """Resident and proportional memory of a process in MB; (0, 0) when it is gone."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0, 0.0
    sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in rollup.splitlines()[1:] if line.endswith("kB")}
    return sizes.get("Rss:", 0.0), sizes.get("Pss:", 0.0)
