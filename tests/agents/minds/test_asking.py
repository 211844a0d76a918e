"""A call of a model as a body: its outcome says all that its row will have."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from agents.clock import to_iso
from agents.llm.conversation import Message, Text
from agents.llm.exchange import Usage
from agents.llm.profiles import Profile
from agents.minds.asking import ask_model, micros_of
from agents.minds.calls import begin_call, call_for, conversation_of, ended_fields
from agents.minds.question import Question, SystemPrompt
from agents.models import Prompt, Reservation
from agents.streams.door import door, system_stream
from agents.streams.turn import Turn
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures

pytestmark = pytest.mark.django_db(transaction=True)
AGENT = {"id": 7, "session_id": 5, "interaction_id": 6}


def question_for(profile, text="Plan it.") -> Question:
    return Question((profile,), SystemPrompt("You plan.", "creation/1"), (Message("user", (Text(text),)),))


def asked(question: Question):
    turn = Turn(to_iso(0.0), "system", iter(range(100, 200)).__next__)
    row, call = begin_call(turn, AGENT, 1, "creation", question, question.messages)
    printed: list[str] = []
    call.on_output = printed.append
    outcome = asyncio.run(ask_model(call))
    fields = ended_fields(row, outcome, to_iso(1.0))
    return row, outcome, fields, printed


def test_an_answer_completes_its_row_and_the_prompt_is_kept_once(openai_provider):  # noqa: F811
    provider = openai_provider(
        {"when": {"last": "Plan it."}, "say": ["Fetch, ", "then train."], "tokens": {"input": 30, "output": 6}}
    )
    profile = replace(provider.profile, price_input=2.0, price_output=10.0)
    for _ in range(2):
        row, outcome, fields, printed = asked(question_for(profile))
    assert outcome.outcome == "completed"
    assert "".join(printed) == "Fetch, then train."
    assert (fields["outcome"], row["input_tokens"], row["output_tokens"]) == ("answered", 30, 6)
    assert row["cost"] == pytest.approx((30 * 2.0 + 6 * 10.0) / 1e6)
    assert [message.role for message in conversation_of([row])] == ["user", "assistant"]
    assert Prompt.objects.get().text == "You plan."


def test_a_fault_has_its_code_and_what_had_come(openai_provider, monkeypatch):  # noqa: F811
    monkeypatch.setattr("agents.minds.tries.FIRST_PAUSE_S", 0.01)
    provider = openai_provider({"when": {"last": "Plan it."}, "say": ["Fetch, ", "then"], "stop_after": 2})
    row, outcome, fields, _ = asked(question_for(provider.profile))
    assert (outcome.outcome, fields["outcome"], row["error_kind"]) == ("failed", "failed", "model_answer_broken")
    assert row["error"]


def test_without_prices_a_call_costs_nobody_knows_what(openai_provider):  # noqa: F811
    provider = openai_provider({"when": {"last": "Plan it."}, "say": "Yes."})
    assert asked(question_for(provider.profile))[0]["cost"] is None


def test_what_a_budget_has_no_room_for_is_not_asked_and_says_what_is_missing(openai_provider):  # noqa: F811
    provider = openai_provider({"when": {"last": "Plan it."}, "say": "Yes."})
    with door(system_stream(), "system") as opened:
        row = {"id": opened.take(), "scope": "task", "tokens": 50, "per": "total", "then": "ask", "created_at": to_iso(0.0)}
        opened.turn.record("budget_created", add={"budget": [row]})
    question = replace(question_for(provider.profile), context={"task": 9}, max_tokens=60)
    row, outcome, _, _ = asked(question)
    assert (outcome.outcome, row["error_kind"], provider.model.asked) == ("failed", "model_budget_used_up", [])
    facts = outcome.result["budget"]
    assert (facts["scope"], facts["key"], facts["then"], facts["left"]) == ("task", 9, "ask", 50)
    assert facts["needed"] == question.reserved_tokens


def test_a_call_that_is_cancelled_leaves_what_it_may_have_used_as_unknown(openai_provider):  # noqa: F811
    provider = openai_provider({"when": {"last": "Plan it."}, "say": ["Fetch, ", "then"], "pause": 0.5})
    question = question_for(provider.profile)
    call = call_for({"id": 7, "session_id": 5}, question, 7)

    async def main():
        printed = asyncio.Event()
        call.on_output = lambda text: printed.set()
        asks = asyncio.create_task(ask_model(call))
        await printed.wait()
        asks.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asks
        while await sync_to_async(Reservation.objects.filter(state="open").exists)():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0)

    asyncio.run(main())
    left = Reservation.objects.get()
    assert (left.state, left.tokens) == ("unknown", question.reserved_tokens)


def test_what_is_written_into_a_cache_costs_more_and_what_is_read_from_it_less():
    profile = Profile("main", "anthropic", "m", "", price_input=4.0, price_cached_input=0.4, price_output=10.0)
    usage = Usage(100, 10, cache_read_tokens=50, cache_write_tokens=20, measured=True)
    assert micros_of(usage, profile) == 30 * 4 + 50 * 0.4 + 20 * 4 * 1.25 + 10 * 10
    assert micros_of(replace(usage, measured=False), profile) is None
