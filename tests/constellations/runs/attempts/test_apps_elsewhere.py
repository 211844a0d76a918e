"""App agents on other devices than their host's: slots, the blackboard, what is lost, and what is refused."""

import pytest

from agents.links.moves import move_device
from agents.models import Agent, Device, Event, Evidence, ModelCall
from agents.services.devices import device_change, device_create, device_take_offline
from agents.services.sessions import request_submit
from constellations.errors import PlanRejected
from constellations.models import Attempt, Task
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.conftest import connected
from tests.constellations.runs.attempts.test_crews import WAITING, found, sh, steps
from tests.constellations.runs.attempts.test_minds import after, call, model, words  # noqa: F401  a fixture, too
from tests.constellations.runs.test_run import in_thread
from tests.slots_told import SlotsTold

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


@pytest.fixture
def oven(transactional_db) -> Device:
    return connected(device_create("oven", max_concurrent=1, capabilities=["heat"], by="system"))


def elsewhere(*wanted: dict, **more) -> dict:
    where = more.pop("where", {"device": "oven"})
    return {"delegate": {"name": "baker", "steps": list(wanted), **where}, **more}


def test_each_agent_has_a_slot_of_its_own_device_while_it_works_and_all_share_the_blackboard(engine, device, oven):
    device_change(device.pk, max_concurrent=1, by="system")
    child = elsewhere(sh("pwd", save="place"), sh("echo 7", save="n"), save="baked")
    plan = {"tasks": [
        steps(sh("pwd", save="home"), child, sh("echo 8", **{"if": "n == 7"}, save="m"), task_id=f"t{k}") for k in range(4)
    ]}  # fmt: skip
    made = engine.carry_out(plan)
    assert made.state == "COMPLETED"
    for task in made.tasks.all():
        assert (task.result["m"], task.result["baked"]) == (8, 7)
        assert "/laptop" in task.result["home"]
        assert "/oven" in task.result["place"]
    told = SlotsTold()
    assert dict(told.of_devices) == {device.pk: 1, oven.pk: 1}
    assert not told.left
    baker = Agent.objects.filter(device=oven).first()
    assert (baker.name, baker.state) == ("baker on oven for t0 on laptop", "FINISH")
    assert Evidence.objects.filter(loop__agent__device=oven).count() == 8
    moved = Event.objects.filter(type="attempt_moves").values_list("data", flat=True)
    assert {row["slot_device_id"] for data in moved for row in data["set"]["attempt"].values()} == {oven.pk, None}


@pytest.mark.parametrize("where", [{"capabilities": ["heat"]}, {"platform": "shell", "capabilities": ["heat"]}])
def test_a_device_is_chosen_by_what_it_can_do(engine, device, oven, where):
    assert engine.carry_out({"tasks": [steps(elsewhere(sh("true"), where=where))]}).state == "COMPLETED"
    assert Agent.objects.filter(device=oven).count() == 1


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"device": "ovne"}, r"steps\[0\]\.delegate\.device: there is no device ovne"),
        ({"capabilities": ["cold"]}, "no device has the capability cold"),
        ({"platform": "browser"}, "no device has the platform browser"),
        ({"platform": "ship"}, r"steps\[0\]\.delegate\.platform: .*ship"),
    ],
)
def test_where_nothing_fits_is_refused_with_the_plan(engine, device, oven, where, says):
    with pytest.raises(PlanRejected, match=says):
        engine.submit({"tasks": [steps(elsewhere(sh("true"), where=where))]})


def test_a_device_that_the_session_may_not_use_is_none_for_its_app_agents_either(engine, device, oven):
    device_change(oven.pk, used_by=[], by="system")
    task = engine.carry_out({"tasks": [steps(elsewhere(sh("true"), on_failure="continue"), sh("echo 1"))]}).tasks.get()
    assert (task.state, Agent.objects.filter(device=oven).count()) == ("COMPLETED", 0)
    task = engine.carry_out({"tasks": [steps(elsewhere(sh("true")))]}).tasks.get()
    assert task.error == "there is no device oven for baker: this session may not use it"


