"""Who an author is: names for people and programs, by few queries, and what records say where there is no name."""

import pytest

from agents.models import Device
from agents.reads.authors import names_of
from agents.services.devices import device_create
from tests.agents.conftest import Rest, add_agents, add_approvals, make_token
from tests.conftest import person

pytestmark = pytest.mark.django_db


def test_users_tokens_and_agents_have_names(operator, viewer, session):
    named, nameless = (make_token(operator, "read", name=name)[0].token_key for name in ("claude", ""))
    device_create("laptop", by="system")
    of_task = add_agents(session, name="a on laptop", device_id=Device.objects.get().pk)[0]
    of_all = add_agents(session, name="constellation agent", machine="constellation_agent")[0]
    expected = {
        "system": "system",
        "planner": "planner",
        "": "",
        f"user:{viewer.pk}": "viewer",
        f"token:{named}": "token claude of operator",
        f"token:{nameless}": "token of operator",
        f"agent:{of_task}": "a on laptop",
        f"agent:{of_all}": "constellation agent of mine",
    }
    assert names_of(expected) == expected


@pytest.mark.parametrize(
    "author", ["user:999999", "user:", "user:x", "user:٣", f"user:{'9' * 40}", "token:gone", "agent:1", "somebody", "a:b:c"]
)
def test_who_is_not_there_keeps_what_records_say(author):
    assert names_of([author]) == {author: author}


def test_any_number_of_authors_costs_two_queries_at_most(roles, session, django_assert_num_queries):
    people = [person(f"p{number}", "operator") for number in range(5)]
    authors = [f"user:{each.pk}" for each in people]
    authors += [f"token:{make_token(each, 'read', name='t')[0].token_key}" for each in people]
    authors += [f"agent:{key}" for key in add_agents(session, 5)]
    with django_assert_num_queries(2):
        assert len(names_of(authors)) == 15
    with django_assert_num_queries(1):
        names_of(authors[:10])
    with django_assert_num_queries(0):
        names_of(["system", "planner", ""])


def test_an_approval_says_over_rest_who_decided_it(rest, operator, session, django_assert_max_num_queries):
    token, text = make_token(operator, "read", "approve", name="claude")
    first, second, third = add_approvals(session, 3)
    rest.post(f"/api/approvals/{first}/decision/", {"decision": "approve"})
    made = Rest(token=text).post(f"/api/approvals/{second}/decision/", {"decision": "reject"}).json()
    assert (made["decided_by"], made["decided_by_name"]) == (f"token:{token.token_key}", "token claude of operator")
    with django_assert_max_num_queries(5):  # login session, user, groups, rows, names
        rows = rest.get("/api/approvals/").json()["results"]
    assert {row["id"]: row["decided_by_name"] for row in rows} == {
        first: "operator", second: "token claude of operator", third: "",
    }  # fmt: skip
