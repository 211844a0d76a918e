"""Edits as any process makes them: all or nothing, once, rebased or refused, previewed, taken back."""

import pytest
from hypothesis import HealthCheck, given, settings

from agents.models import Event, Lease
from agents.services import sessions
from agents.services.devices import device_create
from agents.services.policies import policy_create
from agents.streams.fold import stream_head
from agents.streams.verify import verify_database, verify_stream
from constellations.errors import EditRefused, EditRejected, NoSuchConstellation, NoSuchEdit, StaleEdit, UndoRefused
from constellations.models import Constellation, Edit, Task
from constellations.services import edits
from constellations.services.edits import edit_apply
from constellations.services.preview import edit_preview
from constellations.services.undo import edit_undo
from tests.conftest import connected, rows_of
from tests.constellations.editor.test_editor import EDITS, add, link, short
from tests.constellations.planting import advance, graph_of, noop, plant, states

pytestmark = pytest.mark.django_db
OPERATOR = "user:1"


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def laptop():
    return connected(device_create("laptop", by="system"))


@pytest.fixture
def digits(session, laptop) -> Constellation:
    """fetch > train > evaluate > deploy, of which nothing has started."""
    names = ["fetch", "train", "evaluate", "deploy"]
    return plant(session, *(noop(name, after=names[max(number - 1, 0) : number]) for number, name in enumerate(names)))


def apply(constellation, *operations, **more):
    return edit_apply(constellation.pk, [short(each) for each in operations], author=more.pop("author", OPERATOR), **more)


def refusal(constellation, *operations, error=EditRefused, **more):
    with pytest.raises(error) as refused:
        apply(constellation, *operations, **more)
    return refused.value


def update(task_id, **fields):
    return "update_task", {"task_id": task_id, **fields}


def remove(task_id):
    return "remove_task", {"task_id": task_id}


def unlink(ends):
    upstream, downstream = ends.split(">")
    return "remove_dependency", {"from": upstream, "to": downstream}


# Applying


def test_an_edit_is_a_row_a_version_and_one_event(digits):
    made, changed = apply(digits, add("extra", after=["fetch"]), reason="more of it", edit_id="e1", request_id="r1")
    digits.refresh_from_db()
    assert (changed, digits.version, made.version, made.based_on) == (True, 2, 2, 1)
    assert (made.author, made.reason, made.edit_id, made.rebased_from) == (OPERATOR, "more of it", "e1", None)
    told = Event.objects.get(type="edited", data__has_key="author")
    assert (told.by, told.request_id, told.data["diff"]) == (OPERATOR, "r1", made.diff)
    assert states(digits)["extra"] == "WAITING_DEPENDENCY"
    assert list(verify_database()) == []


def test_what_follows_from_an_edit_is_in_its_commit(digits):
    advance(digits, fetch="COMPLETED", train="SKIPPED", evaluate="SKIPPED", deploy="SKIPPED")
    apply(digits, unlink("fetch>train"), ("add_dependency", {"from": "fetch", "to": "train", "type": "UNCONDITIONAL"}))
    assert states(digits) == {
        "fetch": "COMPLETED", "train": "PENDING", "evaluate": "WAITING_DEPENDENCY", "deploy": "WAITING_DEPENDENCY",
    }  # fmt: skip
    apply(digits, add("gate"), link("gate>train"))
    assert states(digits)["train"] == "WAITING_DEPENDENCY"
    assert list(verify_database()) == []


def test_somebody_is_asked_to_look_at_the_session(digits):
    Lease.objects.filter(pk=digits.session_id).update(wake_at=None)
    apply(digits, add("extra"))
    assert Lease.objects.get(pk=digits.session_id).wake_at is not None


def test_the_same_edit_id_is_one_edit(digits):
    first, _ = apply(digits, add("extra"), edit_id="e1")
    again, changed = apply(digits, add("extra"), edit_id="e1")
    assert (again.pk, changed, Edit.objects.count()) == (first.pk, False, 1)


