"""Gates that edits take away: every way, by every kind of author, and over time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.models import Approval, Event
from agents.services.approvals import approval_decide
from agents.services.policies import policy_delete
from agents.services.sessions import session_create
from agents.services.tokens import token_create
from agents.streams.verify import verify_database
from constellations.errors import GateKept
from constellations.models import Constellation, Task
from constellations.services.edits import edit_apply
from constellations.services.undo import edit_undo
from tests.agents.conftest import Rest
from tests.attacks.gated import ALL, DAY, EDITOR, add, op, post, step, token, update
from tests.conftest import person
from tests.constellations.planting import advance, plant
from tests.constellations.runs.test_run import command

pytestmark = pytest.mark.django_db(transaction=True)

WAYS: dict[str, list[dict]] = {
    "confirm is false": [update("danger", confirm=False)],
    "confirm is null": [update("danger", confirm=None)],
    "confirm goes and the command with it": [update("danger", confirm=False, command=["echo", "worse"])],
    "a copy without the gate": [add("copy", copy="danger", confirm=False)],
    "the same command under another name": [add("same", "echo", "DANGER")],
    "the same command in a step": [add("same", steps=[step("echo", "DANGER")])],
    "the same command in a detour": [add("same", steps=[step("ls", recover=[step("echo", "DANGER")])])],
    "a task gets the gated command": [update("free", command=["echo", "DANGER"])],
    "remove and add": [op("remove_task", task_id="danger"), add("danger", "echo", "DANGER")],
    "built anew": [op("build_constellation", tasks=[{"task_id": "danger", "command": ["echo", "DANGER"]}])],
    "merged": [op("build_constellation", clear=False, tasks=[{"task_id": "z", "command": ["echo", "DANGER"]}])],
    "a step's gate": [update("steps", steps=[step("echo", "STEP"), step("echo", "mild")])],
    "another command in the step's place": [update("steps", steps=[step("echo", "OTHER"), step("echo", "mild")])],
    "steps become a command": [update("steps", command=["echo", "STEP"])],
    "a delegated step's gate": [update("nested", steps=[{"delegate": {"name": "inner", "steps": [step("echo", "INNER")]}}])],
    "a step's action as a task": [add("same", "echo", "INNER")],
    "policies go": [update("watched", policies=[])],
    "policies go and the command with them": [update("watched", policies=[], command=["ls"])],
    "a policy that allows comes first": [
        update("watched", policies=[{"pattern": "x", "decision": "allow"}, {"pattern": "^rm", "decision": "ask"}])
    ],
    "deny becomes ask": [update("forbidden", policies=[{"pattern": "^rm", "decision": "ask"}])],
    "ask comes before deny": [
        update("forbidden", policies=[{"pattern": "y", "decision": "ask"}, {"pattern": "^rm", "decision": "deny"}])
    ],
    "what is forbidden elsewhere": [add("same", "rm", "y")],
    "a model may run what it likes": [update("danger", unasked={"commands": [["rm", "x"]]})],
    "a model's new task may": [add("same", "ls", unasked={"tools": ["write_file"]})],
    "what a model asked about": [update("free", unasked={})],
    "repeated unasked when lost": [update("asks", on_lost="retry")],
    "cut off its gate": [op("remove_dependency", **{"from": "hold", "to": "behind"})],
    "cut off further down": [op("remove_dependency", **{"from": "behind", "to": "further"})],
    "waits for the gate's end only": [op("update_dependency", **{"from": "hold", "to": "behind"}, type="COMPLETION_ONLY")],
    "the gate goes": [op("remove_task", task_id="hold")],
    "the gate opens itself": [update("hold", confirm=False)],
    "the same beside the gate": [add("same", "echo", "BEHIND")],
    "the step that asks goes": [update("first", steps=[step("echo", "AFTER")])],
    "the step that asks comes last": [update("first", steps=[step("echo", "AFTER"), {"tool": "noop", "confirm": True}])],
    "the step that asks may be refused": [
        update("first", steps=[{"tool": "noop", "confirm": True, "on_failure": "continue"}, step("echo", "AFTER")])
    ],
    "the step that asks may be left out": [
        update("first", steps=[{"tool": "noop", "confirm": True, "if": "1 > 2"}, step("echo", "AFTER")])
    ],
    "what comes after the step that asks": [add("same", "echo", "AFTER")],
    "what waits for the task with the step": [op("remove_dependency", **{"from": "first", "to": "last"})],
    "the step before what waits": [update("gatekeeper", steps=[{"tool": "noop", "confirm": True, "on_failure": "continue"}])],
    "another device": [update("there", device="laptop")],
    "any device": [update("there", device=None)],
    "the same on another device": [add("same", "echo", "PROD", device="laptop")],
}

HARMLESS: dict[str, list[dict]] = {
    "another name": [update("danger", name="renamed", timeout=5)],
    "another command behind its gate": [update("danger", command=["echo", "other"])],
    "a gated copy": [add("copy", copy="danger")],
    "a copy behind the same gate": [add("copy", "echo", "BEHIND", after=["hold"])],
    "something new": [add("new", "echo", "new"), add("wait", tool="noop")],
    "a gate more": [update("free", confirm=True)],
    "from the task to all its steps": [update("danger", confirm=False, steps=[step("echo", "DANGER", confirm=True)])],
    "a stricter policy first": [
        update("watched", policies=[{"pattern": "^rm", "decision": "deny"}, {"pattern": "^rm", "decision": "ask"}])
    ],
    "a gated task goes": [op("remove_task", task_id="danger")],
    "one that asks on the other device, too": [update("there", device="laptop", confirm=True)],
    "fails when lost": [update("asks", on_lost="fail")],
    "tied by another way to its gate": [
        op("add_dependency", **{"from": "hold", "to": "further"}),
        op("remove_dependency", **{"from": "behind", "to": "further"}),
    ],
}  # fmt: skip


def version(found: Constellation) -> int:
    return Constellation.objects.get(pk=found.pk).version


@pytest.mark.parametrize("way", WAYS)
def test_who_may_not_approve_only_proposes_to_take_a_gate_away(operator, found, way):
    answer = post(token(operator, *EDITOR)[1], found, WAYS[way])
    assert answer.status_code == 202, answer.content
    body = answer.json()
    row = Approval.objects.get()
    assert (body["edit"], body["changed"], body["proposal"], version(found)) == (None, False, row.pk, 1)
    assert (row.kind, row.state, bool(row.observed["gates"])) == ("edit", "waiting", True)
    assert row.observed["gates"][0].removeprefix("the edit ") in row.title
    approval_decide(row.pk, "approve", by=f"user:{operator.pk}")
    assert version(found) == 2
    assert list(verify_database()) == []


@pytest.mark.parametrize("way", HARMLESS)
def test_what_takes_no_gate_away_is_made_at_once(operator, found, way):
    answer = post(token(operator, *EDITOR)[1], found, HARMLESS[way])
    assert answer.status_code == 201, answer.content


# every kind of author


def authors(operator, session) -> Iterator[tuple[str, str, bool]]:
    """(who, as records name them, whether they may take a gate away)"""
    other = person("other", "admin")
    starter = token(operator, *ALL)[0]
    yield "an editor's token", token(operator, *EDITOR)[0], False
    yield (
        "a token of the session",
        f"token:{token_create(operator, '', ALL, DAY, by='system', session=session.pk)[0].token_key}",
        False,
    )
    yield "the planner", "planner", False
    yield "an agent", "agent:5", False
    yield "a viewer", f"user:{person('seer', 'viewer').pk}", False
    yield "one who lost the role", f"user:{person('gone', '').pk}", False
    yield "nobody", "user:999999", False
    yield "a token that nobody knows", "token:orr_unknown", False
    yield "an approver's token without the role", token(person("idle", "viewer"), *ALL)[0], False
    yield "a token of another user", token(other, *ALL)[0], True
    yield "the person", f"user:{operator.pk}", True
    yield "the command line", "system", True
    yield "a token that has no part", starter, True


def test_every_kind_of_author_has_a_gate_kept_or_takes_it_away(operator, session, found):
    for number, (who, author, may) in enumerate(authors(operator, session)):
        gated = f"gated{number}"
        edit_apply(found.pk, [add(gated, "echo", str(number), confirm=True)], author=f"user:{operator.pk}")
        operations = [update(gated, confirm=False)]
        if may:
            assert edit_apply(found.pk, operations, author=author)[1], who
        else:
            with pytest.raises(GateKept, match=f"takes the gate of {gated} away"):
                edit_apply(found.pk, operations, author=author)
        assert Task.objects.get(task_id=gated).confirm is not may, who


def test_a_token_with_approve_does_not_open_the_gate_of_what_a_token_of_its_user_wrote_or_began(operator, session, found):
    (first, _), (second, _) = token(operator, *ALL), token(operator, *ALL)
    edit_apply(found.pk, [add("mine", "echo", "mine", confirm=True)], author=first)
    for author in (first, second):
        with pytest.raises(GateKept):
            edit_apply(found.pk, [update("mine", confirm=False)], author=author)
        assert not Approval.objects.exists()
    begun = plant(session_create(operator, by=first), command("danger", "echo", "DANGER", confirm=True))
    with pytest.raises(GateKept):
        edit_apply(begun.pk, [update("danger", confirm=False)], author=second)


# over time


def test_two_edits_that_each_look_harmless_do_not_come_to_one_that_is_not(operator, found):
    author = token(operator, *EDITOR)[0]
    edit_apply(found.pk, [op("remove_task", task_id="danger")], author=author)
    with pytest.raises(GateKept, match="which a person was asked about here before"):
        edit_apply(found.pk, [add("later", "echo", "DANGER")], author=author)
    edit_apply(found.pk, [op("remove_task", task_id="further"), op("remove_task", task_id="behind")], author=author)
    with pytest.raises(GateKept, match="BEHIND"):
        edit_apply(found.pk, [add("later", "echo", "BEHIND")], author=author)
    gated = step("echo", "STEP", confirm=True)
    edit_apply(found.pk, [update("steps", steps=[step("echo", "other", confirm=True), step("echo", "mild")])], author=author)
    with pytest.raises(GateKept, match="STEP"):
        edit_apply(found.pk, [add("later", steps=[step("echo", "STEP")])], author=author)
    assert edit_apply(found.pk, [add("later", steps=[gated])], author=author)[1]
    assert list(verify_database()) == []


def test_what_was_done_once_with_leave_is_asked_about_again(found, operator):
    advance(found, danger="COMPLETED")
    with pytest.raises(GateKept, match="which a person is asked about in danger"):
        edit_apply(found.pk, [add("again", "echo", "DANGER")], author=token(operator, *EDITOR)[0])


def test_an_undo_by_who_may_not_approve_takes_no_gate_away(operator, found):
    text = token(operator, *EDITOR)[1]
    edit_apply(found.pk, [update("free", confirm=True)], author=f"user:{operator.pk}", edit_id="gate")
    answer = Rest(token=text).post(f"/api/constellations/{found.pk}/edits/gate/undo/")
    assert (answer.status_code, answer.json()["code"]) == (403, "gate_kept")
    assert edit_undo(found.pk, "gate", f"user:{operator.pk}")[1]
    answer = post(text, found, [add("now", "echo", "free")])
    assert answer.status_code == 201  # a person has opened it


def test_what_a_person_lets_be_done_unasked_is_free_for_all(operator, found):
    author = token(operator, *EDITOR)[0]
    edit_apply(found.pk, [update("danger", confirm=False)], author=f"user:{operator.pk}")
    assert edit_apply(found.pk, [add("same", "echo", "DANGER")], author=author)[1]
    edit_apply(found.pk, [op("remove_task", task_id="watched")], author=f"user:{operator.pk}")
    tie = {"from": "leave", "to": "free"}
    edit_apply(found.pk, [add("leave", tool="noop", confirm=True), op("add_dependency", **tie)], author=f"user:{operator.pk}")
    copied = [add("alike", "echo", "free")]
    with pytest.raises(GateKept, match="does only behind the gate of leave"):
        edit_apply(found.pk, copied, author=author)
    edit_apply(found.pk, [op("remove_dependency", **tie)], author=f"user:{operator.pk}")
    assert edit_apply(found.pk, copied, author=author)[1]
    with pytest.raises(GateKept):  # to take a task away is not to let others do it
        edit_apply(found.pk, [add("again", "rm", "x")], author=author)


def test_a_policy_that_is_no_more_asks_about_nothing(operator, found):
    for row in Event.objects.filter(type="policy_created"):
        policy_delete(row.data["add"]["policy"][0]["id"], by="system")
    assert edit_apply(found.pk, [update("there", device="laptop")], author=token(operator, *EDITOR)[0])[1]
