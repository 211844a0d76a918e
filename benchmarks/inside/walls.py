"""What the walls around commands cost: the same commands behind each kind that this machine has, and behind none, in turn."""

import asyncio
import os
import statistics
from pathlib import Path

from django.conf import settings

from agents.devices.confinement import MECHANISMS, NONE, ConfinementMissing, Walls, find_confinement
from agents.devices.limits import CommandLimits
from agents.devices.local import run_command
from benchmarks.inside.commands import name_of
from benchmarks.inside.tools import clock
from benchmarks.machine import memory

QUICK = ["true"]
SAYS = ["sh", "-c", "echo 1"]
SLEEPS = ["sh", "-c", "echo 1; exec sleep 600"]
AT_ONCE = 8


def measure(trials: int) -> dict[str, dict[str, float]]:
    """By mechanism: ms of one command and to its first byte (medians), commands/s of AT_ONCE side by side, MB of its frame."""
    kinds = [NONE, *(kind for kind in MECHANISMS if holds(kind))]
    return asyncio.run(_measured(kinds, trials))


def holds(mechanism: str) -> bool:
    try:
        return find_confinement(mechanism, settings.STATE_DIR).mechanism == mechanism
    except ConfinementMissing:
        return False


async def _measured(kinds: list[str], trials: int) -> dict[str, dict[str, float]]:
    whole: dict[str, list[float]] = {kind: [] for kind in kinds}
    first: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(trials):  # in turn, so that all meet the same machine
        for kind in kinds:
            whole[kind].append((await _timed(kind, QUICK))[1])
            first[kind].append((await _timed(kind, SAYS))[0])
    return {
        kind: {
            "whole": statistics.median(whole[kind]) * 1000, "first": statistics.median(first[kind]) * 1000,
            "rate": await _rate(kind, trials), "memory": await _frame(kind),
        }
        for kind in kinds
    }  # fmt: skip


async def _timed(kind: str, argv: list[str]) -> tuple[float, float]:
    """Seconds to the first byte, and to the command's end as its runner knows it."""
    began, heard = clock(), []
    await _run(kind, argv, 1, lambda text: heard.append(clock() - began))
    return (heard or [0.0])[0], clock() - began


async def _run(kind: str, argv: list[str], attempt: int, on_output) -> None:
    home = settings.STATE_DIR / "workspaces" / kind
    shared = settings.STATE_DIR / "artifacts" / kind
    shared.mkdir(parents=True, exist_ok=True)
    hidden = (settings.STATE_DIR, settings.BASE_DIR)
    walls = None if kind == NONE else Walls(kind, (shared,), (settings.BASE_DIR / "examples",), (), hidden)
    ended = await run_command(
        argv, workspace=home, attempt_id=attempt, instance="benchmark", limits=CommandLimits(), timeout=None,
        on_output=on_output,
        walls=walls,
    )  # fmt: skip
    assert ended.outcome == "completed", ended


async def _rate(kind: str, trials: int) -> float:
    began = clock()
    for _ in range(max(1, trials // AT_ONCE)):
        await asyncio.gather(*(_run(kind, QUICK, attempt, lambda text: None) for attempt in range(1, AT_ONCE + 1)))
    return max(1, trials // AT_ONCE) * AT_ONCE / (clock() - began)


async def _frame(kind: str) -> float:
    """Proportional MB of what stands in front of a command that sleeps, the command itself left out."""
    begun = asyncio.Event()
    task = asyncio.ensure_future(_run(kind, SLEEPS, 1, lambda text: begun.set()))
    await begun.wait()
    taken = sum(memory(pid)[1] for pid in _descendants(os.getpid()) if name_of(pid) != "sleep")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return taken


def _descendants(pid: int) -> list[int]:
    found = [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return found + [one for child in found for one in _descendants(child)]
