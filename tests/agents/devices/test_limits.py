"""Limits hold for everything a command has started, and all of it is ended."""

import asyncio
import subprocess
import sys

import pytest

from agents.devices import CommandLimits
from agents.devices.limits import MB, find_excess
from agents.devices.processes import read_process

# Leaves the session by a double fork, says its pid and sleeps, its output still open. `ready` is read by the main process.
ESCAPER = """
import os, sys, time
heard, ready = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.write(ready, b"x")
        time.sleep(600)
    os._exit(0)
os.read(heard, 1)
"""
FORKS = """
import os, time
for _ in range({number}):
    if os.fork() == 0:
        {then}
        time.sleep(600)
time.sleep({seconds})
"""


def pids(printed):
    return [int(pid) for pid in "".join(printed).split()]


async def test_a_command_is_stopped_when_its_time_is_over(run, printed, gone):
    outcome = await run(["sh", "-c", "echo $$; sleep 600 & echo $!; wait"], timeout=0.3)
    assert (outcome.outcome, outcome.exit_code, outcome.error) == ("timeout", -9, "stopped after 0.3 s")
    assert len(pids(printed)) == 2
    assert gone(pids(printed))


async def test_the_device_limits_the_time_too(run):
    outcome = await run(["sleep", "600"], timeout=None, limits=CommandLimits(seconds=0.2))
    assert (outcome.outcome, outcome.error) == ("timeout", "stopped after 0.2 s")


async def test_what_printed_its_result_and_then_hangs_is_a_timeout_with_that_result(run):
    outcome = await run(["sh", "-c", "echo '{\"a\": 1}'; sleep 600"], timeout=0.3)
    assert (outcome.outcome, outcome.result) == ("timeout", {"a": 1})


async def test_a_grandchild_that_keeps_the_output_open_does_not_outlive_the_command(run, printed, gone):
    outcome = await run(["sh", "-c", "sleep 600 & echo $!"])
    assert outcome.outcome == "completed"
    assert gone(pids(printed))


async def test_a_grandchild_that_has_left_the_session_is_ended(python, printed, gone):
    outcome = await python(ESCAPER)
    assert (outcome.outcome, outcome.survivors) == ("completed", ())
    assert gone(pids(printed))


async def test_a_time_out_ends_what_has_left_the_session(python, printed, gone):
    outcome = await python(ESCAPER + "time.sleep(600)", timeout=1)
    assert outcome.outcome == "timeout"
    assert gone(pids(printed))


async def test_a_process_without_session_and_environment_is_known_by_its_parent(python, printed, gone):
    program = """
import subprocess, time
child = subprocess.Popen(["env", "-i", "sleep", "600"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(0.5)
"""
    outcome = await python(program)
    assert outcome.outcome == "completed"
    assert gone(pids(printed))


async def test_memory_is_counted_over_the_group(python):
    program = FORKS.format(number=3, then="block = b'x' * (40 << 20)", seconds=600)
    outcome = await python(program, limits=CommandLimits(memory_bytes=100 * MB))
    assert (outcome.outcome, outcome.error) == ("limit", "memory 100 MB exceeded")


async def test_memory_of_what_has_left_the_session_counts(python, printed, gone):
    program = ESCAPER.replace("time.sleep(600)", "block = b'x' * (80 << 20); time.sleep(600)") + "time.sleep(600)"
    outcome = await python(program, limits=CommandLimits(memory_bytes=60 * MB))
    assert (outcome.outcome, outcome.error) == ("limit", "memory 60 MB exceeded")
    assert gone(pids(printed))


async def test_pages_that_processes_share_count_once(python):
    program = "block = b'x' * (60 << 20)\n" + FORKS.format(number=4, then="pass", seconds=0.5)
    outcome = await python(program, limits=CommandLimits(memory_bytes=160 * MB))
    assert outcome.outcome == "completed"


def test_what_has_ended_since_it_was_seen_has_no_memory_any_more():
    program = "print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"  # one that has only begun has no memory yet
        seen = read_process(process.pid)
        assert find_excess(CommandLimits(memory_bytes=1), [seen]) == f"memory {1 / MB:g} MB exceeded"
        process.communicate(b"\n")
    assert find_excess(CommandLimits(memory_bytes=1), [seen]) is None


async def test_processes_are_counted_over_the_group(python, printed, gone):
    program = FORKS.format(number=30, then="os.write(1, b'%d\\n' % os.getpid())", seconds=600)
    outcome = await python(program, limits=CommandLimits(processes=20))
    assert (outcome.outcome, outcome.error) == ("limit", "20 processes exceeded")
    assert gone(pids(printed))


async def test_output_is_cut_where_its_limit_is(run, printed):
    outcome = await run(["yes"], limits=CommandLimits(output_bytes=MB))
    assert (outcome.outcome, outcome.error) == ("limit", "output 1 MB exceeded")
    assert len("".join(printed)) == MB


async def test_both_streams_count_as_output(python, printed):
    program = "import sys\nfor _ in range(3000): print('x' * 99); print('y' * 99, file=sys.stderr)"
    outcome = await python(program, limits=CommandLimits(output_bytes=400_000))
    assert outcome.outcome == "limit"
    assert len("".join(printed)) == 400_000


async def test_a_limit_stops_only_the_command_that_exceeds_it(python, run):
    greedy = python(FORKS.format(number=30, then="pass", seconds=600), limits=CommandLimits(processes=20), attempt_id=8)
    modest = run(["sh", "-c", "sleep 1; echo 1"], limits=CommandLimits(processes=20), attempt_id=9)
    first, second = await asyncio.gather(greedy, modest)
    assert first.outcome == "limit"
    assert (second.outcome, second.result) == ("completed", 1)


def test_limits_come_from_a_device_in_its_units():
    limits = CommandLimits.of({"seconds": 60, "memory_mb": 512, "output_mb": 0.5, "processes": 8, "env": {}})
    assert limits == CommandLimits(seconds=60.0, memory_bytes=512 * MB, output_bytes=MB // 2, processes=8)
    assert CommandLimits.of({}) == CommandLimits()


@pytest.mark.parametrize(
    "wanted", [{"seconds": 0}, {"memory_mb": "512"}, {"processes": True}, {"processes": 0.5}, {"output_mb": float("inf")}]
)
def test_a_limit_that_is_no_positive_number_is_named(wanted):
    with pytest.raises(ValueError, match=next(iter(wanted))):
        CommandLimits.of(wanted)
