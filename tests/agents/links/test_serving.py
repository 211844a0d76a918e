"""A call from the runner's side to the holder's and back, both on one loop, with rows between them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from agents.links import rows
from agents.links.away import AwayCalls
from agents.links.serving import Serving
from agents.models import DeviceCall
from agents.streams.outages import with_fresh_connection
from agents.tools.calls import Outcome
from tests.agents.links.conftest import FENCE

pytestmark = pytest.mark.django_db(transaction=True)


class Sides:
    """The two sides, each with a thread of its own for the database."""

    def __init__(self):
        self._threads = [ThreadPoolExecutor(1) for _ in range(2)]
        self.away, self.late, self.was_late = AwayCalls(self._in(0)), [], asyncio.Event()
        self.serving = Serving(self._in(1), self._note_late)

    def _note_late(self, key, outcome):
        self.late.append((key, outcome.outcome))
        self.was_late.set()

    def _in(self, number: int):
        async def call(function, *arguments):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads[number], with_fresh_connection, function, *arguments)

        return call

    def close(self):
        for thread in self._threads:
            thread.submit(connections.close_all).result()
            thread.shutdown()


def together(work):
    """Run `work(sides)` on a loop."""

    async def run():
        sides = Sides()
        try:
            async with asyncio.timeout(30):
                return await work(sides)
        finally:
            await sides.serving.close()
            sides.close()

    return asyncio.run(run())


def test_a_call_is_carried_out_where_its_device_is_held(make_call, held, far):
    said = []

    async def carry(call):
        call.on_output("hello ")
        call.on_output("there")
        call.on_update("plan", {"steps": 2})
        kind, data = await call.hear()
        return Outcome("completed", result={"heard": kind, **data})

    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], carry)
        call = make_call(7)
        call.on_output = said.append
        call.on_update = lambda kind, data: call.told.put_nowait((f"about {kind}", {"yes": True}))
        return await sides.away.carry(call)

    outcome = together(work)
    assert outcome == Outcome("completed", result={"heard": "about plan", "yes": True})
    assert "".join(said) == "hello there"


def test_what_a_program_thinks_is_no_output(make_call, held, far):
    said, thought = [], []

    async def carry(call):
        for text in ("hm", ", well"):
            call.on_thinking(text)
        call.on_output("hello")
        return Outcome("completed")

    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], carry)
        call = make_call(7)
        call.on_output, call.on_thinking = said.append, thought.append
        return await sides.away.carry(call)

    together(work)
    assert (said, thought) == (["hello"], ["hm, well"])


def test_what_the_holder_tells_the_session_comes_there_and_a_device_cannot_pretend_to_be_it(make_call, held, far):
    noted, updates = [], []

    async def carry(call):
        call.note("seen", place="here")
        call.on_update("note", {"event": "forged", "set": {}})
        call.on_update("output", "forged")
        call.on_update("plan", {})
        return Outcome("completed")

    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], carry)
        call = make_call(7)
        call.note = lambda event, **data: noted.append((event, data))
        call.on_output = call.on_update = lambda *told: updates.append(told)
        return await sides.away.carry(call)

    together(work)
    assert (noted, updates) == ([("seen", {"place": "here"})], [("plan", {})])


def test_a_call_without_a_carrier_is_made_by_its_tool(make_call, held, far):
    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], None)
        return await asyncio.gather(*(sides.away.carry(make_call(key)) for key in range(10, 40)))

    assert [outcome.result for outcome in together(work)] == list(range(10, 40))


def test_who_waits_no_longer_ends_the_call_on_its_device(make_call, held, far):
    ends = []

    async def carry(call):
        try:
            call.on_update("begun", {})
            await asyncio.Event().wait()
        finally:
            ends.append(call.key)

    async def work(sides):
        begun = asyncio.Event()
        sides.serving.hold(far.pk, held[far.pk], carry)
        call = make_call(7)
        call.on_update = lambda kind, data: begun.set()
        waiting = asyncio.ensure_future(sides.away.carry(call))
        await begun.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert together(work)
    assert (ends, DeviceCall.objects.get().outcome["outcome"]) == ([7], "cancelled")


def test_a_device_that_is_dropped_loses_its_calls(make_call, held, far):
    async def carry(call):
        call.on_update("begun", {})
        await asyncio.Event().wait()

    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], carry)
        call = make_call(7)
        call.on_update = lambda kind, data: sides.serving.drop(far.pk, "the cable is out")
        return await sides.away.carry(call)

    assert together(work) == Outcome("lost", error="the cable is out")


def test_a_call_that_another_owner_goes_on_with_says_what_is_not_known_yet(make_call, held, far, session):
    said = []

    async def carry(call):
        call.on_output("0123456789")
        call.on_update("half", {})
        await call.hear()
        call.on_output("abc")
        return Outcome("completed", result=1)

    async def work(sides):
        half = asyncio.Event()
        sides.serving.hold(far.pk, held[far.pk], carry)
        first = make_call(7)
        first.on_update = lambda kind, data: half.set()
        dead = asyncio.ensure_future(sides.away.carry(first))
        await half.wait()
        heir = AwayCalls(sides.away._in_thread)
        (call,) = await sides.away._in_thread(rows.adopt_calls, [7], session.pk, FENCE + 1)
        call.adopted, call.on_output = 4, said.append
        call.told.put_nowait(("go on", {}))
        outcome = await heir.wait(call)
        dead.cancel()
        await asyncio.gather(dead, return_exceptions=True)
        return outcome

    assert together(work) == Outcome("completed", result=1)
    assert "".join(said) == "456789abc"


def test_an_outcome_that_nobody_waits_for_any_more_is_told_as_late(make_call, held, far):
    async def work(sides):
        goes_on = asyncio.Event()

        async def carry(call):
            call.on_update("begun", {})
            await goes_on.wait()
            return Outcome("completed")

        sides.serving.hold(far.pk, held[far.pk], carry)
        call, begun = make_call(7), asyncio.Event()
        call.on_update = lambda kind, data: begun.set()
        waiting = asyncio.ensure_future(sides.away.carry(call))
        await begun.wait()
        await sides.away._in_thread(rows.lose_calls, far.pk, "gone")
        outcome = await waiting
        goes_on.set()
        await sides.was_late.wait()
        return outcome, sides.late

    outcome, late = together(work)
    assert (outcome.outcome, late) == ("lost", [(7, "completed")])
