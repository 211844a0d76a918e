"""The history of states over REST: of an actor, agents, their loops, tasks and constellations, all in one form."""

import pytest
from django.db import IntegrityError, connection, transaction

from agents.machines import DEVICE_AGENT
from agents.models import Actor, Agent
from constellations.machines import CONSTELLATION_AGENT
from constellations.models import Constellation
from constellations.services import lifecycle
from tests.agents.conftest import Rest
from tests.constellations.runs.test_run import command, in_thread, noop, query, something_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
SEED = {"step": 1, "constellation_id": None}


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def found(engine, device) -> Constellation:
    steps = [{"command": ["true"]}, {"delegate": {"name": "other", "steps": [{"say": "hello"}]}}]
    return engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "steps": steps}, noop("b", after=["a"])]})


def moves(history: dict) -> list[tuple]:
    return [(row["from_state"], row["event"], row["to_state"]) for row in history["results"]]


def test_each_row_has_its_number_its_time_and_its_constellation(rest, found):
    agent = Agent.objects.get(machine="constellation_agent")
    history = rest.get(f"/api/agents/{agent.pk}/transitions/").json()
    assert (history["machine"], history["state"], history["choices"], history["next"]) == (agent.machine, "FINISH", [], None)
    assert moves(history)[0] == ("START", "created", "CONTINUE")
    assert [row["step"] for row in history["results"]] == list(range(1, len(history["results"]) + 1))
    assert {row["constellation_id"] for row in history["results"]} == {found.pk}
    assert all(row["at"] for row in history["results"])
    assert rest.get(f"/api/agents/{agent.pk}/").json()["transitions"] == history["results"]


def test_a_host_its_app_agent_and_their_loops_are_about_the_constellation_of_their_task(rest, found):
    for agent in Agent.objects.filter(machine="device_agent"):
        for kind in ("transitions", "loop_transitions"):
            if kind == "loop_transitions" and not hasattr(agent, "loop"):
                assert rest.get(f"/api/agents/{agent.pk}/{kind}/").status_code == 404
                continue
            history = rest.get(f"/api/agents/{agent.pk}/{kind}/").json()
            assert history["results"]
            assert {row["constellation_id"] for row in history["results"]} == {found.pk}
    assert Agent.objects.filter(loop__isnull=False).count() == 2


def test_tasks_and_constellations_have_the_same(rest, found):
    task = found.tasks.get(task_id="b")
    history = rest.get(f"/api/tasks/{task.pk}/transitions/").json()
    assert [event for _, event, _ in moves(history)] == ["ready", "start", "succeed"]
    assert {row["constellation_id"] for row in history["results"]} == {found.pk}
    assert set(history["time_per_state"]) == {"WAITING_DEPENDENCY", "PENDING", "RUNNING"}
    history = rest.get(f"/api/constellations/{found.pk}/transitions/").json()
    assert [event for _, event, _ in moves(history)] == ["validated", "start", "close"]
    assert (history["state"], history["results"][2]["constellation_id"]) == ("COMPLETED", found.pk)


def test_each_actor_of_a_session_has_its_own(rest, found, engine):
    session = found.session
    services_cancel(session)
    engine.run()
    engine.carry_out({"tasks": [noop("c")]}, session)
    first = rest.get(f"/api/sessions/{session.pk}/transitions/", epoch=1).json()
    assert [event for _, event, _ in moves(first)] == ["Spawned", "ProcessInteraction", "InteractionComplete", "Cancel"]
    latest = rest.get(f"/api/sessions/{session.pk}/transitions/").json()
    assert (latest["id"], latest["state"]) == (Actor.objects.latest("epoch").pk, "idle")
    assert latest["results"][0] | SEED == latest["results"][0]
    assert rest.get(f"/api/sessions/{session.pk}/transitions/", epoch=3).status_code == 404


def services_cancel(session) -> None:
    from agents.services import sessions

    sessions.request_submit(session.pk, "cancel", "", {"reason": "enough"}, by="user:1")


def test_a_long_history_comes_in_pages_whose_numbers_go_on(rest, found):
    agent = Agent.objects.filter(loop__isnull=False).earliest("id")
    whole = rest.get(f"/api/agents/{agent.pk}/loop_transitions/").json()["results"]
    read, cursor = [], 0
    while cursor is not None:
        page = rest.get(f"/api/agents/{agent.pk}/loop_transitions/", cursor=cursor, limit=2).json()
        read, cursor = read + page["results"], page["next"]
    assert read == whole
    assert len(whole) > 4


def test_after_a_restart_the_same_agent_is_about_another_constellation(rest, engine, device, tmp_path):
    script = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; sleep 60; }}"
    _, item = engine.submit({"tasks": [command("a", "sh", "-c", script)]})
    told = []

    def until() -> bool:
        if not told and something_runs() and (tmp_path / "again").exists():
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: told.append(lifecycle.constellation_restart(key, by="user:1")), made)
        return bool(told) and query("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')") == 0

    engine.run(until)
    first, second = Constellation.objects.filter(interaction=item).order_by("id").values_list("pk", flat=True)
    history = rest.get(f"/api/agents/{Agent.objects.get(machine='constellation_agent').pk}/transitions/").json()["results"]
    by_event = {row["event"]: row["constellation_id"] for row in history}
    assert (by_event["restart"], by_event["finished"]) == (first, second)


def test_what_is_not_yours_has_no_history(found, viewer):
    for path in (f"constellations/{found.pk}", f"tasks/{found.tasks.first().pk}", f"sessions/{found.session_id}"):
        assert Rest(viewer).get(f"/api/{path}/transitions/").status_code == 404


@pytest.mark.parametrize("machine", [DEVICE_AGENT, CONSTELLATION_AGENT], ids=lambda machine: machine.name)
def test_the_database_takes_no_state_that_an_agents_machine_does_not_have(found, machine):
    table = connection.ops.quote_name(Agent._meta.db_table)
    for state in machine.states:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET state = %s WHERE machine = %s", [state, machine.name])
            assert cursor.rowcount
            transaction.set_rollback(True)
    with pytest.raises(IntegrityError, match=f"{machine.name}_state"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET state = 'ASLEEP' WHERE machine = %s", [machine.name])
