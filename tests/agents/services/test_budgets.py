"""Budgets as rows: what is refused, who may change and raise them, and what asking for more adds."""

from __future__ import annotations

import pytest

from agents.minds.budgets.ledger import Granted, Short
from agents.minds.budgets.more import amount_of, asks, open_budget_approval
from agents.models import Approval, Budget, Event
from agents.services import budgets, sessions
from agents.services.approvals import approval_decide
from agents.services.budgets import (
    BudgetRejected,
    NotYourBudget,
    budget_change,
    budget_create,
    budget_delete,
    session_budget_clear,
    session_budget_set,
)
from agents.streams.door import door
from tests.agents.conftest import make_token
from tests.agents.minds.budgets.test_ledger import ask, demand

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, by=f"user:{operator.pk}").pk


def asked_for_more(session, short: Short) -> int:
    with door(session, "system") as opened:
        return open_budget_approval(opened.turn, session, session, short.facts)["id"]


def test_a_budget_is_a_row_and_events(verified):
    made = budget_create(scope="user", tokens=1_000, by="user:1")
    assert (made.scope, made.subject, made.tokens, made.money, made.per, made.then, made.owned) == (
        "user", None, 1_000, None, "total", "stop", False,
    )  # fmt: skip
    budget_change(made.pk, by="user:1", then="ask", tokens=1_000)
    budget_delete(made.pk, by="user:1")
    events = Event.objects.filter(type__startswith="budget_").order_by("seq")
    assert [event.type for event in events] == ["budget_created", "budget_changed", "budget_deleted"]
    assert events[1].data["set"] == {"budget": {str(made.pk): {"then": "ask"}}}
    assert not Budget.objects.exists()


@pytest.mark.parametrize(("said", "fields"), [
    ({}, {"tokens"}), ({"tokens": -1}, {"tokens"}), ({"tokens": 1.5}, {"tokens"}), ({"tokens": True}, {"tokens"}),
    ({"money": float("nan")}, {"money"}), ({"tokens": 1, "scope": "world"}, {"scope"}), ({"tokens": 1, "per": "week"}, {"per"}),
    ({"tokens": 1, "then": "hope"}, {"then"}), ({"tokens": 1, "subject": 10**9}, {"subject"}),
    ({"tokens": 1, "scope": "task", "subject": 1}, {"subject"}), ({"tokens": 1, "scope": "task", "per": "day"}, {"per"}),
    ({"tokens": 1, "scope": "call", "then": "ask"}, {"then"}), ({"tokens": 1, "colour": "red"}, {"colour"}),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_at_its_field(said, fields):
    with pytest.raises(BudgetRejected) as refused:
        budget_create(**{"scope": "session", "by": "system", **said})
    assert {problem["key"] for problem in refused.value.problems} == fields
    assert not Budget.objects.exists()


def test_an_installation_has_so_many_and_no_more(monkeypatch):
    monkeypatch.setattr(budgets, "BUDGETS", 1)
    budget_create(scope="user", tokens=1, by="system")
    with pytest.raises(budgets.TooManyBudgets):
        budget_create(scope="user", tokens=1, by="system")


def test_an_owner_sets_one_budget_for_a_session_beside_those_of_admins(session, operator, verified):
    budget_create(scope="session", tokens=1_000, by="system")
    session_budget_set(session, tokens=500, by=f"user:{operator.pk}")
    session_budget_set(session, tokens=150, by=f"user:{operator.pk}")
    assert Budget.objects.get(owned=True).tokens == 150
    one, two = ask(*[demand(session, 100)] * 2)
    assert [type(one), type(two)] == [Granted, Short]
    session_budget_set(session, tokens=5_000, by=f"user:{operator.pk}")
    assert isinstance(ask(demand(session, 950))[0], Short), "what the admins say holds besides"
    session_budget_clear(session, by=f"user:{operator.pk}")
    assert not Budget.objects.filter(owned=True).exists()


def test_no_token_sets_what_its_own_session_may_use(session, operator):
    by = f"token:{make_token(operator, 'operate', session_id=session)[0].token_key}"
    with pytest.raises(NotYourBudget):
        session_budget_set(session, tokens=10**9, by=by)
    with pytest.raises(NotYourBudget):
        session_budget_clear(session, by=by)


def test_an_approval_names_the_amount_and_adds_it_once(session, operator, verified):
    budget_create(scope="session", tokens=100, then="ask", by="system")
    (short,) = ask(demand(session, 120))
    assert asks(short.facts)
    approval = asked_for_more(session, short)
    assert Approval.objects.get(pk=approval).title == (
        f"Let session {session} use 50 tokens more than its 100 tokens? "
        "The next call may need 120 tokens, and 100 tokens are left."
    )
    for _ in range(2):
        approval_decide(approval, "approve", by=f"user:{operator.pk}")
    assert isinstance(ask(demand(session, 120))[0], Granted)
    assert isinstance(ask(demand(session, 31))[0], Short), "fifty more, and once"


def test_a_refusal_adds_nothing(session, operator):
    budget_create(scope="session", tokens=100, then="ask", by="system")
    (short,) = ask(demand(session, 120))
    approval_decide(asked_for_more(session, short), "reject", by=f"user:{operator.pk}")
    assert isinstance(ask(demand(session, 120))[0], Short)


def test_who_is_no_admin_raises_no_budget_of_users_or_the_installation(session, operator, admin_user):
    budget_create(scope="user", tokens=100, then="ask", by="system")
    (short,) = ask(demand(session, 120))
    approval = asked_for_more(session, short)
    with pytest.raises(NotYourBudget):
        approval_decide(approval, "approve", by=f"user:{operator.pk}")
    assert Approval.objects.get(pk=approval).state == "waiting"
    without = make_token(admin_user, "approve")[0].token_key
    with pytest.raises(NotYourBudget):
        approval_decide(approval, "approve", by=f"token:{without}")
    approval_decide(approval, "approve", by=f"user:{admin_user.pk}")
    assert isinstance(ask(demand(session, 120))[0], Granted)


def test_what_is_asked_for_covers_the_call_and_a_part_of_the_budget():
    facts = {"bound": 1_000, "left": 0, "needed": 20}
    assert amount_of(facts) == 500
    assert amount_of({**facts, "needed": 900, "left": 100}) == 800


def test_a_hard_stop_is_not_asked_about():
    assert not asks({"then": "stop"})
    assert not asks(None)
