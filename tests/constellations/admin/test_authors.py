"""Names of authors where edits, approvals and records are read: the admin's lists and pages, and the history over REST."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Approval, Event, InboxItem, Session, Transition
from agents.services import approvals, sessions
from constellations.models import Constellation, Edit
from constellations.services.edits import edit_apply
from tests.agents.conftest import Rest, add_approvals, make_token
from tests.constellations.admin.admin_client import Staff, address, problems, row_of
from tests.constellations.planting import noop, plant

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(operator) -> Session:
    return sessions.session_create(operator, "mine", by=f"user:{operator.pk}")


@pytest.fixture
def staff(operator) -> Staff:
    return Staff(operator)


@pytest.fixture
def token(operator):
    return make_token(operator, "read", "edit", name="claude")


@pytest.fixture
def made(session) -> Constellation:
    return plant(session, noop("a"), noop("b", after=["a"]))


def rename(made: Constellation, name: str, author: str, **more) -> Edit:
    edit, _ = edit_apply(made.pk, [{"update_task": {"task_id": "b", "name": name}}], author=author, **more)
    assert edit is not None
    return edit


def listed(staff: Staff, model, **query) -> str:
    meta = model._meta
    page = staff.client.get(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), query)
    assert page.status_code == 200
    return page.content.decode()


def test_edits_name_who_made_them_in_the_list_and_on_their_page(staff, made, token):
    by = f"token:{token[0].token_key}"
    rename(made, "first", f"user:{staff.user.pk}")
    rename(made, "second", by)
    rename(made, "third", "planner")
    text = listed(staff, Edit)
    for author, name in ((f"user:{staff.user.pk}", "operator"), (by, "token claude of operator")):
        assert f'<td class="field-author"><span title="{author}">{name}</span></td>' in text
    assert '<td class="field-author">planner</td>' in text
    text = staff.page(Edit.objects.get(version=3)).content.decode()
    assert f'by <span title="{by}">token claude of operator</span> at' in text
    assert "by token:" not in text


def test_events_transitions_the_inbox_and_approvals_name_who_it_was(staff, made):
    author = f"user:{staff.user.pk}"
    sessions.request_submit(made.session_id, "interaction", "", {"plan": "tasks: [{task_id: x, tool: noop}]"}, by=author)
    approval = add_approvals(made.session)[0]
    approvals.approval_decide(approval, "approve", by=author)
    for model in (Event, InboxItem, Approval):
        assert f'<span title="{author}">operator</span>' in listed(staff, model, session=made.session_id)
    assert f'<span title="{author}">operator</span>' in staff.page(Approval.objects.get()).content.decode()
    assert '<td class="field-by">system</td>' in listed(staff, Transition, session=made.session_id)


def test_a_page_of_many_authors_costs_one_query_more_than_one_without(staff, made, operator, django_assert_num_queries):
    rename(made, "one", "planner")
    with CaptureQueriesContext(connection) as without:
        listed(staff, Edit)
    for number in range(20):
        key = make_token(operator, "edit", name=f"t{number}")[0].token_key
        rename(made, f"n{number}", f"token:{key}")
    with django_assert_num_queries(len(without) + 1):
        text = listed(staff, Edit)
    assert "token t0 of operator" in text
    assert "token t19 of operator" in text


def test_an_edit_that_came_first_is_told_with_its_authors_name(staff, made, token):
    values = staff.form(made)
    rename(made, "theirs", f"token:{token[0].token_key}")
    page = staff.save(made, {**values, f"{row_of(values, 'b')}-name": "mine"})
    assert problems(page) == {"__all__": ["token claude of operator changed b (version 2)"]}


def test_the_history_over_rest_has_names_beside_authors(made, operator, token, django_assert_max_num_queries):
    rest, by = Rest(token=token[1]), f"token:{token[0].token_key}"
    path = f"/api/constellations/{made.pk}/edits/"
    answer = rest.post(path, {"operations": [{"update_task": {"task_id": "b", "name": "x"}}]}).json()["edit"]
    assert (answer["author"], answer["author_name"]) == (by, "token claude of operator")
    rename(made, "y", f"user:{operator.pk}")
    rename(made, "z", "planner")
    with django_assert_max_num_queries(7):
        rows = rest.get(path).json()["results"]
    assert [(row["author"], row["author_name"]) for row in rows] == [
        ("planner", "planner"), (f"user:{operator.pk}", "operator"), (by, "token claude of operator"),
    ]  # fmt: skip
    assert rest.get(f"{path}{answer['edit_id']}/").json()["author_name"] == "token claude of operator"
    token[0].delete()
    assert Rest(operator).get(path).json()["results"][-1]["author_name"] == by


def test_the_search_of_a_page_still_finds_by_what_is_recorded(staff, made):
    edit = rename(made, "x", f"user:{staff.user.pk}")
    assert address(edit) in listed(staff, Edit, q=f"user:{staff.user.pk}")
    assert address(edit) not in listed(staff, Edit, q="planner")
