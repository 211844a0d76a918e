"""One task, cancelled while it runs or skipped while it waits, by services and REST, with the real engine."""

import pytest

from agents.errors import Conflict, PayloadRejected
from agents.models import Agent, Approval, InboxItem, Transition
from agents.services import sessions
from constellations.errors import NoSuchTask, TaskNotCancelled
from constellations.live.live import REASON_LENGTH
from constellations.models import Attempt, Constellation, Task
from constellations.reads.why import explain_task
from constellations.services import lifecycle, task_commands
from constellations.services.edits import edit_apply
from tests.agents.conftest import Rest
from tests.conftest import person
from tests.constellations.planting import plant
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
WAITS = "SELECT count(*) FROM agents_approval WHERE state = 'waiting'"


@pytest.fixture
def by(operator) -> str:
    return f"user:{operator.pk}"


@pytest.fixture
def rest(operator) -> Rest:
    return Rest(operator)


def told_while_it_runs(engine, plan, tell, when=something_runs):
    """Carry out a plan; `tell` is called with the constellation's id, as by another process, once `when` holds."""
    _, item = engine.submit(plan)
    answers = []

    def until() -> bool:
        if not answers and when():
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: answers.append(tell(key)), made)
        return bool(answers) and inbox_rests()

    engine.run(until)
    return Constellation.objects.get(interaction=item), answers[0]


def history(task_id: str) -> list[tuple[str, str, str]]:
    task = Task.objects.get(task_id=task_id)
    moves = Transition.objects.filter(machine="task", subject_id=task.pk).order_by("seq", "id")
    return list(moves.values_list("event", "reason", "by"))


# What runs


def test_a_running_task_is_cancelled_alone_and_what_depends_on_it_follows(engine, device, by):
    plan = {
        "tasks": [
            command("train", "sleep", "60"), noop("deploy", after=["train"]), noop("clean"),
            command("other", "sleep", "0.3"), noop("after_other", after=["other"]),
        ],
        "dependencies": [{"from": "train", "to": "clean", "type": "COMPLETION_ONLY"}],
    }  # fmt: skip

    def cancel(key):
        return task_commands.task_cancel(key, "train", by=by, reason="wrong data")

    both_run = "SELECT count(*) FROM constellations_attempt WHERE outcome = ''"
    found, answer = told_while_it_runs(engine, plan, cancel, lambda: query(both_run) == 2)
    assert (answer.changed, answer.task.state) == (True, "RUNNING")
    assert answer.command is not None
    assert states(found) == {
        "train": "CANCELLED", "deploy": "CANCELLED", "clean": "COMPLETED", "other": "COMPLETED", "after_other": "COMPLETED",
    }  # fmt: skip
    assert history("train")[-1] == ("cancel", "cancelled by operator: wrong data", by)
    assert Task.objects.get(task_id="deploy").reason == "skipped: train>deploy needs train completed, and it is CANCELLED"
    attempt = Attempt.objects.get(task__task_id="train")
    assert (attempt.outcome, attempt.error) == ("cancelled", "cancelled by operator: wrong data")
    assert Agent.objects.get(pk=attempt.agent_id).state == "FAIL"
    assert (found.state, found.interaction.outcome) == ("COMPLETED", "completed")
    summary = "3 of 5 tasks completed, 0 failed, 2 cancelled or skipped, 1 of them on purpose"
    assert found.interaction.result["summary"] == summary
    device.refresh_from_db()
    assert device.used == 0
    assert explain_task(Task.objects.get(task_id="train"))["text"] == "cancelled by operator: wrong data"


def test_its_processes_are_ended(engine, device, by, state_dir):
    mark = state_dir / "ended_by_itself"
    plan = {"tasks": [command("a", "sh", "-c", f"sleep 1; touch {mark}"), command("b", "sleep", "1.5")]}
    both_run = "SELECT count(*) FROM constellations_attempt WHERE outcome = ''"
    found, _ = told_while_it_runs(
        engine, plan, lambda key: task_commands.task_cancel(key, "a", by=by, reason="no"), lambda: query(both_run) == 2
    )
    assert states(found) == {"a": "CANCELLED", "b": "COMPLETED"}
    assert not mark.exists()


