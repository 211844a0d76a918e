"""What agents wait for somebody to decide, over REST; and what an agent's page shows of its work."""

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from agents.clock import to_iso
from agents.errors import AgentsError
from agents.gates.policies import action_digest
from agents.models import Approval, Event, Lease
from agents.reads import agents
from agents.services import approvals, sessions
from agents.services.approvals import (  # fmt: skip
    ANSWER_LENGTH,
    DATA_BYTES,
    ApprovalDecided,
    DecisionRejected,
    EditNotPossible,
    NoSuchApproval,
    approval_decide,
)
from tests.agents.conftest import NOW, Rest, add_agents, add_approvals, add_evidence, add_loop, add_rows, make_token, record

pytestmark = pytest.mark.django_db
LS = {"tool": "command", "arguments": {"argv": ["ls"]}}
RM = {"argv": ["rm", "x"]}


def decide(rest, approval, decision="approve", **body):
    return rest.post(f"/api/approvals/{approval}/decision", {"decision": decision, **body})


def call_back(rest, approval, **body):
    return rest.post(f"/api/approvals/{approval}/callback", body)


def refused(answer):
    return answer.status_code, answer.json()["code"]


def ago(seconds):
    return to_iso((timezone.now() - timedelta(seconds=seconds)).timestamp())


def events_of(session):
    return Event.objects.filter(stream_id=session.pk).count()


# deciding


def test_an_approval_is_decided_and_the_stream_tells_it(rest, operator, session, verified):
    approval = add_approvals(session)[0]
    answer = decide(rest, approval, digest=action_digest(LS), reason="fine")
    assert answer.status_code == 200
    row = answer.json()
    assert (row["changed"], row["state"], row["decided_by"], row["reason"]) == (True, "approved", f"user:{operator.pk}", "fine")
    assert (row["action"], row["edited"], row["used_at"]) == (LS, False, None)
    event = Event.objects.get(type="approval_decided")
    told = {name: event.data[name] for name in ("approval_id", "kind", "decision", "title")}
    assert told == {"approval_id": approval, "kind": "tool", "decision": "approve", "title": "run ls"}
    assert set(event.data["set"]["approval"][str(approval)]) == {"state", "decided_at", "decided_by", "reason", "answer"}


def test_a_decision_carries_the_request_id_and_wakes_the_session(rest, session):
    approval = add_approvals(session)[0]
    Lease.objects.update(wake_at=None)
    rest.post(f"/api/approvals/{approval}/decision", {"decision": "approve"}, **{"X-Request-ID": "trace-9"})
    assert Event.objects.get(type="approval_decided").request_id == "trace-9"
    assert Lease.objects.get(stream_id=session.pk).wake_at is not None


def test_the_same_decision_by_the_same_author_again_changes_nothing(rest, session):
    approval = add_approvals(session)[0]
    decide(rest, approval, digest=action_digest(LS), arguments=RM)
    before = events_of(session)
    again = decide(rest, approval, digest=action_digest(LS), arguments=RM)
    assert (again.status_code, again.json()["changed"], again.json()["edited"]) == (200, False, True)
    assert events_of(session) == before


def test_a_decided_approval_says_by_whom_when_and_how(rest, operator, admin_user, session):
    approval = add_approvals(session)[0]
    decide(rest, approval, "reject")
    for other, decision in ((Rest(admin_user), "reject"), (rest, "approve")):
        answer = decide(other, approval, decision)
        assert refused(answer) == (409, "approval_decided")
        assert f"was rejected by user:{operator.pk} at 20" in answer.json()["detail"]


def test_a_withdrawn_approval_cannot_be_decided(rest, session):
    approval = add_approvals(session, state="withdrawn")[0]
    answer = decide(rest, approval)
    assert refused(answer) == (409, "approval_decided")
    assert "was withdrawn" in answer.json()["detail"]


@pytest.mark.parametrize("state", ["waiting", "expired"])
def test_an_expired_approval_cannot_be_decided_whoever_noticed(rest, session, state):
    approval = add_approvals(session, state=state, expires_at=ago(1))[0]
    assert refused(decide(rest, approval)) == (409, "approval_expired")
    assert Approval.objects.get(pk=approval).state == state


