"""The arbiter: asked beside the loop about what the rules suspect, and never waited for."""

import threading

import pytest

from agents.masks.masking import HIDDEN
from agents.models import Event, Evidence, InboxItem, Loop
from agents.services import arbiters
from agents.services.arbiters import ASKED_AT_ONCE, ArbiterBusy, on_suspicion, rule_on, write_prompt
from agents.services.sessions import session_create
from constellations.models import Task
from project.checks import check_hooks
from tests.agents.conftest import add_agents, add_evidence, add_loop

ASKED: list[tuple[str, dict]] = []


def says_stuck(prompt: str, suspicion: dict) -> dict:
    ASKED.append((prompt, suspicion))
    return {"stuck": True, "why": "It never reads the file."}


def says_free(prompt: str, suspicion: dict) -> dict:
    ASKED.append((prompt, suspicion))
    return {"stuck": False, "why": "Each call looks at another part."}


def says_nothing(prompt: str, suspicion: dict) -> str:
    return "stuck"


def breaks(prompt: str, suspicion: dict) -> dict:
    raise ValueError("no model here")


@pytest.fixture
def arbiter(settings):
    """A function that lets there be an arbiter of this module."""
    ASKED.clear()

    def choose(name: str) -> None:
        settings.STUCK_ARBITER = f"{__name__}.{name}"
        settings.HOOKS = {**settings.HOOKS, "on_suspicion": "agents.services.arbiters.on_suspicion"}

    return choose


def plan(thinking_s: float = 0.4) -> dict:
    """Three failures alike of the four that make a loop, time to think, and then something else."""
    fails = {"command": ["sh", "-c", "echo 'old text not found' >&2; exit 1"], "on_failure": "continue"}
    steps = [fails, fails, fails, {"wait": thinking_s}, {"command": ["true"]}]
    return {"tasks": [{"task_id": "work", "device": "laptop", "steps": steps, "progress": {"stuck_threshold": 4}}]}


def ended(thread: str) -> None:
    for one in threading.enumerate():
        if one.name == thread:
            one.join(10)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_what_an_arbiter_confirms_is_a_verdict_that_says_who_ruled(engine, device, arbiter):
    arbiter("says_stuck")
    engine.carry_out(plan())
    ((prompt, suspicion),) = ASKED
    assert (suspicion["rule"], suspicion["score"], suspicion["rows"]) == ("same_target_error", 0.75, (1, 2, 3))
    assert "old text not found" in prompt
    ruling = Evidence.objects.get(kind="ruling")
    assert ruling.verdict["arbiter"] == f"{__name__}.says_stuck"
    assert (ruling.verdict["why"], ruling.verdict["action"]) == ("It never reads the file.", "steer")
    assert Event.objects.get(type="stuck").data["arbiter"] == ruling.verdict["arbiter"]
    kinds = list(Evidence.objects.order_by("number").values_list("kind", flat=True))
    assert kinds[:6] == ["tool", "tool", "tool", "ruling", "tool", "nudge"]
    assert Task.objects.get().state == "COMPLETED"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_what_an_arbiter_does_not_confirm_is_kept_and_changes_nothing(engine, device, arbiter):
    arbiter("says_free")
    engine.carry_out(plan())
    ruling = Evidence.objects.get(kind="ruling")
    assert (ruling.verdict, ruling.arguments["why"]) == (None, "Each call looks at another part.")
    assert Event.objects.get(type="ruled").data["stuck"] is False
    assert not Evidence.objects.filter(kind="nudge").exists()
    assert len(ASKED) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_without_an_arbiter_nobody_is_asked(engine, device):
    engine.carry_out(plan())
    assert not Event.objects.filter(type="suspected").exists()
    assert not InboxItem.objects.filter(kind="ruling").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
def test_an_arbiter_that_breaks_is_recorded_and_harms_nobody(engine, device, arbiter):
    arbiter("breaks")
    engine.carry_out(plan())
    ended("arbiter")
    assert Event.objects.get(type="hook_failed").data == {"hook": "arbiter", "message": "ValueError: no model here"}
    assert Task.objects.get().state == "COMPLETED"


SUSPICION = {"rule": "no_novelty", "score": 0.8, "identity": "no_novelty:1", "rows": [1, 2], "sentence": "Nothing new."}


@pytest.fixture
def suspected(operator) -> dict:
    session = session_create(operator, "s", by="system")
    agent = add_agents(session)[0]
    key = "ghp_" + "a1" * 18
    said = {"kind": "message", "tool": "", "arguments": {"text": "I look again."}}
    failed = {"target": "cat notes\nnow", "success": False, "raw_error": f"refused {key}"}
    add_evidence(add_loop(agent, session), session, said, failed)
    return {"agent_id": agent, "at": "2026-11-22T03:04:05.000000Z", **SUSPICION}


@pytest.mark.django_db
def test_the_prompt_says_what_is_suspected_and_what_the_agent_did_without_secrets(suspected):
    prompt = write_prompt(suspected)
    assert "The suspicion: nothing new (no_novelty, 0.8 of 1)" in prompt
    assert "1 message I look again.: went well\n2 tool command cat notes now: failed: refused" in prompt
    assert "ghp_" not in prompt
    assert HIDDEN.search(prompt)
    assert "$" not in prompt


@pytest.mark.django_db
def test_an_answer_of_another_form_or_one_that_comes_late_is_not_taken(suspected, arbiter, monkeypatch):
    arbiter("says_nothing")
    with pytest.raises(ValueError, match="the arbiter must answer"):
        rule_on(suspected)
    arbiter("says_free")
    assert rule_on(suspected) == {"stuck": False, "why": "Each call looks at another part.", "by": f"{__name__}.says_free"}
    monkeypatch.setattr(arbiters, "RULING_S", -1.0)
    with pytest.raises(TimeoutError, match="took longer than"):
        rule_on(suspected)


@pytest.mark.django_db
def test_more_is_not_asked_than_an_arbiter_can_look_at(suspected, monkeypatch):
    full = threading.BoundedSemaphore(ASKED_AT_ONCE)
    for _ in range(ASKED_AT_ONCE):
        full.acquire()
    monkeypatch.setattr(arbiters, "_places", full)
    with pytest.raises(ArbiterBusy, match="looks at 4 suspicions already"):
        on_suspicion(1, suspected)


@pytest.mark.django_db(transaction=True)
def test_a_ruling_for_an_agent_that_has_ended_does_no_harm(suspected, arbiter):
    arbiter("says_stuck")
    session = Loop.objects.get().agent.session_id
    on_suspicion(session, suspected)
    ended("arbiter")
    assert not Event.objects.filter(type="hook_failed").exists()
    assert InboxItem.objects.get(kind="ruling").payload["why"] == "It never reads the file."


def test_an_arbiter_that_leads_nowhere_is_refused_at_the_start(settings):
    settings.STUCK_ARBITER = "nowhere.at.all"
    assert [(error.id, error.msg) for error in check_hooks()] == [
        ("orrery.E020", "the hook stuck_arbiter is no function: nowhere.at.all")
    ]
