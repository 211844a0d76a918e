"""The store in a bucket, against a server that speaks S3: the same as the folder, and what it says when the server is away."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from contextlib import closing

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.artifacts import file_store
from agents.artifacts.keeping import keep_artifact
from agents.artifacts.opening import open_store
from agents.artifacts.s3_store import PART_BYTES, open_bucket
from agents.artifacts.store import ContentMissing, StoreUnusable
from agents.models import StoredContent
from project.environment import Bucket, bucket_of

pytestmark = [pytest.mark.one_database]

BIG = PART_BYTES * 2 + 5
"""Bytes of a content that goes in several parts."""


@pytest.fixture(scope="module")
def endpoint():
    """A server of its own, with the bucket `orrery`."""
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert any("Running on" in line for line in server.stderr)
        address = f"http://127.0.0.1:{port}"
        made = urllib.request.Request(f"{address}/orrery", method="PUT", headers={"Authorization": "AWS mine:x"})
        assert urllib.request.urlopen(made).status == 200
        yield address
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("ORRERY_SECRET_S3_KEY_ID", "an-identity-of-ours")
    monkeypatch.setenv("ORRERY_SECRET_S3_KEY", "a-key-of-ours-0123456789")


@pytest.fixture
def store(endpoint, settings):
    settings.ARTIFACTS_S3 = Bucket(endpoint, "orrery", "us-east-1")
    found = open_store()
    for each in list(found.contents()):
        found.remove(each.sha256)
    return found


def put(store, *pieces: bytes) -> str:
    with closing(store.stage(pieces, BIG)) as staged:
        staged.publish()
        return staged.sha256


def test_a_content_is_found_by_its_digest_and_read_in_ranges(store):
    sha256 = put(store, b"01234", b"56789")
    assert b"".join(store.read(sha256)) == b"0123456789"
    assert b"".join(store.read(sha256, 3, 6)) == b"345"
    assert b"".join(store.read(sha256, 8)) == b"89"
    assert store.size_of(sha256) == 10
    assert [each[:2] for each in store.contents()] == [(sha256, 10)]


def test_a_large_one_goes_in_parts_and_nothing_stays_here(store, state_dir):
    sha256 = put(store, b"x" * (BIG - 1), b"y")
    assert store.size_of(sha256) == BIG
    assert b"".join(store.read(sha256, BIG - 3)) == b"xxy"
    assert list((state_dir / "store" / file_store.STAGING).iterdir()) == []


def test_an_empty_one_is_one_too(store):
    sha256 = put(store)
    assert (store.size_of(sha256), b"".join(store.read(sha256))) == (0, b"")


def test_what_is_not_there_is_said_and_removing_twice_is_once(store):
    sha256 = put(store, b"gone")
    store.remove(sha256)
    store.remove(sha256)
    assert store.size_of(sha256) is None
    with pytest.raises(ContentMissing):
        store.read(sha256)


@pytest.mark.django_db(transaction=True)
def test_an_artifact_is_kept_in_the_bucket_that_the_settings_name(store):
    kept = keep_artifact(b"hello", name="a.txt")
    assert b"".join(store.read(kept["sha256"])) == b"hello"
    assert StoredContent.objects.get().pk == kept["sha256"]


def test_a_server_that_is_away_and_keys_that_are_missing_are_said(settings, monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    settings.ARTIFACTS_S3 = Bucket(f"http://127.0.0.1:{port}", "orrery", "us-east-1")
    monkeypatch.setattr("agents.artifacts.s3_store.RETRIES", {"max_retries": 0})
    open_bucket.cache_clear()
    with pytest.raises(StoreUnusable, match="does not answer"):
        open_store().size_of("a" * 64)
    monkeypatch.delenv("ORRERY_SECRET_S3_KEY")
    with pytest.raises(StoreUnusable, match="the secret S3_KEY is not there"):
        open_store()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://s3.example.org/orrery?region=eu-1", Bucket("https://s3.example.org", "orrery", "eu-1")),
        ("http://10.0.0.1:9000/orrery", Bucket("http://10.0.0.1:9000", "orrery", "us-east-1")),
        ("", None),
    ],
)
def test_a_bucket_is_an_address(monkeypatch, text, found):
    monkeypatch.setenv("ORRERY_ARTIFACTS_S3", text)
    assert bucket_of("ORRERY_ARTIFACTS_S3") == found


@pytest.mark.parametrize(
    "text", ["orrery", "ftp://x/orrery", "https://host/", "https://key:secret@host/orrery", "https://[x/orrery"]
)
def test_what_is_no_bucket_is_refused(monkeypatch, text):
    monkeypatch.setenv("ORRERY_ARTIFACTS_S3", text)
    with pytest.raises(ImproperlyConfigured, match="ORRERY_ARTIFACTS_S3"):
        bucket_of("ORRERY_ARTIFACTS_S3")
