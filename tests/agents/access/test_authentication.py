"""Who is asking, and what a token may do."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.access.authentication import USED_EVERY_S, note_token_use
from agents.access.permissions import why_refused
from agents.models import Token
from tests.agents.conftest import Rest, make_token

pytestmark = pytest.mark.django_db


@pytest.mark.one_database
def test_a_request_without_login_is_401_and_says_how_to_log_in():
    answer = Rest().get("/api/sessions/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_authenticated"


@pytest.mark.one_database
@pytest.mark.parametrize(
    "path",
    ["schema/", "docs/", "sessions/1/", "machines/", "tokens/", "tasks/", "constellations/", "approvals/", "policies/"],
)
def test_nothing_under_the_api_is_open(path):
    assert Rest().get(f"/api/{path}").status_code == 401


def test_a_token_logs_in(operator):
    _, text = make_token(operator, "read")
    assert Rest(token=text).get("/api/sessions/").status_code == 200


@pytest.mark.parametrize("text", ["orr_nothing", "x", "a" * 5000, "orr_\u00fc", "two words"])
def test_what_is_no_token_is_401(text):
    answer = Rest(token=text.encode().decode("latin-1")).get("/api/sessions/")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"


def test_an_expired_token_is_refused_and_stays_in_the_list(operator):
    token, text = make_token(operator, "read", expiry=timedelta(seconds=-1))
    assert Rest(token=text).get("/api/sessions/").json()["code"] == "expired_token"
    assert Token.objects.filter(pk=token.pk).exists()


def test_another_users_expired_token_is_left_alone_by_a_good_one(operator):
    expired, _ = make_token(operator, "read", expiry=timedelta(seconds=-1))
    _, text = make_token(operator, "read")
    assert Rest(token=text).get("/api/sessions/").status_code == 200
    assert Token.objects.filter(pk=expired.pk).exists()


def test_a_token_of_an_inactive_user_is_refused(operator):
    _, text = make_token(operator, "read")
    operator.is_active = False
    operator.save()
    assert Rest(token=text).get("/api/sessions/").status_code == 401


def test_the_last_use_is_written_at_most_once_a_minute(operator, django_assert_num_queries):
    token, text = make_token(operator, "read")
    Rest(token=text).get("/api/sessions/")
    token.refresh_from_db()
    assert timezone.now() - token.last_used < timedelta(seconds=5)
    with django_assert_num_queries(0):
        note_token_use(token)
    token.last_used -= timedelta(seconds=USED_EVERY_S + 1)
    with django_assert_num_queries(1):
        note_token_use(token)


def test_a_token_is_stored_as_a_hash_only(operator):
    token, text = make_token(operator, "read")
    assert text.startswith("orr_")
    assert text not in {str(value) for value in vars(token).values()}


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("scopes", "status"), [(("read", "operate"), 201), (("operate",), 201), (("read",), 403), (("admin",), 403)]
)
def test_a_change_needs_the_scope_operate(operator, scopes, status):
    _, text = make_token(operator, *scopes)
    answer = Rest(token=text).post("/api/sessions/", {})
    assert answer.status_code == status
    if status == 403:
        assert "operate" in answer.json()["detail"]


@pytest.mark.one_database
def test_a_read_needs_the_scope_read(operator):
    _, text = make_token(operator, "operate")
    answer = Rest(token=text).get("/api/sessions/")
    assert answer.status_code == 403
    assert "read" in answer.json()["detail"]


@pytest.mark.one_database
def test_only_operators_and_admins_may_submit(operator, viewer, admin_user):
    assert [why_refused(each, None, "operate") == "" for each in (operator, viewer, admin_user)] == [True, False, True]
    answer = Rest(viewer).post("/api/sessions/", {})
    assert answer.status_code == 403
    assert "operator" in answer.json()["detail"]


@pytest.mark.one_database
def test_devices_are_shown_to_those_with_a_role(django_user_model, viewer):
    nobody = django_user_model.objects.create_user("nobody")
    assert Rest(nobody).get("/api/devices/").status_code == 403
    assert Rest(nobody).get("/api/sessions/").status_code == 200
    assert Rest(viewer).get("/api/devices/").status_code == 200


@pytest.mark.one_database
def test_a_change_by_cookie_needs_the_csrf_token(operator):
    answer = Rest(operator, csrf=True).post("/api/sessions/", {})
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]


@pytest.mark.one_database
def test_a_change_by_token_needs_no_csrf_token(operator):
    _, text = make_token(operator, "operate")
    assert Rest(token=text, csrf=True).post("/api/sessions/", {}).status_code == 201


def test_a_fresh_token_is_shown_once(rest):
    made = rest.post("/api/tokens/", {"name": "ci", "scopes": ["read"], "days": 3})
    assert made.status_code == 201
    assert Rest(token=made.json()["token"]).get("/api/tokens/").status_code == 200
    listed = rest.get("/api/tokens/").json()["results"]
    assert [row["name"] for row in listed] == ["ci"]
    assert "token" not in listed[0]
    assert made.json()["token"] not in str(listed)
    assert Token.objects.get().expiry - timezone.now() < timedelta(days=3)


def test_a_revoked_token_is_dead(rest):
    made = rest.post("/api/tokens/", {"scopes": ["read"]}).json()
    assert rest.delete(f"/api/tokens/{made['id']}/").status_code == 204
    assert Rest(token=made["token"]).get("/api/sessions/").status_code == 401


def test_nobody_sees_or_revokes_the_token_of_another(rest, admin_user):
    token, _ = make_token(admin_user, "read")
    assert rest.get("/api/tokens/").json()["results"] == []
    assert rest.delete(f"/api/tokens/{token.token_key}/").status_code == 404


def test_a_token_needs_the_scope_admin_to_make_one_and_cannot_give_more_than_it_has(operator):
    _, plain = make_token(operator, "read", "operate")
    assert Rest(token=plain).post("/api/tokens/", {"scopes": ["read"]}).status_code == 403
    _, admin = make_token(operator, "read", "admin")
    assert Rest(token=admin).post("/api/tokens/", {"scopes": ["read"]}).status_code == 201
    refused = Rest(token=admin).post("/api/tokens/", {"scopes": ["read", "operate"]})
    assert refused.status_code == 403
    assert refused.json()["code"] == "scope_missing"


def test_tokens_are_paged_by_cursor(rest, operator):
    for _ in range(3):
        make_token(operator, "read")
    first = rest.get("/api/tokens/", limit=2).json()
    second = rest.get("/api/tokens/", limit=2, cursor=first["next"]).json()
    assert len(first["results"]) == 2
    assert second["next"] is None
    assert len({row["id"] for row in first["results"] + second["results"]}) == 3


def test_a_token_is_made_on_the_command_line(operator):
    out = StringIO()
    call_command("token_create", "operator", "--scope", "read", "--scope", "operate", "--name", "ci", stdout=out)
    assert Rest(token=out.getvalue().strip()).post("/api/sessions/", {}).status_code == 201
    assert Token.objects.get().scopes == ["operate", "read"]


@pytest.mark.parametrize("arguments", [["stranger"], ["operator", "--days", "0"], ["operator", "--days", "9999"]])
def test_a_token_that_cannot_be_is_refused_on_the_command_line(operator, arguments):
    with pytest.raises(CommandError):
        call_command("token_create", *arguments)
    assert not Token.objects.exists()
