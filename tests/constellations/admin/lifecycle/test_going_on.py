"""Reopen, fork, and the retry of tasks in the admin: pages that ask, what becomes of it by the real engine, refusals."""

import pytest
from django.urls import reverse

from agents.access import permissions
from agents.models import Event, InboxItem, Session
from agents.streams.fold import stream_head
from constellations.admin.lifecycle.commanding import offered_task_actions
from constellations.admin.lifecycle.going_on import ways_of
from constellations.models import Constellation, Task
from tests.conftest import person, rows_of
from tests.constellations.admin.admin_client import Form, Staff, added, address, problems, row_of
from tests.constellations.runs.test_run import command, noop, states

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
NOT_AGAIN = "is COMPLETED; only what has FAILED or was cancelled begins again"
D = {"task_id": "d", "command": "true", "device": "laptop"}


@pytest.fixture
def staff(operator) -> Staff:
    return Staff(operator)


@pytest.fixture
def ended(engine, device, tmp_path) -> Constellation:
    """a FAILED and fails no more, b was skipped because of it, c is COMPLETED."""
    script = f"test -e {tmp_path}/x || {{ touch {tmp_path}/x; exit 3; }}"
    return engine.carry_out({"name": "run", "tasks": [command("a", "sh", "-c", script), noop("b", after=["a"]), noop("c")]})


def page_of(staff: Staff, row: Constellation, way: str, **query):
    return staff.client.get(address(row, way), query)


def asked(staff: Staff, row: Constellation, way: str, **changed) -> dict:
    """What a browser would send from the page, unless something is changed."""
    page = page_of(staff, row, way)
    assert page.status_code == 200
    return {**Form(page.content.decode(), f"{way}_form").values, **changed}


def act(staff: Staff, row: Constellation, way: str, values: dict):
    return staff.client.post(address(row, way), values)


def refused(staff: Staff, row: Constellation, way: str, values: dict) -> dict[str, list[str]]:
    """What the page says of it; nothing has been written."""
    before = (rows_of(row.session_id), Session.objects.count(), InboxItem.objects.count())
    page = act(staff, row, way, values)
    assert page.status_code == 200
    assert (rows_of(row.session_id), Session.objects.count(), InboxItem.objects.count()) == before
    assert "Nothing was done. What you typed is still here." in page.content.decode()
    told = {name: list(told) for name, told in page.context["form"].errors.items()}
    sheet = page.context["sheet"]
    if sheet is None:
        return told
    whole = [message for rows in sheet.all_rows for message in rows.non_form_errors()]
    return told | problems(page) | ({"rows": whole} if whole else {})


def followed(staff: Staff, interaction: InboxItem):
    """Where the link to what came of it leads."""
    return staff.client.get(reverse("admin:constellations_begun", args=(interaction.pk,)))


# Reopening


def test_what_has_ended_is_reopened_from_its_page_by_a_retry_and_an_edit(staff, engine, ended):
    assert f'href="{address(ended, "reopen")}"' in staff.page(ended).content.decode()
    values = added(asked(staff, ended, "reopen", reason="one more"), "tasks", **D)
    assert values["retry"] == "a"
    answer = act(staff, ended, "reopen", values)
    assert answer["Location"] == address(ended)
    item = InboxItem.objects.latest("id")
    (told,) = staff.told(answer)
    assert told.startswith("run: is being reopened. See <a href=")
    assert f'href="{reverse("admin:constellations_begun", args=(item.pk,))}">what comes of it' in told
    waits = followed(staff, item)
    assert waits["Location"] == address(item)
    assert staff.told(waits)[-1] == "It has not begun yet: a runner takes it up."
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, ended.interaction_id, set(states(ended).values())) == ("COMPLETED", item.pk, {"COMPLETED"})
    assert set(states(ended)) == {"a", "b", "c", "d"}
    assert ended.edits.get().author == f"user:{staff.user.pk}"
    assert followed(staff, item)["Location"] == address(ended)


