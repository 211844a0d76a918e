"""The client's command line, what it keeps, and that it runs without Django and without this repository."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys

import pytest
from django.conf import settings

from agents.devices.client.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, pause_s
from agents.devices.client.main import dialled_address, find_place, main
from agents.devices.client.place import ClientRefused, TokenFile, only_client_of
from agents.devices.confinement import Confinement
from project.device_file import build_client

LOADED = """
import agents.devices.client.main, sys
print([name for name in ('django', 're2', 'psycopg', 'rest_framework') if name in sys.modules])
"""


def test_it_imports_neither_django_nor_anything_with_a_part_that_is_compiled():
    told = subprocess.run([sys.executable, "-c", LOADED], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize(("server", "address"), [
    ("http://localhost:8000", "ws://localhost:8000/ws/devices/"), ("https://a.example/orrery/", "wss://a.example/orrery/ws/devices/"),
    ("wss://a.example", "wss://a.example/ws/devices/"),
])  # fmt: skip
def test_a_server_is_said_as_people_say_it(server, address):
    assert dialled_address(server) == address


@pytest.mark.parametrize(
    "server", ["localhost:8000", "ftp://a", "https://", "https://me:secret@a.example", "http://a/?token=x"]
)
def test_what_is_no_server_is_refused(server, tmp_path, capsys):
    assert main(["--server", server, "--state", str(tmp_path / "state")]) == 1
    assert "--server must be an address" in capsys.readouterr().err


def test_the_token_is_kept_for_its_user_only_and_a_one_time_token_is_exchanged_once(tmp_path):
    tokens = TokenFile(tmp_path, "ws://a")
    assert tokens.token_for("once") == "once"
    tokens.keep("own", "once")
    assert stat.S_IMODE((tmp_path / "token.json").stat().st_mode) == 0o600
    again = TokenFile(tmp_path, "ws://a")
    assert (again.token_for("once"), again.token_for(""), again.token_for("other")) == ("own", "own", "other")
    with pytest.raises(ClientRefused, match="no token yet"):
        TokenFile(tmp_path, "ws://elsewhere").token_for("")
    (tmp_path / "token.json").write_text("{")
    assert again.token_for("once") == "once"


def test_two_clients_do_not_share_a_state(tmp_path):
    with only_client_of(tmp_path), pytest.raises(ClientRefused, match="another client"), only_client_of(tmp_path):
        pass


def test_nothing_runs_unconfined_that_nobody_has_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "agents.devices.client.main.find_confinement", lambda *_: Confinement("none", ("bwrap is not installed",))
    )
    with pytest.raises(ClientRefused, match="--unconfined"):
        find_place(tmp_path, tmp_path / "workspace", "auto", False)
    assert find_place(tmp_path, tmp_path / "workspace", "auto", True).confinement.mechanism == "none"


def test_pauses_grow_and_spread():
    assert pause_s(0, 1.0) == FIRST_PAUSE_S
    assert [pause_s(10_000, chance) for chance in (0.0, 1.0)] == [LONGEST_PAUSE_S / 2, LONGEST_PAUSE_S]
    assert pause_s(3, 0.0) == 4 * FIRST_PAUSE_S


def test_one_file_runs_on_a_plain_python(tmp_path):
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("this machine has no Python of its own")
    assert build_client(tmp_path / "device.pyz") < 1_000_000
    first = (tmp_path / "device.pyz").read_bytes()
    build_client(tmp_path / "device.pyz")
    assert (tmp_path / "device.pyz").read_bytes() == first
    for _ in range(2):  # the second time it is unpacked already
        told = subprocess.run(
            [python, "-I", "-S", "device.pyz", "--server", "http://127.0.0.1:1", "--state", "state", "--unconfined"],
            cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (told.returncode, "there is no token yet" in told.stderr) == (1, True), told.stderr
