"""A runner of another host that has lost its advisory lock may live on without it for a moment (PostgreSQL)."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from agents.devices import host
from agents.engine import leases
from agents.engine.journal import Journal
from agents.models import Runner
from tests.reliability.cluster import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="runners on SQLite are on one host"),
]


@pytest.fixture
def looking():
    """The leases of a runner that has been there for long."""
    journal = Journal()
    found = leases.Leases(journal, 0)
    found._began -= leases.LEASE_S + 1
    yield found
    journal.close()


def test_a_lock_that_is_free_makes_a_runner_dead_only_after_a_while(looking, monkeypatch):
    now = timezone.now()
    there = Runner.objects.create(host="there", pid=1, pid_start=1, files="", started_at=now, renewed_at=now)
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s, %s)", (leases.ADVISORY, there.pk))
        assert (looking.dead(), looking.has_company) == ({}, True)
    until(lambda: looking.dead() or looking._free_since, "the lock is seen free")
    assert looking.dead() == {}
    monkeypatch.setattr(leases, "LOCK_FREE_S", 0.0)
    assert looking.dead() == {there.pk: set()}
    looking._began += leases.LEASE_S
    assert looking.dead() == {}, "one that has just begun does not judge by locks"


def test_a_lock_that_is_held_again_counts_from_the_beginning(looking):
    now = timezone.now()
    there = Runner.objects.create(host="there", pid=1, pid_start=1, files="", started_at=now, renewed_at=now)
    assert looking.dead() == {}
    assert there.pk in looking._free_since
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s, %s)", (leases.ADVISORY, there.pk))
        assert looking.dead() == {}
        assert looking._free_since == {}


def test_another_installation_of_this_machine_is_dead_when_it_does_not_renew_as_on_another_host(looking, tmp_path):
    """Its process may stand still and hold its file lock; one of this installation lives as long as that is held."""
    now = timezone.now()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with_renewals_of = {}
    locks = []
    for folder in (elsewhere, host.runtime_dir()):
        for ago_s in (0.0, leases.LEASE_S + 1):
            row = Runner.objects.create(
                host=host.boot_identity(), pid=1, pid_start=1, files=str(folder), started_at=now,
                renewed_at=now - timedelta(seconds=ago_s),
            )  # fmt: skip
            locks.append(leases.RunnerLock(folder, row.pk))
            with_renewals_of[folder, ago_s] = row.pk
    try:
        assert looking.dead() == {with_renewals_of[elsewhere, leases.LEASE_S + 1]: set()}
    finally:
        for lock in locks:
            lock.close()
