"""Workspaces that change hands (mechanism `uid`): what a command puts there does not change hands with them."""

import os
import tempfile
from pathlib import Path

import pytest

from agents.devices.confinement import UID, Walls, hand_over, own_id
from agents.devices.workspace import files
from tests.attacks.ground import RUNNER_OF_COMMANDS, Ground

pytestmark = [pytest.mark.attack, pytest.mark.skipif(os.getuid() != 0, reason="only root can be followed by other users")]


@pytest.fixture
def state():
    with tempfile.TemporaryDirectory(prefix="orrery-hands-") as place:  # pytest's own folders are for one user only
        Path(place).chmod(0o755)
        (Path(place) / "state").mkdir(mode=0o700)
        yield Path(place) / "state"


def test_a_link_that_a_command_left_gives_nothing_away(state):
    """The owner of a workspace can always change its mode; what follows is no new handing over."""
    workspace, key = state / "workspaces" / "laptop", state / "secret_key"
    workspace.mkdir(parents=True)
    key.touch(mode=0o600)
    walls = Walls(UID, hidden=(state,))
    hand_over(workspace, walls)
    os.link(key, workspace / "linked")  # as where the kernel lets everybody link to everything
    (workspace / "symbolic").symlink_to(key)
    workspace.chmod(0o755)
    hand_over(workspace, walls)
    assert key.stat().st_uid == 0
    assert workspace.stat().st_mode & 0o777 == 0o700


def test_a_command_reaches_what_file_tools_and_the_runner_make_later(state):
    ground = Ground(state, UID, 0, RUNNER_OF_COMMANDS)
    workspace = state / "workspaces" / "laptop"
    assert ground.run("rm", "-r", ".tmp")[1][0] == "completed"
    files.write_text(workspace, "new/notes.txt", "said\n")
    said, ended = ground.run("sh", "-c", 'cat new/notes.txt && echo > new/more && echo > "$TMPDIR/own"')
    assert (said, ended[:2]) == ("said", ["completed", 0])
    assert (workspace / "new" / "notes.txt").stat().st_uid == own_id(workspace)
