"""What a token starts: whose child it is, how much of it there may be, what ends with it, and who does not approve it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from agents.access import ancestry
from agents.access.ancestry import NotYourChild, NotYourSession, OwnApproval, ParentEnded, TooDeep, TooManyOpen
from agents.clock import now_iso
from agents.errors import NoSuchSession
from agents.models import Actor, Event, InboxItem, Session, Token
from agents.services import sessions
from agents.services.approvals import OwnProposal, approval_decide
from agents.services.sessions import request_submit, session_create
from agents.services.tokens import TokenRejected, token_create, token_revoke
from agents.streams.door import door
from tests.agents.conftest import PLAN, Rest, add_agents, add_approvals, add_rows, make_token
from tests.conftest import person

pytestmark = pytest.mark.django_db(transaction=True)

ALL = ("read", "operate", "edit", "approve")
DAY = timedelta(days=1)


def author(token: Token) -> str:
    return f"token:{token.token_key}"


def token_for(user, session: Session | None = None) -> Token:
    return token_create(user, "agent", ALL, DAY, by="system", session=None if session is None else session.pk)[0]


def token_of_another() -> Token:
    """Of an admin, who sees everything and has a part in nothing."""
    return token_for(person("another", "admin"))


def started(user, token: Token, **more) -> Session:
    return session_create(user, by=author(token), **more)


def ask(session: Session, by: str) -> InboxItem:
    return request_submit(session.pk, "interaction", "", {"plan": PLAN}, by=by)[0]


def begun(session: Session, by: str) -> int:
    """A request of `by` that is being worked on; its id."""
    now = now_iso()
    row = {
        "session_id": session.pk, "client_id": f"begun-{by}", "kind": "interaction", "by": by, "created_at": now,
        "state": "running", "started_at": now,
    }  # fmt: skip
    return add_rows(session.pk, "inbox", [row])[0]


def end_actor(session: Session, state: str = "completed") -> None:
    now = now_iso()
    row = {"session_id": session.pk, "epoch": 1, "state": state, "created_at": now, "entered_at": now, "active_at": now}
    add_rows(session.pk, "actor", [row])


def place_of(session: Session) -> tuple[str, int | None, int]:
    return session.token_key, session.parent_id, session.depth


@pytest.fixture
def session(operator, verified):
    return session_create(operator, "mine", by=f"user:{operator.pk}")


# whose child it is


def test_what_a_person_starts_has_no_ancestry(session):
    assert place_of(session) == ("", None, 0)


def test_a_session_keeps_the_key_of_the_token_that_started_it_also_when_that_is_revoked(operator, session):
    token = token_for(operator)
    made = started(operator, token)
    token_revoke(token, by="system")
    made.refresh_from_db()
    assert place_of(made) == (token.token_key, None, 0)


def test_what_a_token_of_a_session_starts_is_a_child_of_that_session_and_the_parent_tells_of_it(operator, session):
    token = token_for(operator, session)
    child = started(operator, token)
    assert place_of(child) == (token.token_key, session.pk, 1)
    event = Event.objects.get(stream_id=session.pk, type="child_created")
    assert (event.data["session_id"], event.by) == (child.pk, author(token))


def test_a_token_names_as_parent_only_what_it_started_itself(operator, session):
    token, other = token_for(operator), token_for(operator)
    first = started(operator, token)
    assert place_of(started(operator, token, parent=first.pk)) == (token.token_key, first.pk, 1)
    for wanted, by in ((session.pk, author(token)), (first.pk, author(other)), (first.pk, "user:1"), (10**9, author(token))):
        with pytest.raises(NotYourChild, match=f"session {wanted} cannot be the parent"):
            session_create(operator, by=by, parent=wanted)
    inside = token_for(operator, session)
    with pytest.raises(NotYourChild, match=f"issued for session {session.pk}"):
        started(operator, inside, parent=first.pk)


def test_nothing_is_started_below_a_grandchild_and_nothing_is_half_written(operator, session):
    child = started(operator, token_for(operator, session))
    grandchild = started(operator, token_for(operator, child))
    assert place_of(grandchild)[1:] == (child.pk, 2)
    before = Session.objects.count(), Event.objects.count()
    deep = token_for(operator, grandchild)
    with pytest.raises(TooDeep, match="2 deep already, so nothing can be started below it; do the work in that session"):
        started(operator, deep)
    assert (Session.objects.count(), Event.objects.count() - 1) == before  # the token's own event


def test_nothing_is_started_from_a_session_that_has_ended_or_is_told_to(operator, session):
    token = token_for(operator, session)
    ask(session, "system")
    sessions.request_submit(session.pk, "cancel", "", {"reason": "enough"}, by="system")
    with pytest.raises(ParentEnded, match="is being cancelled"):
        started(operator, token)
    other = session_create(operator, by="system")
    inside = token_for(operator, other)
    end_actor(other)
    with pytest.raises(ParentEnded):
        started(operator, inside)


def test_over_rest_a_session_and_a_token_show_their_ancestry(operator, session):
    made = Rest(operator).post("/api/tokens/", {"scopes": list(ALL), "session": session.pk})
    assert (made.status_code, made.json()["session"]) == (201, session.pk)
    program = Rest(token=made.json()["token"])
    answer = program.post("/api/sessions/", {"plan": PLAN})
    assert answer.status_code == 201
    row = answer.json()
    assert (row["token"], row["parent"], row["depth"]) == (made.json()["id"], session.pk, 1)
    refused = program.post("/api/sessions/", {"parent": row["id"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_your_child")
    assert Rest(operator).post("/api/sessions/", {"parent": session.pk}).status_code == 403


# how much of it


def test_a_token_has_a_bounded_number_of_sessions_at_work(operator, session, monkeypatch):
    monkeypatch.setattr(ancestry, "OPEN_OF_TOKEN", 2)
    token = token_for(operator)
    by, first, idle = author(token), started(operator, token), started(operator, token)
    ask(first, by)
    below = started(operator, token_for(operator, first))
    ask(below, by)
    with pytest.raises(TooManyOpen, match=f"2 sessions that descend from token {token.token_key} are at work"):
        ask(idle, by)
    ask(first, by)  # it is at work already
    ask(idle, f"user:{operator.pk}")  # people are not counted


def test_a_session_has_a_bounded_number_of_children_at_work_whatever_tokens_start_them(operator, session, monkeypatch):
    monkeypatch.setattr(ancestry, "OPEN_OF_PARENT", 2)
    tokens = [token_for(operator, session) for _ in range(3)]
    children = [started(operator, token) for token in tokens]
    for child, token in zip(children[:2], tokens[:2], strict=True):
        ask(child, author(token))
    with pytest.raises(TooManyOpen, match=f"2 sessions that were started from session {session.pk} are at work"):
        ask(children[2], author(tokens[2]))
    with door(children[0].pk, "system") as opened:
        item = InboxItem.objects.get(session=children[0])
        opened.turn.record("interaction_ended", set={"inbox": {str(item.pk): {"state": "done"}}})
    ask(children[2], author(tokens[2]))


def test_of_many_at_once_as_many_begin_as_may(operator, session, monkeypatch):
    monkeypatch.setattr(ancestry, "OPEN_OF_PARENT", 3)
    children = [(token := token_for(operator, session), started(operator, token)) for _ in range(8)]
    refused: list[Exception] = []

    def begin(token: Token, child: Session) -> None:
        try:
            ask(child, author(token))
        except TooManyOpen as error:
            refused.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=begin, args=each) for each in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (InboxItem.objects.filter(kind="interaction").count(), len(refused)) == (3, 5)


def test_over_rest_a_session_that_there_is_no_room_for_is_not_made(operator, session, monkeypatch):
    monkeypatch.setattr(ancestry, "OPEN_OF_TOKEN", 1)
    program = Rest(token=make_token(operator, *ALL)[1])
    assert program.post("/api/sessions/", {"plan": PLAN}).status_code == 201
    before = Session.objects.count()
    answer = program.post("/api/sessions/", {"plan": PLAN})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_open")
    assert "wait until one of them ends, or cancel one" in answer.json()["detail"]
    assert Session.objects.count() == before


# what ends with it


def family(operator, session) -> tuple[Session, Session]:
    """A child and a grandchild, each with a request that waits."""
    child = started(operator, token_for(operator, session))
    grandchild = started(operator, token_for(operator, child))
    for each in (session, child, grandchild):
        ask(each, "system")
    return child, grandchild


def test_a_cancel_is_in_the_inboxes_of_all_descendants_in_the_same_transaction(operator, session):
    child, grandchild = family(operator, session)
    resting = started(operator, token_for(operator, session))
    item, _ = request_submit(session.pk, "cancel", "", {"reason": "enough"}, by=f"user:{operator.pk}")
    told = InboxItem.objects.filter(client_id=f"parent:{item.pk}").order_by("session_id")
    assert [(row.session_id, row.kind, row.by, row.payload["reason"]) for row in told] == [
        (each.pk, "cancel", f"user:{operator.pk}", "parent cancelled") for each in (child, grandchild)
    ]
    assert not resting.inbox.exists()


def test_what_was_asked_for_and_not_taken_up_is_cancelled_with_its_parent(operator, engine, session, device):
    child, grandchild = family(operator, session)
    request_submit(session.pk, "cancel", "", {"reason": "enough"}, by=f"user:{operator.pk}")
    engine.run()
    actors = {actor.session_id: (actor.state, actor.reason) for actor in Actor.objects.all()}
    assert actors == {
        session.pk: ("cancelled", "enough"),
        child.pk: ("cancelled", "parent cancelled"),
        grandchild.pk: ("cancelled", "parent cancelled"),
    }
    outcomes = InboxItem.objects.filter(kind="interaction").values_list("state", "outcome")
    assert list(outcomes) == [("refused", "cancelled")] * 3
    cancelled = Event.objects.filter(stream_id=child.pk, type="state_changed", data__event="Cancel")
    assert cancelled.get().by == f"user:{operator.pk}"


def test_a_request_that_waits_is_cancelled_also_where_an_earlier_actor_has_ended(operator, engine, session, device):
    engine.submit(PLAN, session)
    engine.run()
    request_submit(session.pk, "cancel", "", {"reason": "over"}, by="system")
    engine.run()
    ask(session, "system")
    answer = Rest(operator).post(f"/api/sessions/{session.pk}/commands", {"kind": "cancel", "reason": "no"})
    assert (answer.status_code, answer.json()["changed"]) == (202, True)
    engine.run()
    assert list(Actor.objects.order_by("epoch").values_list("state", "reason")) == [("cancelled", "over"), ("cancelled", "no")]


def test_revoking_a_token_ends_nothing(operator, engine, session, device):
    token = token_for(operator, session)
    child = started(operator, token)
    item = ask(child, author(token))
    token_revoke(token, by="system")
    engine.run()
    item.refresh_from_db()
    assert item.outcome == "completed"


# tokens of sessions


def test_a_token_of_a_session_is_good_for_as_long_as_somebody_is_at_work_there(operator, session):
    text = token_create(operator, "", ALL, DAY, by="system", session=session.pk)[1]
    program = Rest(token=text)
    assert program.get("/api/sessions/").status_code == 200
    end_actor(session, "cancelled")
    answer = program.get("/api/sessions/")
    assert answer.status_code == 401
    assert f"issued for session {session.pk}, which has ended" in answer.json()["detail"]


def test_a_token_of_a_session_asks_and_commands_only_there_and_what_descends_from_there(operator, session):
    inside, elsewhere = token_for(operator, session), session_create(operator, by=f"user:{operator.pk}")
    child = started(operator, inside)
    grandchild = started(operator, token_for(operator, child))
    for below in (session, child, grandchild):
        assert ask(below, author(inside)).by == author(inside)
        assert request_submit(below.pk, "pause", "", {}, by=author(inside))[1]
    of_child = token_for(operator, child)
    assert ask(grandchild, author(of_child)).state == "queued"
    ask(elsewhere, f"user:{operator.pk}")
    for place, token, own in ((elsewhere, inside, session), (session, of_child, child), (elsewhere, of_child, child)):
        told = (
            f"issued for session {own.pk}, and works only there and in what was started from there, not in session {place.pk}"
        )
        for kind, payload in (("interaction", {"plan": PLAN}), ("pause", {}), ("cancel", {"reason": "no"})):
            with pytest.raises(NotYourSession, match=told):
                request_submit(place.pk, kind, "", payload, by=author(token))
    assert not InboxItem.objects.filter(session=elsewhere).exclude(by=f"user:{operator.pk}").exists()


def test_over_rest_a_token_of_a_session_gets_a_problem_where_it_asks_another_one(operator, session):
    text = token_create(operator, "", ALL, DAY, by="system", session=session.pk)[1]
    elsewhere = session_create(operator, by=f"user:{operator.pk}")
    ask(elsewhere, f"user:{operator.pk}")
    for path, body in (("interactions", {"plan": PLAN}), ("commands", {"kind": "cancel", "reason": "no"})):
        answer = Rest(token=text).post(f"/api/sessions/{elsewhere.pk}/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_your_session")
        assert Rest(token=text).post(f"/api/sessions/{session.pk}/{path}", body).status_code == 202


def test_a_token_of_a_session_that_is_told_to_end_asks_nothing_more_of_anybody(operator, session):
    inside = token_for(operator, session)
    child = started(operator, inside)
    grandchild = started(operator, token_for(operator, child))
    ask(session, "system")
    request_submit(session.pk, "cancel", "", {"reason": "enough"}, by="system")
    for below in (session, child, grandchild):
        with pytest.raises(ParentEnded, match=f"session {session.pk} has ended or is being cancelled"):
            ask(below, author(inside))
        assert ask(below, f"user:{operator.pk}").state == "queued"


def test_a_token_of_a_session_makes_no_others(operator, session):
    token, text = token_create(operator, "", ["admin", *ALL], DAY, by="system", session=session.pk)
    with pytest.raises(TokenRejected, match=f"issued for session {session.pk}, and such a token makes no others"):
        token_create(operator, "", ALL, DAY, by=author(token))
    assert Rest(token=text).post("/api/tokens/", {"scopes": ["read"]}).status_code == 403


def test_a_token_is_issued_for_a_session_that_its_user_may_see(roles, operator, session, capsys):
    other = person("other", "operator")
    with pytest.raises(NoSuchSession, match=f"there is no session {session.pk}, or it is not one that other may see"):
        token_for(other, session)
    with pytest.raises(CommandError, match="may see"):
        call_command("token_create", "other", session=session.pk)
    call_command("token_create", "operator", session=session.pk)
    assert Token.objects.get().session_id == session.pk


# who does not approve it


def refused(approval: int, token: Token) -> str:
    with pytest.raises(OwnApproval) as caught:
        approval_decide(approval, "approve", by=author(token))
    assert "a person decides it, or a token that has no part in it" in str(caught.value)
    return str(caught.value)


def test_a_token_decides_nothing_in_what_it_started_or_what_descends_from_it(operator, session):
    token, other, second = token_for(operator), token_of_another(), token_for(operator)
    first = started(operator, token)
    child = started(operator, token_for(operator, first))
    own, below = (add_approvals(each, asked_at=now_iso())[0] for each in (first, child))
    assert f"in session {first.pk} that this token started" in refused(own, token)
    assert f"in session {child.pk} that token {child.token_key}, of the same user, started" in refused(below, token)
    assert f"that token {token.token_key}, of the same user, started" in refused(own, second)
    assert approval_decide(own, "approve", by=author(other))[1]
    assert approval_decide(below, "approve", by=f"user:{operator.pk}")[1]


def test_a_token_of_a_session_decides_nothing_in_its_family(operator, session):
    inside = token_for(operator, session)
    children = [started(operator, token_for(operator, session)) for _ in range(2)]
    of_child = token_for(operator, children[0])
    for each in (session, *children):
        assert "of the same family" in refused(add_approvals(each)[0], inside)
        assert "of the same family" in refused(add_approvals(each)[0], of_child)
    elsewhere = session_create(operator, by="system")
    assert approval_decide(add_approvals(elsewhere)[0], "approve", by=author(inside))[1]


def test_a_token_decides_nothing_in_work_that_it_asked_for_in_a_session_of_a_person(operator, session):
    token, other, second = token_for(operator), token_of_another(), token_for(operator)
    before = add_approvals(session, asked_at=now_iso())[0]
    begun(session, author(token))
    asked = add_approvals(session, asked_at=now_iso())[0]
    assert f"by work in session {session.pk} that this token started" in refused(asked, token)
    assert f"that token {token.token_key}, of the same user, started" in refused(asked, second)
    child = started(operator, token_for(operator, session))
    assert f"in session {child.pk} that token" in refused(add_approvals(child, asked_at=now_iso())[0], token)
    assert approval_decide(before, "approve", by=author(token))[1]
    assert approval_decide(asked, "approve", by=author(other))[1]


def test_a_proposal_is_not_decided_by_a_token_of_the_same_user(operator, session):
    token, gone, other = token_for(operator), token_for(operator), token_of_another()
    first = started(operator, token)
    proposer = token_for(operator, first)

    def proposed(by: Token) -> int:
        return add_approvals(session, kind="edit", action={"tool": "edit", "author": author(by)})[0]

    assert f"by token {proposer.token_key}, of the same user" in refused(proposed(proposer), token)
    with pytest.raises(OwnProposal):
        approval_decide(proposed(other), "reject", by=author(other))
    assert approval_decide(proposed(other), "reject", by=author(token))[1]
    assert approval_decide(proposed(token), "reject", by=author(other))[1]
    assert approval_decide(proposed(token), "reject", by=f"user:{operator.pk}")[1]  # a person at a login
    left = proposed(gone)
    token_revoke(gone, by="system")
    assert "which has been revoked" in refused(left, token)


def test_tokens_that_were_made_with_one_another_count_as_one(operator, session):
    maker, other = token_for(operator), token_of_another()
    made = token_create(operator, "agent", ALL, DAY, by=author(maker))[0]
    last = token_create(operator, "agent", ALL, DAY, by=author(made))[0]
    first = started(operator, maker)
    assert "that this token started" in refused(add_approvals(first)[0], maker)
    for token in (made, last):
        assert f"that token {maker.token_key}, of the same user, started" in refused(add_approvals(first)[0], token)
    assert f"that token {last.token_key}, of the" in refused(add_approvals(started(operator, last))[0], maker)
    proposed = add_approvals(session, kind="edit", action={"tool": "edit", "author": author(made)})[0]
    assert f"by token {made.token_key}, of the same user" in refused(proposed, maker)
    assert approval_decide(proposed, "reject", by=author(other))[1]


def test_over_rest_the_same_holds_and_a_call_back_is_brought_by_anybody(operator, session):
    token, text = make_token(operator, *ALL)
    program, first = Rest(token=text), started(operator, token)
    approval = add_approvals(first)[0]
    answer = program.post(f"/api/approvals/{approval}/decision", {"decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (403, "own_approval")
    assert Rest(operator).post(f"/api/approvals/{approval}/decision", {"decision": "approve"}).status_code == 200
    awaited = add_approvals(first, kind="callback", action={}, agent_id=add_agents(first)[0])[0]
    assert program.post(f"/api/approvals/{awaited}/callback", {"data": {"sha": "c0ffee"}}).status_code == 200
