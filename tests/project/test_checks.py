"""System checks refuse combinations of settings that lose work, and say what to do."""

import copy
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from project import checks
from project.environment import Bucket

SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": "/var/lib/orrery.sqlite3",
    "CONN_MAX_AGE": None,
    "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL;"},
}
POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "orrery", "CONN_MAX_AGE": None, "OPTIONS": {}}


def ids(messages):
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


@pytest.fixture
def databases(monkeypatch):
    def check(description):
        monkeypatch.setattr(checks, "settings", SimpleNamespace(DATABASES={"default": description}))
        return ids(checks.check_databases())

    return check


def queues(settings, **changes):
    cluster = {"name": "jobs", "workers": 2, "queue_limit": 2, "timeout": 60, "retry": 181}
    settings.Q_CLUSTER = {**cluster, **changes}
    return ids(checks.check_queues())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"name": "orrery", "cluster_name": "jobs"}, "orrery.E014"), ({"scheduler": False}, "orrery.E015")],
)
def test_a_cluster_that_leaves_schedules_undone_is_refused(settings, changes, expected):
    assert queues(settings, **changes) == [expected]


def test_the_settings_as_shipped_are_right(databases):
    assert checks.check_databases() == checks.check_queues() == checks.check_exposure() == []
    assert databases(SQLITE) == databases(POSTGRES) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"CONN_MAX_AGE": 0}, "orrery.E003"),
        ({"CONN_MAX_AGE": 60}, "orrery.E003"),
        ({"ATOMIC_REQUESTS": True}, "orrery.E004"),
        ({"OPTIONS": {"pool": True}}, "orrery.E002"),
        ({"ENGINE": "django.db.backends.mysql"}, "orrery.E001"),
    ],
)
def test_a_wrong_connection_is_refused(databases, change, expected):
    assert databases({**POSTGRES, **change}) == [expected]


@pytest.mark.parametrize("name", [":memory:", "", "file:memorydb?mode=memory&cache=shared"])
def test_a_database_in_memory_is_refused(databases, name):
    assert databases({**SQLITE, "NAME": name}) == ["orrery.E005"]


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("transaction_mode", "DEFERRED", "orrery.E006"),
        ("init_command", "PRAGMA journal_mode=DELETE;", "orrery.E007"),
        ("init_command", "", "orrery.E007"),
        ("timeout", 1, "orrery.E008"),
    ],
)
def test_sqlite_that_would_lock_is_refused(databases, option, value, expected):
    description = copy.deepcopy(SQLITE)
    description["OPTIONS"][option] = value
    assert databases(description) == [expected]


def test_a_retry_that_begins_before_a_waiting_job_could_end_is_refused(settings):
    assert queues(settings, retry=181) == []
    assert checks.longest_wait(60, 2, 2) == 180
    assert queues(settings, retry=180) == ["orrery.E010"]
    assert queues(settings, timeout=None) == ["orrery.E010"]


def test_a_queue_limit_other_than_the_number_of_workers_is_refused(settings):
    assert queues(settings, queue_limit=50) == ["orrery.E009"]


def test_the_other_clusters_are_checked_with_what_they_inherit(settings):
    assert queues(settings, ALT_CLUSTERS={"runners": {"workers": 4}}) == ["orrery.E009"]
    assert queues(settings, ALT_CLUSTERS={"runners": {"timeout": 90}}) == ["orrery.E010"]


def test_a_secret_key_that_can_be_guessed_matters_when_the_host_is_exposed(settings):
    settings.SECRET_KEY = "django-insecure-0123456789012345678901234567890123456789"
    assert ids(checks.check_exposure()) == []
    settings.ALLOWED_HOSTS = ["orrery.example.org", "localhost"]
    assert ids(checks.check_exposure()) == ["orrery.E012"]
    settings.SECRET_KEY = "x7Hq" * 20
    assert ids(checks.check_exposure()) == ["orrery.E012"]


def test_debug_on_an_exposed_host_is_refused(settings):
    settings.ALLOWED_HOSTS, settings.DEBUG = ["orrery.example.org"], True
    assert ids(checks.check_exposure()) == ["orrery.E011"]


def test_allowing_every_host_is_warned_about(settings):
    settings.ALLOWED_HOSTS = ["*"]
    assert ids(checks.check_exposure()) == ["orrery.W013"]


def checked(**environment: str) -> str:
    """What `manage.py check` says in a process of its own."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True
    )
    return done.stdout + done.stderr


def test_a_redis_that_does_not_answer_is_named_and_its_password_is_not():
    said = checked(REDIS_URL="redis://:secret@127.0.0.1:1/0")
    assert "orrery.W022" in said
    assert "the Redis at 127.0.0.1 does not answer" in said
    assert "unset REDIS_URL" in said
    assert "secret" not in said


def test_a_redis_url_that_is_no_address_is_refused():
    said = checked(REDIS_URL="here")
    assert "orrery.E021" in said
    assert "Set REDIS_URL to an address such as redis://127.0.0.1:6379/0" in said


def test_without_a_redis_url_its_client_is_not_even_imported():
    looked = "import sys, django; django.setup(); import project.urls, project.checks; print('redis' in sys.modules)"
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | {
        "DJANGO_SETTINGS_MODULE": "project.settings"
    }
    done = subprocess.run([sys.executable, "-c", looked], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_redis_that_answers_is_the_cache():
    try:
        Redis.from_url("redis://127.0.0.1:6379/9", socket_connect_timeout=1).ping()
    except RedisError:
        pytest.skip("no Redis at 127.0.0.1:6379")
    assert "no issues" in checked(REDIS_URL="redis://127.0.0.1:6379/9", ORRERY_COMMANDS_NETWORK="0")


@pytest.mark.parametrize(("model", "base_url", "key", "expected"), [
    ("", "", "", []), ("m", "https://models.example/v1", "", []), ("m", "", "", ["orrery.E028"]),
    ("", "https://models.example/v1", "", ["orrery.E028"]), ("m", "models.example", "", ["orrery.E028"]),
    ("m", "https://models.example/v1", "short", ["orrery.W029"]),
])  # fmt: skip
def test_a_model_of_the_environment_is_looked_at(settings, monkeypatch, model, base_url, key, expected):
    settings.LLM_MODEL, settings.LLM_BASE_URL = model, base_url
    monkeypatch.setenv("LLM_API_KEY", key)
    assert ids(checks.check_models()) == expected


def test_hosts_of_models_that_are_none_are_one_sentence():
    environment = {**os.environ, "ORRERY_MODEL_HOSTS": "10.0.0.0/8, not a host"}
    found = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "ORRERY_MODEL_HOSTS must be hosts or networks" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_bucket_without_its_keys_is_said(settings, monkeypatch):
    assert ids(checks.check_store()) == []
    settings.ARTIFACTS_S3 = Bucket("https://s3.example.org", "orrery", "us-east-1")
    assert ids(checks.check_store()) == ["orrery.E032", "orrery.E032"]
    monkeypatch.setenv("ORRERY_SECRET_S3_KEY_ID", "an-identity-of-ours")
    monkeypatch.setenv("ORRERY_SECRET_S3_KEY", "a-key-of-ours-0123456789")
    settings.ARTIFACT_BYTES = settings.UPLOAD_BYTES - 1
    assert ids(checks.check_store()) == ["orrery.W033"]
