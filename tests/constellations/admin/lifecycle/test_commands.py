"""Pause, resume, cancel, restart and retry in the admin, by the real engine."""

import pytest

from agents.models import InboxItem, Session
from constellations.admin.lifecycle.commanding import offered_actions
from constellations.models import Attempt, Constellation
from tests.conftest import person
from tests.constellations.admin.admin_client import Staff, address
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = {"name": "nightly", "tasks": [command("a", "true"), noop("b", after=["a"])]}


@pytest.fixture
def staff(operator) -> Staff:
    return Staff(operator)


def act(staff: Staff, row: Constellation, action: str, **more):
    return staff.client.post(address(row, "changelist"), {"action": action, "_selected_action": [row.pk], **more})


def confirmed(staff: Staff, row: Constellation, action: str, once: str = "once", **more):
    return act(staff, row, action, confirmed="yes", once=once, **more)


def commanded_while_it_runs(engine, change, seconds: str) -> None:
    """Carry out a plan; `change` is called with the constellation's id, as by another process, while a task runs."""
    engine.submit({"name": "nightly", "tasks": [command("a", "sleep", seconds), noop("b", after=["a"])]})
    made = []

    def command_when_running() -> bool:
        if not made and something_runs():
            made.append(query("SELECT id FROM constellations_constellation"))
            in_thread(change, made[0])
        return bool(made) and inbox_rests()

    engine.run(until=command_when_running)


def test_a_constellation_is_paused_and_resumed_from_its_page(staff, engine, device):
    told = []

    def hold(made):
        row = Constellation.objects.get(pk=made)
        answer = act(staff, row, "pause", back="page")
        assert answer["Location"] == address(row)
        told.extend(staff.told(answer))
        assert Constellation.objects.get(pk=made).state == "PAUSED"
        told.extend(staff.told(act(staff, row, "pause")))
        told.extend(staff.told(act(staff, row, "resume")))

    commanded_while_it_runs(engine, hold, "0.5")
    assert told == [
        "nightly: paused: nothing starts in it, what runs goes on to its end.",
        "nightly: was paused already.",
        "nightly: resumed.",
    ]
    assert Constellation.objects.get().state == "COMPLETED"


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("EXECUTING", ["pause", "retry_failed", "restart", "cancel"]),
        ("PAUSED", ["resume", "retry_failed", "restart", "cancel"]),
        ("PARTIALLY_FAILED", ["retry_failed"]),
        ("CANCELLED", []),
    ],
)
def test_a_page_offers_the_commands_that_come_to_something_in_its_state(state, names):
    assert [action.__name__ for action in offered_actions(Constellation(state=state))] == names


def test_cancelling_asks_first_with_a_reason_and_is_done_once(staff, engine, device):
    def cancel(made):
        row = Constellation.objects.get(pk=made)
        page = act(staff, row, "cancel")
        assert "Cancel nightly?" in page.content.decode()
        assert 'name="reason"' in page.content.decode()
        assert not InboxItem.objects.exclude(kind="interaction").exists()
        for _ in range(2):
            staff.told(confirmed(staff, row, "cancel", reason="wrong data"))

    commanded_while_it_runs(engine, cancel, "60")
    assert Constellation.objects.get().state == "CANCELLED"
    assert InboxItem.objects.exclude(kind="interaction").count() == 1
    assert Attempt.objects.get().outcome == "cancelled"


def test_restarting_asks_first_and_begins_the_graph_anew(staff, engine, device):
    def restart(made):
        row = Constellation.objects.get(pk=made)
        assert "Restart nightly?" in act(staff, row, "restart").content.decode()
        assert Constellation.objects.count() == 1
        assert staff.told(confirmed(staff, row, "restart")) == ["nightly: is being restarted."]

    commanded_while_it_runs(engine, restart, "0.5")
    states = Constellation.objects.order_by("id").values_list("state", flat=True)
    assert list(states) == ["CANCELLED", "COMPLETED"]
    assert Attempt.objects.filter(task__task_id="a").count() == 2


