"""A kill storm: a whole installation at work, whose programs are killed one after the other. See docs/benchmarks.md."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.inside import storm_work
from benchmarks.inside.storm_target import KINDS, Target, WebWatch
from project.up.processes import send_signal

LOOK_S = 0.05
CALM_S = 3.0
"""From the first start to the first kill: how long gaps are when nobody kills."""
APART_S = 2.0
"""Between two kills, at least."""
PATIENCE_S = 90.0
"""An installation that has not recovered by then has stopped for good."""
CALM = "none"


class StoodStill(Exception):
    """Nothing went on."""


@dataclass(frozen=True)
class Strike:
    kind: str
    at: float
    killed: int


def measure(kills: int, tasks: int, token: str, seed: int) -> dict[str, Any]:
    """`kills` strikes while `tasks` commands run. Prints a line of JSON for each strike; returns the account."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended then too
    chance = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as free:
        target = Target(free.getsockname()[1])
    storm_work.submit(tasks, seed)
    notes, watch, began = storm_work.Notes(), WebWatch(target.port), time.monotonic()
    target.start()
    watch.start()
    try:
        storm = Storm(target, watch, notes, chance, tasks, kills)
        storm.wait(lambda: notes.starts(), "the first command")
        storm.calm()
        for kind in order_of(kills, chance):
            storm.strike(kind)
        storm.wait(storm_work.is_done, "the end of all work")
        storm.wait(lambda: target.is_whole() and not watch.is_out(), "everything to be there again")
        took = time.monotonic() - began
        found = storm_work.account(notes.read(), target.port, token)
    finally:
        target.end()
        watch.stop()
    return {**found, "tasks": tasks, "took": took, "kinds": storm.by_kind(), "strikes": kills}


def order_of(kills: int, chance: random.Random) -> list[str]:
    """As many of each kind as there can be, in rounds of a random order."""
    order: list[str] = []
    while len(order) < kills:
        order += chance.sample(KINDS, len(KINDS))
    return order[:kills]


class Storm:
    """Strikes when the installation has recovered from the last strike and has done its share of the work."""

    def __init__(
        self, target: Target, watch: WebWatch, notes: storm_work.Notes, chance: random.Random, tasks: int, kills: int
    ):  # fmt: skip
        self._target, self._watch, self._notes, self._chance = target, watch, notes, chance
        self._share = tasks // (2 * (kills + 1))
        self.strikes: list[Strike] = []

    def wait(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        began = len(self._notes.starts())
        while not condition():
            storm_work.is_done()  # says yes to whoever asks
            if self._target.has_ended():
                raise StoodStill(
                    f"up has ended by itself, see {self._target.output}:\n{self._target.output.read_text()[-2000:]}"
                )
            if len(self._notes.starts()) > began:
                began, deadline = len(self._notes.starts()), time.monotonic() + PATIENCE_S
            if time.monotonic() > deadline:
                raise StoodStill(f"waited {PATIENCE_S:g} s for {what}:\n{self._target.output.read_text()[-2000:]}")
            time.sleep(LOOK_S)

    def calm(self) -> None:
        """Nobody kills for a while, to compare with."""
        self.strikes.append(Strike(CALM, time.time(), 0))
        self.wait(lambda: self._recovered(CALM_S), "a calm beginning")

    def strike(self, kind: str) -> None:
        """Kill, and wait until everything has recovered."""
        if kind == "up":
            at, killed = time.time(), 1
            self._target.restart()
        else:
            victims = self._target.victims(kind, self._chance)
            at, killed = time.time(), sum(send_signal(one, signal.SIGKILL) for one in victims)
        self.strikes.append(Strike(kind, at, killed))
        self.wait(lambda: self._recovered(APART_S), f"recovery from {kind}")
        gap, out = self._gap(self.strikes[-1], time.time()), self._outage(self.strikes[-1], time.time())
        print(json.dumps({"strike": len(self.strikes) - 1, "kind": kind, "killed": killed, "gap": gap, "web": out}), flush=True)

    def _recovered(self, apart_s: float) -> bool:
        last = self.strikes[-1]
        since = sum(at > last.at for at in self._notes.starts())
        worked = since >= self._share or storm_work.is_done()
        return worked and time.time() - last.at > apart_s and not self._watch.is_out() and self._target.is_whole()

    def _gap(self, strike: Strike, until: float) -> float:
        """The longest time without a start that began, or went on, after the strike."""
        starts = [at for at in self._notes.starts() if at < until]
        before = max((at for at in starts if at <= strike.at), default=strike.at)
        return max(
            (later - earlier for earlier, later in pairwise([before, *(at for at in starts if at > strike.at)])), default=0.0
        )

    def _outage(self, strike: Strike, until: float) -> float:
        """The longest time without an answer of the web server that began after the strike."""
        spans = [(out[0], out[1] if len(out) > 1 else until) for out in self._watch.outages]
        return max((to - since for since, to in spans if strike.at - 1 < since < until), default=0.0)

    def by_kind(self) -> dict[str, dict[str, Any]]:
        """Of each kind of strike: how many, and gaps and outages in seconds, until the next strike."""
        ends = [strike.at for strike in self.strikes[1:]] + [max(self._notes.starts())]
        found: dict[str, dict[str, Any]] = {}
        for strike, until in zip(self.strikes, ends, strict=True):
            of_kind = found.setdefault(strike.kind, {"strikes": 0, "gaps": [], "web": []})
            of_kind["strikes"] += bool(strike.killed)
            of_kind["gaps"].append(round(self._gap(strike, until), 3))
            of_kind["web"].append(round(self._outage(strike, until), 3))
        return found
