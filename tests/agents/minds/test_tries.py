"""Each fault of a call has its way: tried again, the next profile, or told as it is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

import pytest

from agents.llm import faults
from agents.llm.conversation import Message, Text
from agents.llm.exchange import Patience
from agents.llm.faults import ModelFault
from agents.minds import asking, tries
from agents.minds.asking import ASKED_AGAIN, ask_model
from agents.minds.calls import call_for
from agents.minds.question import Question, SystemPrompt
from agents.minds.tries import FAILED_CALLS, LEFT_ALONE_S, LONGEST_RETRY_AFTER_S, WAYS, Failing, falls_back, pause_before
from agents.models import Reservation
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures

PATIENCE, KEYS = Patience(), count(1_000)
WANTED = {"when": {"last": "Plan it."}}
ANSWER = {**WANTED, "say": "Fetch, then train.", "tokens": {"input": 30, "output": 6}}


def all_faults(base=ModelFault):
    for found in base.__subclasses__():
        yield found
        yield from all_faults(found)


def test_every_fault_has_a_way():
    assert set(all_faults()) == set(WAYS)


@pytest.mark.parametrize("kind", [faults.Refused, faults.ContentFiltered, faults.ContextTooLong, faults.RequestRejected])
def test_what_the_same_question_meets_again_is_told_at_once(kind):
    assert pause_before(kind("no"), 1, 7) is None
    assert not falls_back(kind("no"))


@pytest.mark.parametrize("kind", [faults.QuotaUsedUp, faults.KeyRejected, faults.ModelUnknown, faults.ProfileUnusable])
def test_what_waiting_does_not_mend_goes_to_the_next_profile_at_once(kind):
    assert pause_before(kind("no"), 1, 7) is None
    assert falls_back(kind("no"))


def test_pauses_grow_and_end():
    pauses = [pause_before(faults.ModelUnreachable("gone"), made, 7) for made in (1, 2, 3, 4)]
    assert pauses[3] is None
    assert 0.4 < pauses[0] < pauses[1] < pauses[2] < 3


def test_a_provider_that_says_when_is_asked_then_and_one_that_says_too_late_is_given_up():
    assert 12 <= pause_before(faults.RateLimited("later", retry_after_s=12.0), 1, 7) < 14
    assert pause_before(faults.RateLimited("later", retry_after_s=LONGEST_RETRY_AFTER_S + 1), 1, 7) is None


def test_a_provider_that_fails_call_after_call_is_left_alone_for_a_while():
    now = [100.0]
    failing = Failing(lambda: now[0])
    for _ in range(FAILED_CALLS):
        assert not failing.is_left_alone("main")
        failing.note_given_up("main", faults.ProviderFailed("500"))
    assert failing.is_left_alone("main")
    now[0] += LEFT_ALONE_S
    assert not failing.is_left_alone("main")


def test_what_is_no_fault_of_the_provider_does_not_count():
    failing = Failing(lambda: 0.0)
    for _ in range(FAILED_CALLS):
        failing.note_given_up("main", faults.RequestRejected("400"))
    assert not failing.is_left_alone("main")


# --- with a server


@pytest.fixture(autouse=True)
def short_pauses(request, monkeypatch):
    if request.node.get_closest_marker("django_db") is None:
        return
    monkeypatch.setattr(tries, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(tries, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(asking, "_failing", Failing(lambda: 0.0))


def asked(*profiles, patience=PATIENCE):
    question = Question(
        profiles, SystemPrompt("You plan.", "creation/1"), (Message("user", (Text("Plan it."),)),), patience=patience
    )
    printed: list[str] = []
    call = call_for({"id": next(KEYS), "session_id": 5}, question, 7)
    call.on_output = printed.append
    outcome = asyncio.run(ask_model(call))
    return outcome, [each["code"] for each in outcome.result["tries"]], "".join(printed)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("flaw", "code"),
    [
        ({"fail": {"status": 500}}, "model_provider_failed"),
        ({"fail": {"status": 429, "retry_after": 0}}, "model_rate_limited"),
        ({"garbage": "<html>"}, "model_answer_unreadable"),
    ],
)
def test_what_passes_is_tried_again(openai_provider, flaw, code):  # noqa: F811
    provider = openai_provider({**WANTED, **flaw, "times": 1}, ANSWER)
    outcome, codes, _ = asked(provider.profile)
    assert (outcome.outcome, outcome.result["text"], codes) == ("completed", "Fetch, then train.", [code])


@pytest.mark.django_db(transaction=True)
def test_text_that_broke_off_is_void_and_what_the_try_used_is_unknown(openai_provider):  # noqa: F811
    provider = openai_provider({**WANTED, "say": ["Fetch, ", "then"], "stop_after": 2, "times": 1}, ANSWER)
    _, codes, printed = asked(provider.profile)
    assert codes == ["model_answer_broken"]
    assert printed.endswith(f"{ASKED_AGAIN}Fetch, then train.")
    assert printed.startswith("Fetch, ")
    assert sorted(Reservation.objects.values_list("state", flat=True)) == ["settled", "unknown"]


@pytest.mark.django_db(transaction=True)
def test_the_next_profile_is_asked_and_named_when_one_is_given_up(openai_provider):  # noqa: F811
    broken = openai_provider({**WANTED, "fail": {"status": 503}})
    whole = openai_provider(ANSWER)
    first, second = replace(broken.profile, name="first"), replace(whole.profile, name="second")
    outcome, codes, _ = asked(first, second)
    assert (outcome.outcome, outcome.result["profile"]) == ("completed", "second")
    assert codes == ["model_provider_failed"] * 4
    assert {each["profile"] for each in outcome.result["tries"]} == {"first"}


@pytest.mark.django_db(transaction=True)
def test_a_wrong_key_costs_no_second_try(openai_provider):  # noqa: F811
    broken, whole = openai_provider({**WANTED, "fail": {"status": 401}}), openai_provider(ANSWER)
    outcome, codes, _ = asked(replace(broken.profile, name="first"), replace(whole.profile, name="second"))
    assert (outcome.outcome, codes) == ("completed", ["model_key_rejected"])


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_the_answer_and_no_other_model_is_asked(openai_provider):  # noqa: F811
    refusing, whole = openai_provider({**WANTED, "refuse": "I will not."}), openai_provider(ANSWER)
    outcome, codes, _ = asked(replace(refusing.profile, name="first"), replace(whole.profile, name="second"))
    assert (outcome.outcome, outcome.error_kind, codes) == ("failed", "model_refused", ["model_refused"])


@pytest.mark.django_db(transaction=True)
def test_all_tries_together_take_no_longer_than_the_patience(openai_provider):  # noqa: F811
    provider = openai_provider({**WANTED, "fail": {"status": 429, "retry_after": 30}})
    outcome, codes, _ = asked(provider.profile, patience=Patience(call_s=5.0))
    assert (outcome.error_kind, codes) == ("model_rate_limited", ["model_rate_limited"]), "half a minute is too long for it"


@pytest.mark.django_db(transaction=True)
def test_a_provider_that_goes_on_failing_is_passed_by_where_another_can_be_asked(openai_provider):  # noqa: F811
    broken, whole = openai_provider({**WANTED, "fail": {"status": 500}}), openai_provider(ANSWER)
    profiles = replace(broken.profile, name="first"), replace(whole.profile, name="second")
    for _ in range(FAILED_CALLS):
        asked(*profiles)
    outcome, codes, _ = asked(*profiles)
    assert (outcome.outcome, codes) == ("completed", ["left_alone"])