def test_an_approval_can_be_decided_until_it_expires(rest, session):
    approval = add_approvals(session, expires_at=ago(-600))[0]
    assert decide(rest, approval).status_code == 200


def test_what_was_seen_must_be_what_would_be_done(rest, session):
    approval = add_approvals(session)[0]
    answer = decide(rest, approval, digest="0" * 64)
    assert refused(answer) == (409, "digest_differs")
    assert "what you saw is not what would be done" in answer.json()["detail"]
    assert Approval.objects.get(pk=approval).state == "waiting"


def test_an_approver_may_change_the_arguments_and_nothing_else(rest, session, verified):
    approval = add_approvals(session)[0]
    row = decide(rest, approval, arguments=RM).json()
    edited = {"tool": "command", "arguments": RM}
    assert (row["action"], row["digest"], row["edited"]) == (edited, action_digest(edited), True)


def test_arguments_that_are_the_same_are_no_edit_and_true_is_not_one(rest, session):
    same, other = add_approvals(session, 2, action={"tool": "t", "arguments": {"deep": True}})
    assert decide(rest, same, arguments={"deep": True}).json()["edited"] is False
    assert decide(rest, other, arguments={"deep": 1}).json()["edited"] is True


@pytest.mark.parametrize(
    ("fields", "decision"),
    [
        ({"kind": "task", "action": {"phases": []}}, "approve"),
        ({"kind": "lost", "action": {}}, "approve"),
        ({"kind": "question", "action": {}}, "approve"),
        ({"kind": "tool"}, "reject"),
    ],
)
def test_where_there_is_no_call_there_are_no_arguments_to_change(rest, session, fields, decision):
    approval = add_approvals(session, **fields)[0]
    assert refused(decide(rest, approval, decision, arguments=RM, answer="x")) == (400, "edit_not_possible")
    assert Approval.objects.get(pk=approval).state == "waiting"


def test_a_gate_of_a_task_with_one_call_may_be_edited(rest, session):
    approval = add_approvals(session, kind="task")[0]
    assert decide(rest, approval, arguments=RM).json()["action"]["arguments"] == RM


# approvals that do something themselves


def test_what_an_approval_does_itself_is_in_the_commit_of_the_decision(rest, operator, session, monkeypatch, verified):
    def prepare(row):
        return lambda opened: opened.turn.record("noted", title=row.title)

    monkeypatch.setitem(approvals._EFFECTS, "edit", prepare)
    approval, other = add_approvals(session, 2, kind="edit", action={"tool": "edit", "author": "token:k"})
    row = decide(rest, approval).json()
    assert (row["state"], row["used_at"]) == ("approved", row["decided_at"])
    decided, noted = Event.objects.filter(stream_id=session.pk).order_by("-seq")[:2][::-1]
    assert (decided.type, noted.type, noted.at) == ("approval_decided", "noted", decided.at)
    assert decide(rest, approval).json()["changed"] is False
    assert decide(rest, other, "reject").json()["used_at"] is None
    assert Event.objects.filter(type="noted").count() == 1


def test_what_cannot_be_done_any_more_refuses_the_decision(rest, session, monkeypatch):
    def too_late(opened):
        raise NoSuchApproval("too late")

    monkeypatch.setitem(approvals._EFFECTS, "edit", lambda row: too_late)
    approval = add_approvals(session, kind="edit", action={"tool": "edit", "author": "token:k"})[0]
    before = events_of(session)
    assert decide(rest, approval).json()["detail"] == "too late"
    assert (Approval.objects.get(pk=approval).state, events_of(session)) == ("waiting", before)
    assert decide(rest, approval, "reject").json()["state"] == "rejected"


def test_a_token_cannot_decide_what_it_proposed(operator, session):
    row, text = make_token(operator, "approve")
    action = {"tool": "edit", "author": f"token:{row.token_key}"}
    approval = add_approvals(session, kind="edit", action=action)[0]
    for decision in ("approve", "reject"):
        assert refused(decide(Rest(token=text), approval, decision)) == (403, "own_proposal")
    assert Approval.objects.get(pk=approval).state == "waiting"


