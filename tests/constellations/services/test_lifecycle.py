"""A constellation as a whole, told what to do while the real engine runs it: pause, cancel, restart, retry, reopen, fork."""

import pytest

from agents.errors import Conflict
from agents.models import Actor, Agent, Event, InboxItem, Session, Transition
from agents.services import sessions
from agents.streams.fold import stream_head
from constellations import limits
from constellations.errors import ConstellationEnded, EditRefused, NotForked, NotReopened, NotRetried
from constellations.models import Attempt, Constellation, Edit, Task
from constellations.reads.statistics import figures_of, statistics_of
from constellations.reads.why import explain_task
from constellations.services import lifecycle
from constellations.services.edits import edit_apply
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"


def told_while_it_runs(engine, plan, tell, when=something_runs) -> tuple[Constellation, object]:
    """Carry out a plan; `tell` is called with the constellation's id, as by another process, while something runs."""
    _, item = engine.submit(plan)
    answers = []

    def until() -> bool:
        if not answers and when():
            in_thread(lambda made: answers.append(tell(made)), query("SELECT id FROM constellations_constellation"))
        return bool(answers) and inbox_rests()

    engine.run(until)
    return Constellation.objects.filter(interaction=item).latest("id"), answers[0]


def once(path) -> list[str]:
    """A command that fails the first time it runs, and never again."""
    return ["sh", "-c", f"test -e {path} || {{ touch {path}; exit 3; }}"]


# Pause and resume


def test_while_it_is_paused_nothing_starts_and_what_runs_ends(engine, device):
    plan = {"tasks": [command("a", "sleep", "0.3"), noop("b", after=["a"])]}
    _, item = engine.submit(plan)
    paused = []

    def until() -> bool:
        if not paused and something_runs():
            made = query("SELECT id FROM constellations_constellation")
            paused.append(in_thread(lambda key: lifecycle.constellation_pause(key, by=BY, reason="look first"), made))
        return bool(paused) and query("SELECT count(*) FROM constellations_task WHERE state = 'PENDING'") == 1

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    assert (found.state, found.reason) == ("PAUSED", "look first")
    assert states(found) == {"a": "COMPLETED", "b": "PENDING"}
    engine.run(lambda: True)
    assert states(found) == {"a": "COMPLETED", "b": "PENDING"}
    assert explain_task(found.tasks.get(task_id="b"))["text"].startswith("its constellation is paused: look first")
    assert Actor.objects.get().state == "running"
    assert lifecycle.constellation_pause(found.pk, by=BY)[1] is False
    _, changed = lifecycle.constellation_resume(found.pk, by=BY)
    engine.run()
    assert changed is True
    found.refresh_from_db()
    assert (found.state, states(found)) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED"})


def test_a_paused_constellation_is_edited_and_closes_only_after_it_goes_on(engine, device):
    _, item = engine.submit({"tasks": [command("a", "sleep", "0.2")]})
    done = []

    def until() -> bool:
        if not done and something_runs():
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: lifecycle.constellation_pause(key, by=BY), made)
            done.append(made)
        return bool(done) and query("SELECT count(*) FROM constellations_task WHERE state = 'COMPLETED'") == 1

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    assert found.state == "PAUSED"
    edit_apply(found.pk, [{"add_task": noop("b", after=["a"])}], author=BY)
    engine.run(lambda: True)
    assert states(found) == {"a": "COMPLETED", "b": "PENDING"}
    lifecycle.constellation_resume(found.pk, by=BY)
    engine.run()
    found.refresh_from_db()
    assert (found.state, states(found)) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED"})


def test_an_agent_that_waited_goes_on_while_its_constellation_is_paused(engine, device):
    steps = {"task_id": "a", "device": "laptop", "steps": [{"wait": 0.3}, {"command": ["true"]}]}
    _, item = engine.submit({"tasks": [steps, noop("b", after=["a"])]})
    done = []

    def until() -> bool:
        if not done and query("SELECT count(*) FROM constellations_attempt WHERE NOT holds_slot"):
            in_thread(
                lambda key: lifecycle.constellation_pause(key, by=BY), query("SELECT id FROM constellations_constellation")
            )
            done.append(True)
        return bool(done) and query("SELECT count(*) FROM constellations_task WHERE state = 'COMPLETED'") == 1

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    assert (found.state, states(found)) == ("PAUSED", {"a": "COMPLETED", "b": "PENDING"})
    lifecycle.constellation_resume(found.pk, by=BY)
    engine.run()
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}