def test_the_same_edit_id_is_one_edit_also_when_all_has_ended(digits):
    first, _ = apply(digits, add("extra"), edit_id="e1")
    Constellation.objects.update(state="COMPLETED")
    again, changed = apply(digits, add("extra"), edit_id="e1")
    assert (again.pk, changed) == (first.pk, False)


def test_an_edit_that_changes_nothing_leaves_no_row(digits):
    apply(digits, add("extra"))
    apply(digits, remove("extra"))
    before = stream_head(digits.session_id)
    assert apply(digits, remove("extra"), update("train", max_attempts=1)) == (None, False)
    assert (Edit.objects.count(), stream_head(digits.session_id)) == (2, before)


def test_removing_what_was_there_once_changes_nothing_and_what_never_was_is_refused(digits):
    last = digits.tasks.order_by("id").last().task_id
    line = digits.dependencies.get(downstream__task_id=last)
    up = line.upstream.task_id
    untie = [{"remove_dependency": {"dependency_id": line.dependency_id}}, {"remove_dependency": {"from": up, "to": last}}]
    apply(digits, remove(last))
    for operations in ([remove(last)], [untie[0]], [untie[1]]):
        assert apply(digits, *operations) == (None, False)
    assert str(refusal(digits, remove("trian"))).endswith("there is no task trian; did you mean train?")
    never = {"remove_dependency": {"from": last, "to": up}}
    assert f"there is no dependency {last}>{up}" in str(refusal(digits, never))
    assert list(verify_database()) == []


def test_one_operation_that_is_refused_refuses_all(digits):
    before = rows_of(digits.session_id)
    error = refusal(digits, add("extra"), update("trian", timeout=1))
    assert str(error) == "operation 2 (update_task), task_id: there is no task trian; did you mean train?"
    assert (error.problems[0]["operation"], error.problems[0]["field"]) == (2, "task_id")
    assert rows_of(digits.session_id) == before


def test_what_runs_or_has_ended_is_read_only(digits):
    advance(digits, fetch="COMPLETED", train="RUNNING")
    error = refusal(digits, update("train", timeout=1), remove("fetch"))
    assert (error.status, str(error)) == (
        409,
        "operation 1 (update_task), task_id: train already runs; "
        "operation 2 (remove_task), task_id: fetch has ended (COMPLETED)",
    )


def test_what_has_been_tried_stays(digits):
    Task.objects.filter(task_id="fetch").update(attempt=2)
    with pytest.raises(EditRefused, match="fetch cannot go: it has been tried 2 times, and that stays on record"):
        apply(digits, remove("fetch"))


def test_a_constellation_that_has_ended_says_what_to_do(digits):
    Constellation.objects.update(state="PARTIALLY_FAILED")
    with pytest.raises(EditRefused) as refused:
        apply(digits, add("extra"))
    assert str(refused.value) == "digits has ended (PARTIALLY_FAILED); work is added to it by reopening it"
    assert refused.value.status == 409


def test_a_cancelled_constellation_does_not_change(digits):
    Constellation.objects.update(state="CANCELLED")
    with pytest.raises(EditRefused, match="the constellation was cancelled; nothing in it changes any more"):
        apply(digits, add("extra"))


@pytest.mark.parametrize("constellation", [5, 2**62, 2**40 + 7])
def test_a_constellation_that_is_not_there_says_so(constellation, digits):
    with pytest.raises(NoSuchConstellation, match=f"there is no constellation {constellation}"):
        edit_apply(constellation, [short(add("extra"))], author=OPERATOR)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"edit_id": "so bad"}, "edit_id: up to 64 letters, digits and . _ : -"),
        ({"edit_id": "rule:x:1"}, "edit_id: those that begin with rule: are made by replan rules; choose another"),
        ({"edit_id": "model:7:1"}, "edit_id: those that begin with model: are made by a model; choose another"),
        ({"reason": "x" * 2001}, "reason: at most 2,000 characters, not 2,001"),
        ({"author": ""}, "author: 1 to 80 characters"),
        ({"based_on": 7}, "based_on: there is no version 7 yet; version 1 is the newest"),
    ],
)
def test_what_an_edit_says_of_itself_is_checked(digits, more, message):
    assert str(refusal(digits, add("extra"), error=EditRejected, **more)) == message