# questions


@pytest.mark.parametrize(
    ("options", "body", "code"),
    [
        ([], {}, "answer_needed"),
        ([], {"answer": "   "}, "answer_needed"),
        (["red", "blue"], {"answer": "green"}, "answer_unknown"),
    ],
)
def test_a_question_is_approved_with_an_answer_that_was_asked_for(rest, session, options, body, code):
    approval = add_approvals(session, kind="question", action={}, options=options)[0]
    assert refused(decide(rest, approval, **body)) == (400, code)


def test_an_answer_is_kept_as_it_was_given(rest, session, verified):
    free, chosen = add_approvals(session, 2, kind="question", action={})
    record(session.pk, set={"approval": {str(chosen): {"options": ["red", " blue "]}}})
    assert decide(rest, free, answer=" grün ").json()["answer"] == " grün "
    assert decide(rest, chosen, answer=" blue ").json()["answer"] == " blue "
    assert refused(decide(rest, chosen, answer="red")) == (409, "approval_decided")


def test_a_question_may_be_turned_down(rest, session):
    approval = add_approvals(session, kind="question", action={})[0]
    assert decide(rest, approval, "reject", reason="no idea").json()["state"] == "rejected"


def test_leave_for_a_call_is_no_question(rest, session):
    approval = add_approvals(session)[0]
    assert refused(decide(rest, approval, answer="yes")) == (400, "answer_unknown")


# call-backs


def test_a_call_back_brings_what_came_from_outside(rest, session, verified):
    approval = add_approvals(session, kind="callback", action={})[0]
    row = call_back(rest, approval, data={"build": [1, None]}).json()
    assert (row["state"], row["answer"], row["changed"]) == ("approved", {"build": [1, None]}, True)
    assert call_back(rest, approval, data={"build": [1, None]}).json()["changed"] is False
    assert refused(call_back(rest, approval, data={"build": []})) == (409, "approval_decided")


def test_a_call_back_may_bring_nothing_or_an_error(rest, session):
    nothing, failed = add_approvals(session, 2, kind="callback", action={})
    assert call_back(rest, nothing, data=None).json()["state"] == "approved"
    row = call_back(rest, failed, error="the build broke").json()
    assert (row["state"], row["reason"], row["answer"]) == ("rejected", "the build broke", None)


@pytest.mark.parametrize("body", [{}, {"data": 1, "error": "x"}, {"error": ""}, {"error": "x" * 501}, {"colour": 1}])
def test_a_call_back_brings_exactly_one_of_data_and_error(rest, session, body):
    approval = add_approvals(session, kind="callback", action={})[0]
    assert call_back(rest, approval, **body).status_code == 400


def test_a_call_back_is_bounded(rest, session):
    approval = add_approvals(session, kind="callback", action={})[0]
    assert refused(call_back(rest, approval, data="x" * DATA_BYTES)) == (400, "answer_unknown")
    assert call_back(rest, approval, data="x" * (DATA_BYTES - 2)).status_code == 200


def test_a_call_back_is_no_persons_to_decide_and_nothing_else_is_one(rest, session):
    outside = add_approvals(session, kind="callback", action={})[0]
    inside = add_approvals(session)[0]
    assert refused(decide(rest, outside)) == (409, "wrong_kind")
    assert refused(call_back(rest, inside, data=1)) == (409, "wrong_kind")


# who may


def test_who_may_decide(viewer, operator, admin_user, session):
    one, other = add_approvals(session, 2)
    assert decide(Rest(viewer), one).status_code == 403
    assert decide(Rest(admin_user), one).status_code == 200
    _, weak = make_token(operator, "read", "operate")
    key, strong = make_token(operator, "approve")
    assert decide(Rest(token=weak), other).json()["detail"] == "the token lacks the scope approve"
    assert decide(Rest(token=strong), other).json()["decided_by"] == f"token:{key.token_key}"


