"""Hooks: told after the commit, in order; what they raise is recorded and harms nobody."""

import pytest

from agents.models import Event, Transition
from constellations.models import Task
from project.checks import check_hooks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

TOLD: list[tuple[str, int, dict]] = []


def on_state_change(session: int, told: dict) -> None:
    TOLD.append(("state", session, told))


def on_stuck(session: int, told: dict) -> None:
    TOLD.append(("stuck", session, told))


def on_progress(session: int, told: dict) -> None:
    TOLD.append(("progress", session, told))


def broken(session: int, told: dict) -> None:
    raise ValueError("my own fault")


@pytest.fixture
def hooked(settings):
    TOLD.clear()
    settings.HOOKS = {
        name: f"tests.agents.engine.threads.test_hooks.{name}" for name in ("on_state_change", "on_stuck", "on_progress")
    }
    return settings.HOOKS


def plan() -> dict:
    fails = [{"command": ["sh", "-c", "echo 'not found' >&2; exit 1"], "on_failure": "continue"}] * 9
    works = [{"command": ["echo", str(n)]} for n in range(10)]
    return {"tasks": [{"task_id": "work", "device": "laptop", "steps": [*works, *fails]}]}


def test_hooks_are_told_what_the_events_say(engine, device, hooked):
    found = engine.carry_out(plan())
    states = [told for kind, session, told in TOLD if kind == "state" and session == found.session_id]
    of_session = Transition.objects.filter(stream=found.session_id)
    assert len(states) == of_session.count()
    columns = ("machine", "subject_id", "from_state", "to_state", "event")
    recorded = list(of_session.order_by("id").values_list(*columns))
    assert [tuple(told[name] for name in ("machine", "id", "from_state", "to_state", "event")) for told in states] == recorded
    (stuck,) = [told for kind, _, told in TOLD if kind == "stuck"]
    assert (stuck["action"], stuck["first"]) == ("steer", True)
    assert "not found" in stuck["sentence"]
    (progress,) = [told for kind, _, told in TOLD if kind == "progress"]
    assert (progress["recent_successes"], progress["recent_failures"], progress["files_modified"]) == (10, 0, 0)


def test_a_hook_that_raises_is_recorded_and_harms_nobody(engine, device, hooked):
    hooked["on_stuck"] = "tests.agents.engine.threads.test_hooks.broken"
    engine.carry_out(plan())
    assert Task.objects.get().reason.startswith("stuck:")
    assert Event.objects.get(type="hook_failed").data == {"hook": "on_stuck", "message": "ValueError: my own fault"}


def test_a_hook_that_always_raises_is_recorded_a_few_times(engine, device, hooked):
    hooked["on_state_change"] = "tests.agents.engine.threads.test_hooks.broken"
    engine.carry_out(plan())
    assert Event.objects.filter(type="hook_failed").count() == 10


def test_a_path_that_leads_nowhere_is_refused_at_the_start(settings):
    settings.HOOKS = {
        "on_stuck": "nowhere.at.all",
        "on_progress": "",
        "on_state_change": "tests.agents.engine.threads.test_hooks.TOLD",
    }
    assert [(error.id, error.msg) for error in check_hooks()] == [
        ("orrery.E020", "the hook on_stuck is no function: nowhere.at.all"),
        ("orrery.E020", "the hook on_state_change is no function: tests.agents.engine.threads.test_hooks.TOLD"),
    ]