def test_asked_twice_it_is_cancelled_once(engine, device, by):
    def cancel(key):
        said = {"by": by, "reason": "no", "client_id": "c1"}
        first, again = (task_commands.task_cancel(key, "a", **said) for _ in range(2))
        other = task_commands.task_cancel(key, "a", by=by, reason="no")
        return first, again, other

    plan = {"tasks": [command("a", "sleep", "60")]}
    found, (first, again, other) = told_while_it_runs(engine, plan, cancel)
    assert [first.changed, again.changed, other.changed] == [True, False, False]
    assert first.command == again.command == other.command
    assert InboxItem.objects.filter(kind="cancel_task").count() == 1
    late = task_commands.task_cancel(found.pk, "a", by=by, reason="no")
    assert (late.changed, late.task.state, late.command) == (False, "CANCELLED", None)
    assert task_commands.task_cancel(found.pk, "a", by=by, reason="no", client_id="c1").changed is False
    with pytest.raises(Conflict, match="client_id c1 was used for another request"):
        task_commands.task_cancel(found.pk, "a", by=by, reason="something else", client_id="c1")


def test_a_run_in_which_all_was_cancelled_on_purpose_is_done(engine, device, by):
    plan = {"tasks": [command("a", "sleep", "60")]}
    found, _ = told_while_it_runs(engine, plan, lambda key: task_commands.task_cancel(key, "a", by=by, reason="not needed"))
    assert (found.state, found.result["cancelled"]) == ("COMPLETED", 1)


def test_an_approval_that_its_crew_waits_for_is_withdrawn_with_it(engine, device, by):
    engine.submit({"tasks": [command("a", "echo", confirm=True), noop("b")]})
    engine.run(lambda: query(WAITS) == 1)
    found = Constellation.objects.get()
    task_commands.task_cancel(found.pk, "a", by=by, reason="nobody needs it")
    engine.run()
    assert Approval.objects.get().state == "withdrawn"
    assert states(found) == {"a": "CANCELLED", "b": "COMPLETED"}
    assert list(Agent.objects.filter(machine="device_agent").order_by("id").values_list("state", flat=True)) == [
        "FAIL",
        "FINISH",
    ]
    device.refresh_from_db()
    assert device.used == 0


def test_a_crew_and_the_agents_it_delegates_to_end_with_its_task(engine, device, by):
    inner = {"name": "app", "steps": [{"command": ["sleep", "60"]}]}
    plan = {"tasks": [{"task_id": "a", "device": "laptop", "steps": [{"delegate": inner}]}]}
    calls = "SELECT count(*) FROM agents_evidence WHERE ended_at IS NULL"
    found, _ = told_while_it_runs(
        engine, plan, lambda key: task_commands.task_cancel(key, "a", by=by, reason="no"), lambda: query(calls) == 1
    )
    assert states(found) == {"a": "CANCELLED"}
    agents = Agent.objects.filter(machine="device_agent").order_by("id").values_list("state", flat=True)
    assert list(agents) == ["FAIL", "FAIL"]


def test_a_task_is_cancelled_while_its_session_is_paused(engine, device, by):
    session, _ = engine.submit({"tasks": [command("a", "echo", confirm=True), noop("b", after=["a"])]})
    engine.run(lambda: query(WAITS) == 1)
    sessions.request_submit(session.pk, "pause", "p", {}, by=by)
    engine.run(lambda: query("SELECT state FROM agents_actor") == "paused")
    found = Constellation.objects.get()
    task_commands.task_cancel(found.pk, "a", by=by, reason="no")
    engine.run(inbox_rests_but_for_the_interaction)
    assert states(found) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert query("SELECT state FROM agents_actor") == "paused"
    sessions.request_submit(session.pk, "resume", "r", {}, by=by)
    engine.run()
    found.refresh_from_db()
    assert (found.state, Approval.objects.get().state) == ("COMPLETED", "withdrawn")


def inbox_rests_but_for_the_interaction() -> bool:
    asked = "SELECT count(*) FROM agents_inboxitem WHERE kind <> 'interaction' AND state IN ('queued', 'running')"
    return query(asked) == 0


# What waits