def test_an_event_from_outside_needs_the_scope_operate(operator, session):
    approval = add_approvals(session, kind="callback", action={})[0]
    _, weak = make_token(operator, "read", "approve")
    _, strong = make_token(operator, "operate")
    assert call_back(Rest(token=weak), approval, data=1).json()["detail"] == "the token lacks the scope operate"
    assert call_back(Rest(token=strong), approval, data=1).status_code == 200


def test_approvals_of_others_are_not_there(session, viewer, django_user_model, operator):
    approval = add_approvals(session)[0]
    other = django_user_model.objects.create_user("other")
    other.groups.set(operator.groups.all())
    assert Rest(viewer).get("/api/approvals/").json()["results"] == []
    for answer in (
        Rest(viewer).get(f"/api/approvals/{approval}/"),
        decide(Rest(other), approval),
        call_back(Rest(other), approval),
    ):
        assert answer.status_code == 404
    assert Approval.objects.get(pk=approval).state == "waiting"


# finding them


def test_approvals_are_listed_newest_first_and_filtered(rest, operator, session):
    other = sessions.session_create(operator, by="system")
    mine = add_approvals(session, 3)
    done = add_approvals(other, state="rejected", kind="lost")
    assert [row["id"] for row in rest.get("/api/approvals/").json()["results"]] == [*done, *mine[::-1]]
    assert [row["id"] for row in rest.get("/api/approvals/", session=session.pk).json()["results"]] == mine[::-1]
    assert [row["id"] for row in rest.get("/api/approvals/", state="rejected").json()["results"]] == done
    assert [row["id"] for row in rest.get("/api/approvals/", kind="lost").json()["results"]] == done
    page = rest.get("/api/approvals/", session=session.pk, limit=2).json()
    last = rest.get("/api/approvals/", session=session.pk, limit=2, cursor=page["next"]).json()
    assert ([row["id"] for row in last["results"]], last["next"]) == (mine[:1], None)


def test_call_backs_are_listed_when_asked_for(rest, session):
    outside = add_approvals(session, kind="callback", action={})
    assert rest.get("/api/approvals/").json()["results"] == []
    assert rest.get("/api/approvals/", kind="").json()["results"] == []
    assert [row["id"] for row in rest.get("/api/approvals/", kind="callback").json()["results"]] == outside
    assert rest.get(f"/api/approvals/{outside[0]}/").json()["kind"] == "callback"


@pytest.mark.parametrize("query", [{"state": "maybe"}, {"kind": "x"}, {"session": "x"}, {"limit": 0}, {"cursor": "x"}])
def test_a_filter_that_nobody_knows_is_400(rest, query):
    answer = rest.get("/api/approvals/", **query)
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, next(iter(query)))


def test_a_detail_shows_exactly_what_would_be_done(rest, session):
    approval = add_approvals(session, observed={"files": ["a"]}, options=["x"])[0]
    row = rest.get(f"/api/approvals/{approval}/").json()
    assert (row["action"], row["digest"], row["observed"]) == (LS, action_digest(LS), {"files": ["a"]})
    assert (row["session"], row["agent"], row["subject_id"], row["options"]) == (session.pk, None, 1, ["x"])


@pytest.mark.parametrize("count", [1, 30])
def test_approvals_cost_the_same_queries_however_many_there_are(rest, session, count, django_assert_max_num_queries):
    last = add_approvals(session, count)[-1]
    for path in ("approvals", f"approvals/{last}"):
        with django_assert_max_num_queries(4):
            assert rest.get(f"/api/{path}/").status_code == 200


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "decision"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": "approve", "digest": "x" * 65}, "digest"),
        ({"decision": "approve", "arguments": ["x"]}, "arguments"),
        ({"decision": "approve", "arguments": None}, "arguments"),
        ({"decision": "approve", "answer": 5}, "answer"),
        ({"decision": "approve", "answer": "x" * (ANSWER_LENGTH + 1)}, "answer"),
        ({"decision": "reject", "reason": "x" * 501}, "reason"),
        ({"decision": "reject", "colour": "red"}, "colour"),
    ],
)
def test_a_malformed_decision_names_the_place_and_changes_nothing(rest, session, body, key):
    approval = add_approvals(session)[0]
    answer = rest.post(f"/api/approvals/{approval}/decision", body)
    assert answer.status_code == 400
    assert [each["key"] for each in answer.json()["problems"]] == [key]
    assert Approval.objects.get(pk=approval).state == "waiting"


