"""The store in a folder: whole contents under their digests, nothing through links, nothing left of what failed."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from agents.artifacts.file_store import FileStore
from agents.artifacts.store import ArtifactTooLarge, ContentMissing, StoreUnusable

pytestmark = pytest.mark.one_database


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


def put(store, content: bytes) -> str:
    with closing(store.stage([content], 1 << 20)) as staged:
        staged.publish()
        return staged.sha256


def test_a_content_is_found_by_its_digest_and_read_in_ranges(store, tmp_path):
    sha256 = put(store, b"0123456789")
    assert sha256 == hashlib.sha256(b"0123456789").hexdigest()
    assert b"".join(store.read(sha256)) == b"0123456789"
    assert b"".join(store.read(sha256, 3, 6)) == b"345"
    assert b"".join(store.read(sha256, 8)) == b"89"
    assert store.size_of(sha256) == 10
    path = tmp_path / "store" / sha256[:2] / sha256
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_staged_is_seen_by_nobody_and_leaves_nothing(store, tmp_path):
    with closing(store.stage([b"abc"], 10)) as staged:
        assert list(store.contents()) == []
        with pytest.raises(ContentMissing):
            store.read(staged.sha256)
    assert list((tmp_path / "store" / "staging").iterdir()) == []


def test_more_than_is_allowed_is_refused_as_it_comes(store, tmp_path):
    read = []

    def pieces():
        for number in range(1000):
            read.append(number)
            yield b"x" * 1000

    with pytest.raises(ArtifactTooLarge, match="2,500 bytes"):
        store.stage(pieces(), 2_500)
    assert len(read) == 3
    assert list((tmp_path / "store" / "staging").iterdir()) == []


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "A" * 64, "a" * 63, "staging", "a" * 64 + "/../x", "\0" * 64])
def test_a_path_is_no_digest(store, digest):
    assert store.size_of(digest) is None
    for use in (store.read, store.remove):
        with pytest.raises(ContentMissing):
            use(digest)


def test_a_link_in_the_place_of_a_content_is_no_content(store, tmp_path):
    sha256 = put(store, b"mine")
    (tmp_path / "secret").write_bytes(b"not yours")
    path = tmp_path / "store" / sha256[:2] / sha256
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(ContentMissing):
        store.read(sha256)
    assert list(store.contents()) == []


def test_a_link_in_the_place_of_a_folder_leads_nowhere(store, tmp_path):
    sha256 = hashlib.sha256(b"mine").hexdigest()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / sha256[:2]).symlink_to(outside)
    with pytest.raises(StoreUnusable):
        put(store, b"mine")
    assert list(outside.iterdir()) == []


def test_several_writers_of_one_content_leave_one(store):
    def write():
        put(store, b"the same" * 1000)

    threads = [Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(store.contents())
    assert [each.size for each in found] == [8000]
    assert b"".join(store.read(found[0].sha256)) == b"the same" * 1000


def test_a_damaged_content_is_mended_by_who_keeps_it_again(store, tmp_path):
    sha256 = put(store, b"whole")
    (tmp_path / "store" / sha256[:2] / sha256).write_bytes(b"wh")
    put(store, b"whole")
    assert b"".join(store.read(sha256)) == b"whole"


def test_a_full_disk_is_said_and_leaves_nothing(store, tmp_path, monkeypatch):
    written = os.write

    def full(file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreUnusable, match="No space left"):
        store.stage([b"x"], 10)
    monkeypatch.setattr(os, "write", written)
    assert list((tmp_path / "store" / "staging").iterdir()) == []


def test_what_was_staged_by_a_killed_process_is_swept(store, tmp_path):
    left = store.stage([b"left"], 10)
    assert store.sweep(datetime.now(UTC) - timedelta(hours=1)) == 0
    assert store.sweep(datetime.now(UTC) + timedelta(hours=1)) == 1
    assert list((tmp_path / "store" / "staging").iterdir()) == []
    os.close(left._file)


def test_removing_twice_is_removing_once(store):
    sha256 = put(store, b"gone")
    store.remove(sha256)
    store.remove(sha256)
    assert store.size_of(sha256) is None
