"""What a program that an admin has named may read of the host besides: itself, and what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.devices.confinement import folders_of_program


@pytest.fixture
def host(tmp_path, monkeypatch) -> Path:
    """A folder with a home of this user's in it."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


def test_one_of_a_virtual_environment_has_that_and_its_interpreter(host):
    base = Path(program(host / "base" / "bin" / "python3"))
    tool = program(host / "home" / "tools" / "git" / "bin" / "mcp-server-git")
    environment = Path(tool).parents[1]
    (environment / "pyvenv.cfg").touch()
    (environment / "bin" / "python").symlink_to(base)
    (host / "home" / "bin").mkdir()
    (host / "home" / "bin" / "git-tool").symlink_to(tool)
    assert set(folders_of_program([tool], ())) == {environment, host / "base"}
    linked = folders_of_program([str(host / "home" / "bin" / "git-tool")], ())
    assert set(linked) == {host / "home" / "bin", environment, host / "base"}


def test_one_of_npm_has_all_packages_that_it_was_installed_with(host):
    tool = program(host / "agents" / "node_modules" / "one" / "node_modules" / "two" / "cli.js")
    assert folders_of_program(["/usr/bin/node", tool], ()) == (host / "agents" / "node_modules",)


def test_files_and_folders_that_it_is_given_are_shown_and_what_is_no_whole_path_is_not(host):
    (host / "data").mkdir()
    script = program(host / "srv" / "serve.py")
    argv = ["/usr/bin/python3", script, str(host / "data"), "data", str(host / "nothing")]
    assert set(folders_of_program(argv, ())) == {Path(script), host / "data"}


def test_nothing_is_shown_that_holds_a_home_or_what_is_hidden(host):
    (host / "state" / "deep").mkdir(parents=True)
    loose, own = program(host / "home" / "tool"), program(host / "state" / "tool")
    assert folders_of_program([loose], ()) == (Path(loose),)
    assert folders_of_program([own, str(host), str(host / "state")], (host / "state" / "deep",)) == (Path(own),)