def test_what_has_ended_is_neither_paused_nor_resumed(engine, device):
    found = engine.carry_out({"name": "two", "tasks": [noop("a")]})
    for tell in (lifecycle.constellation_pause, lifecycle.constellation_resume, lifecycle.constellation_restart):
        with pytest.raises(ConstellationEnded, match=r"^two has ended \(COMPLETED\)$"):
            tell(found.pk, by=BY)


# Cancel


def test_a_cancel_ends_the_interaction_and_the_session_goes_on_with_the_next(engine, device):
    session, item = engine.submit({"tasks": [command("a", "sleep", "60"), noop("b", after=["a"])]})
    engine.submit({"tasks": [noop("next")]}, session)
    told = []

    def until() -> bool:
        if not told and something_runs():
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: told.append(lifecycle.constellation_cancel(key, by=BY, reason="wrong data")), made)
        return bool(told) and inbox_rests()

    engine.run(until)
    item.refresh_from_db()
    assert (item.outcome, item.result["summary"]) == ("cancelled", "wrong data")
    found = Constellation.objects.get(interaction=item)
    assert (found.state, found.reason, states(found)) == ("CANCELLED", "wrong data", {"a": "CANCELLED", "b": "CANCELLED"})
    assert Agent.objects.get(machine="constellation_agent", interaction=item).state == "FAIL"
    assert Constellation.objects.latest("id").state == "COMPLETED"
    assert Actor.objects.get().state == "idle"
    assert lifecycle.constellation_cancel(found.pk, by=BY) == (None, False)


@pytest.mark.parametrize("mode", ["cooperative", "immediate"])
def test_a_cancel_of_a_paused_session_leaves_it_paused(engine, device, mode):
    session, item = engine.submit({"tasks": [command("a", "sleep", "0.4"), noop("b", after=["a"])]})
    told = []

    def until() -> bool:
        if not told and something_runs():
            in_thread(lambda: sessions.request_submit(session.pk, "pause", "", {"mode": mode}, by=BY))
            told.append("pause")
        if len(told) == 1 and query("SELECT count(*) FROM agents_actor WHERE state = 'paused'"):
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: lifecycle.constellation_cancel(key, by=BY, reason="enough"), made)
            told.append("cancel")
        return len(told) == 2 and inbox_rests()

    engine.run(until)
    item.refresh_from_db()
    assert item.outcome == "cancelled"
    assert Actor.objects.get().state == "paused"
    sessions.request_submit(session.pk, "resume", "", {}, by=BY)
    engine.carry_out({"tasks": [noop("next")]}, session)
    assert Actor.objects.get().state == "idle"


# Restart


def test_a_restart_cancels_what_is_open_and_plans_the_request_anew(engine, device, tmp_path):
    script = f"test -e {tmp_path}/again || {{ touch {tmp_path}/sleeps; sleep 60; }}"
    plan = {"name": "slow", "tasks": [command("a", "sh", "-c", script), noop("b", after=["a"])]}

    def tell(key):
        (tmp_path / "again").touch()
        return lifecycle.constellation_restart(key, by=BY, reason="stuck", client_id="r1")

    found, (_, created) = told_while_it_runs(engine, plan, tell, when=(tmp_path / "sleeps").exists)
    first = Constellation.objects.earliest("id")
    assert created is True
    assert (first.state, first.reason) == ("CANCELLED", "restarted")
    assert states(first) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert (found.state, found.replaces, found.name) == ("COMPLETED", first, "slow")
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}
    agent = Agent.objects.get(machine="constellation_agent")
    moves = Transition.objects.filter(subject_id=agent.pk).order_by("id").values_list("event", "from_state", "to_state")
    assert list(moves)[:3] == [
        ("created", "START", "CONTINUE"),
        ("restart", "CONTINUE", "START"),
        ("created", "START", "CONTINUE"),
    ]
    assert found.interaction.outcome == "completed"


def test_a_restart_that_was_decided_is_carried_out_by_the_next_runner(engine, device, tmp_path):
    """Nothing but rows says that the constellation agent is in START again."""
    script = f"test -e {tmp_path}/again || {{ touch {tmp_path}/sleeps; sleep 60; }}"
    _, item = engine.submit({"tasks": [command("a", "sh", "-c", script)]})
    told = []

    def until() -> bool:
        if not told and (tmp_path / "sleeps").exists():
            (tmp_path / "again").touch()
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: told.append(lifecycle.constellation_restart(key, by=BY)), made)
        return bool(told) and bool(query("SELECT count(*) FROM agents_transition WHERE event = 'restart'"))

    engine.run(until)
    engine.run()
    assert sorted(Constellation.objects.values_list("state", flat=True)) == ["CANCELLED", "COMPLETED"]
    item.refresh_from_db()
    assert item.outcome == "completed"


