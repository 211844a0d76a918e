"""Passwords and tokens tried one after the other: few are looked at, and nobody keeps others out of their account."""

import secrets

import pytest
from asgiref.sync import sync_to_async
from axes.models import AccessAttempt
from django.conf import settings
from django.test import Client
from django.utils import timezone
from redis import Redis
from redis.exceptions import RedisError

from frontend.logins import limits
from frontend.logins.links import make_login_link
from project.admission import token_attempts
from project.admission.token_attempts import WITHIN_S, WRONG, TokenAttempts
from project.asgi import entrances
from tests.agents.conftest import closed_connections, make_token  # noqa: F401 (a fixture)
from tests.project.test_asgi import get

pytestmark = pytest.mark.django_db

LIMIT = limits.PER_NAME_AND_ADDRESS
HOME, ELSEWHERE, ATTACKER = "192.0.2.1", "192.0.2.2", "198.51.100.7"


def attempt(name, password, address=ATTACKER, page="/login/", **headers):
    return Client().post(page, {"username": name, "password": password}, REMOTE_ADDR=address, headers=headers)


def is_in(answer):
    return answer.status_code == 302


def looked_at():
    """Passwords that were compared, and were wrong."""
    return sum(AccessAttempt.objects.values_list("failures_since_start", flat=True))


@pytest.mark.attack
@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_of_a_hundred_wrong_passwords_ten_are_looked_at(admin_user, page):
    answers = [attempt("admin", f"wrong {number}", page=page) for number in range(100)]
    assert looked_at() == LIMIT
    assert [answer.status_code for answer in answers] == [200] * (LIMIT - 1) + [429] * (101 - LIMIT)
    refused = attempt("admin", "admin-secret", page=page)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) == settings.AXES_COOLOFF_TIME.total_seconds()
    assert "Too many attempts" in refused.content.decode()


def test_it_counts_for_both_pages_however_the_name_is_written(admin_user):
    for number in range(LIMIT):
        attempt(("admin", "ADMIN", " admin", "\uff41dmin")[number % 4], "wrong", page=("/login/", "/admin/login/")[number % 2])
    assert not is_in(attempt("admin", "admin-secret"))


def test_a_header_that_anybody_may_write_makes_no_other_address(admin_user):
    for number in range(100):
        attempt("admin", "wrong", **{"X-Forwarded-For": f"203.0.113.{number}", "User-Agent": f"agent {number}"})
    assert looked_at() == LIMIT


def test_the_owner_comes_in_from_another_address_while_somebody_tries(operator):
    for _ in range(50):
        attempt("operator", "wrong")
    assert is_in(attempt("operator", "operator-secret", HOME))


@pytest.mark.attack
def test_from_many_addresses_together_there_are_more_attempts_but_not_without_end(operator):
    for number in range(6):
        for _ in range(LIMIT - 1):
            attempt("operator", "wrong", f"203.0.113.{number}")
    assert looked_at() == limits.PER_NAME
    assert attempt("operator", "operator-secret", ELSEWHERE).status_code == 429


@pytest.mark.attack
def test_and_the_owner_still_comes_in_from_where_they_have_been(operator):
    assert is_in(attempt("operator", "operator-secret", HOME))
    for number in range(6):
        for _ in range(LIMIT - 1):
            attempt("operator", "wrong", f"203.0.113.{number}")
    assert is_in(attempt("operator", "operator-secret", HOME))
    assert not is_in(attempt("operator", "operator-secret", ELSEWHERE))


@pytest.mark.attack
def test_an_address_that_tries_many_names_is_locked_out_as_a_whole(operator):
    for number in range(limits.PER_ADDRESS + 5):
        attempt(f"name{number}", "wrong")
    assert looked_at() == limits.PER_ADDRESS
    assert attempt("operator", "operator-secret").status_code == 429
    assert is_in(attempt("operator", "operator-secret", HOME))


def test_it_ends_by_itself_and_what_comes_meanwhile_does_not_prolong_it(operator):
    for _ in range(LIMIT + 5):
        attempt("operator", "wrong")
    AccessAttempt.objects.update(attempt_time=timezone.now() - settings.AXES_COOLOFF_TIME)
    assert is_in(attempt("operator", "operator-secret"))