# the service, as programs call it


@pytest.mark.parametrize("missing", [7, 2**62])
def test_an_approval_that_is_not_there_is_named(session, missing):
    with pytest.raises(NoSuchApproval, match=f"no approval {missing}"):
        approval_decide(missing, "approve", by="user:1")
    with pytest.raises(NoSuchApproval):
        approval_decide(session.pk << 24 | 4000, "approve", by="user:1")


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"decision": "maybe"}, DecisionRejected),
        ({"decision": "reject", "reason": "x" * 501}, DecisionRejected),
        ({"decision": "approve", "arguments": ["ls"]}, EditNotPossible),
        ({"decision": "approve", "arguments": {"text": "x" * 1_000_001}}, EditNotPossible),
    ],
)
def test_the_service_checks_what_no_serializer_has_seen(session, asked, error):
    approval = add_approvals(session)[0]
    before = events_of(session)
    with pytest.raises(error):
        approval_decide(approval, by="user:1", **asked)
    assert events_of(session) == before


@pytest.mark.django_db(transaction=True)
def test_of_many_who_decide_at_once_exactly_one_wins(session, verified):
    approval, won, lost = add_approvals(session)[0], [], []

    def try_it(number: int) -> None:
        try:
            approval_decide(approval, "approve" if number % 2 else "reject", by=f"user:{number}")
            won.append(number)
        except AgentsError as error:
            lost.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = Approval.objects.get(pk=approval)
    assert len(won) == 1
    assert (row.decided_by, row.state) == (f"user:{won[0]}", "approved" if won[0] % 2 else "rejected")
    assert [type(error) for error in lost] == [ApprovalDecided] * 5
    assert Event.objects.filter(type="approval_decided").count() == 1


# an agent's page


def test_an_agent_without_a_loop_shows_none(rest, session):
    row = rest.get(f"/api/agents/{add_agents(session)[0]}/").json()
    assert (row["loop"], row["phases"], row["evidence"], row["approvals"], row["children"]) == (None, [], [], [], [])
    assert (row["blackboard"], row["plan"]) == ({}, [])
    assert row["progress"] == {"files_modified": 0, "recent_successes": 0, "recent_failures": 0, "consecutive_errors": 0}


def test_an_agents_page_shows_its_loop(rest, session):
    agent = add_agents(session, blackboard={"port": 8080})[0]
    loop = add_loop(agent, session)
    told = {"machine": "tool_loop", "id": loop, "from_state": "Idle", "to_state": "ProcessingPrompt", "event": "prompt"}
    changes = {"loop": {str(loop): {"state": "ProcessingPrompt"}}}
    record(session.pk, "state_changed", **told, reason="", spent=1.5, set=changes)
    row = rest.get(f"/api/agents/{agent}/").json()
    assert (row["loop"]["state"], row["loop"]["position"], row["blackboard"]) == (
        "ProcessingPrompt",
        {"step": 1},
        {"port": 8080},
    )
    assert row["loop"]["time_per_state"]["Idle"] == 1.5
    assert set(row["loop"]["time_per_state"]) == {"Idle", "ProcessingPrompt"}
    assert "responding" in row["loop"]["choices"]
    assert row["transitions"] == []


def test_an_agents_page_shows_phases_approvals_and_children(rest, session):
    agent = add_agents(session)[0]
    children = add_agents(session, 2, parent_id=agent)
    add_agents(session, parent_id=children[0])
    phase = {"agent_id": agent, "number": 1, "total": 2, "description": "build", "started_at": NOW}
    add_rows(session.pk, "phase", [phase, {**phase, "number": 2}])
    asked = add_approvals(session, 2, agent_id=agent)
    add_approvals(session)
    row = rest.get(f"/api/agents/{agent}/").json()
    assert [(each["number"], each["total"], each["description"]) for each in row["phases"]] == [
        (1, 2, "build"),
        (2, 2, "build"),
    ]
    assert [each["id"] for each in row["approvals"]] == asked
    assert row["children"] == children