def test_restarts_have_a_limit_that_is_named(engine, device):
    asked, refused = 0, []

    def restart(key: int) -> None:
        try:
            lifecycle.constellation_restart(key, by=BY)
        except Conflict as error:
            refused.append(str(error))
            lifecycle.constellation_cancel(key, by=BY, reason="enough")

    def until() -> bool:
        nonlocal asked
        total = query("SELECT count(*) FROM constellations_constellation")
        if total == asked + 1 and query("SELECT count(*) FROM constellations_constellation WHERE state = 'EXECUTING'"):
            in_thread(restart, query("SELECT max(id) FROM constellations_constellation"))
            asked += 1
        return bool(refused) and inbox_rests()

    _, item = engine.submit({"name": "again", "tasks": [command("a", "sleep", "60")]})
    engine.run(until)
    item.refresh_from_db()
    assert refused == ["limit reached: again has been restarted 5 times"]
    assert (item.outcome, Constellation.objects.count()) == ("cancelled", limits.RESTARTS + 1)


# Retry


def test_a_failed_task_begins_again_with_everything_downstream_while_others_run(engine, device, tmp_path):
    plan = {
        "tasks": [
            command("a", *once(tmp_path / "a")), noop("b", after=["a"]), noop("c", after=["b"]),
            command("slow", "sleep", "0.6"),
        ]
    }  # fmt: skip
    _, item = engine.submit(plan)
    told = []

    def until() -> bool:
        if not told and query("SELECT count(*) FROM constellations_task WHERE state = 'CANCELLED'") == 2:
            made = query("SELECT id FROM constellations_constellation")
            in_thread(lambda key: told.append(lifecycle.constellation_retry(key, ["a"], by=BY, reason="disk was full")), made)
        return bool(told) and inbox_rests()

    engine.run(until)
    found = Constellation.objects.get(interaction=item)
    assert (told[0].tasks, told[0].interaction, told[0].changed) == (["a"], None, True)
    assert (found.state, set(states(found).values())) == ("COMPLETED", {"COMPLETED"})
    task = found.tasks.get(task_id="a")
    assert (task.attempt, task.attempts_before, task.error) == (2, 1, "")
    event = Event.objects.get(type="tasks_retried")
    assert event.by == BY
    moved = [(t["from_state"], t["to_state"], t["event"], t["reason"]) for t in event.data["transitions"]]
    assert moved == [("FAILED", "PENDING", "retry", "retried: disk was full")]
    assert Transition.objects.filter(event="revive").count() == 2


def test_attempts_begin_again_with_a_retry(engine, device, tmp_path):
    counter = tmp_path / "n"
    script = f"echo x >> {counter}; test $(wc -l < {counter}) -ge 4"
    plan = {"tasks": [command("a", "sh", "-c", script, max_attempts=2, backoff=0.01)]}
    found = engine.carry_out(plan)
    assert (found.state, found.tasks.get().attempt) == ("FAILED", 2)
    told = lifecycle.constellation_retry(found.pk, None, by=BY)
    assert told.tasks == ["a"]
    engine.run()
    found.refresh_from_db()
    assert found.state == "COMPLETED"
    assert [a.outcome for a in Attempt.objects.order_by("number")] == ["failed", "failed", "failed", "completed"]


def test_a_retry_after_the_end_reopens_the_constellation_as_an_interaction_of_its_own(engine, device, tmp_path):
    plan = {"name": "nightly", "tasks": [command("a", *once(tmp_path / "a")), noop("b", after=["a"]), noop("other")]}
    session, item = engine.submit(plan)
    engine.run()
    found = Constellation.objects.get(session=session)
    assert (found.state, states(found)) == ("PARTIALLY_FAILED", {"a": "FAILED", "b": "CANCELLED", "other": "COMPLETED"})
    told = lifecycle.constellation_retry(found.pk, ["a"], by=BY, client_id="again")
    assert (told.tasks, told.changed) == (["a"], True)
    assert lifecycle.constellation_retry(found.pk, ["a"], by=BY, client_id="again").changed is False
    engine.run()
    found.refresh_from_db()
    assert (found.state, set(states(found).values())) == ("COMPLETED", {"COMPLETED"})
    assert (found.interaction, found.interaction.outcome) == (told.interaction, "completed")
    assert told.interaction.payload["request"] == "Reopen nightly: retry a"
    item.refresh_from_db()
    assert item.outcome == "partially_failed"
    agents = Agent.objects.filter(machine="constellation_agent").order_by("id")
    assert [agent.state for agent in agents] == ["FINISH", "FINISH"]
    assert found.agent == agents[1]
    assert Attempt.objects.filter(task__task_id="other").count() == 1


