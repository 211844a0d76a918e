"""The memory of a runner in another process while it carries out a graph."""

import time

from agents.models import InboxItem
from benchmarks.inside import load
from benchmarks.machine import memory

LOOK_S = 0.1


def watch(pid: int, tasks: int) -> dict:
    """Peaks in MB."""
    load.submit(load.layered(tasks))
    seen = [memory(pid)]
    while not InboxItem.objects.filter(state="done").exists():
        time.sleep(LOOK_S)
        seen.append(memory(pid))
    return {"rss": max(rss for rss, _ in seen), "pss": max(pss for _, pss in seen)}
