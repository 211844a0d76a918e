"""One-time login links."""

from io import StringIO
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from frontend.logins import links
from frontend.logins.links import LINK_S, LoginLinkGenerator, make_login_link, redeem_link

BASE = "http://127.0.0.1:8000"


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def token_of(link: str) -> str:
    return urlsplit(link).path.rstrip("/").rpartition("/")[2]


def logged_in(client: Client) -> str | None:
    return client.session.get("_auth_user_id")


def test_a_link_logs_its_user_in_and_leads_to_the_sessions(client, operator):
    answer = client.get(path_of(make_login_link(operator, BASE)))
    assert answer.status_code == 302
    assert answer["Location"] == "/"
    assert logged_in(client) == str(operator.pk)


def test_a_link_works_once(client, operator):
    link = path_of(make_login_link(operator, BASE))
    client.get(link)
    second = Client()
    answer = second.get(link)
    assert answer.status_code == 403
    assert b"used up" in answer.content
    assert logged_in(second) is None


def test_two_who_come_at_once_with_one_link_are_one_login(operator, monkeypatch):
    token = token_of(make_login_link(operator, BASE))
    checked = LoginLinkGenerator.check_token

    def overtaken(self, user, signature):
        good = checked(self, user, signature)
        type(user).objects.filter(pk=user.pk).update(last_login=timezone.now())  # the other one, between check and use
        return good

    monkeypatch.setattr(LoginLinkGenerator, "check_token", overtaken)
    assert redeem_link(token) is None


def test_a_link_made_within_the_second_of_a_login_still_dies_on_use(operator):
    operator.last_login = timezone.now().replace(microsecond=1)
    operator.save()
    token = token_of(make_login_link(operator, BASE))
    operator.last_login = operator.last_login.replace(microsecond=2)
    operator.save()
    assert redeem_link(token) is None


def test_a_link_ends_after_fifteen_minutes(operator, monkeypatch):
    token = token_of(make_login_link(operator, BASE))
    born = LoginLinkGenerator()._now()
    for late, good in ((LINK_S + 1, False), (LINK_S - 1, True)):
        monkeypatch.setattr(LoginLinkGenerator, "_now", lambda self, late=late: born + timezone.timedelta(seconds=late))
        assert (redeem_link(token) is not None) is good


def test_a_changed_password_voids_a_link(operator):
    token = token_of(make_login_link(operator, BASE))
    operator.set_password("another")
    operator.save()
    assert redeem_link(token) is None


def test_a_link_of_a_user_who_was_deactivated_is_void(operator):
    token = token_of(make_login_link(operator, BASE))
    operator.is_active = False
    operator.save()
    assert redeem_link(token) is None


@pytest.mark.parametrize("token", ["", "1", "1.", "x.y", "99999999999999999999.abc-def", "1.abc-def", "²." + "a" * 40])
def test_what_nobody_signed_logs_nobody_in(token, operator):
    assert redeem_link(token) is None


def test_a_link_of_one_user_does_not_log_another_in(operator, viewer):
    signature = token_of(make_login_link(operator, BASE)).partition(".")[2]
    assert redeem_link(f"{viewer.pk}.{signature}") is None


def test_a_link_may_lead_to_a_page_of_ours(client, operator):
    answer = client.get(path_of(make_login_link(operator, BASE, "/sessions/5/")))
    assert answer["Location"] == "/sessions/5/"


@pytest.mark.parametrize("elsewhere", ["https://example.org/", "//example.org", "javascript:alert(1)"])
def test_a_link_never_leads_elsewhere(client, operator, elsewhere):
    answer = client.get(path_of(make_login_link(operator, BASE, elsewhere)))
    assert answer["Location"] == "/"


def test_the_page_behind_a_link_does_not_pass_its_address_on(client, operator):
    answer = client.get(path_of(make_login_link(operator, BASE)))
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer["Cache-Control"]


def test_only_a_get_uses_a_link_up(client, operator):
    link = path_of(make_login_link(operator, BASE))
    assert client.head(link).status_code == 405
    assert client.get(link).status_code == 302


def test_the_command_prints_a_link_that_works(client, operator):
    out = StringIO()
    call_command("login_link", operator.username, base_url="http://localhost:9000/", next="/sessions/7/", stdout=out)
    link = out.getvalue().strip()
    assert link.startswith("http://localhost:9000/login/link/")
    assert client.get(path_of(link))["Location"] == "/sessions/7/"


def test_the_command_names_a_user_who_is_not_there(db):
    with pytest.raises(CommandError, match="no active user called nobody"):
        call_command("login_link", "nobody")


def test_links_are_signed_for_themselves_alone(operator):
    from django.contrib.auth.tokens import default_token_generator

    assert not links.LINKS.check_token(operator, default_token_generator.make_token(operator))