def test_devices_are_those_of_this_moment(digits):
    error = refusal(digits, add("extra", device="pi"))
    assert str(error) == "operation 1 (add_task), device: there is no device pi; there are laptop"
    device_create("pi", by="system")
    assert apply(digits, add("extra", device="pi"))[1]


# Edits made on an older version


def test_an_edit_of_other_tasks_is_rebased_and_says_so(digits):
    apply(digits, add("extra", after=["train"]))
    made, changed = apply(digits, update("deploy", timeout=5), link("fetch>deploy"), based_on=1)
    assert (changed, made.based_on, made.version, made.rebased_from) == (True, 1, 3, 1)
    assert "extra" in states(digits)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ([update("train", timeout=5)], [update("train", timeout=6)]),
        ([update("train", timeout=5)], [remove("train")]),
        ([remove("train")], [update("train", timeout=5)]),
        ([remove("train")], [link("train>deploy")]),
        ([unlink("train>evaluate")], [("update_dependency", {"dependency_id": "train>evaluate", "type": "UNCONDITIONAL"})]),
        ([link("fetch>deploy")], [link("fetch>deploy", type="UNCONDITIONAL")]),
        ([link("fetch>deploy")], [remove("deploy")]),
        ([add("extra")], [link("extra>deploy")]),
        ([add("extra")], [("build_constellation", {"tasks": [noop("other")]})]),
        ([add("extra", timeout=3)], [add("extra", timeout=4)]),
    ],
)
def test_an_edit_that_does_not_commute_is_stale(digits, theirs, ours):
    apply(digits, *theirs, author="user:2", reason="mine", edit_id="first")
    error = refusal(digits, *ours, error=StaleEdit, based_on=1)
    assert (error.status, error.members["version"]) == (409, 2)
    assert [each["version"] for each in error.members["between"]] == [2]
    problem = error.problems[0]
    assert (problem["key"], problem["edit_id"], problem["author"], problem["reason"]) == (
        "version 2",
        "first",
        "user:2",
        "mine",
    )
    assert str(error).startswith("the edit was made on version 1, and version 2 is the newest: user:2 changed ")


def test_a_stale_edit_of_what_is_so_already_succeeds(digits):
    apply(digits, update("train", timeout=5))
    assert apply(digits, update("train", timeout=5), based_on=1) == (None, False)


def test_an_edit_that_others_have_made_impossible_is_stale(digits):
    """The two commute by their rows, and together make a cycle."""
    apply(digits, unlink("evaluate>deploy"), link("deploy>train"))
    error = refusal(digits, link("evaluate>fetch"), unlink("train>evaluate"), error=StaleEdit, based_on=1)
    assert (error.status, error.members["version"]) == (409, 2)
    assert [each["version"] for each in error.members["between"]] == [2]
    cycle = "the tasks would wait for each other: evaluate > fetch > train > evaluate"
    assert str(error) == f"the edit was made on version 1, and version 2 is the newest: {cycle}"
    assert [(each["operation"], each["op"], each["message"]) for each in error.problems] == [(1, "add_dependency", cycle)]


@pytest.mark.parametrize("based_on", [1, 2, None])
def test_what_is_no_operation_is_refused_as_that_on_any_version(digits, based_on):
    apply(digits, add("x"))
    error = refusal(digits, update("train", timeout=-1), link("fetch>deploy"), based_on=based_on)
    assert (error.status, error.problems[0]["field"]) == (400, "timeout")


