"""Tokens that outlive, outdo or act for those they were made with: every way, by the doors that people and programs use."""

from __future__ import annotations

import threading
from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections
from django.utils import timezone

from agents.access import lineage
from agents.access.lineage import TokenEnded
from agents.access.logins import Login
from agents.models import Approval, Event, Token
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.services.sessions import session_create
from agents.services.tokens import ScopeMissing, TokenRejected, token_create, token_revoke
from constellations.models import Constellation
from constellations.services.proposals import edit_propose
from tests.agents.conftest import Rest, add_approvals
from tests.conftest import person
from tests.constellations.planting import noop, plant, states
from tests.constellations.runs.test_run import query

pytestmark = pytest.mark.django_db(transaction=True)

ALL = ("read", "operate", "edit", "approve", "admin")
DAY = timedelta(days=1)
DEPTH = 12


def author(token: Token) -> str:
    return f"token:{token.token_key}"


def first_of(user, *scopes: str) -> tuple[Token, str]:
    return token_create(user, "first", scopes or ALL, DAY, by="system")


def made_with(text: str, **body) -> dict:
    """What REST answers somebody who makes a token with a token."""
    answer = Rest(token=text).post("/api/tokens/", {"scopes": list(ALL), **body})
    assert answer.status_code == 201, answer.content
    return answer.json()


def status(text: str) -> int:
    return Rest(token=text).get("/api/sessions/").status_code


def chain(operator) -> tuple[Token, list[str]]:
    """A token, and a line of DEPTH more, each made with the one before; their texts."""
    token, text = first_of(operator)
    texts = [text]
    for _ in range(DEPTH):
        texts.append(made_with(texts[-1])["token"])
    return token, texts


# ends with it, never longer, never wider


def test_a_token_made_with_one_of_a_day_ends_with_it_whatever_it_asks_for(operator):
    token, text = first_of(operator)
    child = made_with(text, days=365)
    row = Token.objects.get(token_key=child["id"])
    assert (row.expiry, child["parent"]) == (token.expiry, token.token_key)
    grandchild = Token.objects.get(token_key=made_with(child["token"], days=365)["id"])
    assert grandchild.expiry == token.expiry


def test_a_whole_line_ends_with_its_first_token_and_the_stream_says_so_of_each(operator):
    _, texts = chain(operator)
    other = first_of(operator)[1]
    keys = set(Token.objects.exclude(parent=None).values_list("token_key", flat=True))
    token = Token.objects.get(parent=None, children__isnull=False)
    assert {status(text) for text in texts} == {200}
    assert Rest(operator).delete(f"/api/tokens/{token.token_key}/").status_code == 204
    assert {status(text) for text in texts} == {401}
    assert status(other) == 200
    told = Event.objects.filter(type="token_revoked").values_list("data__token_key", flat=True)
    assert set(told) == {*keys, token.token_key}


@pytest.mark.parametrize("fault", ["expired", "inactive"])
def test_what_happens_to_the_first_of_a_line_holds_for_the_last_at_once(operator, fault):
    token, texts = chain(operator)
    if fault == "expired":
        Token.objects.filter(pk=token.pk).update(expiry=timezone.now())
    else:
        type(operator).objects.filter(pk=operator.pk).update(is_active=False)
    for text in (texts[1], texts[-1]):
        answer = Rest(token=text).get("/api/sessions/")
        assert (answer.status_code, answer.json()["code"]) == (401, "expired_token")


def test_a_token_that_is_narrowed_narrows_all_that_were_made_with_it(operator):
    token, texts = chain(operator)
    Token.objects.filter(pk=token.pk).update(scopes=["read"])
    assert Rest(token=texts[-1]).post("/api/sessions/", {}).status_code == 403
    assert status(texts[-1]) == 200


def test_who_loses_a_role_loses_what_every_token_of_theirs_could_do(operator):
    _, texts = chain(operator)
    assert Rest(token=texts[-1]).post("/api/sessions/", {}).status_code == 201
    operator.groups.clear()
    assert {Rest(token=text).post("/api/sessions/", {}).status_code for text in texts} == {403}


