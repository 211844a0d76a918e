"""A fork bomb, a memory hog and a flood of output, behind each kind of walls: made here, and asked for by another process."""

import asyncio
import sys

import pytest

from agents.devices.confinement import BUBBLEWRAP, LANDLOCK, NONE, ConfinementMissing, find_confinement
from agents.devices.host import instance_name
from agents.devices.processes import attempts_at_work
from agents.models import Device
from agents.tools.calls import TOOLS
from tests.agents.links.conftest import far, held, make_call, session  # noqa: F401
from tests.agents.links.test_serving import together

pytestmark = [pytest.mark.attack, pytest.mark.django_db(transaction=True)]

LIMITS = {"processes": 24, "memory_mb": 120, "output_mb": 1, "seconds": 20}
BOMB = """
import os, time
while True:
    os.fork()
    time.sleep(0.05)
"""
HOG = """
import time
blocks = []
while True:
    blocks.append(b"x" * (8 << 20))
    time.sleep(0.02)
"""
FLOOD = """
import os
while True:
    os.write(1, b"x" * 65536)
"""
GREEDY = {
    "bomb": (BOMB, "24 processes exceeded"),
    "hog": (HOG, "memory 120 MB exceeded"),
    "flood": (FLOOD, "output 1 MB exceeded"),
}
ATTEMPT = 7


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK, NONE])
def walls(request, settings, state_dir):
    """Commands are behind these walls."""
    try:
        find_confinement(request.param, state_dir)
    except ConfinementMissing as missing:
        pytest.skip(str(missing))
    settings.CONFINEMENT = request.param
    Device.objects.update(limits=LIMITS)
    return request.param


def greedy_call(make_call, program: str):  # noqa: F811
    """A call that is a command, on a device with limits."""
    call = make_call(ATTEMPT)
    call.tool, call.arguments, call.scope, call.timeout = "command", {"argv": [sys.executable, "-c", program]}, "1", None
    call.device = {**call.device, "kind": "local", "limits": LIMITS}
    return call


def check(outcome, printed: list[str], error: str) -> None:
    assert (outcome.outcome, outcome.error) == ("failed", error)
    assert sum(map(len, printed)) <= 1 << 20
    assert ATTEMPT not in attempts_at_work(instance_name()), "nothing of it is left"


@pytest.mark.parametrize("kind", GREEDY)
def test_a_greedy_command_is_ended_where_it_is_made(far, walls, make_call, kind):  # noqa: F811
    program, error = GREEDY[kind]
    call, printed = greedy_call(make_call, program), []
    call.on_output = printed.append
    check(asyncio.run(TOOLS["command"](call)), printed, error)


@pytest.mark.parametrize("kind", GREEDY)
def test_a_greedy_command_that_another_process_asked_for_is_ended_too(far, held, walls, make_call, kind):  # noqa: F811
    program, error = GREEDY[kind]
    call, printed = greedy_call(make_call, program), []
    call.on_output = printed.append

    async def work(sides):
        sides.serving.hold(far.pk, held[far.pk], None)
        return await sides.away.carry(call)

    check(together(work), printed, error)