def test_what_the_newest_version_refuses_is_no_matter_of_being_stale(digits):
    apply(digits, add("x"))
    error = refusal(digits, link("deploy>fetch"), based_on=2)
    assert (error.status, error.problems[0]["op"]) == (400, "add_dependency")


def test_a_preview_is_stale_where_the_edit_would_be(digits):
    apply(digits, update("train", timeout=4))
    operations = [short(update("train", timeout=5))]
    with pytest.raises(StaleEdit, match="version 2 is the newest: user:1 changed train"):
        edit_preview(digits.pk, operations, 1)
    assert edit_preview(digits.pk, operations, 2)["diff"] == edit_preview(digits.pk, operations)["diff"]
    assert edit_preview(digits.pk, [short(update("deploy", timeout=5))], 1)["newest"] == 2
    with pytest.raises(EditRejected, match="there is no version 9 yet"):
        edit_preview(digits.pk, operations, 9)


def test_an_undo_is_rebased_or_stale_as_any_edit(digits):
    """Its author saw version 2; since then somebody else tied to the task what the undo would not touch, or would."""
    apply(digits, update("train", timeout=4), edit_id="e1")
    apply(digits, update("train", name="Training"))
    with pytest.raises(StaleEdit, match="version 3 is the newest: user:1 changed train"):
        edit_undo(digits.pk, "e1", OPERATOR, based_on=2)
    with pytest.raises(EditRejected, match="there is no version 9 yet"):
        edit_undo(digits.pk, "e1", OPERATOR, based_on=9)
    apply(digits, add("x"))
    made, changed = edit_undo(digits.pk, "e1", OPERATOR, based_on=3)
    assert (made.based_on, made.version, changed) == (3, 5, True)


def test_an_edit_that_missed_too_much_is_stale(digits, monkeypatch):
    monkeypatch.setattr(edits, "REBASED_OVER", 1)
    for name in ("x", "y"):
        apply(digits, add(name))
    error = refusal(digits, add("z"), error=StaleEdit, based_on=1)
    assert str(error).endswith("there were more than 1 edits since; read the newest version")


def test_a_merging_build_commutes_with_others(digits):
    apply(digits, add("extra"))
    assert apply(digits, ("build_constellation", {"tasks": [noop("other")], "clear": False}), based_on=1)[1]
    assert {"extra", "other"} <= states(digits).keys()


# Preview


def test_a_preview_tells_what_would_follow_and_writes_nothing(digits):
    advance(digits, fetch="COMPLETED", train="SKIPPED", evaluate="SKIPPED", deploy="SKIPPED")
    before = rows_of(digits.session_id), stream_head(digits.session_id)
    operations = [
        unlink("evaluate>deploy"), add("check", confirm=True), link("check>evaluate"),
        add("after_all", after=["deploy"]),
    ]  # fmt: skip
    found = edit_preview(digits.pk, [short(each) for each in operations])
    assert (rows_of(digits.session_id), stream_head(digits.session_id)) == before
    assert found["version"] == 1
    assert [line["change"] for line in found["diff"]] == ["added", "added", "removed", "added", "added"]
    assert found["consequences"] == {
        "ready": ["deploy", "check"], "blocked": [], "skipped": [], "revived": ["deploy"],
        "critical_path_before": ["fetch", "train", "evaluate", "deploy"],
        "critical_path_after": ["fetch", "train", "evaluate"],
        "approvals_needed": ["check"],
    }  # fmt: skip


def test_a_preview_tells_what_would_be_blocked_or_skipped(digits):
    found = edit_preview(digits.pk, [short(add("gate")), short(link("gate>fetch"))])["consequences"]
    assert (found["ready"], found["blocked"]) == (["gate"], ["fetch"])
    advance(digits, fetch="SKIPPED")
    found = edit_preview(digits.pk, [short(add("late", after=["fetch"]))])["consequences"]
    (skipped,) = [row for row in found["skipped"] if row["task_id"] == "late"]
    assert skipped["reason"] == "skipped: fetch>late needs fetch completed, and it is CANCELLED"


