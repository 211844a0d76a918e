"""What the next interaction is told of those before it."""

from __future__ import annotations

import pytest

from agents.models import Agent, InboxItem
from constellations.reads.memory import INTERACTIONS, RESULT, read_memory
from tests.constellations.runs.test_run import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def test_it_knows_what_was_asked_how_it_ended_and_what_it_brought(engine, device):
    session, first = engine.submit({"name": "digits", "tasks": [noop("a", {"accuracy": 0.92}), noop("b", after=["a"])]})
    engine.run()
    _, second = engine.submit({"name": "later", "tasks": [noop("c")]}, session)
    (told,) = read_memory(session.pk, second.pk)
    assert (told["request"], told["outcome"]) == ("(a plan) digits", "completed")
    assert told["summary"].startswith("2 of 2 tasks completed")
    assert {task["task_id"]: task.get("result") for task in told["tasks"]} == {"a": '{"accuracy": 0.92}', "b": None}
    assert read_memory(session.pk, first.pk) == []


def test_words_are_told_as_they_were_said_and_blackboards_with_them(engine, device):
    steps = [{"tool": "noop", "arguments": {"result": {"n": 7}}, "save": "found"}]
    session, item = engine.submit({"tasks": [{"task_id": "a", "device": "laptop", "steps": steps}]})
    engine.run()
    InboxItem.objects.filter(pk=item.pk).update(payload={"request": "count the files"})
    (told,) = read_memory(session.pk, item.pk + 10_000)
    assert told["request"] == "count the files"
    assert list(told["blackboards"].values()) == ['{"found": {"n": 7}}']
    assert Agent.objects.exclude(blackboard={}).count() == 1
    InboxItem.objects.filter(pk=item.pk).update(payload=item.payload)  # as its event has it


def test_only_the_last_are_told_oldest_first_and_results_are_cut(engine, device):
    session = None
    for number in range(INTERACTIONS + 2):
        session, item = engine.submit({"name": f"n{number}", "tasks": [noop("a", "x" * 5_000)]}, session)
    engine.run()
    told = read_memory(session.pk, item.pk + 10_000)
    assert [each["request"] for each in told] == [f"(a plan) n{number}" for number in range(2, INTERACTIONS + 2)]
    assert all(len(each["tasks"][0]["result"]) < RESULT + 50 for each in told)
