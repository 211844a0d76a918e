"""Edits that a token may only propose: they wait for a person, and are made in the commit of the approval."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import connections
from django.utils import timezone

from agents.errors import AgentsError
from agents.gates.policies import action_digest
from agents.models import Approval, Event
from agents.services import sessions
from agents.services.approvals import ApprovalDecided, ApprovalExpired, OwnProposal, approval_decide
from agents.services.devices import device_create
from agents.streams.door import door
from agents.streams.fold import events_since, stream_head
from agents.streams.tables import TABLES
from agents.streams.verify import verify_database, verify_stream
from constellations.errors import EditIdTaken, EditRefused, EditRejected, NoSuchConstellation, StaleEdit
from constellations.models import Constellation, Edit
from constellations.runs.proposals import Proposals
from constellations.services import edits, proposals
from constellations.services.edits import edit_apply
from constellations.services.proposals import TooManyProposals, edit_propose
from tests.agents.conftest import Rest, make_token
from tests.conftest import person, rows_of
from tests.constellations.mcp.test_tools import Program
from tests.constellations.planting import advance, noop, plant, states

pytestmark = pytest.mark.django_db(transaction=True)
AGENT, PERSON = "token:agent", "user:1"


def lint(**more) -> dict:
    return {"op": "add_task", "parameters": {"task_id": "lint", "tool": "noop", "after": ["fetch"], **more}}


def slower() -> dict:
    return {"op": "update_task", "parameters": {"task_id": "train", "timeout": 90}}


@pytest.fixture
def digits(operator) -> Constellation:
    device_create("laptop", by="system")
    session = sessions.session_create(operator, "mine", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]), noop("deploy", after=["train"]))


def propose(constellation, *operations, **more):
    said = {"author": AGENT, "who": "claude", "reason": "cleaner", **more}
    return edit_propose(constellation.pk, list(operations), **said)


def approve(row, **more):
    return approval_decide(row.pk, "approve", by=more.pop("by", PERSON), **more)


# Asking


def test_a_proposal_waits_and_says_who_wants_what_and_why(digits):
    made = propose(digits, lint(), slower(), edit_id="e1", request_id="r1")
    row = made.approval
    assert (made.changed, made.edit, row.kind, row.state, row.subject_id) == (True, None, "edit", "waiting", digits.pk)
    assert row.title == "claude wants to change digits: add task lint, update task train. cleaner"
    assert row.action == {
        "tool": "edit", "constellation_id": digits.pk, "operations": [lint(), slower()], "based_on": 1, "reason": "cleaner",
        "edit_id": "e1", "author": AGENT,
    }  # fmt: skip
    assert row.digest == action_digest(row.action)
    assert row.expires_at - row.asked_at == timedelta(seconds=proposals.PROPOSAL_S)
    assert (row.observed["version"], row.observed["diff_total"], row.observed["diff"][0]["task"]) == (1, 3, "lint")
    told = Event.objects.get(type="approval_asked")
    assert (told.by, told.request_id) == (AGENT, "r1")
    assert "lint" not in states(digits)
    assert list(verify_database()) == []


def test_what_cannot_be_done_is_refused_at_once_and_nobody_is_asked(digits):
    before = rows_of(digits.session_id)
    advance(digits, fetch="RUNNING")
    with pytest.raises(EditRefused, match="fetch already runs"):
        propose(digits, {"op": "update_task", "parameters": {"task_id": "fetch", "timeout": 1}})
    with pytest.raises(EditRefused, match="did you mean train"):
        propose(digits, {"op": "update_task", "parameters": {"task_id": "trian", "timeout": 1}})
    with pytest.raises(EditRejected, match="edit_id"):
        propose(digits, lint(), edit_id="a b")
    with pytest.raises(EditRejected, match="a proposal has at most 256,000"):
        propose(digits, *(lint(task_id=f"t{n}", description="x" * 20_000) for n in range(13)))
    with pytest.raises(NoSuchConstellation):
        edit_propose(digits.pk + (1 << 40), [lint()], author=AGENT, who="claude")
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "timeout": 7}}], author=PERSON)
    with pytest.raises(StaleEdit):
        propose(digits, slower(), based_on=1)
    Constellation.objects.update(state="COMPLETED")
    with pytest.raises(EditRefused, match="has ended"):
        propose(digits, lint())
    assert not Approval.objects.exists()
    assert set(before) == set(rows_of(digits.session_id))


def test_what_changes_nothing_is_no_proposal(digits):
    before = stream_head(digits.session_id)
    made = propose(digits, {"op": "update_task", "parameters": {"task_id": "train", "max_attempts": 1}})
    assert (made.approval, made.edit, made.changed, stream_head(digits.session_id)) == (None, None, False, before)


def test_the_same_edit_id_is_the_same_proposal_whatever_became_of_it(digits):
    first = propose(digits, lint(), edit_id="e1").approval
    again = propose(digits, lint(), edit_id="e1", reason="once more", based_on=1)
    assert (again.changed, again.approval.pk, Approval.objects.count()) == (False, first.pk, 1)
    approval_decide(first.pk, "reject", by=PERSON, reason="not now")
    rejected = propose(digits, lint(), edit_id="e1")
    assert (rejected.approval.state, rejected.approval.reason) == ("rejected", "not now")
    second = propose(digits, lint(), edit_id="e2").approval
    approve(second)
    made = propose(digits, lint(), edit_id="e2")
    assert (made.approval, made.changed, made.edit.edit_id) == (None, False, "e2")


def test_another_edit_under_the_id_of_a_proposal_is_refused(digits):
    row = propose(digits, lint(), edit_id="e1").approval
    for said in ({"operations": [slower()]}, {"author": "token:other"}):
        with pytest.raises(EditIdTaken) as refused:
            propose(digits, *said.pop("operations", [lint()]), edit_id="e1", **said)
        told = f"edit e1 was another one (proposed by {AGENT}, approval {row.pk}): give this one an edit_id of its own"
        assert (str(refused.value), refused.value.status) == (told, 409)
    approve(row)
    with pytest.raises(EditIdTaken, match=rf"^edit e1 was another one \(by {AGENT}, version 2\)"):
        propose(digits, slower(), edit_id="e1")


def test_only_so_many_wait_for_one_constellation(digits, monkeypatch):
    monkeypatch.setattr(proposals, "WAITING", 2)
    propose(digits, lint())
    propose(digits, slower())
    with pytest.raises(TooManyProposals, match="2 proposals wait"):
        propose(digits, lint())


def test_what_ends_while_a_proposal_is_judged_is_not_proposed_to(digits, monkeypatch):
    judged = proposals.edit_preview

    def slow(*asked):
        found = judged(*asked)
        with door(digits.session_id, "system") as opened:
            opened.turn.record("ended", set={"constellation": {str(digits.pk): {"state": "COMPLETED"}}})
        return found

    monkeypatch.setattr(proposals, "edit_preview", slow)
    with pytest.raises(EditRefused, match="digits has ended"):
        propose(digits, lint())
    assert not Approval.objects.exists()


# Deciding


def at_once(*calls):
    """What each call comes to, or its error; all begin at the same moment, in threads of their own."""
    together, found = threading.Barrier(len(calls)), {}

    def run(number, call):
        try:
            together.wait()
            found[number] = call()
        except AgentsError as error:
            found[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(len(calls))]


def test_of_decisions_at_once_one_wins_and_makes_one_edit(digits):
    row = propose(digits, lint()).approval
    found = at_once(*(partial(approve, row, by=f"user:{number}") for number in range(4)))
    assert sorted(isinstance(each, ApprovalDecided) for each in found) == [False, True, True, True]
    assert Edit.objects.count() == 1
    assert list(verify_database()) == []


def test_of_the_same_proposal_made_at_once_there_is_one(digits):
    found = at_once(*(partial(propose, digits, lint(), edit_id="e1") for _ in range(4)))
    assert sorted(each.changed for each in found) == [False, False, False, True]
    assert len({each.approval.pk for each in found}) == 1


def test_approving_makes_the_edit_in_the_same_commit_as_its_authors(digits):
    row = propose(digits, lint(), edit_id="e1").approval
    seq = stream_head(digits.session_id)
    decided, changed = approve(row, digest=row.digest, reason="good", request_id="r2")
    assert (changed, decided.state, decided.decided_by, decided.used_at == decided.decided_at) == (
        True,
        "approved",
        PERSON,
        True,
    )
    made = Edit.objects.get()
    assert (made.author, made.edit_id, made.reason, made.version) == (AGENT, "e1", "cleaner", 2)
    told = [(event["type"], event["by"], event["request_id"]) for event in events_since(digits.session_id, seq)]
    assert told[0] == ("approval_decided", PERSON, "r2")
    assert {kind for kind, by, _ in told[1:] if by == AGENT} >= {"edited"}
    assert states(digits)["lint"] == "WAITING_DEPENDENCY"
    assert approve(row)[1] is False
    assert list(verify_database()) == []


def test_rejecting_changes_nothing_in_the_graph(digits):
    row = propose(digits, lint()).approval
    decided, _ = approval_decide(row.pk, "reject", by=PERSON, reason="no")
    assert (decided.state, decided.used_at, Edit.objects.count()) == ("rejected", None, 0)
    with pytest.raises(ApprovalDecided):
        approve(row)
    assert list(verify_database()) == []


def test_what_commutes_with_what_came_between_is_rebased(digits):
    row = propose(digits, lint()).approval
    edit_apply(digits.pk, [{"update_task": {"task_id": "deploy", "timeout": 7}}], author=PERSON)
    approve(row)
    made = Edit.objects.get(author=AGENT)
    assert (made.based_on, made.version, made.rebased_from) == (1, 3, 1)


def refused_and_waiting(row, error, says):
    before = rows_of(row.session_id)
    with pytest.raises(error, match=says):
        approve(row)
    assert rows_of(row.session_id) == before
    assert Approval.objects.get(pk=row.pk).state == "waiting"
    assert list(verify_stream(row.session_id)) == []


def test_a_proposal_that_is_stale_by_now_is_refused_and_stays(digits):
    row = propose(digits, slower()).approval
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "timeout": 7}}], author=PERSON)
    refused_and_waiting(row, StaleEdit, "user:1 changed train")


def test_a_proposal_about_what_runs_by_now_is_refused_and_stays(digits):
    row = propose(digits, slower()).approval
    advance(digits, fetch="COMPLETED", train="RUNNING")
    refused_and_waiting(row, EditRefused, "train already runs")


def test_a_proposal_for_what_has_ended_is_refused_and_stays(digits):
    row = propose(digits, lint()).approval
    with door(digits.session_id, "system") as opened:
        opened.turn.record("ended", set={"constellation": {str(digits.pk): {"state": "COMPLETED"}}})
    refused_and_waiting(row, EditRefused, "digits has ended")


def test_a_proposal_expires_after_a_day(digits):
    row = propose(digits, lint()).approval
    with door(digits.session_id, "system") as opened:
        late = (timezone.now() - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        opened.turn.record("later", set={"approval": {str(row.pk): {"expires_at": late}}})
    refused_and_waiting(row, ApprovalExpired, "has expired")


def test_an_edit_that_was_made_directly_meanwhile_is_not_made_twice(digits):
    row = propose(digits, lint(), edit_id="e1").approval
    edit_apply(digits.pk, [lint()], author=PERSON, edit_id="e1")
    approve(row)
    assert Edit.objects.count() == 1
    assert list(verify_database()) == []


def test_a_proposal_whose_id_another_edit_took_meanwhile_is_refused_and_stays(digits):
    row = propose(digits, lint(), edit_id="e1").approval
    edit_apply(digits.pk, [slower()], author=PERSON, edit_id="e1")
    refused_and_waiting(row, EditIdTaken, "edit e1 was another one")


def test_a_proposal_stays_good_in_a_busy_constellation(digits):
    """A hundred and one edits that commute with it: an edit of so long ago is refused, a proposal is not."""
    row = propose(digits, lint()).approval
    for number in range(edits.REBASED_OVER + 1):
        edit_apply(digits.pk, [{"update_task": {"task_id": "deploy", "timeout": number + 1}}], author=PERSON)
    with pytest.raises(StaleEdit, match="there were more than 100 edits since; read the newest version"):
        edit_apply(digits.pk, [lint()], author=PERSON, based_on=1)
    approve(row)
    made = Edit.objects.get(author=AGENT)
    assert (made.version, made.rebased_from, states(digits)["lint"]) == (103, 1, "WAITING_DEPENDENCY")


def test_a_proposal_that_is_too_old_says_what_can_be_done(digits, monkeypatch):
    monkeypatch.setattr(proposals, "REBASED_OVER", 1)
    row = propose(digits, lint()).approval
    for number in range(2):
        edit_apply(digits.pk, [{"update_task": {"task_id": "deploy", "timeout": number + 1}}], author=PERSON)
    says = "there were more than 1 edits since; reject it, and have it proposed anew on the newest version"
    refused_and_waiting(row, StaleEdit, says)


def test_nobody_decides_their_own_proposal(digits):
    row = propose(digits, lint()).approval
    for decision in ("approve", "reject"):
        with pytest.raises(OwnProposal, match="is a proposal of token:agent, and somebody else decides it"):
            approval_decide(row.pk, decision, by=AGENT)
    assert Approval.objects.get(pk=row.pk).state == "waiting"


def test_a_proposal_is_decided_over_rest(operator, digits):
    row = propose(digits, slower()).approval
    rest = Rest(operator)
    listed = rest.get("/api/approvals/", state="waiting").json()["results"]
    assert [(each["kind"], each["action"]["author"]) for each in listed] == [("edit", AGENT)]
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "timeout": 7}}], author=PERSON, edit_id="mine")
    stale = rest.post(f"/api/approvals/{row.pk}/decision", {"decision": "approve", "digest": row.digest})
    assert (stale.status_code, stale.json()["code"], stale.json()["version"]) == (409, "stale_edit", 2)
    with_arguments = rest.post(f"/api/approvals/{row.pk}/decision", {"decision": "approve", "arguments": {}})
    assert (with_arguments.status_code, with_arguments.json()["code"]) == (400, "edit_not_possible")
    assert rest.post(f"/api/approvals/{row.pk}/decision", {"decision": "reject"}).json()["state"] == "rejected"


# Over MCP


@pytest.fixture
def agent(operator) -> Program:
    return Program(make_token(operator, "read", "operate", "approve", name="claude"))


def test_a_token_that_may_only_operate_proposes_over_mcp(agent, operator, digits):
    wanted = {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop", "reason": "tidy", "edit_id": "e1"}
    said = agent("add_task", **wanted)
    row = Approval.objects.get()
    assert said["message"] == f"the edit waits for a person: it is approval {row.pk}, and is made when somebody approves it"
    assert (said["changed"], said["version"], said["edit"], said["edit_id"]) == (False, 1, None, "e1")
    assert (said["proposal"]["approval"], said["proposal"]["state"]) == (row.pk, "waiting")
    assert said["diff"] == [{"change": "added", "task": "lint"}]
    assert row.title == f"claude ({agent.by}) of operator wants to change digits: add task lint. tidy"
    assert agent("add_task", **wanted)["proposal"]["approval"] == row.pk
    assert "is a proposal of" in agent("decide_approval", approval_id=row.pk, decision="approve")
    second = Program(make_token(operator, "read", "approve"))
    (listed,) = second("list_approvals")["approvals"]
    told = second("decide_approval", approval_id=row.pk, decision="approve", digest=listed["digest"])
    assert f"was asked for by token {agent.by.removeprefix('token:')}, of the same user" in told
    other = Program(make_token(person("another", "admin"), "read", "approve"))
    (listed,) = other("list_approvals")["approvals"]
    assert (listed["kind"], listed["action"]["operations"][0]["op"]) == ("edit", "add_task")
    assert other("decide_approval", approval_id=row.pk, decision="approve", digest=listed["digest"])["changed"] is True
    assert "lint" in states(digits)
    again = agent("add_task", **wanted)
    assert (again["message"], again["edit"], again["proposal"]) == (
        "edit e1 had been made before; nothing was changed now",
        Edit.objects.get().pk,
        None,
    )
    assert list(verify_database()) == []


def test_what_cannot_be_done_is_told_at_once_over_mcp(agent, digits):
    operations = [{"op": "remove_task", "parameters": {"task_id": "train"}}, {"op": "add_tsk", "parameters": {}}]
    refused = agent("apply_edit", constellation_id=digits.pk, operations=operations)
    assert refused == "operation 2 (add_tsk): there is no tool add_tsk; did you mean add_task?"
    assert agent("preview_edit", constellation_id=digits.pk, operations=operations[:1])["diff"][0]["change"] == "removed"
    assert not Approval.objects.exists()


def test_a_rejected_proposal_says_so_to_whoever_proposes_it_again(agent, digits):
    wanted = {"constellation_id": digits.pk, "task_id": "lint", "tool": "noop", "edit_id": "e1"}
    approval = agent("add_task", **wanted)["proposal"]["approval"]
    approval_decide(approval, "reject", by=PERSON, reason="not before the release")
    again = agent("add_task", **wanted)
    assert again["message"] == f"the edit is approval {approval}, which is rejected (not before the release)"


def test_undoing_is_not_proposed(agent, digits):
    edit_apply(digits.pk, [lint()], author=PERSON, edit_id="e1")
    assert agent("undo_edit", constellation_id=digits.pk, edit_id="e1") == "the token lacks the scope edit"


# In the memory of a runner


class Drive:
    """As much of a runner's drive as proposals ask for."""

    def __init__(self, session: int):
        self.stream = session

    def find(self, table, where, *parameters):
        rows = Approval.objects.filter(session=parameters[0], subject_id=parameters[1], state="waiting", kind="edit")
        names = [name for name, _ in TABLES[table].columns]
        return [
            {name: getattr(row, name) for name in names} | {"expires_at": row.expires_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
            for row in rows
        ]


@pytest.fixture
def work(digits):
    return SimpleNamespace(stream=digits.session_id, constellation={"id": digits.pk})


def test_what_waits_is_withdrawn_when_the_work_ends(digits, work):
    known = propose(digits, lint()).approval
    memory = Proposals(work)
    memory.load()
    seq = stream_head(digits.session_id)
    fresh, rejected = propose(digits, slower()).approval, propose(digits, lint()).approval
    approval_decide(rejected.pk, "reject", by=PERSON)
    for event in events_since(digits.session_id, seq):
        memory.apply_foreign(event["data"])
    with door(digits.session_id, "agent:1") as opened:
        memory.withdraw(opened.turn)
    assert dict(Approval.objects.values_list("pk", "state")) == {
        known.pk: "withdrawn", fresh.pk: "withdrawn", rejected.pk: "rejected",
    }  # fmt: skip
    assert Approval.objects.get(pk=known.pk).reason == "the constellation has ended"
    assert memory.wake_at() is None
    assert list(verify_database()) == []


def test_what_nobody_has_decided_expires_at_its_time(digits, work):
    row = propose(digits, lint()).approval
    memory = Proposals(work)
    memory.load()
    assert memory.wake_at() == pytest.approx(row.expires_at.timestamp())
    with door(digits.session_id, "agent:1") as opened:
        memory.expire(opened.turn)
        opened.turn.ts = row.expires_at.timestamp()
        memory.expire(opened.turn)
    assert Approval.objects.get().state == "expired"
    assert list(verify_database()) == []