def test_what_failed_is_tried_again(staff, engine, device, tmp_path):
    mark = tmp_path / "ready"
    found = engine.carry_out({"name": "nightly", "tasks": [command("a", "test", "-e", str(mark)), noop("b", after=["a"])]})
    mark.touch()
    told = staff.told(act(staff, found, "retry_failed", once="o1"))
    assert told == ["nightly: tried again: a; it is reopened for that."]
    assert staff.told(act(staff, found, "retry_failed", once="o1")) == ["nightly: has been asked for that already."]
    engine.run()
    assert staff.told(act(staff, found, "retry_failed", once="o2")) == ["nightly: nothing in it has failed."]
    found.refresh_from_db()
    assert found.state == "COMPLETED"


def test_what_cannot_be_done_is_told_for_each(staff, engine, device):
    found = engine.carry_out(PLAN)
    (told,) = staff.told(act(staff, found, "pause"))
    assert told.startswith("nightly: ")
    assert "COMPLETED" in told
    assert staff.told(act(staff, found, "retry_failed"))[0].startswith("nightly: ")


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "restart", "retry_failed"])
def test_only_operators_command_what_is_theirs(engine, device, roles, action):
    found = engine.carry_out(PLAN)
    before = InboxItem.objects.count()
    other = Staff(person("other", "operator"))
    assert confirmed(other, found, action).status_code == 302
    vic = person("vic", "viewer")
    Session.objects.filter(pk=found.session_id).update(owner=vic)
    viewer = Staff(vic)
    assert viewer.page(found).context["commands"] == []
    answer = confirmed(viewer, found, action)
    assert answer.status_code in (200, 302)
    assert InboxItem.objects.count() == before
    found.refresh_from_db()
    assert found.state == "COMPLETED"


def test_a_reason_that_is_too_long_is_told_on_the_page_that_asks(staff, engine, device):
    found = engine.carry_out(PLAN)
    page = confirmed(staff, found, "cancel", reason="x" * 2001)
    assert "At most 2,000 characters, not 2,001" in page.content.decode()
    found.refresh_from_db()
    assert found.state == "COMPLETED"


def test_one_running_task_is_cancelled_and_a_waiting_one_skipped_from_their_pages_with_a_reason(staff, engine, device):
    told, offers = [], []

    def end_both(made):
        tasks = Constellation.objects.get(pk=made).tasks
        running, waiting = tasks.get(task_id="a"), tasks.get(task_id="b")
        offers.extend(staff.page(row).context["commands"] for row in (running, waiting))
        for row, action in ((running, "cancel_tasks"), (waiting, "skip_tasks")):
            assert "It needs a reason." in act(staff, row, action).content.decode()
            assert "It needs a reason." in confirmed(staff, row, action).content.decode()
            row.refresh_from_db()
        assert (running.state, waiting.state) == ("RUNNING", "WAITING_DEPENDENCY")
        told.extend(staff.told(confirmed(staff, running, "skip_tasks", reason="no", back="page")))
        for _ in range(2):
            told.extend(staff.told(confirmed(staff, waiting, "skip_tasks", once="w", reason="by hand", back="page")))
            told.extend(staff.told(confirmed(staff, running, "cancel_tasks", once="r", reason="wrong data", back="page")))

    commanded_while_it_runs(engine, end_both, "60")
    assert offers == [[("cancel_tasks", "Cancel task ...")], [("skip_tasks", "Skip task ...")]]
    assert told == [
        "a: a already runs, so it is skipped no more; cancel it",
        "b: cancelled.",
        "a: is being cancelled by its runner.",
        "b: has been asked for that, or was skipped, already.",
        "a: has been asked for that, or was skipped, already.",
    ]
    reasons = dict(Constellation.objects.get().tasks.values_list("task_id", "reason"))
    assert reasons == {"a": "cancelled by operator: wrong data", "b": "cancelled by operator: by hand"}