def test_the_time_in_which_a_constellation_was_closed_is_no_wall_time(engine, device, tmp_path):
    found = engine.carry_out({"tasks": [command("a", *once(tmp_path / "a"))]})
    lifecycle.constellation_retry(found.pk, ["a"], by=BY)
    engine.run()
    found.refresh_from_db()
    spent = dict(Transition.objects.filter(machine="constellation").values_list("from_state", "spent"))
    assert set(spent) == {"CREATED", "READY", "FAILED", "EXECUTING"}
    lived = (found.ended_at - found.created_at).total_seconds()
    assert statistics_of(figures_of(found))["wall_s"] == pytest.approx(lived - spent["FAILED"])
    assert 0 < spent["FAILED"] < lived


def test_a_task_that_an_agent_gave_up_as_stuck_begins_again(engine, device):
    same = {"command": ["sh", "-c", "echo nothing new >&2; exit 1"], "on_failure": "continue"}
    found = engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "steps": [same] * 9}]})
    assert found.tasks.get().reason.startswith("stuck:")
    lifecycle.constellation_retry(found.pk, None, by=BY)
    engine.run()
    task = found.tasks.get()
    assert (task.state, task.attempt) == ("FAILED", 2)


def test_a_deadline_that_is_over_does_not_end_the_retried_task_at_once(engine, device, tmp_path):
    script = f"test -e {tmp_path}/again || sleep 60"
    found = engine.carry_out({"tasks": [command("a", "sh", "-c", script, deadline=0.3)]})
    assert found.tasks.get().reason == "deadline"
    (tmp_path / "again").touch()
    lifecycle.constellation_retry(found.pk, ["a"], by=BY)
    engine.run()
    task = found.tasks.get()
    assert (task.state, task.deadline) == ("COMPLETED", None)


def test_what_cannot_begin_again_is_named_and_nothing_changes(engine, device):
    plan = {"tasks": [noop("a"), command("b", "false", after=["a"]), noop("c", after=["b"])]}
    found = engine.carry_out(plan)
    before = states(found)
    with pytest.raises(NotRetried) as error:
        lifecycle.constellation_retry(found.pk, ["b", "a", "c", "d"], by=BY)
    assert str(error.value) == (
        "a is COMPLETED; only what has FAILED or was cancelled begins again; "
        "c was skipped; it is revived when what decided that begins again; there is no task d"
    )
    assert states(found) == before
    assert InboxItem.objects.filter(kind="interaction").count() == 1


def test_nothing_leads_out_of_a_cancelled_constellation(engine, device):
    found, _ = told_while_it_runs(
        engine, {"name": "gone", "tasks": [command("a", "sleep", "60")]},
        lambda key: lifecycle.constellation_cancel(key, by=BY, reason="no"),
    )  # fmt: skip
    with pytest.raises(ConstellationEnded, match=r"^gone was cancelled, and stays so; fork it to go on from there$"):
        lifecycle.constellation_retry(found.pk, ["a"], by=BY)
    with pytest.raises(NotReopened, match=r"^gone was cancelled, and stays so; fork it$"):
        lifecycle.constellation_reopen(found.pk, retry=["a"], by=BY)


# Reopen


def test_an_edit_that_adds_work_reopens_what_has_ended(engine, device):
    found = engine.carry_out({"name": "n", "tasks": [noop("a", {"n": 1})]})
    operations = [{"op": "add_task", "parameters": noop("b", after=["a"])}]
    item, created = lifecycle.constellation_reopen(found.pk, operations=operations, by=BY, reason="one more", client_id="x")
    assert created is True
    engine.run()
    found.refresh_from_db()
    assert (found.state, found.version, states(found)) == ("COMPLETED", 2, {"a": "COMPLETED", "b": "COMPLETED"})
    edit = Edit.objects.get()
    assert (edit.author, edit.reason, edit.operations) == (BY, "one more", operations)
    assert item.payload["request"] == "Reopen n: 1 operation"