def test_a_waiting_task_is_skipped_at_once_also_while_no_runner_lives(operator, device, by):
    found = plant(sessions.session_create(operator, by="system"), noop("a"), noop("b", after=["a"]), noop("c", after=["b"]))
    answer = task_commands.task_skip(found.pk, "b", by=by, reason="done by hand")
    assert (answer.changed, answer.task.state, answer.command) == (True, "CANCELLED", None)
    assert states(found) == {"a": "PENDING", "b": "CANCELLED", "c": "CANCELLED"}
    assert history("b")[-1] == ("cancel", "cancelled by operator: done by hand", by)
    assert Task.objects.get(task_id="c").reason.startswith("skipped: b>c")
    assert task_commands.task_skip(found.pk, "b", by=by, reason="done by hand").changed is False


def test_the_runner_goes_on_with_what_a_skip_has_left(engine, device, by):
    plan = {
        "tasks": [command("a", "sleep", "0.3"), noop("b", after=["a"]), noop("clean")],
        "dependencies": [{"from": "b", "to": "clean", "type": "COMPLETION_ONLY"}],
    }
    found, answer = told_while_it_runs(engine, plan, lambda key: task_commands.task_skip(key, "b", by=by, reason="not today"))
    assert (answer.changed, answer.command) == (True, None)
    assert states(found) == {"a": "COMPLETED", "b": "CANCELLED", "clean": "COMPLETED"}
    assert found.state == "COMPLETED"


def test_what_a_person_has_skipped_comes_back_by_a_retry_and_by_no_edit(engine, device, by):
    _, item = engine.submit({"tasks": [command("a", "sleep", "0.3"), noop("b", after=["a"])]})
    done = []

    def skip_and_edit(key):
        task_commands.task_skip(key, "b", by=by, reason="not today")
        edit_apply(key, [{"add_task": noop("c", after=["a"])}], author=by)
        done.append(key)

    def until() -> bool:
        if not done and something_runs():
            in_thread(skip_and_edit, query("SELECT id FROM constellations_constellation"))
        return bool(done) and inbox_rests()

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    assert states(found) == {"a": "COMPLETED", "b": "CANCELLED", "c": "COMPLETED"}
    lifecycle.constellation_retry(found.pk, ["b"], by=by)
    engine.run()
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}


def test_the_approval_of_a_lost_attempt_is_withdrawn_when_its_task_is_skipped(engine, device, by, monkeypatch):
    from agents.tools.calls import TOOLS, Outcome

    async def lose(call):
        return Outcome("lost", error="its runner was killed", error_kind="lost")

    monkeypatch.setitem(TOOLS, "noop", lose)
    engine.submit({"tasks": [noop("a", on_lost="ask")]})
    engine.run(lambda: query(WAITS) == 1)
    found = Constellation.objects.get()
    assert task_commands.task_skip(found.pk, "a", by=by, reason="it was done").changed is True
    engine.run()
    assert (Approval.objects.get().state, states(found)) == ("withdrawn", {"a": "CANCELLED"})


def test_of_a_skip_and_a_start_exactly_one_counts(engine, device, by):
    """Every task is skipped while its runner starts one after the other; none is both, whatever came first."""
    names = [f"t{number}" for number in range(40)]
    _, item = engine.submit({"tasks": [noop(name, 1) for name in names]})
    skipped: list[str] = []
    refused: list[str] = []

    def skip_all(key):
        for name in reversed(names):
            try:
                changed = task_commands.task_skip(key, name, by=by, reason="race").changed
                (skipped if changed else refused).append(name)
            except TaskNotCancelled:
                refused.append(name)

    def until() -> bool:
        if not (skipped or refused) and something_runs():
            in_thread(skip_all, query("SELECT id FROM constellations_constellation"))
        return bool(skipped or refused) and inbox_rests()

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    ended = states(found)
    assert {name for name in names if ended[name] == "CANCELLED"} == set(skipped)
    assert {name for name in names if ended[name] == "COMPLETED"} == set(refused)
    assert sorted(skipped + refused) == sorted(names)
    assert not Attempt.objects.filter(task__task_id__in=skipped).exists()


# Over REST


