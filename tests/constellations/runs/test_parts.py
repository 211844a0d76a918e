"""Parts of a run by themselves: what they answer, without a runner, a database and the parts that the answers are for."""

from itertools import count

import pytest

from agents.clock import to_iso
from agents.streams.tables import TABLES
from agents.streams.turn import Turn
from agents.tools.calls import Outcome
from constellations.live.live import LiveGraph
from constellations.runs.attempts import assignments
from constellations.runs.attempts.ends import cancellation, cut_off, end_attempt, overdue
from constellations.runs.attempts.lost import ASKS
from constellations.runs.attempts.timers import Timers
from constellations.runs.context import Context, Start

NOW = 1_000_000.0
DEVICE = 7


def task(number: int, key: str, **fields) -> dict:
    said = {"id": number, "constellation_id": 1, "task_id": key, "tool": "noop", "max_attempts": 2, **fields}
    return TABLES["task"].whole({"created_at": to_iso(NOW), "entered_at": to_iso(NOW), **said})


@pytest.fixture
def turn():
    return Turn(to_iso(NOW), "agent:2", count(1000).__next__)


@pytest.fixture
def interrupted():
    return []


@pytest.fixture
def ready():
    return []


def _nobody_told(key, kind, data):
    raise AssertionError(f"call {key} was told {kind}")


@pytest.fixture
def context(interrupted, ready):
    """`a` runs on the device, and `b` waits for it."""
    constellation = TABLES["constellation"].whole({"id": 1, "created_at": to_iso(NOW), "rules": [], "entered_at": to_iso(NOW)})
    made = Context(5, 1, {"id": 3}, {DEVICE: {"id": DEVICE}}, [], {}, interrupted.append, _nobody_told, ready.append)
    made.constellation, made.live = constellation, LiveGraph(constellation, ready.append)
    link = {"id": 30, "constellation_id": 1, "dependency_id": "a>b", "upstream_id": 10, "downstream_id": 11}
    made.live.load(
        [task(10, "a", state="RUNNING", attempt=1, device_id=DEVICE), task(11, "b")],
        [TABLES["dependency"].whole({**link, "type": "SUCCESS_ONLY"})],
    )
    return made


@pytest.fixture
def start(context):
    agent = TABLES["agent"].whole({"id": 20, "state": "CONTINUE", "entered_at": to_iso(NOW)})
    attempt = TABLES["attempt"].whole({"id": 21, "task_id": 10, "number": 1, "device_id": DEVICE, "holds_slot": True})
    context.attempts[21] = found = Start(context.live.nodes["a"], agent, attempt)
    return found


def moves(turn: Turn) -> list[tuple]:
    return [(event.data["machine"], event.data["event"]) for event in turn.events if event.type == "state_changed"]


def test_the_end_of_an_attempt_answers_the_slot_that_is_free_and_releases_what_depended_on_it(context, ready, turn, start):
    ended = end_attempt(context, turn, NOW, start, Outcome("completed", result=3))
    assert (ended.node.key, ended.freed_device) == ("a", DEVICE)
    assert [node.key for node in ready] == ["b"]
    assert context.attempts == {}
    assert turn.frees == {}  # that is for whoever counts slots
    assert moves(turn) == [("device_agent", "finish"), ("task", "succeed"), ("task", "ready")]
    assert turn.events[1].data["set"]["attempt"] == {
        "21": {"outcome": "completed", "ended_at": turn.at, "result": 3, "ran_s": 0.0}
    }


def test_an_attempt_that_waited_without_its_slot_gives_none_back(context, turn, start):
    start.loop, start.attempt["holds_slot"] = {"id": 22}, False
    assert end_attempt(context, turn, NOW, start, Outcome("completed")).freed_device is None
    assert moves(turn)[0] == ("task", "succeed")  # a crew has ended its agents by itself