def test_an_app_agent_waits_for_a_device_that_is_being_connected(engine, device):
    """As one of a browser that is about to start: a runner has just begun, and the host's first call delegates."""
    far = device_create("far", kind="remote", by="system")
    move_device(far.pk, "dial", by="system")
    reached: list[bool] = []

    def reach_it() -> bool:
        if found("agents_agent", f"device_id = {far.pk}")() and not reached:
            reached.append(True)
            in_thread(move_device, far.pk, "accepted", by="system")
        return found("agents_devicecall", "tool = 'command'")()

    engine.submit({"tasks": [steps(elsewhere(sh("true"), where={"device": "far"}))]})
    engine.run(reach_it)
    assert Agent.objects.get(device=far).state == "CONTINUE"


def test_an_app_agent_whose_device_is_lost_ends_and_its_host_decides(engine, device, oven):
    def lose_it() -> bool:
        if found("agents_evidence", "tool = 'command' AND ended_at IS NULL")() and not lost:
            lost.append(True)
            in_thread(device_take_offline, oven.pk, by="user:1")
        return found("constellations_constellation", "state IN ('COMPLETED', 'FAILED')")()

    lost: list[bool] = []
    plan = {"tasks": [steps(elsewhere(sh("exec sleep 600"), on_failure="continue"), sh("echo 5", save="own"))]}
    engine.submit(plan)
    engine.run(lose_it)
    task = Task.objects.get()
    assert (task.state, task.result) == ("COMPLETED", {"own": 5})
    assert Agent.objects.get(device=oven).state in ("FAIL", "ERROR")
    returned = Event.objects.get(type="agent_returned").data
    assert returned["outcome"] == "lost"
    assert Attempt.objects.count() == 1
    assert Device.objects.get(pk=oven.pk).used == 0


def test_a_pause_frees_the_slot_of_the_other_device_and_a_cancellation_ends_both_agents(engine, device, oven):
    child = elsewhere({"ask": "How hot?", "timeout": 600, "save": "heat"}, sh("echo done"))
    session, _ = engine.submit({"tasks": [steps(child, sh("echo never"))]})
    engine.run(WAITING)
    assert Device.objects.filter(used__gt=0).count() == 0
    request_submit(session.pk, "pause", "p", {}, by="user:1")
    engine.run(found("agents_actor", "state = 'paused'"))
    request_submit(session.pk, "resume", "r", {}, by="user:1")
    request_submit(session.pk, "cancel", "c", {"reason": "too hot"}, by="user:1")
    engine.run()
    assert set(Agent.objects.filter(machine="device_agent").values_list("state", flat=True)) == {"FAIL"}
    assert Task.objects.get().state == "CANCELLED"


def test_a_model_has_an_agent_work_on_another_device_and_is_told_which_there_are(engine, device, oven, model):  # noqa: F811
    model(
        after("Look after", {"call": [
            {"tool": "delegate", "arguments": {"name": "baker", "instruction": "Bake it.", "device": "oven"}},
        ]}),
        after("Bake it.", call("finish", result={"baked": 1})),
        after("baked", call("finish", result="eaten")),
    )  # fmt: skip
    assert engine.carry_out({"tasks": [words()]}).tasks.get().result == "eaten"
    first = str(ModelCall.objects.order_by("number", "id").first().added)
    assert "Other devices, for delegate" in first
    assert '"oven"' in first
    app = Agent.objects.get(device=oven)
    assert (app.state, ModelCall.objects.get(agent=app).outcome) == ("FINISH", "answered")


def test_a_model_that_names_no_fitting_device_is_told_so(engine, device, model):  # noqa: F811
    model(
        after("Look after", call("delegate", name="baker", instruction="Bake it.", device="oven")),
        after("there is no device oven for baker: no device is called so", call("finish", result="cold")),
    )
    assert engine.carry_out({"tasks": [words()]}).tasks.get().result == "cold"
