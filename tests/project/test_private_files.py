"""What an installation has written is its user's own, also what was written before that was so."""

import os

import pytest

from project.private_files import close_to_others


def modes(folder) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_mode & 0o777 for path in sorted(folder.rglob("*"))}


@pytest.fixture
def written(settings, monkeypatch, tmp_path):
    """A state folder as an older version left it, with a database that is elsewhere."""
    settings.STATE_DIR = tmp_path / "state"
    elsewhere = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "elsewhere.sqlite3")}
    # Taken back afterwards, or threads of later tests would look there.
    monkeypatch.setitem(settings.DATABASES, "default", {**settings.DATABASES["default"], **elsewhere})
    for name in ("logs/web.log", "run/abc/up.json", "workspaces/laptop/left.txt", "artifacts/7/model.json", "static/a.css"):
        path = settings.STATE_DIR / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        path.chmod(0o644)
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"elsewhere.sqlite3{end}").write_text("x")
        (tmp_path / f"elsewhere.sqlite3{end}").chmod(0o644)
    for folder in (settings.STATE_DIR, *(path for path in settings.STATE_DIR.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return tmp_path


def test_what_others_could_read_is_closed_and_a_second_look_finds_nothing(written, settings):
    outside = written / "outside.txt"
    outside.write_text("x")
    outside.chmod(0o644)
    (settings.STATE_DIR / "link").symlink_to(outside)
    (settings.STATE_DIR / "secret_key").write_text("x")
    (settings.STATE_DIR / "secret_key").chmod(0o400)
    closed = close_to_others()
    assert len(closed) == 15
    left = {name for name, mode in modes(settings.STATE_DIR).items() if mode & 0o077 and name != "link"}
    assert left == {"workspaces/laptop/left.txt", "artifacts/7/model.json"}, "inside folders that are closed"
    assert settings.STATE_DIR.stat().st_mode & 0o777 == 0o700
    assert {(written / f"elsewhere.sqlite3{end}").stat().st_mode & 0o777 for end in ("", "-wal", "-shm")} == {0o600}
    assert (outside.stat().st_mode & 0o777, (settings.STATE_DIR / "secret_key").stat().st_mode & 0o777) == (0o644, 0o400)
    assert close_to_others() == []


def test_every_process_that_reads_the_settings_writes_for_itself_alone():
    mask = os.umask(0o077)
    os.umask(mask)
    assert mask == 0o077
