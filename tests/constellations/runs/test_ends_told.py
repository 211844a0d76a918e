"""What the planner has not been told yet is in the rows: each end is taken by one editing session, whatever comes between."""

import pytest

from agents.models import Approval, Event
from agents.services import sessions
from agents.services.approvals import approval_decide
from agents.streams.turn import PIECE
from constellations.models import Constellation, Task
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import constellation_fork, constellation_retry
from tests.constellations.runs.attempts.test_crews import WAITING, found
from tests.constellations.runs.test_run import actor_state, command, in_thread, inbox_rests, noop, query, something_runs, states
from tests.constellations.services.test_edit_sessions import sessions_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]

FIRST_HAS_ENDED = found("constellations_task", "task_id = 'first' AND state = 'COMPLETED'")
NEVER = {"add_dependency": {"from": "first", "to": "mid", "type": "CONDITIONAL", "condition": "n > 5"}}


def answer(event: str, *tasks: str, **more) -> dict:
    """A rule that adds a task for each of those it answers to."""
    edit = [{"add_task": noop("after_{task}")}]
    return {"name": "answer", "when": {"event": event, "task": list(tasks)}, "times": 10, "edit": edit, **more}


def paused_while_it_runs(engine, plan: dict) -> Constellation:
    """Carry out a plan until its actor is paused, which is asked for while a task runs; nobody drives it then."""
    session, _ = engine.submit(plan)
    sent = []

    def pause_when_running() -> bool:
        if not sent and something_runs():
            sent.append(1)
            in_thread(sessions.request_submit, session.pk, "pause", "p1", {}, by="user:1")
        return bool(sent) and actor_state() == "paused"

    engine.run(until=pause_when_running)
    return Constellation.objects.get()


def resume(engine, made: Constellation) -> None:
    sessions.request_submit(made.session_id, "resume", "r1", {}, by="user:1")
    engine.run()
    made.refresh_from_db()


def taken(made: Constellation) -> list[str]:
    """The tasks whose ends the editing sessions of a constellation took, as their records say."""
    records = Event.objects.filter(stream=made.session_id, type="ends_taken", data__agent_id=made.agent_id).order_by("seq")
    assert {record.data["mode"] for record in records} <= {"editing"}
    return [task for record in records for task in record.data["tasks"]]


def test_an_end_that_comes_while_the_actor_pauses_is_told_when_it_goes_on(engine, device):
    made = paused_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.3")], "replan": [answer("task_completed", "a")]})
    assert (made.tasks.get().state, made.tasks.get().untold) == ("COMPLETED", True)
    resume(engine, made)
    assert states(made) == {"a": "COMPLETED", "after_a": "COMPLETED"}
    assert (made.fired, sessions_of(made.agent)) == ({"answer": 1}, 1)
    assert sorted(taken(made)) == ["a", "after_a"]
    assert not Task.objects.filter(untold=True).exists()


def test_what_an_edit_skips_while_the_session_is_paused_is_told_when_it_goes_on(engine, device):
    tasks = [noop("first", {"n": 1}), command("a", "sleep", "0.4"), noop("mid", after=["a"])]
    made = paused_while_it_runs(engine, {"tasks": tasks, "replan": [answer("task_skipped", "mid")]})
    edit_apply(made.pk, [NEVER], author="user:1")
    assert Task.objects.get(task_id="mid").untold
    resume(engine, made)
    assert states(made) == {"first": "COMPLETED", "a": "COMPLETED", "mid": "CANCELLED", "after_mid": "COMPLETED"}
    assert (made.fired, taken(made).count("mid")) == ({"answer": 1}, 1)


def test_what_an_edit_skips_while_the_session_rests_is_told_by_whoever_takes_it_up(engine, device):
    tasks = [noop("first", {"n": 1}), command("gated", "true", confirm=True), noop("mid", after=["gated"])]
    engine.submit({"tasks": tasks, "replan": [answer("task_skipped", "mid")]})
    engine.run(until=WAITING)
    made = Constellation.objects.get()
    edit_apply(made.pk, [NEVER], author="user:1")
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    engine.run()
    made.refresh_from_db()
    assert (states(made)["after_mid"], made.fired, taken(made).count("mid")) == ("COMPLETED", {"answer": 1}, 1)