def test_the_same_page_sent_twice_reopens_once(staff, engine, ended):
    values = asked(staff, ended, "reopen")
    staff.told(act(staff, ended, "reopen", values))
    assert staff.told(act(staff, ended, "reopen", values))[0].startswith("run: is being reopened already.")
    assert InboxItem.objects.filter(kind="interaction").count() == 2
    engine.run()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"retry": ""}, {"__all__": ["run: nothing to do: name tasks to retry, or give operations that change something"]}),
        ({"retry": "a\r\nc\r\nx"}, {"retry": [f"c {NOT_AGAIN}; there is no task x"]}),
        ({"reason": "x" * 2001}, {"reason": ["Ensure this value has at most 2000 characters (it has 2001)."]}),
    ],
)  # fmt: skip
def test_a_reopening_that_cannot_be_says_why_and_where(staff, ended, changed, told):
    assert refused(staff, ended, "reopen", asked(staff, ended, "reopen", **changed)) == told


def test_a_change_that_cannot_be_says_why_at_its_field(staff, ended):
    far = added(asked(staff, ended, "reopen"), "tasks", **{**D, "device": "moon"})
    assert refused(staff, ended, "reopen", far) == {"new.device": ["there is no device moon; there are laptop"]}
    values = asked(staff, ended, "reopen", retry="")
    shown = {value for key, value in values.items() if key.endswith("-task_id")}
    assert shown == {"a", "b"}, "what failed, and what was skipped"
    values[f"{row_of(values, 'a')}-name"] = "Another name"
    told = "a has ended (FAILED); retry it in the same request as these operations, or add a task that replaces it"
    assert refused(staff, ended, "reopen", values) == {"a.__all__": [told]}


def test_a_task_that_failed_is_mended_by_its_form(staff, engine, ended):
    values = asked(staff, ended, "reopen")
    values[f"{row_of(values, 'a')}-name"] = "Another name"
    staff.told(act(staff, ended, "reopen", values))
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, ended.tasks.get(task_id="a").name) == ("COMPLETED", "Another name")


def test_what_has_not_ended_is_not_reopened(staff, ended):
    values = asked(staff, ended, "reopen")
    for state, told in (
        ("PAUSED", "run has not ended; edit it as it is"),
        ("CANCELLED", "run was cancelled, and stays so; fork it"),
    ):
        Constellation.objects.filter(pk=ended.pk).update(state=state)
        assert refused(staff, ended, "reopen", values) == {"__all__": [told]}
    Constellation.objects.filter(pk=ended.pk).update(state="PARTIALLY_FAILED")


# Forking


def test_a_fork_goes_on_in_a_session_of_the_operator_and_both_name_each_other(staff, engine, ended):
    values = asked(staff, ended, "fork", retry="a", title="second try")
    answer = act(staff, ended, "fork", values)
    assert answer["Location"] == address(ended)
    assert staff.told(answer)[0].startswith("run: is being forked. See <a href=")
    session = Session.objects.latest("id")
    assert (session.owner, session.title) == (staff.user, "second try")
    engine.run()
    made = Constellation.objects.get(session=session)
    assert (made.state, made.forked_from, set(states(made).values())) == ("COMPLETED", ended, {"COMPLETED"})
    assert followed(staff, made.interaction)["Location"] == address(made)
    text = staff.page(ended).content.decode()
    assert f'forked, lately as <a href="{address(made)}">{made.pk}</a>' in text
    forks = staff.client.get(address(ended, "changelist"), {"forked_from": ended.pk})
    assert f'href="{forks.request["PATH_INFO"]}?forked_from={ended.pk}">Forks</a>' in text
    assert [row.pk for row in forks.context["cl"].result_list] == [made.pk]
    assert f'forked from <a href="{address(ended)}">run ({ended.pk})</a>' in staff.page(made).content.decode()
    ended.refresh_from_db()
    assert ended.state == "PARTIALLY_FAILED"


def test_a_fork_is_made_of_a_moment(staff, engine, ended):
    done = Event.objects.get(data__id=ended.tasks.get(task_id="c").pk, data__to_state="RUNNING").seq
    assert f'value="{done}"' in page_of(staff, ended, "fork", seq=done).content.decode()
    staff.told(act(staff, ended, "fork", asked(staff, ended, "fork", seq=str(done))))
    engine.run()
    made = Constellation.objects.get(forked_from=ended)
    assert (made.forked_at, set(states(made).values())) == (done, {"COMPLETED"})


