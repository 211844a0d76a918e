"""Commands of the tests are small programs, given as text to this interpreter."""

import sys

import pytest

from agents.devices import Limits, process_start, run_command

ATTEMPT = 7


@pytest.fixture
def instance(tmp_path):
    """No other test's processes carry it."""
    return str(tmp_path)


@pytest.fixture
def printed():
    """What the commands of this test have printed, piece by piece."""
    return []


@pytest.fixture
def run(tmp_path, instance, printed):
    """Runs an argument list; keywords replace run_command's."""

    async def run(argv, **changed):
        wanted = {
            "workspace": tmp_path / "workspace",
            "attempt_id": ATTEMPT,
            "instance": instance,
            "limits": Limits(),
            "timeout": 30,
            "on_output": printed.append,
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
def gone():
    """Whether none of these pids, and there must be some, is a living process."""
    return lambda pids: bool(pids) and all(process_start(pid) is None for pid in pids)
