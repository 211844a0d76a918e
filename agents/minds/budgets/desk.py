"""Where the tries of one process ask for room: what comes at one moment goes into one transaction, in a thread.

Who finds no room under a limit waits here, in the order of coming, and holds no thread. What is asked for again is asked for
when a try of this process has ended, when a minute is over, or after LOOK_S: another process may have ended one.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from agents.devices import host
from agents.errors import AgentsError
from agents.llm.faults import BudgetUsedUp, LimitReached
from agents.minds.budgets.ledger import Accounts, Answer, Demand, Granted, NoRoom, Settlement, Short, Used, keep_books
from agents.minds.budgets.places import say_amount, say_place
from agents.models import Runner
from agents.per_loop import one_per_loop
from agents.streams.door import door
from agents.streams.outages import outage_refusal, with_fresh_connection

DEMANDS = 1_000
"""Demands that one transaction looks at; the others wait for the next."""
LOOK_S = 0.5
"""Who waits for another process to end a call looks again after this, and up to half as much more."""
LONGEST_LOOK_S = 5.0
"""Also where a minute must pass first: what others reserve may turn out to be less."""
RELEASE_S = 1.0
"""Between two looks for what dead runners had reserved."""
SETTLE_S = 600.0
"""While the database is away a settlement is tried for so long; then its reservation becomes unknown when its time is over."""
AWAY_S = 0.5
"""Between two tries while it is away."""


@dataclass(eq=False)
class _Waiting:
    demand: Demand
    until: float
    granted: asyncio.Future[Granted]
    refused: Exception | None = None


@dataclass(eq=False)
class _Ended:
    settlement: Settlement
    written: asyncio.Future[None]
    until: float


@dataclass
class Desk:
    """The one of an event loop. Everything here runs in the loop but `_keep`, which runs in a thread."""

    _waiting: list[_Waiting] = field(default_factory=list)
    _ended: list[_Ended] = field(default_factory=list)
    _known: Accounts = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: int | None = None
    _release_at: float = 0.0

    async def reserve(self, demand: Demand, patience_s: float) -> int:
        """Wait for room, at most so many seconds: a reservation for the caller to settle. Raises LimitReached, BudgetUsedUp."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(demand, loop.time() + patience_s, loop.create_future())
        self._waiting.append(waiting)
        self._begin()
        try:
            granted = await waiting.granted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif waiting.granted.done() and not waiting.granted.cancelled():  # it was let in at this very moment
                self.settle_soon(waiting.granted.result().reservation, Used())
            raise
        return granted.reservation

    async def settle(self, reservation: int, used: Used | None) -> None:
        """What the try has used; None: nobody told. It is durable when this returns, or given up after SETTLE_S."""
        await asyncio.shield(self.settle_soon(reservation, used))

    def settle_soon(self, reservation: int, used: Used | None) -> asyncio.Future[None]:
        """The same for who cannot wait; where its process ends before, it is unknown."""
        loop = asyncio.get_running_loop()
        ended = _Ended(Settlement(reservation, used), loop.create_future(), loop.time() + SETTLE_S)
        self._ended.append(ended)
        self._begin()
        return ended.written

    def _begin(self) -> None:
        self._news.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Rounds until nobody waits."""
        while self._waiting or self._ended:
            self._news.clear()
            wait_s = await self._round()
            self._give_up_late()
            if wait_s and (self._waiting or self._ended):
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s * (1 + random.random() / 2)):  # noqa: S311  jitter is no secret
                        await self._news.wait()

    async def _round(self) -> float:
        """One transaction; seconds until the next one that may find more room, 0 for at once."""
        waiting, ended = self._waiting[:DEMANDS], self._ended
        del self._waiting[:DEMANDS]
        self._ended = []
        demands, settlements = [each.demand for each in waiting], [each.settlement for each in ended]
        try:
            answers = await sync_to_async(with_fresh_connection)(self._keep, demands, settlements)
        except Exception as error:  # whatever it is, nobody may wait for ever
            return self._take_refusal(waiting, ended, error)
        for settled in ended:
            if not settled.written.done():
                settled.written.set_result(None)
        return self._take_answers(waiting, answers)

    def _take_answers(self, waiting: Sequence[_Waiting], answers: Sequence[Answer]) -> float:
        stay: list[_Waiting] = []
        looks = [0.0] if self._waiting else []
        for each, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, NoRoom):
                if each.granted.cancelled():
                    continue
                each.refused = None
                stay.append(each)
                looks.append(LOOK_S if answer.wait_s is None else min(answer.wait_s, LONGEST_LOOK_S))
                looks.append(each.until - asyncio.get_running_loop().time())
            elif isinstance(answer, Short):
                _tell(each.granted, BudgetUsedUp(describe_shortage(answer.facts), answer.facts))
            elif each.granted.cancelled():
                self.settle_soon(answer.reservation, Used())
            else:
                each.granted.set_result(answer)
        self._waiting[:0] = stay
        return max(min(looks, default=0.0), 0.0)

    def _give_up_late(self) -> None:
        now = asyncio.get_running_loop().time()
        for each in [each for each in self._waiting if each.until <= now]:
            self._waiting.remove(each)
            limited = (
                f"the limits of model profile {each.demand.profile} had no room for the call in the time that it could wait"
            )
            _tell(each.granted, each.refused or LimitReached(limited))

    def _take_refusal(self, waiting: Sequence[_Waiting], ended: Sequence[_Ended], error: Exception) -> float:
        """Nothing is written. While the database is away everybody waits on, within bounds; any other error is theirs."""
        now, is_away = asyncio.get_running_loop().time(), outage_refusal(error) is not None
        for each in waiting:
            each.refused = error
        for settled in ended:
            if is_away and settled.until > now:
                self._ended.append(settled)
            elif is_away and not settled.written.done():
                settled.written.set_result(None)
            else:
                _tell(settled.written, error)
        if is_away:
            self._waiting[:0] = [each for each in waiting if not each.granted.cancelled()]
        else:
            for each in waiting:
                _tell(each.granted, error)
        return AWAY_S

    # --- in a thread

    def _keep(self, demands: Sequence[Demand], settlements: Sequence[Settlement]) -> list[Answer]:
        now = time.monotonic()
        release = now >= self._release_at
        if release:
            self._release_at = now + RELEASE_S
            self._runner = _own_runner()
        answers = keep_books(demands, settlements, self._runner, self._known, release=release)
        for demand, answer in zip(demands, answers, strict=True):
            for facts in answer.warnings if isinstance(answer, Granted) else ():
                _warn(demand, facts)
        return answers


desk_of_loop = one_per_loop(Desk)


def _tell(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _own_runner() -> int | None:
    """The runner whose process this is."""
    rows = Runner.objects.filter(host=host.boot_identity(), pid=os.getpid(), pid_start=host.process_start())
    return rows.exclude(state="ENDED").order_by("-pk").values_list("pk", flat=True).first()


def _warn(demand: Demand, facts: Mapping[str, Any]) -> None:
    """Say in the session's stream that a budget is nearly used up."""
    with suppress(AgentsError, DatabaseError), door(demand.session, "system") as opened:  # the session may be full, or gone
        opened.turn.record("budget_warned", call=demand.call, message=describe_warning(facts), **facts)


def describe_shortage(facts: Mapping[str, Any]) -> str:
    """In one sentence."""
    unit = facts["unit"]
    needed, left, bound = (say_amount(unit, facts[name]) for name in ("needed", "left", "bound"))
    return f"the budget of {say_place(facts)} is used up: the call may need {needed}, and {left} of {bound} are left"


def describe_warning(facts: Mapping[str, Any]) -> str:
    unit = facts["unit"]
    used, bound = (say_amount(unit, facts[name]) for name in ("used", "bound"))
    return f"the budget of {say_place(facts)} is nearly used up: {used} of {bound}"