def test_the_same_page_sent_twice_forks_once(staff, engine, ended):
    values = asked(staff, ended, "fork", retry="a")
    staff.told(act(staff, ended, "fork", values))
    assert staff.told(act(staff, ended, "fork", values))[0].startswith("run: is being forked already.")
    assert Session.objects.count() == 2
    engine.run()


def test_a_fork_that_cannot_be_says_why_and_no_session_is_made(staff, ended):
    last = stream_head(ended.session_id)
    assert f"Empty: as it is now, after {last}." in page_of(staff, ended, "fork").content.decode()
    for changed, told in (
        ({}, {"__all__": [f"run at {last}: all its tasks had ended; name tasks to retry, or give operations"]}),
        ({"seq": str(last + 5)}, {"__all__": [f"the stream ends at {last}; there is no event {last + 5} yet"]}),
        ({"seq": "0"}, {"seq": ["Ensure this value is greater than or equal to 1."]}),
        ({"seq": "9" * 30}, {"seq": ["Ensure this value is less than or equal to 16777216."]}),
        ({"seq": "soon"}, {"seq": ["Enter a whole number."]}),
        ({"retry": "b"}, {"retry": ["b was skipped; it is revived when what decided that begins again"]}),
        ({"title": "x" * 201}, {"title": ["Ensure this value has at most 200 characters (it has 201)."]}),
        ({"title": "a\x00"}, {"title": ["Null characters are not allowed."]}),
    ):
        found = refused(staff, ended, "fork", asked(staff, ended, "fork", **changed))
        assert found == told


def test_what_could_not_begin_leads_to_its_interaction_which_says_why(staff, engine, ended):
    for values in (asked(staff, ended, "reopen"), asked(staff, ended, "reopen")):
        staff.told(act(staff, ended, "reopen", values))
    engine.run()
    second = InboxItem.objects.latest("id")
    assert second.result["summary"] == f"a {NOT_AGAIN}"
    answer = followed(staff, second)
    assert answer["Location"] == address(second)
    assert staff.told(answer)[-1] == "No constellation has come of it."


# Who may, and when


@pytest.mark.parametrize(
    ("state", "names"),
    [("CREATED", []), ("EXECUTING", ["fork"]), ("PAUSED", ["fork"]), ("FAILED", ["reopen", "fork"]), ("CANCELLED", ["fork"])],
)
def test_a_page_offers_what_comes_to_something_in_its_state(state, names):
    assert [way.name for way in ways_of(Constellation(state=state))] == names
    mends = ["mend"] if state in ("EXECUTING", "PAUSED") else []
    assert [way.name for way in ways_of(Constellation(state=state), has_failed=True)] == mends + names


@pytest.mark.parametrize("way", ["reopen", "fork"])
def test_only_operators_go_on_with_what_is_theirs_to_see(engine, ended, staff, roles, way):
    values = asked(staff, ended, way, retry="a")
    before = (Session.objects.count(), InboxItem.objects.count())
    other = Staff(person("other", "operator"))
    assert (page_of(other, ended, way).status_code, act(other, ended, way, values).status_code) == (404, 404)
    vic = person("vic", "viewer")
    Session.objects.filter(pk=ended.session_id).update(owner=vic)
    viewer = Staff(vic)
    assert address(ended, way) not in viewer.page(ended).content.decode()
    assert (page_of(viewer, ended, way).status_code, act(viewer, ended, way, values).status_code) == (403, 403)
    assert followed(other, ended.interaction).status_code == 404
    assert followed(viewer, ended.interaction)["Location"] == address(ended)
    assert act(Staff(person("plain", "operator"), staff=False), ended, way, values).status_code == 302
    assert (Session.objects.count(), InboxItem.objects.count()) == before
    Session.objects.filter(pk=ended.session_id).update(owner=staff.user)


def test_changes_need_what_an_edit_needs(staff, ended, monkeypatch):
    values = added(asked(staff, ended, "reopen"), "tasks", **D)
    monkeypatch.setitem(permissions.NEEDS, "edit", permissions.Need("edit", frozenset({"admin"})))
    assert refused(staff, ended, "reopen", values) == {"__all__": ["Changes are an edit, which you may not make."]}
    assert "Add a task" not in page_of(staff, ended, "reopen").content.decode()


