"""What is kept how long, and when a content goes: never while somebody refers to it or is about to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agents.artifacts import keeping
from agents.artifacts.keeping import keep_artifact
from agents.artifacts.opening import open_store
from agents.models import Artifact, Event, StoredContent
from agents.services import retention, sessions
from agents.services.retention import apply_retention
from agents.streams.verify import verify_database
from tests.agents.conftest import add_artifacts

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def bounds(settings):
    settings.ARTIFACT_DAYS = settings.ARTIFACT_SESSION_BYTES = settings.ARTIFACT_TOTAL_BYTES = 0


def age(artifacts, days: float) -> None:
    Artifact.objects.filter(pk__in=artifacts).update(created_at=timezone.now() - timedelta(days=days))


def unclaim() -> None:
    """Let all contents have been wanted long ago."""
    StoredContent.objects.update(claimed_at=timezone.now() - timedelta(days=9))


def names() -> list[str]:
    return list(Artifact.objects.filter(removed_at=None).values_list("name", flat=True))


def stored() -> int:
    return len(list(open_store().contents()))


def test_what_is_old_goes_with_its_content_unless_it_is_kept(session, settings):
    settings.ARTIFACT_DAYS = 30
    old, kept, _ = add_artifacts(session, b"old", b"kept", b"young")
    Artifact.objects.filter(pk=kept).update(is_kept=True)
    age([old, kept], 31)
    unclaim()
    assert apply_retention() == (1, 1)
    assert names() == ["kept-1.txt", "kept-2.txt"]
    assert stored() == 2
    told = Event.objects.get(type="artifacts_removed")
    assert told.data["why"] == "age"
    assert apply_retention() == (0, 0)


def test_a_content_stays_while_another_artifact_refers_to_it(session, settings):
    settings.ARTIFACT_DAYS = 30
    old, _ = add_artifacts(session, b"same", b"same")
    age([old], 31)
    unclaim()
    assert apply_retention() == (1, 0)
    assert stored() == 1


def test_a_session_and_all_have_their_bounds_and_the_oldest_go(session, operator, settings):
    other = sessions.session_create(operator, "other", by="system")
    add_artifacts(session, b"1" * 40, b"2" * 40, b"3" * 40)
    add_artifacts(other, b"4" * 40)
    settings.ARTIFACT_SESSION_BYTES = 100
    assert apply_retention()[0] == 1
    assert Artifact.objects.filter(removed_at=None, session=session).count() == 2
    settings.ARTIFACT_TOTAL_BYTES = 50
    assert apply_retention()[0] == 2
    assert Artifact.objects.get(removed_at=None).session_id == other.pk
    assert list(verify_database()) == []


def test_what_was_just_wanted_stays_though_nobody_refers_to_it_yet():
    keep_artifact(b"on its way", name="a")
    assert apply_retention() == (0, 0)
    assert stored() == 1
    unclaim()
    assert apply_retention() == (0, 1)
    assert stored() == 0


def test_who_wants_a_content_that_is_being_removed_has_it_in_the_end(monkeypatch):
    """The claim waits for the removal, and the content is published after it."""
    keep_artifact(b"wanted again", name="a")
    unclaim()
    claimed = threading.Event()
    claim, remove = keeping.claim_content, type(open_store()).remove

    def slow_remove(store, sha256):
        writer.start()
        claimed.wait(0.3)  # it cannot be claimed before this transaction has ended
        assert not claimed.is_set()
        remove(store, sha256)

    def write():
        try:
            keep_artifact(b"wanted again", name="a")
        finally:
            connection.close()

    def told_claim(staged):
        claim(staged)
        claimed.set()

    writer = threading.Thread(target=write)
    monkeypatch.setattr(keeping, "claim_content", told_claim)
    monkeypatch.setattr(type(open_store()), "remove", slow_remove)
    assert retention.remove_unreferenced(open_store(), timezone.now() - timedelta(days=1), 1e12) == 1
    writer.join()
    assert stored() == 1
    assert StoredContent.objects.count() == 1


KILLED = """
import os, signal, sys
import django
django.setup()
from django.conf import settings
from pathlib import Path
settings.STATE_DIR = Path(sys.argv[1])
settings.DATABASES["default"]["NAME"] = sys.argv[2]
from agents.artifacts import file_store, keeping
die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
at = sys.argv[3]
if at == "staged":
    keeping.claim_content = die
elif at == "claimed":
    file_store.StagedFile.publish = die
keeping.keep_artifact(b"killed here", name="a")
die()
"""


@pytest.mark.kill
@pytest.mark.parametrize(("at", "contents"), [("staged", 0), ("claimed", 0), ("published", 1)])
def test_a_kill_leaves_no_row_without_a_content_and_what_is_left_is_swept(at, contents, state_dir):
    name = str(connection.settings_dict["NAME"])
    made = subprocess.run([sys.executable, "-c", KILLED, str(state_dir), name, at], env=os.environ, check=False)
    assert made.returncode == -signal.SIGKILL
    assert stored() == contents
    assert not Artifact.objects.exists()
    unclaim()
    staging = state_dir / "store" / "staging"
    for left in staging.iterdir():
        os.utime(left, (1, 1))
    apply_retention()
    assert stored() == 0
    assert list(staging.iterdir()) == []
    assert not StoredContent.objects.exists()