def test_an_admin_sees_who_is_locked_out_and_lets_them_in(admin_user, operator):
    for _ in range(LIMIT):
        attempt("operator", "wrong")
    client = Client()
    client.force_login(admin_user)
    page = client.get("/admin/axes/accessattempt/").content.decode()
    assert ATTACKER in page
    assert "icon-yes" in page
    row = AccessAttempt.objects.get()
    client.post("/admin/axes/accessattempt/", {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"})
    assert is_in(attempt("operator", "operator-secret"))


def test_whoever_is_no_admin_does_not_see_them(operator):
    operator.is_staff = True
    operator.save()
    client = Client()
    client.force_login(operator)
    assert client.get("/admin/axes/accessattempt/").status_code == 403


def test_a_one_time_link_lets_in_who_is_locked_out(operator):
    for _ in range(LIMIT):
        attempt("operator", "wrong")
    assert is_in(
        Client().get(make_login_link(operator, "http://localhost").removeprefix("http://localhost"), REMOTE_ADDR=ATTACKER)
    )
    assert is_in(attempt("operator", "operator-secret"))


# Tokens, and links


@pytest.fixture(autouse=True)
def cache_of_its_own(settings):
    backend = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": secrets.token_hex(4)}}


async def statuses(application, tokens, path="/api/sessions/", client=ATTACKER):
    return [(await get(path, app=application, client=client, authorization=f"Bearer {token}"))[0] for token in tokens]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("closed_connections")
@pytest.mark.parametrize("path", ["/api/sessions/", "/api/sessions/1/stream/", "/mcp", "/api/devices/enrol/"])
async def test_wrong_tokens_of_an_address_are_soon_no_longer_looked_at(operator, path):
    application_here = TokenAttempts(entrances)
    method = "POST" if path in ("/mcp", "/api/devices/enrol/") else "GET"
    found = []
    for number in range(WRONG + 20):
        found.append(await get(path, method, application_here, client=ATTACKER, authorization=f"Bearer orr_{number}"))
    assert [status for status, _, _ in found] == [401] * (WRONG + 1) + [429] * 19
    assert 0 < int(found[-1][1]["retry-after"]) <= WITHIN_S + 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("closed_connections")
async def test_a_token_that_has_been_good_passes_and_so_do_other_addresses(operator):
    application_here = TokenAttempts(entrances)
    used, fresh = [(await sync_to_async(make_token)(operator, "read"))[1] for _ in range(2)]
    assert await statuses(application_here, [used]) == [200]
    await statuses(application_here, [f"orr_{number}" for number in range(WRONG + 5)])
    assert await statuses(application_here, [used, fresh]) == [200, 429]
    assert await statuses(application_here, [fresh], client=HOME) == [200]
    assert await statuses(application_here, [fresh], client=HOME) == [200]
    # An IPv6 customer has a network, and what anybody may answer to makes no token good.
    await statuses(application_here, [f"orr_{number}" for number in range(WRONG + 5)], "/api/sessions/", "2001:db8::1")
    assert await statuses(application_here, ["orr_x"], "/health/", "2001:db8::2") == [429]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("closed_connections")
async def test_wrong_links_are_limited_too(operator):
    application_here = TokenAttempts(entrances)
    found = [(await get(f"/login/link/1.{n}/", app=application_here, client=ATTACKER))[0] for n in range(WRONG + 5)]
    assert found == [403] * (WRONG + 1) + [429] * 4


def test_wrong_tokens_are_counted_in_redis_for_a_while_and_not_at_all_when_it_is_gone(settings):
    address, prefix = "redis://127.0.0.1:6379/9", secrets.token_hex(4)
    backend, patience = "django.core.cache.backends.redis.RedisCache", {"socket_connect_timeout": 1, "socket_timeout": 1}
    found = {"BACKEND": backend, "LOCATION": address, "KEY_PREFIX": prefix, "OPTIONS": patience}
    client = Redis.from_url(address, socket_connect_timeout=1)
    try:
        client.ping()
    except RedisError:
        pytest.skip("no Redis at 127.0.0.1:6379")
    settings.CACHES = {"default": found}
    assert [token_attempts.count_attempt("a"), token_attempts.count_attempt("a"), token_attempts.count_attempt("b")] == [
        1,
        2,
        1,
    ]
    keys = list(client.scan_iter(f"{prefix}:*"))
    assert len(keys) == 2
    assert all(0 < client.ttl(key) <= WITHIN_S for key in keys)
    client.delete(*keys)
    settings.CACHES = {"default": {**found, "LOCATION": "redis://127.0.0.1:1/0"}}
    assert token_attempts.count_attempt("a") == 0
    client.close()