def test_what_an_edit_skips_while_its_session_is_driven_is_told_once(engine, device):
    tasks = [noop("first", {"n": 1}), command("a", "sleep", "0.4"), noop("mid", after=["a"])]
    engine.submit({"tasks": tasks, "replan": [answer("task_skipped", "mid")]})
    sent = []

    def edit_when_running() -> bool:
        if not sent and FIRST_HAS_ENDED() and something_runs():
            sent.append(1)
            in_thread(edit_apply, query("SELECT id FROM constellations_constellation"), [NEVER], author="user:1")
        return bool(sent) and inbox_rests()

    engine.run(until=edit_when_running)
    made = Constellation.objects.get()
    assert (states(made)["after_mid"], made.fired, taken(made).count("mid")) == ("COMPLETED", {"answer": 1}, 1)


def test_an_end_that_was_taken_back_before_it_was_told_is_not_told(engine, device, tmp_path):
    once = ["sh", "-c", f"test -e {tmp_path}/again || (touch {tmp_path}/again; sleep 0.3; exit 1)"]
    plan = {"tasks": [command("a", *once)], "replan": [answer("task_failed", "a"), answer("task_completed", "a", name="well")]}
    made = paused_while_it_runs(engine, plan)
    assert (made.tasks.get().state, made.tasks.get().untold) == ("FAILED", True)
    constellation_retry(made.pk, ["a"], by="user:1")
    assert not made.tasks.get().untold
    resume(engine, made)
    assert (made.state, made.fired) == ("COMPLETED", {"well": 1})
    assert sorted(taken(made)) == ["a", "after_a"]


def test_a_skipped_task_that_is_revived_before_that_was_told_is_not_told_of(engine, device):
    tasks = [noop("first", {"n": 1}), command("a", "sleep", "0.4"), noop("mid", after=["a"])]
    made = paused_while_it_runs(engine, {"tasks": tasks, "replan": [answer("task_skipped", "mid")]})
    edit_apply(made.pk, [NEVER], author="user:1")
    edit_apply(made.pk, [{"remove_dependency": {"from": "first", "to": "mid"}}], author="user:1")
    resume(engine, made)
    assert (states(made), made.fired) == ({"first": "COMPLETED", "a": "COMPLETED", "mid": "COMPLETED"}, {})


@pytest.mark.parametrize("operations", [[{"add_task": noop("more")}], []], ids=["with more to do", "with all its tasks ended"])
def test_a_fork_tells_what_had_not_been_told_where_it_begins(engine, device, operator, operations):
    made = paused_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.3")], "replan": [answer("task_completed", "a")]})
    session, _, _ = constellation_fork(made.pk, operator, operations=operations, by=f"user:{operator.pk}")
    engine.run(until=found("constellations_constellation", "state = 'COMPLETED'"))
    fork = Constellation.objects.get(session=session)
    assert states(fork) == {"a": "COMPLETED", "after_a": "COMPLETED", **({"more": "COMPLETED"} if operations else {})}
    assert taken(fork).count("a") == 1
    resume(engine, made)
    assert made.fired == {"answer": 1}


def test_every_end_is_taken_once_and_the_record_says_in_which_mode(engine, device):
    tasks = [noop("a"), noop("b", after=["a"]), command("c", "false", after=["b"]), noop("d", after=["c"])]
    made = engine.carry_out({"tasks": tasks, "replan": [answer("task_ended", "a", "b", "c", "d")]})
    assert sorted(taken(made)) == sorted(states(made))
    created = Event.objects.get(type="constellation_created")
    assert created.data["mode"] == "creation"
    assert (made.fired, sessions_of(made.agent)) == ({"answer": 4}, 3)


def test_a_plan_without_rules_tells_nobody_and_pays_nothing_for_it(engine, device):
    made = engine.carry_out({"tasks": [noop("a"), command("b", "false"), noop("c", after=["b"])]})
    assert made.state == "PARTIALLY_FAILED"
    assert not Event.objects.filter(type="ends_taken").exists()
    ends = Event.objects.filter(data__has_key="set").values_list("data", flat=True)
    assert not any("untold" in fields for data in ends for fields in data["set"].get("task", {}).values())


def test_a_session_that_takes_more_ends_than_a_record_holds_has_several(engine, device):
    line = {"from": "a", "to": "hub", "type": "CONDITIONAL", "condition": "n > 5"}
    behind = [noop(f"t{number}", after=["hub"]) for number in range(2 * PIECE)]
    plan = {"tasks": [noop("a", {"n": 1}), noop("hub"), *behind], "dependencies": [line]}
    made = engine.carry_out({**plan, "replan": [answer("task_skipped", "t7")]})
    sizes = [len(event.data["tasks"]) for event in Event.objects.filter(type="ends_taken").order_by("seq")]
    assert (max(sizes), sum(sizes)) == (PIECE, 2 * PIECE + 3)
    assert (made.fired, states(made)["after_t7"]) == ({"answer": 1}, "COMPLETED")
