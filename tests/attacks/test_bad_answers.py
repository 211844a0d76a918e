"""Every way in which a model's answer can be bad, for whoever asks it: a clear record, and nothing that was done is lost."""

from __future__ import annotations

import pytest

from agents.llm.exchange import CALL_S, Patience
from agents.llm.library import calling
from agents.minds import asking
from agents.models import ModelCall, ModelProfile
from agents.services.model_profiles import model_profile_change
from constellations.models import Constellation, Edit, Task
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.constellations.runs.attempts.test_minds import FINISH, call, words
from tests.constellations.runs.weaving.conftest import ask, edited, planned, task, thinking  # noqa: F401  fixture

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

NOTHING = edited(thought="Nothing to do.")
LONG = "x" * 200_000
BROKEN_OFF = '{"observation": "as shown", "status": "CONTINUE", "constel'
TRANSPORT: dict[str, tuple[dict, str]] = {
    "garbage": ({"garbage": "<html>it works!</html>"}, "model_answer_unreadable"),
    "bytes that are no UTF-8": ({"garbage": b"\xff\xfe\x80 no text"}, "model_answer_unreadable"),
    "429": ({"fail": {"status": 429, "message": "slowly", "retry_after": 0}}, "model_rate_limited"),
    "500": ({"fail": {"status": 500, "message": "down"}}, "model_provider_failed"),
    "a dropped stream": ({"say": "half of it " * 20, "stop_after": 2}, "model_answer_broken"),
}
"""Tried again within the call: the row of the call names the fault among its tries."""
LONG_S, SHORT_S = 60.0, 1.0
SILENT: dict[str, tuple[dict, tuple[float, float], str]] = {
    "before its first word": ({"say": "Too late.", "first_after": LONG_S}, (SHORT_S, LONG_S), "model_first_token_late"),
    "in the middle": ({"say": "half of it " * 20, "pause": 2 * SHORT_S}, (LONG_S, SHORT_S), "model_answer_broken"),
}
"""As those, where a call has patience for so many seconds until the first piece, and between two bytes."""
UNUSABLE: dict[str, dict] = {
    "truncated JSON": {"say": BROKEN_OFF},
    "200 kB of words": {"say": LONG},
    "a call of a tool that was not offered": call("rm", path="/"),
}
"""Asked again by a new call, with what is wrong."""
NO_ANSWER: dict[str, tuple[dict, str]] = {
    "an empty answer": ({"say": ""}, "model_answer_empty"),
    "an answer without end": ({"say": LONG * 2}, "model_answer_too_large"),
}
"""As those, by a call that has failed: there is nothing in it that could be rejected."""
FOR_A_GRAPH: dict[str, tuple[str, str]] = {
    "an invented device": (
        planned({**task("a"), "device": "desktop"}),
        edited(("add_task", {**task("z"), "device": "desktop"})),
    ),
    "a cycle": (
        planned(task("a", after=["b"]), task("b", after=["a"])),
        edited(("add_task", task("y")), ("add_task", task("z", after=["y"])), ("add_dependency", {"from": "z", "to": "y"})),
    ),
    "a tool that is none": (planned({**task("a"), "tool": "rockets"}), edited(("fire_rockets", {"at": "moon"}))),
    "a strange status": (planned(task("a"), status="PERHAPS"), edited(status="PERHAPS")),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("agents.minds.tries.FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(asking, "_stored", set())


def creates(engine, thinking, bad) -> list[ModelCall]:  # noqa: F811
    thinking(bad, planned(task("a")), NOTHING)
    return _ended_well(engine)


def edits(engine, thinking, bad) -> list[ModelCall]:  # noqa: F811
    thinking(planned(task("a")), bad, NOTHING)
    return _ended_well(engine)[1:]


def _ended_well(engine) -> list[ModelCall]:
    ask(engine)
    engine.run()
    assert Constellation.objects.get().state == "COMPLETED"
    assert list(Task.objects.values_list("task_id", "state")) == [("a", "COMPLETED")]
    assert not Edit.objects.exclude(author__startswith="system").filter(version__gt=1).exists()
    return list(ModelCall.objects.order_by("id"))


def acts(engine, thinking, bad) -> list[ModelCall]:  # noqa: F811
    provider = thinking(bad, FINISH)
    model_profile_change(ModelProfile.objects.get().pk, by="system", purposes=["device_agent"])
    assert provider is not None
    assert engine.carry_out({"tasks": [words()]}).tasks.get().state == "COMPLETED"
    return list(ModelCall.objects.order_by("id"))


WHO = pytest.mark.parametrize("who", [creates, edits, acts])


@WHO
@pytest.mark.parametrize("fault", TRANSPORT)
def test_a_fault_on_the_way_is_tried_again_and_is_on_record(engine, device, thinking, who, fault):  # noqa: F811
    bad, code = TRANSPORT[fault]
    first = who(engine, thinking, bad)[0]
    assert first.outcome == "answered"
    assert [each["code"] for each in first.tries] == [code]


@WHO
@pytest.mark.parametrize("silent", SILENT)
def test_a_model_that_falls_silent_is_asked_again_and_it_is_on_record(
    engine, device, thinking, monkeypatch, who, silent  # noqa: F811
):  # fmt: skip
    bad, patience, code = SILENT[silent]
    monkeypatch.setattr(Patience.__init__, "__defaults__", (*patience, CALL_S))
    first = who(engine, thinking, bad)[0]
    assert first.outcome == "answered"
    assert [each["code"] for each in first.tries] == [code]


@WHO
@pytest.mark.parametrize("fault", NO_ANSWER)
def test_a_call_that_brings_no_answer_is_made_again_by_who_asked_and_both_are_on_record(
    engine, device, thinking, monkeypatch, who, fault  # noqa: F811
):  # fmt: skip
    monkeypatch.setattr(calling, "ANSWER_CHARS", len(LONG) + 1_000)
    bad, code = NO_ANSWER[fault]
    first, second = who(engine, thinking, bad)[:2]
    assert (first.outcome, first.error_kind, first.tries[0]["code"]) == ("failed", code, code)
    assert first.error
    assert (second.outcome, second.number, second.tries) == ("answered", first.number + 1, [])


@WHO
@pytest.mark.parametrize("fault", UNUSABLE)
def test_an_answer_that_cannot_be_used_is_asked_for_again_with_what_is_wrong(engine, device, thinking, who, fault):  # noqa: F811
    first, second = who(engine, thinking, UNUSABLE[fault])[:2]
    if who is acts and fault in ("truncated JSON", "200 kB of words"):  # words are words, and it goes on
        assert (first.outcome, second.outcome) == ("answered", "answered")
        return
    assert (first.outcome, second.outcome) == ("rejected", "answered")
    assert first.error


@pytest.mark.parametrize("who", [creates, edits])
@pytest.mark.parametrize("fault", FOR_A_GRAPH)
def test_a_graph_that_cannot_be_is_asked_for_again_with_what_is_wrong(engine, device, thinking, who, fault):  # noqa: F811
    first, second = who(engine, thinking, FOR_A_GRAPH[fault][who is edits])[:2]
    assert (first.outcome, second.outcome) == ("rejected", "answered")
    assert first.error
    assert first.reply


@pytest.mark.parametrize("who", [creates, edits])
def test_a_refusal_is_told_as_one(engine, device, thinking, who):  # noqa: F811
    bad = {"refuse": "I will not."}
    thinking(*([bad] if who is creates else [planned(task("a")), bad]))
    _, item = ask(engine)
    engine.run()
    last = ModelCall.objects.order_by("id").last()
    assert (last.outcome, last.error_kind) == ("failed", "model_refused")
    item.refresh_from_db()
    assert "I will not." in item.result["summary"]
    assert not Task.objects.exclude(state="COMPLETED").exists()


def test_a_refusal_of_a_device_agents_model_fails_its_task_with_its_words(engine, device, thinking):  # noqa: F811
    thinking({"refuse": "I will not."})
    model_profile_change(ModelProfile.objects.get().pk, by="system", purposes=["device_agent"])
    done = engine.carry_out({"tasks": [words()]}).tasks.get()
    assert (done.state, ModelCall.objects.get().error_kind) == ("FAILED", "model_refused")
    assert "I will not." in str(done.error)
