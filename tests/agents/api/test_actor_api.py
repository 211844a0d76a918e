"""Commands to an actor over REST: how a pause is meant, a shutdown, and what the list of interactions says was asked."""

import pytest

from agents.models import InboxItem
from agents.models.sessions import REQUEST_SHOWN
from agents.services import sessions
from tests.agents.conftest import PLAN, Rest, add_actor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def command(rest: Rest, session, kind: str, **body):
    return rest.post(f"/api/sessions/{session.pk}/commands/", {"kind": kind, **body})


@pytest.mark.parametrize("mode", ["immediate", "cooperative"])
def test_a_pause_says_whether_what_runs_may_end_first(rest, session, mode):
    add_actor(session, "running")
    answer = command(rest, session, "pause", mode=mode, reason="lunch")
    assert answer.status_code == 202
    assert InboxItem.objects.get(pk=answer.json()["command"]).payload == {"reason": "lunch", "mode": mode}


def test_an_immediate_pause_is_no_repetition_of_one_that_waits(rest, session):
    row = add_actor(session, "running")
    sessions.request_submit(session.pk, "pause", "first", {}, by="system")
    from agents.streams.door import door

    with door(session.pk, "system") as opened:
        first = InboxItem.objects.get(client_id="first")
        changed = {"actor": {str(row): {"pausing": True}}, "inbox": {str(first.pk): {"state": "running"}}}
        opened.turn.record("actor_pausing", set=changed)
    assert command(rest, session, "pause").json()["changed"] is False
    assert command(rest, session, "pause", mode="immediate").json()["changed"] is True


@pytest.mark.parametrize(
    ("kind", "mode", "says"), [("pause", "now", "not a valid choice"), ("resume", "immediate", "only a pause")]
)
def test_a_mode_that_makes_no_sense_is_refused_and_nothing_is_recorded(rest, session, kind, mode, says):
    add_actor(session, "running")
    answer = command(rest, session, kind, mode=mode)
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, "mode")
    assert says in answer.json()["problems"][0]["message"]
    assert InboxItem.objects.count() == 0


def test_a_shutdown_gives_the_session_to_another_runner_and_changes_no_state(rest, session, engine, device):
    engine.submit({"tasks": [{"task_id": "a", "tool": "noop"}]}, session)
    runner = engine.run()
    answer = command(rest, session, "shutdown")
    assert answer.status_code == 202
    after = engine.run()
    item = InboxItem.objects.get(pk=answer.json()["command"])
    assert (item.state, item.result) == ("done", {"changed": False})
    assert rest.get(f"/api/sessions/{session.pk}/").json()["state"] == "idle"
    assert after.row.pk != runner.row.pk


def test_the_list_of_interactions_says_what_was_asked(rest, session, device):
    words = "`true` on laptop"
    rest.post(f"/api/sessions/{session.pk}/interactions/", {"request": words})
    long = PLAN + "# " + "x" * REQUEST_SHOWN
    rest.post(f"/api/sessions/{session.pk}/interactions/", {"plan": long})
    rest.post(f"/api/sessions/{session.pk}/interactions/", {"plan": PLAN})
    rows = rest.get(f"/api/sessions/{session.pk}/interactions/").json()["results"]
    assert [(row["request"], row["plan"], row["truncated"]) for row in sorted(rows, key=lambda row: row["id"])] == [
        (words, None, False),
        (None, long[:REQUEST_SHOWN], True),
        (None, PLAN, False),
    ]


def test_machines_say_which_states_end_a_round_and_a_subtask(rest):
    for machine in rest.get("/api/machines/").json()["results"]:
        assert (machine["round_end"], machine["subtask_end"]) == (machine["terminal"], machine["terminal"])