def test_a_token_made_at_a_login_outlives_the_logout(operator):
    rest = Rest(operator)
    text = rest.post("/api/tokens/", {"scopes": ["read"]}).json()["token"]
    rest.client.logout()
    assert status(text) == 200
    assert Token.objects.get().parent is None


def test_no_door_makes_a_token_wider_than_the_one_it_is_made_with(operator, roles):
    narrow = first_of(operator, "read", "admin")
    answer = Rest(token=narrow[1]).post("/api/tokens/", {"scopes": list(ALL)})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    with pytest.raises(ScopeMissing, match="approve, edit, operate"):
        token_create(operator, "", ALL, DAY, by=author(narrow[0]))
    with pytest.raises(TokenRejected, match="of its own user"):
        token_create(person("other", "admin"), "", ["read"], DAY, by=author(narrow[0]))


def test_one_that_manage_py_makes_has_its_user_as_root(operator, capsys):
    call_command("token_create", "operator", scope=["read"], days=300)
    made = Token.objects.get()
    assert (made.parent, lineage.read_lineage(made.digest), status(capsys.readouterr().out.strip())) == (None, [made], 200)


def test_a_line_is_read_by_one_query_however_long_it_is(operator, django_assert_num_queries):
    _, texts = chain(operator)
    assert Login(token=texts[-1]).check()[0] == operator  # notes the use
    with django_assert_num_queries(1):
        assert Login(token=texts[-1]).check()[0] == operator


def test_whoever_holds_a_login_open_with_a_token_is_seen_out_with_its_first_ancestor(operator):
    token, texts = chain(operator)
    login = Login(token=texts[-1])
    login.check()
    token_revoke(token, by="system")
    with pytest.raises(Exception, match="there is no such token"):
        login.check()


def test_tokens_of_before_get_their_parents_and_end_where_these_were_revoked(operator):
    (parent, _), (gone, _) = first_of(operator), first_of(operator, "read", "admin")
    child, orphan = (token_create(operator, "", ["read"], DAY, by=author(maker))[0] for maker in (parent, gone))
    Token.objects.update(parent=None)
    Token.objects.filter(pk=child.pk).update(expiry=timezone.now() + 365 * DAY, scopes=list(ALL))
    Token.objects.filter(pk=parent.pk).update(scopes=["read"])
    Token.objects.filter(pk=gone.pk).delete()
    import_module("agents.migrations.0012_token_parent").find_parents(apps, None)
    child.refresh_from_db()
    orphan.refresh_from_db()
    assert (child.parent, child.scopes, child.expiry) == (parent, ["read"], parent.expiry)
    assert (orphan.parent, orphan.expiry <= timezone.now()) == (None, True)


# races


def at_once(*deeds) -> list[object]:
    """What each of these raised or returned; all begin together, each with a connection of its own."""
    ready, found = threading.Barrier(len(deeds)), [None] * len(deeds)

    def run(place: int) -> None:
        try:
            ready.wait(10)
            found[place] = deeds[place]()
        except Exception as error:
            found[place] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


@pytest.mark.attack
def test_no_child_survives_a_revocation_that_it_races_with(operator):
    for _ in range(8):
        token, text = first_of(operator)
        answers = at_once(
            *[lambda text=text: Rest(token=text).post("/api/tokens/", {"scopes": ["read"], "days": 300}) for _ in range(3)],
            lambda token=token: token_revoke(token, by="system"),
        )
        for answer in answers[:3]:
            assert answer.status_code in (201, 401), answer.content
            if answer.status_code == 201:
                assert status(answer.json()["token"]) == 401
        assert not Token.objects.exists()


def test_a_token_that_was_revoked_after_its_request_came_makes_and_decides_nothing(operator):
    token, _ = first_of(operator)
    session = session_create(operator, by=f"user:{operator.pk}")
    approval = add_approvals(session)[0]
    token_revoke(token, by="system")
    with pytest.raises(TokenEnded, match="has been revoked"):
        token_create(operator, "", ["read"], DAY, by=author(token))
    with pytest.raises(TokenEnded):
        approval_decide(approval, "approve", by=author(token))
    assert Approval.objects.get().state == "waiting"


