"""Actors at rest end after their time, by a clock that the tests set."""

import time

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.models import Actor, Event
from agents.services import sessions
from constellations.models import Constellation
from project.environment import seconds_of
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


class Clock:
    """The wall clock, and how far it is ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def state_after(engine, rests, seconds: float) -> list[str]:
    """States of all actors: once `rests` holds the clock jumps ahead, and the runner looks at its timers."""
    clock, looks = Clock(), []

    def until() -> bool:
        if not clock.ahead and rests():
            clock.ahead = seconds
        looks.append(bool(clock.ahead))
        return query("SELECT count(*) FROM agents_actor WHERE state = 'completed'") > 0 or sum(looks) > 20

    engine.run(until, clock=clock)
    return list(Actor.objects.order_by("epoch").values_list("state", flat=True))


def test_an_idle_actor_completes_after_its_limit_and_not_before(engine, device, settings):
    assert settings.IDLE_S == 600.0
    session, _ = engine.submit({"tasks": [noop("a")]})
    assert state_after(engine, inbox_rests, 590) == ["idle"]
    assert state_after(engine, lambda: is_pinged(session), 601) == ["completed"]
    assert Actor.objects.get().reason == "inactivity"
    assert Event.objects.filter(type="stopped").count() == 1


def is_pinged(session) -> bool:
    """A ping brings the session back into the memory of a runner, and its inactivity is counted anew."""
    if not query("SELECT count(*) FROM agents_inboxitem WHERE kind = 'ping'"):
        in_thread(sessions.request_submit, session.pk, "ping", "p", {}, by="user:1")
    return query("SELECT count(*) FROM agents_inboxitem WHERE kind = 'ping' AND state = 'done'") == 1


def test_the_limits_are_settings(engine, device, settings):
    settings.IDLE_S = 5.0
    engine.submit({"tasks": [noop("a")]})
    assert state_after(engine, inbox_rests, 6) == ["completed"]


def test_a_paused_actor_ends_with_its_work_and_with_what_it_held(engine, device, settings):
    assert settings.PAUSED_S == 86_400.0
    session, first = engine.submit({"tasks": [command("a", "sleep", "0.2"), noop("b", after=["a"])]})
    _, second = engine.submit({"tasks": [noop("c")]}, session)
    sent = []

    def is_paused() -> bool:
        if not sent and something_runs():
            sent.append(in_thread(sessions.request_submit, session.pk, "pause", "p", {}, by="user:1"))
        return query("SELECT count(*) FROM agents_actor WHERE state = 'paused'") == 1

    assert state_after(engine, is_paused, 86_401) == ["completed"]
    first.refresh_from_db(), second.refresh_from_db()
    assert [(item.state, item.outcome) for item in (first, second)] == [("done", "cancelled")] * 2
    assert second.result == {"summary": "inactivity"}
    engine.run()
    assert (Constellation.objects.count(), Actor.objects.count()) == (1, 1)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e30"])
def test_a_limit_that_is_no_time_is_named(monkeypatch, text):
    monkeypatch.setenv("ORRERY_IDLE_S", text)
    with pytest.raises(ImproperlyConfigured, match=r"^ORRERY_IDLE_S must be a number of seconds above 0, such as 600, not"):
        seconds_of("ORRERY_IDLE_S", 600)
