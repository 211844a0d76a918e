"""A pause holds what was asked before it, and gives way to what is asked after it, whatever happens in between."""

import pytest

from agents.engine.requests import changes_actor
from agents.models import Actor, InboxItem, Session, Transition
from agents.services import sessions
from constellations.models import Constellation, Task
from tests.constellations.runs.test_run import command, in_thread, noop, query, something_runs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
BY = "user:1"


def tell(session: Session, kind: str, **payload) -> InboxItem:
    """A command, as another process sends it."""
    told = []
    in_thread(lambda: told.append(sessions.request_submit(session.pk, kind, "", payload, by=BY)[0]))
    return told[0]


def ask(engine, task_id: str, session: Session | None = None) -> tuple[Session, InboxItem]:
    return engine.submit({"name": task_id, "tasks": [noop(task_id)]}, session)


def inbox() -> list[str]:
    return list(InboxItem.objects.filter(kind="interaction").order_by("id").values_list("state", flat=True))


def begun() -> list[str]:
    """The interactions that have begun, by the names of their plans."""
    return list(Constellation.objects.order_by("id").values_list("name", flat=True))


def actors() -> list[str]:
    return list(Actor.objects.order_by("epoch").values_list("state", flat=True))


def has_decided(session: Session):
    """Whether the runner has taken up every command, and what is left is at rest."""
    statement = f"SELECT count(*) FROM agents_inboxitem WHERE session_id = {session.pk} AND kind <> 'interaction'"
    return lambda: query(f"{statement} AND state IN ('queued', 'running')") == 0 and not something_runs()


@pytest.fixture
def paused(engine, device) -> Session:
    """A session that was paused while a request waited behind the one at work."""
    session, _ = engine.submit({"name": "at work", "tasks": [command("a", "sleep", "0.2"), noop("b", after=["a"])]})
    ask(engine, "before", session)
    sent = []

    def until() -> bool:
        if not sent and something_runs():
            sent.append(tell(session, "pause", reason="lunch"))
        return bool(sent) and query("SELECT count(*) FROM agents_actor WHERE state = 'paused'") == 1

    engine.run(until)
    engine.run(lambda: True)  # whoever takes it up next finds nothing to do either
    assert (actors(), inbox()) == (["paused"], ["running", "queued"])
    return session


def test_a_request_that_waited_before_the_pause_does_not_end_it(engine, paused):
    assert dict(Task.objects.values_list("task_id", "state")) == {"a": "COMPLETED", "b": "PENDING"}
    tell(paused, "resume")
    engine.run()
    assert (begun(), inbox(), actors()) == (["at work", "before"], ["done", "done"], ["idle"])


def test_a_request_sent_after_the_pause_ends_it_and_everything_runs_in_order(engine, paused):
    ask(engine, "after", paused)
    engine.run()
    assert (begun(), actors()) == (["at work", "before", "after"], ["idle"])
    reasons = list(Transition.objects.filter(machine="actor", from_state="paused").values_list("event", "reason"))
    assert reasons == [("ProcessInteraction", "a new interaction")]


def test_the_last_word_counts_of_a_request_and_another_pause(engine, paused):
    ask(engine, "after", paused)
    assert changes_actor(paused.pk, "pause", {}) is True
    again = tell(paused, "pause")
    engine.run(has_decided(paused))
    again.refresh_from_db()
    assert (actors(), inbox(), again.result) == (["paused"], ["running", "queued", "queued"], {"changed": True})
    assert changes_actor(paused.pk, "pause", {}) is False
    tell(paused, "resume")
    engine.run()
    assert begun() == ["at work", "before", "after"]


def test_what_was_asked_before_the_first_runner_came_is_held_too(engine, device):
    session, item = ask(engine, "first")
    tell(session, "pause", reason="not yet")
    engine.run(has_decided(session))
    assert (actors(), inbox(), begun()) == (["paused"], ["queued"], [])
    assert Actor.objects.get().reason == "not yet"
    tell(session, "resume")
    engine.run()
    item.refresh_from_db()
    assert (item.outcome, actors()) == ("completed", ["idle"])


def test_an_idle_actor_is_paused_before_what_came_before_the_pause(engine, device):
    session, _ = ask(engine, "one")
    engine.run()
    ask(engine, "two", session)
    tell(session, "pause")
    engine.run(has_decided(session))
    assert (actors(), begun()) == (["paused"], ["one"])
    tell(session, "resume")
    engine.run()
    assert begun() == ["one", "two"]


