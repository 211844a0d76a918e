"""The arbiter that is a language model, asked over HTTP in both protocols."""

import pytest
from asgiref.sync import async_to_sync

from agents.llm.profiles import NoModelProfile
from agents.models import Event, Evidence
from agents.services.arbiters import rule_on
from agents.services.model_arbiter import SYSTEM, JudgingFailed, rule_by_model
from agents.services.model_profiles import model_profile_create
from project.settings import ARBITERS
from tests.agents.llm.conftest import asking, reply_to
from tests.agents.services.test_arbiters import ended, plan, suspected  # noqa: F401  # a fixture

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def judge(provider, settings):
    """A function that lets a scripted model be the arbiter, under the purpose `judging`."""
    settings.STUCK_ARBITER = ARBITERS["model"]
    settings.HOOKS = {**settings.HOOKS, "on_suspicion": "agents.services.arbiters.on_suspicion"}

    def serve(*answers: dict):
        asked = provider({"when": {"last": "imported"}, "say": "yes"}, *answers)
        profile = asked.profile
        async_to_sync(reply_to)(profile, asking("Are the libraries imported?"))  # which takes seconds, once in a process
        model_profile_create(
            "judge", provider=profile.provider, model=profile.model, base_url=profile.base_url, purposes=["judging"],
            price_input=1.0, price_output=2.0, by="system",
        )  # fmt: skip
        return asked

    return serve


@pytest.mark.usefixtures("verified")
def test_a_model_that_confirms_steers_the_agent_and_what_it_cost_is_on_record(engine, device, judge):
    ruling = {"stuck": True, "why": "It never reads the file."}
    asked = judge({"when": {"last": "old text not found"}, "say": ruling, "tokens": {"input": 1_000, "output": 10}})
    engine.carry_out(plan(thinking_s=3.0))  # within which the answer comes, over HTTP, on a machine at work too
    ended("arbiter")
    row = Evidence.objects.get(kind="ruling")
    assert (row.verdict["why"], row.verdict["arbiter"]) == ("It never reads the file.", ARBITERS["model"])
    assert Evidence.objects.filter(kind="nudge").exists()
    told = Event.objects.get(type="model_judged").data
    assert (told["profile"], told["outcome"], told["input_tokens"], told["cost"]) == ("judge", "completed", 1_000, 0.00102)
    _, request = asked.model.asked
    assert '<untrusted source="the agent_s actions"' in request.last
    assert request.system == SYSTEM.text


@pytest.mark.usefixtures("suspected")
def test_words_around_the_object_do_no_harm(suspected, judge):  # noqa: F811
    judge({"say": 'I think so.\n```json\n{"stuck": false, "why": "It waits."}\n```'})
    assert rule_on(suspected) == {"stuck": False, "why": "It waits.", "by": ARBITERS["model"]}


@pytest.mark.parametrize(("answer", "message"), [
    ({"say": "yes"}, "judge did not answer with JSON"), ({"say": {"why": "so"}}, 'did not say "stuck"'),
    ({"fail": {"status": 401}}, "judge: "),
])  # fmt: skip
def test_an_answer_that_is_no_ruling_names_the_profile(suspected, judge, answer, message):  # noqa: F811
    judge(answer)
    with pytest.raises(JudgingFailed, match=message):
        rule_by_model("Is it?", suspected)
    assert Event.objects.filter(type="model_judged").count() == 1


def test_without_a_profile_for_judging_it_says_so(suspected):  # noqa: F811
    with pytest.raises(NoModelProfile, match="no language model is configured for judging"):
        rule_by_model("Is it?", suspected)