def test_evidence_is_shown_oldest_first_with_long_texts_cut(rest, session):
    agent = add_agents(session)[0]
    long = {
        "target": "t" * 600,
        "raw_error": "e" * 3000,
        "success": False,
        "error_kind": "timeout",
        "verdict": {
            "rule": "cycle",
            "identity": "cycle:1",
            "rows": [1],
            "sentence": "Round.",
            "action": "steer",
            "first": True,
        },
    }
    add_evidence(add_loop(agent, session), session, {"target": "a"}, {**long, "ended_at": None})
    first, second = rest.get(f"/api/agents/{agent}/").json()["evidence"]
    assert (first["number"], first["target"], first["success"], first["verdict"]) == (1, "a", True, None)
    assert (second["target"], second["raw_error"]) == ("t" * 500, "e" * 2000)
    assert (second["error_kind"], second["ended_at"]) == ("timeout", None)
    assert second["verdict"] == {
        **long["verdict"], "about": "the same few calls go round", "followed": "It was told so, and goes on.",
        "since": {"row": 1, "at": first["started_at"]},
    }  # fmt: skip
    assert set(first) == {
        "id", "number", "phase", "kind", "tool", "target", "ordered", "success", "error_kind", "raw_error", "verdict",
        "started_at", "ended_at",
    }  # fmt: skip


def test_a_page_shows_the_last_evidence_and_its_own_address_all_of_it(rest, session, monkeypatch):
    monkeypatch.setattr(agents, "EVIDENCE_ROWS", 3)
    agent, other = add_agents(session, 2)
    add_evidence(add_loop(other, session), session, {})
    add_evidence(add_loop(agent, session), session, *[{}] * 7)
    assert [row["number"] for row in rest.get(f"/api/agents/{agent}/").json()["evidence"]] == [5, 6, 7]
    seen, cursor = [], {}
    while cursor is not None:
        page = rest.get(f"/api/agents/{agent}/evidence/", limit=3, **cursor).json()
        seen += [row["number"] for row in page["results"]]
        cursor = {"cursor": page["next"]} if page["next"] is not None else None
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_evidence_of_others_is_not_there(session, viewer):
    assert Rest(viewer).get(f"/api/agents/{add_agents(session)[0]}/evidence/").status_code == 404


def test_progress_counts_recent_actions_and_the_failures_at_the_end(rest, session):
    agent, failed = add_agents(session)[0], {"success": False}
    rows = [failed] * 5 + [{}] * 16 + [{"kind": "user", "success": False}] + [failed] * 3 + [{"success": None}]
    add_evidence(add_loop(agent, session), session, *rows)
    progress = rest.get(f"/api/agents/{agent}/").json()["progress"]
    assert (progress["recent_successes"], progress["recent_failures"], progress["consecutive_errors"]) == (16, 4, 3)


def test_progress_counts_files_whose_content_changed_once_each(rest, session):
    agent = add_agents(session)[0]
    changes = [
        ("a", "1", "2"),
        ("a", "2", "3"),
        ("b", "absent", "1"),
        ("c", "1", "1"),
        ("d", None, "1"),
        ("e", "1", None),
        ("f", "", "2"),
    ]
    rows = [{"target": target, "before": before, "outcome": after} for target, before, after in changes]
    add_evidence(add_loop(agent, session), session, *rows)
    assert rest.get(f"/api/agents/{agent}/").json()["progress"]["files_modified"] == 3


@pytest.mark.parametrize("count", [1, 60])
def test_an_agents_page_costs_the_same_queries_however_much_it_did(rest, session, count, django_assert_max_num_queries):
    agent = add_agents(session)[0]
    add_evidence(
        add_loop(agent, session), session, *[{"before": "1", "outcome": str(n), "target": str(n)} for n in range(count)]
    )
    add_agents(session, count, parent_id=agent)
    add_approvals(session, count, agent_id=agent)
    with django_assert_max_num_queries(15):
        assert rest.get(f"/api/agents/{agent}/").status_code == 200
    with django_assert_max_num_queries(5):
        assert rest.get(f"/api/agents/{agent}/evidence/").status_code == 200