def test_a_preview_knows_the_policies(digits):
    policy_create(by="system", tool="command", pattern="^rm ", decision="ask")
    operations = [
        add("wipe", command="rm -r x"),
        add("look", command="ls"),
        add("by_hand", policies=[{"tool": "noop", "decision": "ask"}]),
    ]
    found = edit_preview(digits.pk, [short(each) for each in operations])
    assert found["consequences"]["approvals_needed"] == ["wipe", "by_hand"]


def test_a_preview_refuses_what_applying_refuses(digits):
    said = str(refusal(digits, update("trian", timeout=1)))
    with pytest.raises(EditRefused) as refused:
        edit_preview(digits.pk, [short(update("trian", timeout=1))])
    assert str(refused.value) == said


# Undo and redo


def undo(constellation, edit_id, **more):
    return edit_undo(constellation.pk, edit_id, OPERATOR, **more)


def test_an_undo_is_an_edit_of_its_own_that_names_the_other(digits):
    before = graph_of(digits)
    first, _ = apply(digits, add("extra", after=["train"]), update("deploy", timeout=3), remove("evaluate"), reason="less")
    made, changed = undo(digits, first.edit_id)
    assert (changed, made.undoes, made.version, made.reason) == (True, first, 3, f"undo of {first.edit_id}: less")
    assert graph_of(digits) == before
    assert list(verify_database()) == []


def test_redo_is_the_undo_of_an_undo(digits):
    apply(digits, add("extra"), edit_id="e1")
    after = graph_of(digits)
    undone, _ = undo(digits, "e1", undo_id="u1")
    redone, _ = undo(digits, "u1")
    assert graph_of(digits) == after
    assert (redone.undoes, redone.reason) == (undone, "redo of u1: undo of e1")


def test_an_undo_of_what_is_back_already_changes_nothing(digits):
    apply(digits, add("extra"), edit_id="e1")
    made, _ = undo(digits, "e1")
    again, changed = undo(digits, "e1")
    assert (again, changed, Edit.objects.count()) == (made, False, 2)


def test_an_undo_leaves_alone_what_others_changed_elsewhere(digits):
    apply(digits, update("train", timeout=5), edit_id="e1")
    apply(digits, update("train", description="long"), add("extra"))
    undo(digits, "e1")
    task = Task.objects.get(task_id="train")
    assert (task.timeout, task.description) == (None, "long")
    assert "extra" in states(digits)


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ([add("extra")], [update("extra", timeout=1)], "the task extra was changed again since"),
        ([update("train", timeout=1)], [update("train", timeout=2)], "the task train was changed again since"),
        ([update("train", timeout=1)], [remove("train")], "the task train was removed since"),
        ([add("extra")], [link("extra>deploy")], "the dependency extra>deploy was tied to extra since"),
        ([remove("deploy")], [add("deploy", timeout=2)], "the task deploy was changed again since"),
        (
            [unlink("fetch>train")],
            [remove("fetch")],
            "there is no task fetch; there are deploy, evaluate, train",
        ),
    ],
)
def test_an_undo_takes_nothing_from_others(digits, first, then, message):
    apply(digits, *first, edit_id="e1")
    apply(digits, *then)
    with pytest.raises(UndoRefused) as refused:
        undo(digits, "e1")
    assert refused.value.status == 409
    assert str(refused.value) == f"cannot undo: {message}"


def test_an_undo_of_what_has_begun_says_so(digits):
    apply(digits, add("task_005"), edit_id="e1")
    advance(digits, task_005="RUNNING")
    with pytest.raises(UndoRefused, match=r"^cannot undo: task_005 already runs$"):
        undo(digits, "e1")