def test_a_cancel_before_the_first_runner_came_ends_what_was_asked_before_it(engine, device):
    session, first = ask(engine, "first")
    told = tell(session, "cancel", reason="wrong plan")
    _, second = ask(engine, "second", session)
    engine.run()
    first.refresh_from_db(), second.refresh_from_db(), told.refresh_from_db()
    assert (first.state, first.outcome, second.outcome, told.result) == ("refused", "cancelled", "completed", {"changed": True})
    assert (begun(), actors()) == (["second"], ["cancelled", "idle"])


@pytest.mark.parametrize(("kind", "left"), [("pause", ["cancelled", "paused"]), ("cancel", ["cancelled", "cancelled"])])
def test_a_command_reaches_the_request_that_waits_behind_an_ended_actor(engine, device, kind, left):
    session, _ = ask(engine, "one")
    engine.run()
    tell(session, "cancel", reason="enough")
    engine.run()
    ask(engine, "two", session)
    assert changes_actor(session.pk, kind, {}) is True
    tell(session, kind, reason="wait")
    engine.run(has_decided(session))
    assert (actors(), begun()) == (left, ["one"])


def test_a_resume_takes_back_a_pause_that_nobody_has_taken_up_yet(engine, device):
    session, _ = ask(engine, "one")
    engine.run()
    tell(session, "pause")
    assert changes_actor(session.pk, "resume", {}) is True
    tell(session, "resume")
    engine.run()
    events = list(Transition.objects.filter(machine="actor").order_by("id").values_list("event", flat=True)[3:])
    assert (events, actors()) == (["Pause", "Resume"], ["idle"])


def test_a_resume_takes_back_a_pause_that_waits_for_a_command_to_end(engine, device, tmp_path):
    session, _ = engine.submit({"tasks": [command("a", "sh", "-c", f"until test -e {tmp_path}/go; do sleep 0.05; done")]})
    sent = []

    def until() -> bool:
        if not sent and something_runs():
            sent.append(tell(session, "pause"))
        if len(sent) == 1 and query("SELECT count(*) FROM agents_actor WHERE pausing"):
            in_thread(lambda: sent.append(changes_actor(session.pk, "resume", {})))
            tell(session, "resume")
        if len(sent) == 2 and not query("SELECT count(*) FROM agents_actor WHERE pausing"):
            (tmp_path / "go").touch()
        return query("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')") == 0

    engine.run(until)
    assert sent[1] is True
    assert (inbox(), actors()) == (["done"], ["idle"])
    assert not Transition.objects.filter(event="Pause").exists()


def test_work_that_is_stopped_while_paused_lets_nothing_behind_it_begin(engine, paused):
    found = Constellation.objects.get()
    sessions.request_submit(paused.pk, "stop", "", {"subject": found.pk, "reason": "enough"}, by=BY)
    engine.run(has_decided(paused))
    assert (actors(), inbox(), begun()) == (["paused"], ["done", "queued"], ["at work"])


def test_a_restart_while_paused_lets_nothing_begin(engine, paused):
    found = Constellation.objects.get()
    sessions.request_submit(paused.pk, "restart", "", {"subject": found.pk}, by=BY)
    engine.run(has_decided(paused))
    assert (actors(), inbox(), begun()) == (["paused"], ["running", "queued"], ["at work"])
    tell(paused, "resume")
    engine.run()
    assert (begun(), actors()) == (["at work", "at work", "before"], ["idle"])


def test_a_fault_of_a_paused_actor_lets_nothing_begin_that_it_held(engine, paused, monkeypatch):
    from agents.engine.drives.drive import Drive

    read = Drive.hydrate

    def broken(drive) -> None:
        read(drive)
        drive.fault = "the rows make no sense"
        monkeypatch.setattr(Drive, "hydrate", read)

    monkeypatch.setattr(Drive, "hydrate", broken)
    tell(paused, "ping")
    engine.run(lambda: query("SELECT count(*) FROM agents_actor") == 2)
    engine.run(lambda: True)
    assert (actors(), inbox(), begun()) == (["error", "paused"], ["done", "queued"], ["at work"])
    assert Actor.objects.latest("epoch").reason == "lunch"
    tell(paused, "resume")
    engine.run()
    assert begun() == ["at work", "before"]
