"""The desk: what comes at one moment is one transaction, who finds no room waits without a thread, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from agents.llm.faults import BudgetUsedUp, LimitReached
from agents.minds.budgets import desk as desks
from agents.minds.budgets.desk import Desk
from agents.minds.budgets.ledger import Demand, Used, keep_books
from agents.minds.budgets.places import Limits, Need
from agents.models import Event, Reservation
from tests.agents.minds.budgets.test_ledger import budget, session, spent  # noqa: F401  a fixture

pytestmark = pytest.mark.django_db(transaction=True)
FREE = Limits(None, None, None)
GONE = psycopg.OperationalError("the connection is lost")


def demand(number, limits=FREE, of=5) -> Demand:
    return Demand(number, of, 0, "main", limits, Need(10, None), 300.0)


@pytest.fixture
def rounds(monkeypatch):
    """Sizes of the transactions: (demands, settlements)."""
    seen: list[tuple[int, int]] = []

    def keep(demands, settlements, *more, **how):
        seen.append((len(demands), len(settlements)))
        return keep_books(demands, settlements, *more, **how)

    monkeypatch.setattr(desks, "keep_books", keep)
    return seen


async def until(holds):
    while not holds():  # noqa: ASYNC110  what is waited for happens in the desk, which tells nobody
        await asyncio.sleep(0)


async def use(desk, number, limits=FREE, patience_s=20.0):
    reservation = await desk.reserve(demand(number, limits), patience_s)
    await desk.settle(reservation, Used(1, 0, 1, None))


def test_what_comes_at_one_moment_is_one_transaction(rounds):
    async def main():
        desk = Desk()
        await asyncio.gather(*(use(desk, number) for number in range(200)))

    asyncio.run(main())
    assert rounds == [(200, 0), (0, 200)]
    assert spent("installation").calls == 200


def test_who_waits_for_a_call_to_end_is_let_in_by_its_end_in_the_order_of_coming():
    order: list[int] = []

    async def one(desk, number):
        reservation = await desk.reserve(demand(number, Limits(None, None, 1)), 20.0)
        order.append(number)
        await desk.settle(reservation, Used())

    async def main():
        desk = Desk()
        await asyncio.gather(*(one(desk, number) for number in range(12)))
        return threading.active_count()

    before = threading.active_count()
    assert asyncio.run(main()) <= before + 1, "the waiting hold no threads"
    assert order == list(range(12))


def test_who_waits_longer_than_its_patience_is_told_so():
    async def main():
        desk = Desk()
        held = await desk.reserve(demand(1, Limits(None, None, 1)), 1.0)
        with pytest.raises(LimitReached, match="main"):
            await desk.reserve(demand(2, Limits(None, None, 1)), 0.2)
        await desk.settle(held, Used())

    asyncio.run(main())


def test_a_place_that_another_process_frees_is_found(monkeypatch):
    monkeypatch.setattr(desks, "LOOK_S", 0.05)

    async def main():
        here, there = Desk(), Desk()
        held = await there.reserve(demand(1, Limits(None, None, 1)), 1.0)
        waits = asyncio.create_task(here.reserve(demand(2, Limits(None, None, 1)), 20.0))
        await until(lambda: here._waiting)
        await there.settle(held, Used())
        await here.settle(await waits, Used())

    asyncio.run(main())
    assert spent("installation").calls == 2


def test_a_call_that_is_cancelled_while_it_waits_takes_no_room():
    async def main():
        desk = Desk()
        held = await desk.reserve(demand(1, Limits(None, None, 1)), 1.0)
        waits = asyncio.create_task(desk.reserve(demand(2, Limits(None, None, 1)), 20.0))
        await until(lambda: desk._waiting)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await desk.settle(held, Used())
        await use(desk, 3, Limits(None, None, 1))

    asyncio.run(main())
    assert not Reservation.objects.filter(state="open").exists()


def test_a_call_that_is_cancelled_while_it_is_let_in_gives_its_room_back(monkeypatch):
    reached = threading.Event()

    def keep(*arguments, **how):
        answers = keep_books(*arguments, **how)
        reached.set()
        return answers

    monkeypatch.setattr(desks, "keep_books", keep)

    async def main():
        desk = Desk()
        asks = asyncio.create_task(desk.reserve(demand(1), 20.0))
        await until(reached.is_set)
        asks.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asks
        await use(desk, 2)

    asyncio.run(main())
    assert not Reservation.objects.filter(state="open").exists()


def test_a_budget_without_room_is_said_with_its_amounts():
    budget(scope="user", tokens=5)

    async def main():
        await Desk().reserve(demand(1), 1.0)

    with pytest.raises(BudgetUsedUp, match="may need 10 tokens, and 5 tokens of 5 tokens are left") as refused:
        asyncio.run(main())
    assert refused.value.facts["needed"] == 10


@pytest.fixture
def refused(monkeypatch):
    """A function that lets the database refuse so many transactions with an error."""
    left: list[Exception] = []

    def keep(*arguments, **how):
        if left:
            raise left.pop()
        return keep_books(*arguments, **how)

    monkeypatch.setattr(desks, "keep_books", keep)
    monkeypatch.setattr(desks, "AWAY_S", 0.001)
    return lambda error, times=1: left.extend([error] * times)


def test_while_the_database_is_away_everybody_waits(refused):
    async def main():
        desk = Desk()
        refused(GONE, 3)
        reservation = await desk.reserve(demand(1), 20.0)
        refused(GONE, 3)
        await desk.settle(reservation, Used())

    asyncio.run(main())
    assert spent("installation").calls == 1


def test_who_has_waited_for_the_database_too_long_is_told_so(refused):
    refused(GONE, 10_000)

    async def main():
        await Desk().reserve(demand(1), 0.05)

    # Where the database is PostgreSQL, Django says its driver's error in its own words.
    with pytest.raises((psycopg.OperationalError, OperationalError), match="lost"):
        asyncio.run(main())


def test_a_fault_of_ours_is_told_at_once_and_nobody_waits_for_ever(refused):
    refused(ZeroDivisionError())

    async def main():
        await Desk().reserve(demand(1), 20.0)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_a_budget_that_is_nearly_used_up_is_an_event_of_the_session(session):  # noqa: F811
    budget(tokens=12)

    async def main():
        desk = Desk()
        for number in range(2):
            reservation = await desk.reserve(demand(number, of=session), 1.0)
            await desk.settle(reservation, Used())
        return await sync_to_async(list)(
            Event.objects.filter(stream=session, type="budget_warned").values_list("data", flat=True)
        )

    (told,) = asyncio.run(main())
    assert told["message"] == f"the budget of session {session} is nearly used up: 10 tokens of 12 tokens"