def test_what_has_ended_what_is_not_there_and_what_has_no_reason_are_refused(engine, device, rest, by):
    found = engine.carry_out({"name": "n", "tasks": [noop("train")]})
    task = found.tasks.get()
    for verb in ("cancel", "skip"):
        answer = rest.post(f"/api/tasks/{task.pk}/{verb}/", {"reason": "no"})
        assert (answer.status_code, answer.json()["code"]) == (409, "task_not_cancelled")
        assert answer.json()["detail"] == "train has ended (COMPLETED); nothing of it is left to end"
        answer = rest.post(f"/api/tasks/{task.pk}/{verb}/", {})
        assert (answer.status_code, answer.json()["problems"]) == (
            400, [{"key": "reason", "message": f"a {verb} needs a reason"}],
        )  # fmt: skip
    with pytest.raises(NoSuchTask, match=r"^n has no task trian; did you mean train[?]$"):
        task_commands.task_cancel(found.pk, "trian", by=by, reason="no")
    with pytest.raises(PayloadRejected):
        task_commands.task_cancel(found.pk, "train", by=by, reason=" ")


def test_a_reason_that_does_not_fit_beside_who_asks_is_refused_with_the_room_there_is(operator, rest, device):
    found = plant(sessions.session_create(operator, by="system"), noop("a"))
    room = REASON_LENGTH - len("cancelled by operator: ")
    for verb in ("cancel", "skip"):
        answer = rest.post(f"/api/tasks/{found.tasks.get().pk}/{verb}/", {"reason": "x" * REASON_LENGTH})
        said = f"at most {room} characters, not {REASON_LENGTH}: the task keeps who asked beside it"
        assert (answer.status_code, answer.json()["problems"]) == (400, [{"key": "reason", "message": said}])
    assert states(found) == {"a": "PENDING"}
    assert rest.post(f"/api/tasks/{found.tasks.get().pk}/cancel/", {"reason": "x" * room}).status_code == 200
    assert Task.objects.get().reason == f"cancelled by operator: {'x' * room}"


def test_a_task_that_ends_with_its_run_shows_that_it_has_not_all_of_the_reason(engine, device, by):
    def stop(key):
        lifecycle.constellation_cancel(key, by=by, reason="x" * REASON_LENGTH)

    plan = {"tasks": [command("a", "sleep", "60"), noop("b", after=["a"])]}
    found, _ = told_while_it_runs(engine, plan, stop)
    reasons = set(found.tasks.values_list("reason", flat=True))
    assert reasons == {f"cancelled: {'x' * (REASON_LENGTH - len('cancelled: ') - 4)} ..."}
    assert found.reason.endswith("x" * REASON_LENGTH)


def test_a_waiting_task_is_skipped_and_a_running_one_only_cancelled_over_rest(engine, device, rest, user):
    stranger = Rest(person("other", "operator"))

    def ask(key):
        found = Constellation.objects.get(pk=key)
        a, b = found.tasks.get(task_id="a"), found.tasks.get(task_id="b")
        told = {"reason": "by hand", "client_id": "s1"}
        answers = [rest.post(f"/api/tasks/{b.pk}/skip/", told) for _ in range(2)]
        answers += [rest.post(f"/api/tasks/{a.pk}/skip/", {"reason": "by hand"})]
        answers += [rest.post(f"/api/tasks/{a.pk}/cancel/", {"reason": "by hand"}) for _ in range(2)]
        return answers + [other.post(f"/api/tasks/{a.pk}/cancel/", {"reason": "x"}) for other in (stranger, Rest(user))]

    plan = {"tasks": [command("a", "sleep", "60"), noop("b", after=["a"])]}
    found, (skipped, again, refused, taken, twice, hidden, forbidden) = told_while_it_runs(engine, plan, ask)
    expected = {"task_id": "b", "state": "CANCELLED", "changed": True, "command": None}
    assert (skipped.status_code, skipped.json()) == (200, expected)
    assert (again.status_code, again.json()) == (200, {**expected, "changed": False})
    assert (refused.status_code, refused.json()["detail"]) == (409, "a already runs, so it is skipped no more; cancel it")
    item = InboxItem.objects.get(pk=taken.json()["command"])
    assert (taken.status_code, taken.json()["state"], item.kind, item.result) == (
        202,
        "RUNNING",
        "cancel_task",
        {"changed": True},
    )
    assert (twice.status_code, twice.json()) == (200, {**taken.json(), "changed": False})
    assert (hidden.status_code, forbidden.status_code) == (404, 403)
    assert states(found) == {"a": "CANCELLED", "b": "CANCELLED"}
