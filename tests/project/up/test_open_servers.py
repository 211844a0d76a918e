"""Servers that let anybody in are found by asking them; each test asks a real one."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from project import checks
from project.up.open_servers import open_postgresql, open_redis
from tests.project.installation import START_S, free_port, until

PASSWORD = "a-good-password"
POSTGRES = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "postgres",
    "USER": "postgres",
    "HOST": "127.0.0.1",
    "OPTIONS": {},
}


@pytest.fixture
def redis(tmp_path) -> Iterator[Redis]:
    """One of our own, without a password until a test gives it one."""
    if (program := shutil.which("redis-server")) is None:
        pytest.skip("no redis-server")
    port = free_port()
    argv = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    client = Redis(port=port, socket_timeout=1)
    try:
        until(lambda: answers(client), START_S, lambda: "Redis does not start")
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait()


def answers(client: Redis) -> bool:
    try:
        return client.ping()
    except RedisError:
        return False


def port_of(client: Redis) -> int:
    return client.connection_pool.connection_kwargs["port"]


def test_a_redis_is_open_until_it_has_a_password(redis):
    place = f"127.0.0.1:{port_of(redis)}"
    assert open_redis(f"redis://{place}/0") == open_redis(f"redis://:unneeded@{place}/0") == place
    redis.config_set("requirepass", PASSWORD)
    assert open_redis(f"redis://{place}/0") == open_redis(f"redis://:{PASSWORD}@{place}/0") == ""


def test_what_does_not_answer_or_is_no_address_is_not_open():
    assert [open_redis(url) for url in ("", "here", "unix:///run/redis.sock", "redis://127.0.0.1:1/0")] == [""] * 4
    assert open_postgresql({**POSTGRES, "PORT": 1}) == open_postgresql({"ENGINE": "django.db.backends.sqlite3"}) == ""


@contextmanager
def postgresql(folder: Path, rule: str) -> Iterator[int]:
    """The port of a server of our own that admits people on 127.0.0.1 by `rule` of pg_hba.conf."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or os.geteuid() != 0:
        pytest.skip("no PostgreSQL to start, or nobody to start it as")
    account, data, port = pwd.getpwnam("postgres"), folder / "data", free_port()
    folder.chmod(0o755)
    os.chown(folder, account.pw_uid, account.pw_gid)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)

    def run(*argv: str) -> None:
        done = subprocess.run(
            argv, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd=folder, env={"LC_ALL": "C"}, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout

    binaries = found[-1]
    run(str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--pwfile", str(secret), "--no-sync", f"--auth={rule}")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync=off"
    control = (str(binaries / "pg_ctl"), "-D", str(data), "-w", "-s", "-l", str(folder / "log"))
    run(*control, "-o", options, "start")
    try:
        yield port
    finally:
        run(*control, "-m", "immediate", "stop")


@pytest.mark.attack
@pytest.mark.parametrize(("rule", "is_open"), [("trust", True), ("scram-sha-256", False)])
def test_a_postgresql_is_open_where_it_asks_for_no_password(monkeypatch, rule, is_open):
    # Not below the folder of the tests, which other users may not enter.
    with TemporaryDirectory() as folder, postgresql(Path(folder), rule) as port:
        known = {**POSTGRES, "PORT": port, "PASSWORD": PASSWORD}
        monkeypatch.setenv("PGPASSWORD", PASSWORD)  # what this user knows nobody else does
        with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", connect_timeout=5):
            place = f"127.0.0.1:{port}" if is_open else ""
            assert open_postgresql(known) == place
            assert open_postgresql({**known, "HOST": "/run/postgresql"}) == place


def test_up_and_check_warn_of_them_where_commands_have_the_network(redis, settings, monkeypatch):
    settings.REDIS_URL = f"redis://127.0.0.1:{port_of(redis)}/0"
    monkeypatch.setattr(checks, "open_postgresql", lambda database: "")
    monkeypatch.setattr("sys.argv", ["manage.py", "up", "--port", "8000"])
    (warning,) = checks.check_open_servers()
    assert (warning.id, warning.msg) == (
        "orrery.W027",
        f"the Redis at 127.0.0.1:{port_of(redis)} takes connections without a password, and commands reach it",
    )
    with monkeypatch.context() as other:
        other.setattr("sys.argv", ["manage.py", "mcp"])
        assert checks.check_open_servers() == []
    settings.COMMANDS_NETWORK = False
    assert checks.check_open_servers() == []


@pytest.mark.skipif(settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite is a file")
def test_the_database_of_these_tests_is_open_as_it_is_found_to_be(settings, monkeypatch):
    monkeypatch.setattr("sys.argv", ["manage.py", "check"])
    database = settings.DATABASES["default"]
    if database["PASSWORD"]:
        pytest.skip("it has a password")
    assert "orrery.W026" in [each.id for each in checks.check_open_servers()]
