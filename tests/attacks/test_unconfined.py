"""Where commands have no walls only admins run them, unless a setting says otherwise; everybody sees that it is so."""

import pytest
from django.contrib.auth.models import Group
from django.core.management.base import CommandError
from django.utils import timezone

from agents.devices.profiles.profile import DeviceRejected
from agents.models import Runner
from agents.services.devices import device_change
from agents.tools import confining
from agents.tools.confining import NotConfined
from constellations.models import Task
from project.management.commands.up import say_walls
from tests.agents.conftest import Rest, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
COMMAND = {"tasks": [{"task_id": "a", "command": ["echo", "1"]}]}
STEPS = {"tasks": [{"task_id": "a", "steps": [{"command": ["echo", "1"]}]}]}
RULE = {
    "tasks": [{"task_id": "a", "tool": "noop"}],
    "replan": [
        {
            "name": "more",
            "when": {"event": "task_completed", "task": "a"},
            "edit": [{"add_task": {"task_id": "b", "command": ["echo", "1"]}}],
        }
    ],
}
HARMLESS = {"tasks": [{"task_id": "a", "tool": "noop"}]}


@pytest.fixture(autouse=True)
def without_walls(settings, device):
    settings.CONFINEMENT, settings.UNCONFINED_COMMANDS = "none", False


@pytest.fixture
def seen_by_a_runner():
    now = timezone.now()
    Runner.objects.create(
        host="here", pid=1, pid_start=1, files="/", started_at=now, renewed_at=now, confinement=confining.confinement_text()
    )


@pytest.mark.parametrize("plan", [COMMAND, STEPS, RULE], ids=["command", "steps", "rule"])
def test_an_operator_is_refused_when_asking(engine, seen_by_a_runner, plan):
    with pytest.raises(NotConfined, match="commands are not confined on this host, so only admins may run them"):
        engine.submit(plan)


def test_what_runs_no_command_is_taken(engine, seen_by_a_runner):
    assert engine.carry_out(HARMLESS).state == "COMPLETED"


@pytest.mark.parametrize("plan", [COMMAND, STEPS], ids=["command", "steps"])
def test_an_operators_command_that_got_in_is_refused_when_it_is_to_run(engine, plan):
    engine.carry_out(plan)
    task = Task.objects.get(task_id="a")
    assert task.state == "FAILED"
    assert "only admins may run them" in task.error


def test_an_admin_may(engine, seen_by_a_runner):
    engine.owner.groups.add(Group.objects.get(name="admin"))
    assert engine.carry_out(COMMAND).state == "COMPLETED"


def test_an_admins_lesser_token_may_not(engine, seen_by_a_runner):
    engine.owner.groups.add(Group.objects.get(name="admin"))
    rest = Rest(token=make_token(engine.owner, "read", "operate")[1])
    session = rest.post("/api/sessions/", {}).json()["id"]
    answer = rest.post(f"/api/sessions/{session}/interactions/", {"plan": '{"tasks": [{"task_id": "a", "command": ["id"]}]}'})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_confined")


def test_the_setting_lets_operators(engine, settings, seen_by_a_runner):
    settings.UNCONFINED_COMMANDS = True
    assert engine.carry_out(COMMAND).state == "COMPLETED"


def test_walls_that_are_asked_for_and_missing_run_nothing(engine, settings, monkeypatch):
    def missing(wanted, state):
        raise confining.ConfinementMissing("ORRERY_CONFINEMENT is landlock, which does not hold here: landlock: x")

    settings.UNCONFINED_COMMANDS = True
    monkeypatch.setattr(confining, "_findings", {})
    monkeypatch.setattr(confining, "find_confinement", missing)
    engine.carry_out(COMMAND)
    assert "ORRERY_CONFINEMENT is landlock, which does not hold here" in Task.objects.get(task_id="a").error


def test_a_command_without_walls_is_not_said_to_have_no_network(engine, settings, device):
    settings.UNCONFINED_COMMANDS = True
    device_change(device.pk, by="system", limits={"network": False})
    engine.carry_out(COMMAND)
    assert "are to have no network, and that cannot be" in Task.objects.get(task_id="a").error


def test_a_limit_of_the_network_is_true_or_false(device):
    with pytest.raises(DeviceRejected, match="network: must be true or false"):
        device_change(device.pk, by="system", limits={"network": "no"})


def test_a_device_says_that_it_is_not_confined(engine, seen_by_a_runner, viewer):
    (row,) = Rest(token=make_token(viewer, "read")[1]).get("/api/devices/").json()["results"]
    assert row["confinement"] == "not confined"


def test_up_says_once_that_commands_are_not_confined_and_what_to_do(settings):
    said = []
    say_walls(said.append)
    assert said == [
        "Commands are not confined: ORRERY_CONFINEMENT is none.",
        f"Only admins may run them. {confining.HOW_TO_CONFINE}",
    ]
    settings.UNCONFINED_COMMANDS = True
    said.clear()
    say_walls(said.append)
    assert said == ["Commands are not confined: ORRERY_CONFINEMENT is none."]


def test_up_refuses_walls_that_do_not_hold(settings, monkeypatch):
    settings.CONFINEMENT = "uid"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(CommandError, match="ORRERY_CONFINEMENT is uid, which does not hold here: uid: only root can"):
        say_walls(print)
