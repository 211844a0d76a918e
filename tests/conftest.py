"""Fixtures of the whole suite: people by role, devices, and an engine that runs until everything rests."""

from __future__ import annotations

import json
import time

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.commands import flush
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from agents.devices.host import host_name
from agents.engine import hosted
from agents.engine.runner import Runner
from agents.links import holders
from agents.minds import asking
from agents.models import Device
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams import fold, statements
from agents.streams.verify import verify_database
from agents.tools.calls import TOOLS, Outcome
from constellations.models import Constellation
from tests.asked_files import may_hold_tests, names_mark

hypothesis_settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("untimed")  # how long an example takes says what else the machine does
LONG = ("browser", "services", "attack", "kill", "live")
"""Marks of what `make test` leaves out."""
DATABASES = {"db", "transactional_db", "django_db_setup", "live_server"}
"""Fixtures by which a test touches the database, beside the marker."""


def pytest_addoption(parser):
    parser.addoption("--with-a-database", action="store_true", help="Leave out what is the same on every database.")


def pytest_ignore_collect(collection_path, config):
    """A file that holds none of the tests asked for is not imported, unless it is named."""
    if collection_path.is_dir() or not collection_path.match("test_*.py"):
        return None
    left_out = ("one_database",) if config.getoption("with_a_database") else ()
    holds = may_hold_tests(collection_path.read_text(), config.option.markexpr, left_out=left_out)
    return None if holds else True  # None asks the next one


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """On another database only what can be different there is run again: it touches one, or starts processes that do."""
    hidden = [
        item.nodeid
        for item in items
        if any(item.get_closest_marker(mark) and not names_mark(item.path.read_text(), mark) for mark in LONG)
    ]
    if hidden:
        raise pytest.UsageError(f"marks that their files do not name, so that `-m` would not find them: {hidden}")
    if not config.getoption("with_a_database"):
        return
    kept, left = [], []
    for item in items:
        touches = item.get_closest_marker("django_db") or DATABASES & set(item.fixturenames)
        outside = any(map(item.get_closest_marker, ("kill", "live", "services")))
        differs = (touches or outside) and not item.get_closest_marker("one_database")
        (kept if differs else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


PATIENCE_S = 120.0
"""After this a test's engine gives up waiting: the test has failed."""


@pytest.fixture(scope="session", autouse=True)
def _flushed_without_permissions():
    """A test with transactions of its own empties the database. Django then makes all permissions anew, which takes ten times
    as long, and nobody asks for them; content types are made again when somebody does, if none is remembered.

    PostgreSQL would truncate, which takes 0.2 s and a lock that readers of a web server still at work meet as a deadlock.
    """

    def forget(*arguments, **more) -> None:
        ContentType.objects.clear_cache()
        asking._stored.clear()

    def deletions(style, tables, **more) -> list[str]:
        return ["SET LOCAL session_replication_role = replica", *(f'DELETE FROM "{table}"' for table in tables)]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flush, "emit_post_migrate_signal", forget)
        if connection.vendor == "postgresql":
            patched.setattr(connection.ops, "sql_flush", deletions)
        yield


@pytest.fixture(autouse=True)
def state_dir(settings, tmp_path):
    """Everything a test writes beside its database goes to a folder of its own."""
    settings.STATE_DIR = tmp_path
    settings.CONFINEMENT, settings.UNCONFINED_COMMANDS = "none", True  # tests/attacks and whole installations have walls
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return tmp_path


@pytest.fixture
def more_tools(monkeypatch):
    """A function that lets there be tools of other names; they take any arguments and do nothing."""

    def add(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(TOOLS, name, lambda call: Outcome("completed"))

    return add


@pytest.fixture
def roles(request):
    """The groups, also where an earlier test emptied the database."""
    marker = request.node.get_closest_marker("django_db")
    whole = "transactional_db" in request.fixturenames or (marker is not None and marker.kwargs.get("transaction"))
    request.getfixturevalue("transactional_db" if whole else "db")
    for name in ("viewer", "operator", "admin"):
        Group.objects.get_or_create(name=name)


def person(name: str, role: str) -> User:
    user = User.objects.create_user(name, password=f"{name}-secret")
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


@pytest.fixture
def user(roles):
    """Somebody with an account and no role."""
    return person("user", "")


@pytest.fixture
def viewer(roles):
    return person("viewer", "viewer")


@pytest.fixture
def operator(roles):
    return person("operator", "operator")


@pytest.fixture
def admin_user(roles):
    admin = person("admin", "admin")
    admin.is_staff = admin.is_superuser = True
    admin.save()
    return admin


@pytest.fixture
def device(transactional_db):
    """A local device with four slots, which is connected."""
    return connected(device_create("laptop", max_concurrent=4, by="system"))


def connected(device: Device) -> Device:
    """A local device as a runner of this host leaves it: connected, and free for the next one to take."""
    fence = hosted.join_local(fold.read_rows(device.pk, ("device",))["device"][str(device.pk)], host_name())
    holders.release_link(device.pk, fence)
    device.refresh_from_db()
    return device


class TestRunner(Runner):
    """A runner that ends when nothing is left to do, or when `until` holds."""

    __test__ = False

    def __init__(self, until=None, **more):
        super().__init__(**more)
        self._until = until or self._all_rest
        self._deadline = time.monotonic() + PATIENCE_S
        self.gave_up = False

    def _done(self) -> bool:
        if self._stop_at is None and self._until():
            self.stop()
        if self._stop_at is None and time.monotonic() > self._deadline:
            self.gave_up = True
            self.stop()
            self.stop()
        return super()._done()

    def _all_rest(self) -> bool:
        """No request waits, and no session of ours has anything to do."""
        cursor = statements.raw_cursor()
        cursor.execute("SELECT count(*) FROM agents_inboxitem WHERE state IN ('queued', 'running')")
        return cursor.fetchone()[0] == 0 and all(drive.is_idle() for drive in self.sessions.drives.values())


class Engine:
    """Runs sessions in this process."""

    def __init__(self, owner: User):
        self.owner = owner

    def submit(self, plan: dict | str, session=None):
        """A new interaction, in a new session unless one is given; returns (session, inbox item)."""
        session = session or sessions.session_create(self.owner, by=f"user:{self.owner.pk}")
        text = plan if isinstance(plan, str) else json.dumps(plan)
        item, _ = sessions.request_submit(session.pk, "interaction", "", {"plan": text}, by=f"user:{self.owner.pk}")
        return session, item

    def run(self, until=None, **more) -> TestRunner:
        """Run until everything rests (or `until` holds); fails the test when that takes too long."""
        runner = TestRunner(until, **more)
        runner.run()
        assert not runner.gave_up, "the engine did not come to rest"
        return runner

    def carry_out(self, plan: dict | str, session=None) -> Constellation:
        """Submit a plan and run it to its end."""
        _, item = self.submit(plan, session)
        self.run()
        return Constellation.objects.get(interaction=item)


@pytest.fixture
def engine(transactional_db, operator) -> Engine:
    return Engine(operator)


@pytest.fixture
def verified(transactional_db):
    """After the test, the database must be what its streams say."""
    yield
    assert list(verify_database()) == []


@pytest.fixture
def migrated_dump(transactional_db):
    """A function that dumps the whole database as text."""

    def dump() -> str:
        from io import StringIO

        out = StringIO()
        call_command("dumpdata", "--natural-foreign", exclude=["sessions", "contenttypes", "auth.permission"], stdout=out)
        return out.getvalue()

    return dump


def rows_of(session_id: int) -> dict:
    """The session's rows as records hold them."""
    return fold.read_rows(session_id)
