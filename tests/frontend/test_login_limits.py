"""Attempts to log in are counted, in Redis where there is one, and nobody is kept out when Redis is gone."""

import secrets

import pytest
from django.core.cache import caches
from django.test import Client
from redis import Redis
from redis.exceptions import RedisError

from frontend import login_limits

pytestmark = pytest.mark.django_db

REDIS = "redis://127.0.0.1:6379/9"
GONE = "redis://127.0.0.1:1/0"
TOO_MANY = "more than 3 attempts to log in with this name; wait 5 minutes"


def cache_at(url: str, prefix: str = "test") -> dict:
    """The cache as the settings have it with that REDIS_URL."""
    options = {"socket_connect_timeout": 1, "socket_timeout": 1}
    backend = "django.core.cache.backends.redis.RedisCache"
    return {"default": {"BACKEND": backend, "LOCATION": url, "KEY_PREFIX": prefix, "OPTIONS": options}}


@pytest.fixture(autouse=True)
def few(monkeypatch, settings):
    """Three attempts, and a memory of this test's own."""
    monkeypatch.setattr(login_limits, "ATTEMPTS", 3)
    backend = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": secrets.token_hex(4)}}


@pytest.fixture
def redis(settings):
    """A real one, under keys of this test's own."""
    prefix = secrets.token_hex(4)
    try:
        client = Redis.from_url(REDIS, socket_connect_timeout=1)
        client.ping()
    except RedisError:
        pytest.skip("no Redis at 127.0.0.1:6379")
    settings.CACHES = cache_at(REDIS, prefix)
    yield prefix
    for key in client.scan_iter(f"{prefix}:*"):
        client.delete(key)
    client.close()


def attempt(name: str, password: str, page: str = "/login/") -> str:
    answer = Client().post(page, {"username": name, "password": password})
    return "in" if answer.status_code == 302 else answer.content.decode()


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_after_too_many_attempts_not_even_the_right_password_is_looked_at(admin_user, page):
    for _ in range(3):
        assert "correct" in attempt("admin", "wrong", page)
    assert TOO_MANY in attempt("admin", "admin-secret", page)
    assert TOO_MANY in attempt("ADMIN", "admin-secret", page)


def test_others_are_not_kept_out(admin_user, operator):
    for _ in range(4):
        attempt("admin", "wrong")
    assert attempt("operator", "operator-secret") == "in"


def test_attempts_are_counted_in_redis_for_a_while(operator, redis):
    for _ in range(3):
        attempt("operator", "wrong")
    client = Redis.from_url(REDIS)
    (key,) = client.scan_iter(f"{redis}:*")
    assert client.get(key) == b"3"
    assert 0 < client.ttl(key) <= login_limits.WITHIN_S
    caches["default"].close()
    assert TOO_MANY in attempt("operator", "operator-secret")
    client.close()


def test_nobody_is_kept_out_when_redis_is_gone(operator, settings):
    settings.CACHES = cache_at(GONE)
    for _ in range(5):
        assert "correct" in attempt("operator", "wrong")
    assert attempt("operator", "operator-secret") == "in"
