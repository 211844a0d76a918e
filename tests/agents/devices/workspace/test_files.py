"""Text files of a workspace: what is read and written, and that no path leads out."""

import os
import stat

import pytest

from agents.devices.workspace import files
from agents.progress.digests import text_digest


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_text("secret")
    return path


@pytest.fixture
def put(workspace):
    """Puts a file there, past the functions under test."""

    def put(path, content):
        place = workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place

    return put


def held(workspace):
    """Everything in the workspace, by path."""
    return {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}


ACTIONS = {
    "read": lambda workspace, path: files.read_text(workspace, path),
    "write": lambda workspace, path: files.write_text(workspace, path, "new"),
    "edit": lambda workspace, path: files.replace_text(workspace, path, "secret", "told"),
    "state": lambda workspace, path: files.content_state(workspace, path),
}
every_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


# --- reading


def test_a_file_is_read_with_its_size_in_characters(workspace, put):
    put("src/main.py", "été\r\n")
    assert files.read_text(workspace, "src/main.py") == files.FilePiece("été\r\n", 0, 5)


def test_a_part_is_read_by_characters(workspace, put):
    put("a", "äöüß")
    assert files.read_text(workspace, "a", offset=1, limit=2) == files.FilePiece("öü", 1, 4)
    assert files.read_text(workspace, "a", offset=9).text == ""


def test_one_reading_is_bounded_whatever_is_asked_for(workspace, put):
    put("a", "x" * (files.READ_CHARACTERS + 1))
    assert len(files.read_text(workspace, "a", limit=10**6).text) == files.READ_CHARACTERS


def test_a_file_that_is_missing_says_which(workspace):
    with pytest.raises(files.FileMissing, match=r"there is no file src/main\.py"):
        files.read_text(workspace, "src/main.py")


def test_a_file_below_a_file_is_missing(workspace, put):
    put("a", "")
    with pytest.raises(files.FileMissing, match="a/b"):
        files.read_text(workspace, "a/b")


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "a is not UTF-8 text"), (b"a\0b", "a is not text: it holds a NUL")]
)
def test_what_is_no_text_is_refused_and_named(workspace, put, content, message):
    put("a", content)
    with pytest.raises(files.FileRefused, match=message):
        files.read_text(workspace, "a")


def test_a_file_that_is_too_large_says_its_size(workspace, put):
    put("big", b"x" * (files.FILE_BYTES + 1))
    with pytest.raises(files.FileRefused, match="big is too large: 1,048,577 bytes"):
        files.read_text(workspace, "big")


def test_a_pipe_is_no_file_and_is_not_waited_for(workspace):
    workspace.mkdir()
    os.mkfifo(workspace / "pipe")
    with pytest.raises(files.FileRefused, match="pipe is not a file"):
        files.read_text(workspace, "pipe")


@every_action
def test_a_folder_is_no_file(workspace, put, action):
    put("src/main.py", "")
    if action is ACTIONS["state"]:
        assert action(workspace, "src") == files.UNKNOWN
        return
    with pytest.raises(files.FileRefused, match="src is not a file"):
        action(workspace, "src")


# --- writing


def test_a_new_file_is_written_with_its_folders(workspace):
    change = files.write_text(workspace, "src/lib/main.py", "print(1)\n")
    assert change == files.FileChange(files.ABSENT, text_digest("print(1)\n"), 9)
    assert held(workspace) == {"src/lib/main.py": "print(1)\n"}
    assert stat.S_IMODE(workspace.stat().st_mode) == 0o700


def test_a_file_is_replaced_as_a_whole_and_keeps_its_permissions(workspace, put):
    put("run.sh", "old and long").chmod(0o750)
    change = files.write_text(workspace, "run.sh", "é")
    assert (change.before, change.after) == (text_digest("old and long"), text_digest("é"))
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o750
    assert held(workspace) == {"run.sh": "é"}


def test_who_has_the_file_open_goes_on_reading_the_old_content(workspace, put):
    with put("a", "old").open() as reader:
        files.write_text(workspace, "a", "new")
        assert reader.read() == "old"


@pytest.mark.parametrize(
    ("content", "message"), [("x" * (files.FILE_BYTES + 1), "a is too large"), ("\ud800", "a is not text")]
)
def test_content_that_does_not_fit_changes_nothing(workspace, put, content, message):
    put("a", "old")
    with pytest.raises(files.FileUnfit, match=message):
        files.write_text(workspace, "a", content)
    assert held(workspace) == {"a": "old"}


def test_a_write_that_fails_leaves_nothing_behind(workspace, put, monkeypatch):
    put("a", "old")
    monkeypatch.setattr(os, "rename", lambda *args, **kwargs: os.stat("/no such file"))
    with pytest.raises(files.FileMissing):
        files.write_text(workspace, "a", "new")
    assert held(workspace) == {"a": "old"}


def test_a_folder_that_would_be_a_file_is_named(workspace, put):
    put("a", "")
    with pytest.raises(files.FileRefused, match="a/b"):
        files.write_text(workspace, "a/b", "new")


# --- editing


def test_an_edit_replaces_the_text_and_tells_both_states(workspace, put):
    put("main.py", "a = 1\nb = 2\n")
    change = files.replace_text(workspace, "main.py", "b = 2", "b = 3")
    assert change == files.FileChange(text_digest("a = 1\nb = 2\n"), text_digest("a = 1\nb = 3\n"), 12, 1)
    assert held(workspace) == {"main.py": "a = 1\nb = 3\n"}


