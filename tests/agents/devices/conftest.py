"""Commands of the tests are small programs, given as text to this interpreter."""

import os
import sys
from pathlib import Path

import pytest

from agents.devices import CommandLimits, process_start, run_command
from agents.devices.confinement import BUBBLEWRAP, LANDLOCK, NONE, Walls
from agents.devices.processes import list_pids

ATTEMPT = 7


@pytest.fixture
def instance(tmp_path):
    """No other test's processes carry it."""
    return str(tmp_path)


@pytest.fixture
def printed():
    """What the commands of this test have printed, piece by piece."""
    return []


@pytest.fixture(params=[NONE, BUBBLEWRAP, LANDLOCK])
def walls(request, tmp_path):
    """The walls that the commands of a test are behind; none, and those that every user can put up."""
    if request.param == NONE:
        return None
    return Walls(request.param, readable=(tmp_path,), hidden=(tmp_path,))


@pytest.fixture
def run(tmp_path, instance, printed, walls):
    """Runs an argument list; keywords replace run_command's."""

    async def run(argv, **changed):
        wanted = {
            "workspace": tmp_path / "workspace",
            "attempt_id": ATTEMPT,
            "instance": instance,
            "limits": CommandLimits(),
            "timeout": 30,
            "on_output": printed.append,
            "walls": walls,
        }
        return await run_command(argv, **(wanted | changed))

    return run


@pytest.fixture
def python(run):
    """Runs a program text."""

    async def python(program, **changed):
        return await run([sys.executable, "-c", program], **changed)

    return python


@pytest.fixture
def gone(request, tmp_path):
    """Whether nobody of these pids, and there must be some, lives.

    A process behind walls says another pid than it has here: then nobody may live who works in this test's folder.
    """
    if "walls" in request.fixturenames and request.getfixturevalue("walls"):
        return lambda told: bool(told) and not [pid for pid in list_pids() if works_in(tmp_path, pid) and process_start(pid)]
    return lambda told: bool(told) and all(process_start(pid) is None for pid in told)


def works_in(folder, pid) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder)
    except OSError:
        return False