def test_a_try_that_failed_leaves_its_task_with_a_time_and_the_last_one_with_none(context, ready, turn, start):
    row = start.node.row
    end_attempt(context, turn, NOW, start, Outcome("failed", error="no", exit_code=4))
    assert (row["state"], row["error_kind"], row["device_id"]) == ("PENDING", "exit_code", None)
    assert row["retry_at"] >= turn.at
    assert ready == []  # the time is for whoever keeps them
    row |= {"state": "RUNNING", "attempt": 2, "retry_at": None}
    context.attempts[21] = start
    start.agent["state"] = "CONTINUE"
    end_attempt(context, turn, NOW, start, Outcome("failed", error="no"))
    assert (row["state"], context.live.nodes["b"].row["state"]) == ("FAILED", "CANCELLED")


def test_a_lost_attempt_of_a_task_that_asks_waits_for_a_word_and_one_cut_off_by_a_pause_does_not_count(context, turn, start):
    row = start.node.row
    row["on_lost"] = "ask"
    end_attempt(context, turn, NOW, start, Outcome("lost", error="its runner was lost"))
    assert (row["state"], row["reason"]) == ("PENDING", ASKS)
    row |= {"state": "RUNNING"}
    context.attempts[21] = start
    start.agent["state"] = "CONTINUE"
    end_attempt(context, turn, NOW, start, Outcome("cancelled"))
    assert (row["state"], row["reason"], row["attempts_before"]) == ("PENDING", "interrupted", 1)


def test_what_is_cut_off_is_interrupted_once_that_is_durable_and_gives_its_slot_back(context, interrupted, turn, start):
    ended = cut_off(context, turn, start.node, start, cancellation(context, turn, "cancelled by user:1: no", "user:1"))
    assert (ended.freed_device, interrupted, context.attempts) == (DEVICE, [21], {})
    assert moves(turn) == [("device_agent", "cancel"), ("task", "cancel")]
    assert turn.events[1].by == "user:1"
    assert context.live.nodes["b"].row["state"] == "CANCELLED"


def test_a_task_that_waits_is_cut_off_without_an_attempt(context, interrupted, turn):
    node = context.live.nodes["b"]
    node.row["deadline"] = 2.5
    ended = cut_off(context, turn, node, None, overdue(context, turn, node))
    assert (ended.freed_device, interrupted) == (None, [])
    assert (node.row["state"], node.row["error"]) == ("FAILED", "its deadline of 2.5 s has passed")


def test_timers_tell_what_the_row_says_when_they_come(context, turn):
    timers, a, b = Timers(context), context.live.nodes["a"], context.live.nodes["b"]
    a.row["deadline"] = b.row["deadline"] = 1.0
    timers.set_deadlines(["a", "b", "gone"])
    assert timers.wake_at() == NOW + 1.0
    b.row["deadline"] = 9.0  # an edit gives it more time
    assert list(timers.take_due(turn, NOW + 0.5)) == []
    assert list(timers.take_due(turn, NOW + 1.0)) == [(a, True)]
    b.row |= {"state": "PENDING", "retry_at": to_iso(NOW + 2.0)}
    timers.set_retry(b)
    assert list(timers.take_due(turn, NOW + 2.0)) == [(b, False)]
    assert (b.row["retry_at"], turn.events[-1].type) == (None, "retry_due")
    assert timers.wake_at() is None


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({}, False),
        ({"confirm": True}, True),
        ({"tool": "steps"}, True),
        ({"policies": [{"tool": "noop", "pattern": "", "decision": "ask"}]}, True),
        ({"policies": [{"tool": "noop", "pattern": "", "decision": "allow"}]}, False),
    ],
)
def test_a_crew_is_needed_where_a_task_is_more_than_one_plain_call(context, fields, needed):
    device = {"id": DEVICE, "name": "laptop", "type": "", "platform": "shell", "capabilities": [], "labels": [], "limits": {}}
    row = task(12, "c", **fields)
    assert assignments.needs_crew(context, row, device) is needed
