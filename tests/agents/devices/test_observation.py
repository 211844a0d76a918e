"""What a workspace and its host look like."""

import json
import os

import pytest

from agents.devices import observation
from agents.devices.observation import DEPTH, DIGEST_BYTES, files_digest, observe_workspace
from agents.progress.digests import text_digest


@pytest.fixture
def put(tmp_path):
    """Puts a file of a given time into the workspace."""

    def put(path, content="", modified=1_000_000_000):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        os.utime(place, (modified, modified))
        return place

    return put


def paths(seen):
    return [file["path"] for file in seen["files"]]


def test_files_are_told_newest_first(tmp_path, put):
    put("old.txt", "1", 1_000_000_000)
    put("src/new.txt", "22", 1_000_000_001.5)
    seen = observe_workspace(tmp_path)
    assert seen["files"] == [
        {"path": "src/new.txt", "size": 2, "modified": "2001-09-09T01:46:41.500000Z", "digest": text_digest("22")},
        {"path": "old.txt", "size": 1, "modified": "2001-09-09T01:46:40.000000Z", "digest": text_digest("1")},
    ]
    assert seen["files_total"] == 2


def test_the_system_is_told_in_numbers_that_json_can_say(tmp_path):
    seen = observe_workspace(tmp_path / "not there yet")
    assert (seen["files"], seen["files_total"]) == ([], 0)
    assert set(seen["system"]) == {"load_1m", "memory_percent", "disk_percent", "cpu_count", "uptime_s", "processes"}
    assert all(value >= 0 for value in json.loads(json.dumps(seen["system"])).values())
    assert seen["system"]["processes"] > 0
    assert seen["at"].endswith("Z")


def test_large_files_have_no_digest(tmp_path, put):
    put("small", "x" * (DIGEST_BYTES - 1))
    put("large", "x" * DIGEST_BYTES)
    assert {file["path"]: "digest" in file for file in observe_workspace(tmp_path)["files"]} == {"small": True, "large": False}


def test_temporary_files_links_and_pipes_are_left_out(tmp_path, put):
    put(".tmp/scratch")
    put("src/.tmp/kept")
    put("a")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "out").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert sorted(paths(observe_workspace(tmp_path))) == ["a", "src/.tmp/kept"]


def test_folders_are_looked_into_to_a_depth(tmp_path, put):
    for depth in range(DEPTH + 1):
        put("/".join([*"abcdefgh"[:depth], "file"]))
    assert max(path.count("/") for path in paths(observe_workspace(tmp_path))) == DEPTH - 1


def test_the_newest_are_told_of_many(tmp_path, put, monkeypatch):
    monkeypatch.setattr(observation, "FILES", 2)
    for number in range(5):
        put(f"f{number}", modified=1_000_000_000 + number)
    seen = observe_workspace(tmp_path)
    assert paths(seen) == ["f4", "f3"]
    assert seen["files_total"] == 5


def test_the_walk_is_bounded(tmp_path, put, monkeypatch):
    monkeypatch.setattr(observation, "ENTRIES", 3)
    for number in range(5):
        put(f"f{number}")
    assert observe_workspace(tmp_path)["files_total"] == 3


def test_names_and_times_that_records_cannot_hold_are_told_as_they_can(tmp_path):
    place = os.fsencode(tmp_path) + b"/\xff"
    with open(place, "w"):
        os.utime(place, (10**12, 10**12))
    assert [(file["path"], file["modified"] > "2100") for file in observe_workspace(tmp_path)["files"]] == [("\ufffd", True)]


def test_what_was_seen_differs_by_content_not_by_time(tmp_path, put):
    put("a", "1", 1_000_000_000)
    put("b", "2", 1_000_000_001)
    first = files_digest(observe_workspace(tmp_path))
    put("a", "1", 1_000_000_002)
    assert files_digest(observe_workspace(tmp_path)) == first
    put("a", "3", 1_000_000_002)
    assert files_digest(observe_workspace(tmp_path)) != first


def test_a_folder_that_becomes_a_link_meanwhile_is_not_looked_into(tmp_path, monkeypatch):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "folder").mkdir(parents=True)
    (outside / "below").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    look = observation._entries

    def entries(*place):
        if workspace / "folder" in place:
            (workspace / "folder").rename(workspace / "moved")
            (workspace / "folder").symlink_to(outside)
        return look(*place)

    monkeypatch.setattr(observation, "_entries", entries)
    assert observe_workspace(workspace)["files"] == []