def test_an_edit_whose_text_is_not_there_names_the_file(workspace, put):
    put("main.py", "a = 1\n")
    with pytest.raises(files.FileRefused, match=r"^text to replace not found in main\.py$"):
        files.replace_text(workspace, "main.py", "b = 2", "b = 3")


def test_a_text_that_stands_more_often_than_expected_is_left_alone(workspace, put):
    put("main.py", "x x x")
    with pytest.raises(files.FileRefused, match=r"found 3 times in main\.py, allowed: 2"):
        files.replace_text(workspace, "main.py", "x", "y", count=2)
    assert held(workspace) == {"main.py": "x x x"}


def test_a_text_is_replaced_wherever_it_stands(workspace, put):
    put("main.py", "x x x")
    assert files.replace_text(workspace, "main.py", "x", "y", count=3).replaced == 3
    assert held(workspace) == {"main.py": "y y y"}


def test_an_edit_cannot_make_a_file_too_large(workspace, put):
    put("a", "x" * 1000)
    with pytest.raises(files.FileUnfit, match="a is too large"):
        files.replace_text(workspace, "a", "x", "y" * 10_000, count=1000)
    assert held(workspace) == {"a": "x" * 1000}


# --- states


def test_the_state_of_a_file_is_the_digest_of_its_text(workspace, put):
    put("a", "é")
    assert files.content_state(workspace, "a") == text_digest("é") == files.content_digest("é".encode())
    assert (
        files.content_state(workspace, "b")
        == files.content_state(workspace, "b/c")
        == files.content_state(workspace, "a/b")
        == files.ABSENT
    )


def test_large_files_differ_by_their_size(workspace, put, monkeypatch):
    monkeypatch.setattr(files, "DIGEST_BYTES", 10)
    put("a", "x" * 11)
    first = files.content_state(workspace, "a")
    put("a", "x" * 12)
    assert files.content_state(workspace, "a") != first


def test_a_socket_has_no_state(workspace):
    import socket

    workspace.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(workspace / "s"))
    listener.close()
    assert files.content_state(workspace, "s") == files.UNKNOWN


# --- ways out


@every_action
@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "a/../../outside/secret", "a/..", ".."])
def test_a_path_that_leads_out_is_refused_and_named(workspace, outside, put, action, path):
    put("a/b", "")
    with pytest.raises(files.PathRefused, match="is outside the workspace") as refused:
        action(workspace, path)
    assert str(refused.value).startswith(path)
    assert held(outside) == {"secret": "secret"}


@every_action
@pytest.mark.parametrize("path", ["link", "folder/secret", "folder/new", "chain/secret"])
def test_a_link_that_leads_out_is_refused_and_named(workspace, outside, action, path):
    workspace.mkdir()
    (workspace / "link").symlink_to(outside / "secret")
    (workspace / "folder").symlink_to("../outside")
    (workspace / "chain").symlink_to("folder")
    with pytest.raises(files.PathRefused, match=path):
        action(workspace, path)
    assert held(outside) == {"secret": "secret"}


@every_action
def test_a_link_swapped_after_the_look_is_no_way_out(workspace, outside, put, action, monkeypatch):
    put("folder/secret", "mine")
    look = files._resolved

    def resolved(workspace, path):
        found = look(workspace, path)
        (workspace / "folder").rename(workspace / "moved")
        (workspace / "folder").symlink_to(outside)
        return found

    monkeypatch.setattr(files, "_resolved", resolved)
    with pytest.raises(files.PathRefused, match="folder/secret"):
        action(workspace, "folder/secret")
    assert held(outside) == {"secret": "secret"}


def test_a_link_swapped_after_the_look_makes_no_folder_outside(workspace, outside, put, monkeypatch):
    put("folder/kept", "mine")
    look = files._resolved

    def resolved(workspace, path):
        found = look(workspace, path)
        (workspace / "folder").rename(workspace / "moved")
        (workspace / "folder").symlink_to(outside)
        return found

    monkeypatch.setattr(files, "_resolved", resolved)
    with pytest.raises(files.PathRefused, match="folder/new/secret"):
        files.write_text(workspace, "folder/new/secret", "mine")
    assert [path.name for path in outside.iterdir()] == ["secret"]


@every_action
def test_a_link_that_leads_to_itself_is_refused(workspace, action):
    workspace.mkdir()
    (workspace / "loop").symlink_to("loop")
    with pytest.raises(files.PathRefused, match="loop"):
        action(workspace, "loop")


@every_action
@pytest.mark.parametrize("path", ["", ".", "a/", "a\0b"])
def test_what_is_no_path_of_a_file_is_refused(workspace, action, path):
    with pytest.raises(files.FileUnfit, match="is not the path of a file"):
        action(workspace, path)


def test_a_link_that_stays_inside_is_followed(workspace, put):
    put("real/a", "old")
    (workspace / "link").symlink_to("real/a")
    files.write_text(workspace, "link", "new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real/a").read_text() == files.read_text(workspace, "link").text == "new"


def test_a_workspace_that_is_a_link_itself_is_followed(workspace, tmp_path):
    (tmp_path / "disk").mkdir()
    workspace.symlink_to(tmp_path / "disk")
    files.write_text(workspace, "a", "new")
    assert (tmp_path / "disk" / "a").read_text() == "new"
