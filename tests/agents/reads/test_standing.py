"""How a session stands, for who looks: first the decision by itself, then what it is read from."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import Group

from agents.models import Actor, Approval, Lease, Runner
from agents.reads.standing import OVERDUE_S, SILENT_S, SessionFacts, WaitingApproval, decide_standing
from agents.reads.standings import Viewer, read_facts, read_standings, viewer_of
from agents.services import sessions
from tests.agents.conftest import NOW, add_rows, make_token

pytestmark = pytest.mark.django_db(transaction=True)
LEASE = {"runner": "runner 1", "age_s": 0.4}
RUNNING = SessionFacts(actor_state="running", asked_state="running", lease=LEASE)
ENDED = SessionFacts(actor_state="completed", actor_reason="inactivity", asked_state="done")


def named(facts: SessionFacts, may_decide: int = 0) -> tuple[str, str]:
    standing = decide_standing(facts, may_decide)
    return standing["name"], standing["word"]


@pytest.mark.parametrize(
    ("facts", "may_decide", "name", "word"),
    [
        (RUNNING, 0, "running", "Running"),
        (replace(RUNNING, waiting=(WaitingApproval(1), WaitingApproval(2))), 2, "waiting", "Waiting for you (2)"),
        (replace(RUNNING, waiting=(WaitingApproval(1),)), 0, "waiting_others", "Waiting for others (1)"),
        (replace(RUNNING, waiting=(WaitingApproval(1),), held="paused"), 1, "waiting", "Waiting for you (1)"),
        (replace(RUNNING, held="paused"), 0, "paused", "Paused"),
        (replace(RUNNING, pausing=True), 0, "paused", "Pausing"),
        (replace(RUNNING, actor_state="paused", actor_reason="lunch"), 0, "paused", "Paused"),
        (replace(RUNNING, held="review"), 0, "review", "Waiting to be started"),
        (replace(RUNNING, lease={"runner": "runner 1", "age_s": SILENT_S + 1}), 0, "stale", "No runner"),
        (replace(RUNNING, lease=None, overdue_s=OVERDUE_S + 1), 1, "stale", "No runner"),
        (replace(RUNNING, lease=None, overdue_s=OVERDUE_S - 1), 0, "running", "Running"),
        (replace(ENDED, lease={"runner": "runner 1", "age_s": 99.0}, asked_outcome="completed"), 0, "completed", "Completed"),
        (SessionFacts(actor_state="idle", asked_state="queued"), 0, "queued", "Queued"),
        (replace(ENDED, asked_outcome="failed"), 0, "failed", "Failed"),
        (replace(ENDED, asked_outcome="partially_failed"), 0, "partially_failed", "Partly failed"),
        (replace(ENDED, asked_outcome="completed"), 0, "completed", "Completed"),
        (replace(ENDED, asked_state="refused"), 0, "failed", "Failed"),
        (replace(ENDED, actor_state="error", asked_outcome="completed"), 0, "failed", "Failed"),
        (SessionFacts(actor_state="cancelled", actor_reason="enough"), 0, "cancelled", "Cancelled"),
        (SessionFacts(), 0, "idle", "Idle"),
    ],
)
def test_the_first_that_holds_is_said(facts, may_decide, name, word):
    assert named(facts, may_decide) == (name, word)


def test_what_waits_is_counted_by_who_may_decide():
    standing = decide_standing(replace(RUNNING, waiting=(WaitingApproval(1), WaitingApproval(2))), 1)
    assert (standing["waiting"], standing["waiting_others"]) == (1, 1)


def test_a_session_that_wants_a_runner_and_has_none_says_so():
    standing = decide_standing(replace(RUNNING, lease=None, overdue_s=OVERDUE_S + 1), 0)
    assert standing["reason"] == "No runner holds this session."


# what it is read from


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "s", by=f"user:{operator.pk}")


def ask(session, kind: str = "question", **action) -> None:
    row = {"session_id": session.pk, "agent_id": None, "kind": kind, "subject_id": 1, "title": "?", "asked_at": NOW}
    add_rows(session.pk, "approval", [{**row, "action": action}])


def standing_of(session, user, token=None):
    return read_standings([session.pk], viewer_of(user, token))[session.pk]


def test_a_question_waits_for_who_may_approve_and_for_others_else(session, operator, viewer):
    ask(session)
    ask(session, "callback")
    assert standing_of(session, operator)["word"] == "Waiting for you (1)"
    assert standing_of(session, viewer)["word"] == "Waiting for others (1)"


def test_ones_own_proposal_waits_for_others(session, operator, admin_user):
    ask(session, "edit", author=f"user:{operator.pk}")
    assert standing_of(session, operator)["name"] == "waiting_others"
    assert standing_of(session, admin_user)["name"] == "waiting"


def test_a_token_counts_what_it_may_decide(session, operator):
    ask(session)
    reading, approving = make_token(operator, "read", name="r")[0], make_token(operator, "approve", name="a")[0]
    assert standing_of(session, operator, reading)["name"] == "waiting_others"
    assert standing_of(session, operator, approving)["name"] == "waiting"


def test_a_decided_approval_waits_no_more(session, operator):
    ask(session)
    Approval.objects.update(state="approved")
    assert standing_of(session, operator)["name"] == "idle"


def test_who_holds_it_and_since_when_it_was_not_heard_from(session):
    runner = Runner.objects.create(host="h", pid=1, pid_start=1, files="", started_at=NOW, renewed_at=NOW)
    Lease.objects.filter(stream=session.pk).update(runner=runner)
    lease = read_facts([session.pk])[session.pk].lease
    assert lease["runner"] == f"runner {runner.pk}"
    assert lease["age_s"] > SILENT_S


def test_many_sessions_are_read_by_three_queries(session, operator, django_assert_num_queries):
    others = [sessions.session_create(operator, "o", by="user:1").pk for _ in range(3)]
    with django_assert_num_queries(3):
        assert set(read_facts([session.pk, *others])) == {session.pk, *others}


def test_who_has_lost_the_role_decides_nothing(session, operator):
    ask(session)
    operator.groups.remove(Group.objects.get(name="operator"))
    assert read_standings([session.pk], Viewer(f"user:{operator.pk}", False))[session.pk]["waiting"] == 0
    assert not Actor.objects.exists()