@pytest.mark.parametrize(
    "operation",
    [
        update("train", command="python train.py", device="laptop", tips=["slow"]),
        update("train", steps=[{"command": "make test", "confirm": True}], name="Training"),
        ("update_dependency", {"dependency_id": "fetch>train", "condition": "n > 1", "description": "enough"}),
        ("update_dependency", {"dependency_id": "fetch>train", "type": "UNCONDITIONAL"}),
        ("build_constellation", {"tasks": [noop("deploy", timeout=4), noop("new", after=["deploy"])]}),
    ],
)
def test_every_kind_of_edit_is_taken_back_and_made_again(digits, operation, admin_user):
    before, author = graph_of(digits), f"user:{admin_user.pk}"  # who may also take away the gate that one of them makes
    apply(digits, operation, edit_id="e1", author=author)
    after = graph_of(digits)
    edit_undo(digits.pk, "e1", author, undo_id="u1")
    assert graph_of(digits) == before != after
    edit_undo(digits.pk, "u1", author)
    assert graph_of(digits) == after
    assert list(verify_database()) == []


def test_an_edit_is_named_by_its_id_or_its_rows_id(digits):
    made, _ = apply(digits, add("extra"))
    assert undo(digits, str(made.pk))[1]
    with pytest.raises(NoSuchEdit, match=f"constellation {digits.pk} has no edit nobody"):
        undo(digits, "nobody")


# Any sequence of edits


def fresh(operator) -> Constellation:
    """Of a session of its own: t0 > t1 > t2 and t3 > t4 > t5; one has ended, one runs."""
    session = sessions.session_create(operator, "any", by="system")
    tasks = [noop(f"t{number}", after=[f"t{number - 1}"] if number % 3 else []) for number in range(6)]
    found = plant(session, *tasks)
    advance(found, t0="COMPLETED", t1="PENDING", t3="RUNNING")
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS)
def test_a_preview_agrees_with_what_applying_does(operator, laptop, wanted):
    constellation = fresh(operator)
    session = constellation.session
    for operations in ([short(each) for each in written] for written in wanted):
        before, graph = stream_head(session.pk), states(constellation)
        told, problems = outcome(edit_preview, constellation.pk, operations)
        if told is None:
            assert outcome(edit_apply, constellation.pk, operations, author=OPERATOR) == (None, problems)
            continue
        assert (stream_head(session.pk), states(constellation)) == (before, graph)
        made, changed = edit_apply(constellation.pk, operations, author=OPERATOR, based_on=told["version"])
        assert changed == bool(told["diff"])
        if made is not None:
            assert (made.before, made.after, made.diff) == (told["before"], told["after"], told["diff"])
        agrees(told["consequences"], graph, dict(constellation.tasks.values_list("task_id", "state")))


def outcome(function, *arguments, **more):
    """(what it returns, the problems it refuses with)"""
    try:
        return function(*arguments, **more), []
    except EditRefused as refused:
        return None, refused.problems


def agrees(told: dict, before: dict, after: dict) -> None:
    """The consequences are what the rows show."""
    ready = {key for key, state in after.items() if state == "PENDING" != before.get(key)}
    blocked = {key for key, state in after.items() if (before.get(key), state) == ("PENDING", "WAITING_DEPENDENCY")}
    gone = {key for key, state in after.items() if state == "CANCELLED" != before.get(key)}
    back = {key for key, state in after.items() if before.get(key) == "CANCELLED" != state}
    assert (set(told["ready"]), set(told["blocked"])) == (ready, blocked)
    assert ({row["task_id"] for row in told["skipped"]}, set(told["revived"])) == (gone, back)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS)
def test_undoing_all_edits_gives_the_graph_there_was(operator, laptop, wanted):
    constellation = fresh(operator)
    before, made = graph_of(constellation), []
    for operations in wanted:
        try:
            row, changed = apply(constellation, *operations)
        except EditRefused:
            continue
        made += [row] * changed
    for row in reversed(made):
        assert undo(constellation, row.edit_id)[1]
    assert graph_of(constellation) == before
    assert list(verify_stream(constellation.session_id)) == []