def test_a_reopening_that_cannot_be_is_refused_before_anything_is_written(engine, device):
    found = engine.carry_out({"name": "n", "tasks": [noop("a")]})
    seq = stream_head(found.session_id)
    with pytest.raises(NotReopened, match=r"^n: nothing to do: name tasks to retry, or give operations that change something$"):
        lifecycle.constellation_reopen(found.pk, by=BY)
    with pytest.raises(EditRefused, match=r"^operation 1 \(remove_task\), task_id: a has ended \(COMPLETED\)$"):
        lifecycle.constellation_reopen(found.pk, operations=[{"remove_task": {"task_id": "a"}}], by=BY)
    assert stream_head(found.session_id) == seq


def test_the_client_id_of_another_kind_of_request_reopens_nothing(engine, device):
    found = engine.carry_out({"name": "nightly", "tasks": [command("a", "false")]})
    sessions.request_submit(found.session_id, "ping", "c1", {}, by=BY)
    for tell in (
        lifecycle.constellation_retry,
        lambda key, tasks, **more: lifecycle.constellation_reopen(key, retry=tasks, **more),
    ):
        with pytest.raises(Conflict, match=r"^client_id c1 was used for a request of kind ping$"):
            tell(found.pk, ["a"], by=BY, client_id="c1")
    assert InboxItem.objects.filter(kind="interaction").count() == 1


# Fork


def forked(engine, session: Session) -> Constellation:
    engine.run()
    return Constellation.objects.get(session=session)


def test_a_fork_goes_on_from_a_moment_with_the_results_of_then(engine, device):
    plan = {
        "name": "run", "tasks": [noop("a", {"n": 1}), noop("b", {"n": 2}, after=["a"]), noop("c")],
        "dependencies": [{"from": "b", "to": "c", "type": "CONDITIONAL", "condition": "n > 1 and results['a'].n == 1"}],
    }  # fmt: skip
    found = engine.carry_out(plan)
    seq = Event.objects.get(
        stream=found.session_id, type="state_changed", data__id=found.tasks.get(task_id="a").pk, data__to_state="COMPLETED"
    ).seq
    session, item, _ = lifecycle.constellation_fork(found.pk, engine.owner, seq=seq, by=BY)
    other = forked(engine, session)
    assert (other.state, other.forked_from, other.forked_at, other.name) == ("COMPLETED", found, seq, "run")
    assert states(other) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}
    assert list(Attempt.objects.filter(task__constellation=other).values_list("task__task_id", flat=True)) == ["b", "c"]
    carried, source = other.tasks.get(task_id="a"), found.tasks.get(task_id="a")
    assert (carried.result, carried.started_at, carried.ended_at) == ({"n": 1}, source.started_at, source.ended_at)
    assert (carried.attempt, carried.reason) == (0, f"taken over from {found.pk} at {seq}")
    assert (session.title, item.payload["request"]) == ("Fork of run", f"Fork run at {seq}")
    found.refresh_from_db()
    assert found.version == 1


def test_a_fork_at_an_edit_has_all_of_it(engine, device):
    def tell(key):
        added = [{"add_task": noop("x", after=["a"])}, {"add_task": noop("y", after=["x"])}]
        return edit_apply(key, added, author=BY)

    found, _ = told_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.3")]}, tell)
    parts = list(Event.objects.filter(stream=found.session_id, type="edited").order_by("id").values_list("seq", flat=True))
    assert len(parts) == 3
    for seq in parts:
        session, _, _ = lifecycle.constellation_fork(found.pk, engine.owner, seq=seq, by=BY)
        other = forked(engine, session)
        assert states(other) == {"a": "COMPLETED", "x": "COMPLETED", "y": "COMPLETED"}
        assert sorted(other.dependencies.values_list("dependency_id", flat=True)) == ["a>x", "x>y"]


def test_a_fork_may_go_another_way(engine, device):
    plan = {"tasks": [noop("a", {"n": 1}), command("b", "false", after=["a"]), noop("c", after=["b"])]}
    found = engine.carry_out(plan)
    operations = [{"add_task": noop("d", after=["a"])}]
    session, _, _ = lifecycle.constellation_fork(found.pk, engine.owner, operations=operations, by=BY)
    other = forked(engine, session)
    assert states(other) == {"a": "COMPLETED", "b": "FAILED", "c": "CANCELLED", "d": "COMPLETED"}
    assert other.tasks.get(task_id="c").reason.startswith("skipped: b>c")
    assert other.state == "PARTIALLY_FAILED"