def test_a_forged_page_is_refused_and_not_an_error_of_ours(staff, ended):
    for forged in (
        {"once": "x" * 5000},
        {"once": "\x00"},
        {"retry": "a\x00"},
        {"retry": "\ud7ff" * 300},
        {"version": "x"},
        {"version": "1", "tasks-TOTAL_FORMS": "x"},
        {"version": "1", "tasks-TOTAL_FORMS": "1", "tasks-INITIAL_FORMS": "1", "tasks-0-task_id": "nothing"},
    ):
        sent = {"retry": "nowhere", **forged}
        assert refused(staff, ended, "reopen", sent)
        assert refused(staff, ended, "fork", sent)


# Tasks


def retry(staff: Staff, *tasks: Task, **more):
    sent = {"action": "retry_tasks", "_selected_action": [task.pk for task in tasks], **more}
    return staff.client.post(address(tasks[0], "changelist"), sent)


def test_a_failed_task_is_retried_from_its_page_with_what_is_downstream(staff, engine, ended):
    row = ended.tasks.get(task_id="a")
    text = staff.page(row).content.decode()
    assert '<button name="action" value="retry_tasks"' in text
    values = {"action": "retry_tasks", "_selected_action": row.pk, "back": "page", "once": "o1"}
    answer = staff.client.post(address(row, "changelist"), values)
    assert answer["Location"] == address(row)
    assert staff.told(answer) == ["run: tried again: a; it is reopened for that."]
    assert staff.told(staff.client.post(address(row, "changelist"), values)) == ["run: has been asked for that already."]
    engine.run()
    ended.refresh_from_db()
    assert (ended.state, set(states(ended).values())) == ("COMPLETED", {"COMPLETED"})
    assert "retry_tasks" not in staff.page(row).content.decode().split("<form", 2)[-1].split("</form>")[0]


def test_many_tasks_are_retried_those_of_each_constellation_together_or_not(staff, engine, device, ended):
    other = engine.carry_out({"name": "other", "tasks": [command("a", "false"), command("b", "false")]})
    before = rows_of(ended.session_id)
    chosen = [ended.tasks.get(task_id="a"), ended.tasks.get(task_id="c"), *other.tasks.order_by("id")]
    told = staff.told(retry(staff, *chosen))
    assert told == [
        f"run: c {NOT_AGAIN}",
        "other: tried again: a, b; it is reopened for that.",
    ]
    assert rows_of(ended.session_id) == before
    engine.run()
    assert set(other.tasks.values_list("attempt", flat=True)) == {2}


@pytest.mark.parametrize(
    ("state", "reason", "constellation", "offered"),
    [
        ("FAILED", "", "EXECUTING", ["retry_tasks"]),
        ("FAILED", "", "PARTIALLY_FAILED", ["retry_tasks"]),
        ("CANCELLED", "by user:1", "EXECUTING", ["retry_tasks"]),
        ("CANCELLED", "skipped: a>b is not met", "EXECUTING", []),
        ("COMPLETED", "", "EXECUTING", []),
        ("RUNNING", "", "EXECUTING", ["cancel_tasks"]),
        ("PENDING", "", "PAUSED", ["skip_tasks"]),
        ("WAITING_DEPENDENCY", "", "EXECUTING", ["skip_tasks"]),
        ("FAILED", "", "CANCELLED", []),
    ],
)
def test_the_page_of_a_task_offers_what_comes_to_something(state, reason, constellation, offered):
    row = Task(state=state, reason=reason, constellation=Constellation(state=constellation))
    assert [action.__name__ for action in offered_task_actions(row)] == offered


def test_who_may_only_look_retries_no_task(engine, ended, roles):
    row = ended.tasks.get(task_id="a")
    before = InboxItem.objects.count()
    retry(Staff(person("other", "operator")), row)
    vic = person("vic", "viewer")
    Session.objects.filter(pk=ended.session_id).update(owner=vic)
    viewer = Staff(vic)
    assert viewer.page(row).context["commands"] == []
    retry(viewer, row)
    assert InboxItem.objects.count() == before
    Session.objects.filter(pk=ended.session_id).update(owner=engine.owner)
