"""What a call had said before it was cut off is in the `stopped` event of whoever cut it off."""

import pytest

from agents.models import Event
from agents.services import sessions
from constellations.services import lifecycle
from tests.constellations.runs.test_run import command, in_thread, query

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"
HALF = "test -e cut_off && exit; touch cut_off; echo half an answer; sleep 600"


def cut_off(engine, plan: dict, tell, printed: str = "half") -> list[dict]:
    """The `stopped` events of a plan that is told something once its calls have printed something."""
    session, _ = engine.submit(plan)
    told = []

    def until() -> bool:
        if not told and query(f"SELECT count(*) FROM agents_output WHERE text LIKE '%{printed}%'"):
            told.append(in_thread(tell, session.pk))
        return bool(told) and query("SELECT count(*) FROM agents_event WHERE type = 'stopped'") > 0

    engine.run(until)
    return list(Event.objects.filter(type="stopped").values_list("data", flat=True))


def send(kind: str, **payload):
    return lambda session: sessions.request_submit(session, kind, "", payload, by=BY)


def test_a_cancel_keeps_what_was_printed_until_then(engine, device):
    found = cut_off(engine, {"tasks": [command("a", "sh", "-c", HALF)]}, send("cancel", reason="enough"))
    assert found == [{"reason": "enough", "partial_response": "half an answer\n", "terminal": True}]


def test_an_immediate_pause_does_and_the_actor_lives_on(engine, device):
    found = cut_off(engine, {"tasks": [command("a", "sh", "-c", HALF)]}, send("pause", mode="immediate", reason="lunch"))
    assert found == [{"reason": "lunch", "partial_response": "half an answer\n", "terminal": False}]


@pytest.mark.parametrize("how", [lifecycle.constellation_cancel, lifecycle.constellation_restart])
def test_so_do_a_cancel_and_a_restart_of_the_constellation(engine, device, how):
    def tell(session: int) -> None:
        how(query("SELECT id FROM constellations_constellation"), by=BY, reason="other data")

    found = cut_off(engine, {"tasks": [command("a", "sh", "-c", HALF)]}, tell)
    assert found == [{"reason": "other data", "partial_response": "half an answer\n", "terminal": False}]


def test_of_a_task_in_steps_it_is_the_running_calls_and_no_earlier_ones(engine, device):
    steps = [{"command": ["echo", "done before"]}, {"command": ["sh", "-c", HALF]}]
    plan = {"tasks": [{"task_id": "a", "device": "laptop", "steps": steps}]}
    found = cut_off(engine, plan, send("cancel", reason="enough"))
    assert found[0]["partial_response"] == "half an answer\n"


def test_several_say_whose_each_is(engine, device):
    """The second says something only once the first has."""
    scripts = {
        "a": "echo a says; touch said; sleep 600",
        "b": "until test -e said; do sleep 0.01; done; echo b says; sleep 600",
    }
    plan = {"tasks": [command(name, "sh", "-c", script) for name, script in scripts.items()]}
    found = cut_off(engine, plan, send("cancel", reason="enough"), printed="b says")
    assert found[0]["partial_response"] == "a:\na says\n\nb:\nb says\n"


def test_only_the_end_of_a_long_one_is_kept(engine, device):
    script = "head -c 100000 /dev/zero | tr '\\0' x; echo the end; sleep 600"
    found = cut_off(engine, {"tasks": [command("a", "sh", "-c", script)]}, send("cancel", reason="enough"), printed="the end")
    partial = found[0]["partial_response"]
    assert (len(partial), partial[-9:]) == (4_000, "xthe end\n")


def test_nothing_was_said_where_nothing_runs(engine, device):
    session, _ = engine.submit({"tasks": [{"task_id": "a", "tool": "noop"}]})
    engine.run()
    send("cancel", reason="enough")(session.pk)
    engine.run()
    assert Event.objects.get(type="stopped").data == {"reason": "enough", "partial_response": "", "terminal": True}