def test_a_fork_of_what_was_cancelled_begins_what_was_open_again(engine, device, tmp_path):
    script = f"test -e {tmp_path}/again || sleep 60"
    found, _ = told_while_it_runs(
        engine, {"tasks": [noop("z"), command("a", "sh", "-c", script), noop("b", after=["a"])]},
        lambda key: lifecycle.constellation_cancel(key, by=BY, reason="no"),
    )  # fmt: skip
    (tmp_path / "again").touch()
    session, _, _ = lifecycle.constellation_fork(found.pk, engine.owner, by=BY)
    other = forked(engine, session)
    assert set(states(other).values()) == {"COMPLETED"}


def test_the_files_of_the_run_are_there_in_its_fork(engine, device):
    write = command("write", "sh", "-c", 'echo 42 > "$ORRERY_ARTIFACTS/n"')
    read = command("read", "sh", "-c", 'cat "$ORRERY_ARTIFACTS/n"; echo more >> "$ORRERY_ARTIFACTS/n"', after=["write"])
    found = engine.carry_out({"tasks": [write, read]})
    seq = Event.objects.get(type="state_changed", data__id=found.tasks.get(task_id="write").pk, data__to_state="COMPLETED").seq
    session, _, _ = lifecycle.constellation_fork(found.pk, engine.owner, seq=seq, by=BY)
    other = forked(engine, session)
    assert states(other) == {"write": "COMPLETED", "read": "COMPLETED"}
    session, _, _ = lifecycle.constellation_fork(other.pk, engine.owner, seq=stream_head(other.session_id), by=BY, operations=[
        {"add_task": command("again", "sh", "-c", 'wc -l < "$ORRERY_ARTIFACTS/n"', after=["read"])}
    ])  # fmt: skip
    third = forked(engine, session)
    assert third.tasks.get(task_id="again").result == 3


def test_a_moment_that_is_none_is_refused_and_no_session_is_made(engine, device):
    found = engine.carry_out({"name": "run", "tasks": [noop("a")]})
    last, before = stream_head(found.session_id), Session.objects.count()
    asked = [
        (1, rf"^constellation {found.pk} was not there at event 1; it began at event \d+$"),
        (last + 5, rf"^the stream ends at {last}; there is no event {last + 5} yet$"),
        (last, rf"^run at {last}: all its tasks had ended; name tasks to retry, or give operations$"),
    ]
    for seq, message in asked:
        with pytest.raises(NotForked, match=message):
            lifecycle.constellation_fork(found.pk, engine.owner, seq=seq, by=BY)
    assert Session.objects.count() == before


# Limits of an interaction


def test_edits_add_so_many_tasks_in_one_interaction_and_no_more(engine, device, monkeypatch):
    from constellations.live import live

    monkeypatch.setattr(live, "ADDED", 2)
    refused = []

    def tell(key):
        edit_apply(key, [{"add_task": noop("x")}, {"add_task": noop("y")}], author=BY)
        with pytest.raises(EditRefused) as error:
            edit_apply(key, [{"add_task": noop("z")}], author=BY)
        refused.append(str(error.value))

    found, _ = told_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.3")]}, tell)
    assert refused == ["limit reached: edits add at most 2 tasks in one interaction, 2 so far"]
    assert (found.state, found.added, len(states(found))) == ("COMPLETED", 2, 3)


def test_a_planner_that_adds_more_fails_and_names_the_limit(engine, device, monkeypatch):
    from constellations.live import live

    monkeypatch.setattr(live, "ADDED", 1)
    rule = {"when": {"event": "task_completed", "task": "a"}, "edit": [{"add_task": noop("x")}, {"add_task": noop("y")}]}
    found = engine.carry_out({"tasks": [noop("a")], "replan": [rule]})
    limit = "limit reached: edits add at most 1 tasks in one interaction, 0 so far"
    assert (found.state, found.reason, found.interaction.outcome) == ("FAILED", limit, "failed")
    assert found.interaction.result["summary"] == f"1 of 1 tasks completed, 0 failed, 0 cancelled or skipped; {limit}"
    assert Task.objects.count() == 1
