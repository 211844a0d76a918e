"""The books: what is reserved, settled and unknown adds up, also where several write at once or one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from django.db import connection, connections
from django.utils import timezone

from agents.minds.budgets.ledger import Demand, Granted, NoRoom, Settlement, Short, Used, keep_books, raise_place
from agents.minds.budgets.places import Limits, Need, Place
from agents.models import Reservation, Runner, Session, Spending
from agents.services import sessions
from agents.streams.door import door, system_stream

pytestmark = pytest.mark.django_db(transaction=True)
FREE = Limits(None, None, None)


def demand(session, tokens=100, micros=None, *, task=0, limits=FREE, seconds=300.0) -> Demand:
    return Demand(1, session, task, "main", limits, Need(tokens, micros), seconds)


def ask(*demands, settlements=(), runner=None, release=False):
    return keep_books(demands, settlements, runner, {}, release=release)


def budget(**fields) -> int:
    with door(system_stream(), "system") as opened:
        row = {"id": opened.take(), "scope": "session", "per": "total", "then": "stop", "created_at": opened.turn.at, **fields}
        opened.turn.record("budget_created", add={"budget": [row]})
    return row["id"]


def spent(scope="session", key=0, period="") -> Spending:
    return Spending.objects.get(scope=scope, key=key, period=period)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, by=f"user:{operator.pk}").pk


def test_a_try_is_reserved_and_then_settled_everywhere(session, operator):
    (granted,) = ask(demand(session, 100, 500, task=9))
    for scope, key in (("session", session), ("user", operator.pk), ("installation", 0), ("task", 9)):
        row = spent(scope, key)
        assert (row.open_calls, row.open_tokens, row.open_micros, row.calls) == (1, 100, 500, 0)
    ask(settlements=[Settlement(granted.reservation, Used(30, 10, 6, 120))])
    for scope, key in (("session", session), ("user", operator.pk), ("installation", 0), ("task", 9)):
        row = spent(scope, key)
        assert (row.open_calls, row.open_tokens, row.open_micros) == (0, 0, 0)
        assert (row.calls, row.input_tokens, row.cached_tokens, row.output_tokens, row.micros) == (1, 30, 10, 6, 120)
    today = f"{timezone.now():%Y-%m-%d}"
    assert spent("user", operator.pk, today).micros == 120


def test_what_nobody_told_stays_reserved_as_unknown_until_somebody_does(session):
    (granted,) = ask(demand(session, 100, 500))
    for _ in range(2):
        ask(settlements=[Settlement(granted.reservation, None)])
        row = spent(key=session)
        assert (row.open_tokens, row.unknown_calls, row.unknown_tokens, row.unknown_micros) == (0, 1, 100, 500)
    for _ in range(2):
        ask(settlements=[Settlement(granted.reservation, Used(1, 0, 2, 3))])
        row = spent(key=session)
        assert (row.unknown_calls, row.unknown_tokens, row.calls, row.output_tokens) == (0, 0, 1, 2)


def test_tokens_without_a_price_are_said_to_be_so(session):
    (granted,) = ask(demand(session, 100, None))
    ask(settlements=[Settlement(granted.reservation, Used(30, 0, 6, None))])
    assert (spent(key=session).micros, spent(key=session).unpriced_tokens) == (0, 36)


def test_a_budget_lets_in_what_fits_and_no_more(session):
    key = budget(tokens=250)
    one, two, three = ask(*[demand(session)] * 3)
    assert [type(one), type(two)] == [Granted] * 2
    assert isinstance(three, Short)
    assert (three.facts["budget"], three.facts["needed"], three.facts["left"]) == (key, 100, 50)
    ask(settlements=[Settlement(one.reservation, Used(5, 0, 5, None))])
    assert isinstance(ask(demand(session))[0], Granted), "what was reserved and not used is free again"


def test_a_raised_budget_has_room_again(session):
    budget(tokens=100)
    ask(demand(session))
    (short,) = ask(demand(session))
    raise_place(Place(short.facts["scope"], short.facts["key"], short.facts["period"]), "tokens", 100)
    assert isinstance(ask(demand(session))[0], Granted)


def test_what_a_session_started_counts_for_it(session, operator):
    child = sessions.session_create(operator, by=f"user:{operator.pk}").pk
    Session.objects.filter(pk=child).update(parent=session, depth=1)
    budget(subject=session, tokens=150)
    assert isinstance(ask(demand(child))[0], Granted)
    assert isinstance(ask(demand(session))[0], Short)


def test_a_warning_is_given_once(session):
    budget(tokens=200)
    (first,) = ask(demand(session, 160))
    (second,) = ask(demand(session, 20))
    assert [facts["bound"] for facts in first.warnings] == [200]
    assert second.warnings == ()


def test_calls_in_flight_are_let_in_one_after_the_other(session):
    limits = Limits(None, None, 2)
    one, two, three = ask(*[demand(session, limits=limits)] * 3)
    assert [type(one), type(two)] == [Granted] * 2
    assert three == NoRoom(None)
    again = ask(demand(session, limits=limits), settlements=[Settlement(one.reservation, Used())])
    assert isinstance(again[0], Granted)


def test_requests_of_a_minute_are_counted_over_all(session):
    limits = Limits(2, None, None)
    assert [isinstance(each, Granted) for each in ask(*[demand(session, limits=limits)] * 3)] == [True, True, False]
    (late,) = ask(demand(session, limits=limits))
    assert 55 < late.wait_s <= 60


def test_what_a_dead_runner_reserved_is_unknown_and_holds_no_place(session):
    limits, now = Limits(None, None, 1), timezone.now()
    runner = Runner.objects.create(host="h", pid=1, pid_start=1, files="", started_at=now, renewed_at=now)
    ask(demand(session, limits=limits), runner=runner.pk)
    assert ask(demand(session, limits=limits), release=True) == [NoRoom(None)], "its runner lives"
    Runner.objects.update(state="ENDED")
    assert isinstance(ask(demand(session, limits=limits), release=True)[0], Granted)
    assert spent(key=session).unknown_tokens == 100


def test_what_is_open_for_longer_than_any_call_is_unknown(session):
    ask(demand(session, seconds=-1.0))
    ask(release=True)
    assert Reservation.objects.get().state == "unknown"


def in_threads(count, body):
    failed: list[BaseException] = []

    def work(number):
        try:
            body(number)
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_those_who_reserve_at_once_never_exceed_a_budget_or_a_limit(session):
    budget(tokens=1_000)
    granted: list[int] = []

    def reserve(number):
        for _ in range(8):
            (answer,) = ask(demand(session, 100, limits=Limits(None, None, 7)))
            if isinstance(answer, Granted):
                granted.append(answer.reservation)

    in_threads(4, reserve)
    assert len(granted) == 7
    in_threads(3, lambda number: [ask(settlements=[Settlement(each, Used(50, 0, 50, None))]) for each in granted[number::3]])
    in_threads(4, reserve)
    assert len(granted) == 10, "seven hundred are used, and three times a hundred are left"
    assert spent(key=session).open_tokens + spent(key=session).input_tokens + spent(key=session).output_tokens == 1_000


KILLED = """
import os, sys, time, django
django.setup()
from django.utils import timezone
from agents.minds.budgets.ledger import Demand, keep_books
from agents.minds.budgets.places import Limits, Need
while True:
    demand = Demand(1, int(sys.argv[1]), 0, "main", Limits(None, None, 50), Need(10, None), 300.0)
    keep_books([demand], [], int(sys.argv[2]), {})
    print("reserved", flush=True)
"""


def test_a_process_that_is_killed_while_it_reserves_leaves_books_that_add_up(session):
    now = timezone.now()
    runner = Runner.objects.create(host="h", pid=1, pid_start=1, files="", started_at=now, renewed_at=now).pk
    name, found = connection.settings_dict["NAME"], connection.settings_dict
    url = f"sqlite:///{name}" if connection.vendor == "sqlite" else (
        f"postgresql://{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT']}/{name}"
    )  # fmt: skip
    environment = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
    command = [sys.executable, "-c", KILLED, str(session), str(runner)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(5):
            assert process.stdout.readline().strip() == "reserved"
        process.send_signal(signal.SIGKILL)
    row, rows = spent(key=session), Reservation.objects.filter(state="open")
    assert rows.count() >= 5
    assert (row.open_calls, row.open_tokens) == (rows.count(), 10 * rows.count())
    Runner.objects.update(state="ENDED")
    ask(release=True)
    row = spent(key=session)
    assert (row.open_calls, row.unknown_calls) == (0, Reservation.objects.filter(state="unknown").count())
    assert not rows.exists()