# who asked does not approve


def something_waits() -> bool:
    return query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'") == 1


@pytest.fixture
def proposal(operator) -> tuple[Constellation, Approval, dict[str, str]]:
    """An edit that a token of the operator proposes, and the texts of others that are of the same user."""
    device_create("laptop", by="system")
    found = plant(session_create(operator, by=f"user:{operator.pk}"), noop("fetch"))
    (above, above_text), (_, second) = first_of(operator), first_of(operator)
    proposer, proposer_text = token_create(operator, "proposer", ALL, DAY, by=author(above))
    operation = {"op": "add_task", "parameters": {"task_id": "evil", "tool": "noop"}}
    row = edit_propose(found.pk, [operation], author=author(proposer), who="claude").approval
    texts = {
        "itself": proposer_text, "its child": made_with(proposer_text)["token"], "its parent": above_text,
        "a second token": second,
        "one made at a login": Rest(operator).post("/api/tokens/", {"scopes": list(ALL)}).json()["token"],
        "one of the session": token_create(operator, "", ALL, DAY, by="system", session=found.session_id)[1],
        "one of manage.py": token_create(operator, "", ALL, DAY, by="system")[1],
    }  # fmt: skip
    assert row is not None
    return found, row, texts


def test_no_token_of_the_proposers_user_approves_and_the_person_at_a_login_does(operator, proposal):
    found, row, texts = proposal
    for name, text in texts.items():
        body = {"decision": "approve", "digest": row.digest}
        answer = Rest(token=text).post(f"/api/approvals/{row.pk}/decision/", body)
        assert (answer.status_code, answer.json()["code"]) in ((403, "own_approval"), (403, "own_proposal")), name
    assert "evil" not in states(found)
    answer = Rest(operator).post(f"/api/approvals/{row.pk}/decision/", {"decision": "approve", "digest": row.digest})
    assert answer.status_code == 200
    assert "evil" in states(found)


def test_a_token_that_may_make_tokens_cannot_launder_a_proposal_by_revoking_its_own(operator, proposal):
    found, row, texts = proposal
    proposer = Token.objects.get(name="proposer")
    child = made_with(texts["a second token"])
    token_revoke(proposer, by="system")
    answer = Rest(token=child["token"]).post(f"/api/approvals/{row.pk}/decision/", {"decision": "approve"})
    assert answer.status_code == 403
    assert "evil" not in states(found)


def test_a_person_who_began_the_run_at_a_login_approves_its_dangerous_action(engine, operator):
    device_create("laptop", by="system")
    rest = Rest(operator)
    made = rest.post("/api/sessions/", {"plan": "name: one\ntasks:\n  - {task_id: only, tool: noop, confirm: true}\n"})
    engine.run(something_waits)
    row = Approval.objects.get()
    assert rest.post(f"/api/approvals/{row.pk}/decision/", {"decision": "approve", "digest": row.digest}).status_code == 200
    engine.run()
    assert states(Constellation.objects.get(session=made.json()["id"])) == {"only": "COMPLETED"}


def test_no_token_approves_in_the_run_that_another_of_the_same_user_began(engine, operator):
    device_create("laptop", by="system")
    plan = "name: one\ntasks:\n  - {task_id: only, tool: noop, confirm: true}\n"
    assert Rest(token=first_of(operator)[1]).post("/api/sessions/", {"plan": plan}).status_code == 201
    engine.run(something_waits)
    row = Approval.objects.get()
    body = {"decision": "approve", "digest": row.digest}
    answer = Rest(token=first_of(operator)[1]).post(f"/api/approvals/{row.pk}/decision/", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "own_approval")
    other = Rest(token=first_of(person("another", "admin"))[1])
    assert other.post(f"/api/approvals/{row.pk}/decision/", body).status_code == 200
