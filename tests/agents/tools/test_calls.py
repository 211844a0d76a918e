"""Tools and their calls: retries, time-outs, what the tools of a local device say and refuse."""

import asyncio
import itertools
import json
import os
import sys
import threading

import pytest

from agents.devices.workspace import files
from agents.faults import pause_seconds
from agents.progress.digests import text_digest
from agents.progress.evidence import ABSENT
from agents.tools import calls as tools
from agents.tools import command as commands
from agents.tools import files as file_tools
from agents.tools.calls import TOOLS, BadArguments, Bodies, Call, Outcome, check_arguments, tool_seconds
from agents.tools.workspaces import device_workspace

DEVICE = {"name": "laptop", "limits": {}}


def call_of(tool, arguments=None, **fields):
    wanted = {"attempt": 7, "session": 1, "device": DEVICE, "timeout": 30.0, "scope": "1"}
    return Call(tool=tool, arguments=arguments or {}, **(wanted | fields))


class Calls:
    """Calls of tools, carried out one after the other; `slept` is what was waited between tries."""

    def __init__(self):
        self.slept = []
        self.ended = []
        self.bodies = Bodies(self._on_end, self._sleep)
        self._end = asyncio.Event()

    def _on_end(self, call, outcome):
        self.ended.append(outcome)
        self._end.set()

    async def _sleep(self, seconds):
        self.slept.append(seconds)

    async def __call__(self, tool, arguments=None, **fields):
        """The one outcome of a call."""
        self._end.clear()
        self.bodies.start(call_of(tool, arguments, **fields))
        await self._end.wait()
        (outcome,) = self.ended
        self.ended.clear()
        return outcome

    async def command(self, *argv, **fields):
        return await self("command", {"argv": list(argv)}, **fields)

    async def python(self, program, **fields):
        return await self.command(sys.executable, "-c", program, **fields)


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def workspace():
    """The device's, where it would be made."""
    return device_workspace("laptop")


@pytest.fixture
def scripted(monkeypatch):
    """Puts a coroutine tool `scripted` that gives, or raises, one of these after the other; returns how often it was called."""

    def scripted(*course):
        left = list(course)

        async def tool(call):
            step = left.pop(0)
            if isinstance(step, BaseException):
                raise step
            return step

        monkeypatch.setitem(TOOLS, "scripted", tool)
        return lambda: len(course) - len(left)

    return scripted


DONE = Outcome("completed", result=1)


# --- retries


async def test_a_lost_connection_is_tried_again_until_it_goes_well(calls, scripted):
    made = scripted(ConnectionResetError("reset"), Outcome("failed", error="busy", error_kind="rate_limit"), DONE)
    assert await calls("scripted", key=5) == DONE
    assert made() == 3
    assert calls.slept == [pause_seconds(1, 5, 0.1, 2.0), pause_seconds(2, 5, 0.1, 2.0)]


async def test_what_stays_broken_is_told_after_three_more_tries(calls, scripted):
    made = scripted(*[ConnectionRefusedError(f"refused {number}") for number in range(9)])
    outcome = await calls("scripted")
    assert made() == 1 + tools.RETRIES == 4
    assert outcome == Outcome("failed", error="ConnectionRefusedError: refused 3", error_kind="connection_lost")


async def test_a_returned_fault_that_stays_is_told_as_it_was_returned(calls, scripted):
    outcome = Outcome("failed", error="503", error_kind="server_error")
    assert scripted(*[outcome] * 9)
    assert await calls("scripted") == outcome
    assert len(calls.slept) == 3


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (ValueError("connection reset, try again"), "broken"),
        (TimeoutError(), "timeout"),
        (FileNotFoundError("no file"), "missing"),
        (PermissionError("no"), "permission"),
        (Outcome("failed", error="exit code 1"), ""),
        (Outcome("failed", error="what?", error_kind="bad_arguments"), "bad_arguments"),
    ],
)
async def test_any_other_failure_is_told_at_once_with_its_kind(calls, scripted, step, kind):
    made = scripted(step, DONE)
    outcome = await calls("scripted")
    assert (made(), calls.slept, outcome.outcome, outcome.error_kind) == (1, [], "failed", kind)


async def test_the_message_of_what_was_refused_stands_alone(calls, scripted):
    scripted(BadArguments("path: is missing"))
    assert (await calls("scripted")).error == "path: is missing"


async def test_a_tool_that_gives_no_outcome_is_broken(calls, scripted):
    scripted(None)
    outcome = await calls("scripted")
    assert (outcome.error_kind, outcome.error) == ("broken", "TypeError: the tool gave NoneType, not an Outcome")


async def test_a_plain_tool_is_not_tried_again(calls, monkeypatch):
    made = []

    def plain(call):
        made.append(call)
        raise ConnectionResetError("reset")

    monkeypatch.setitem(TOOLS, "plain", plain)
    outcome = await calls("plain")
    assert (len(made), outcome.error_kind) == (1, "connection_lost")


async def test_all_tries_share_one_time_out(calls, scripted, monkeypatch):
    async def sleep(seconds):
        await asyncio.Event().wait()

    monkeypatch.setattr(calls.bodies, "_sleep", sleep)
    made = scripted(ConnectionError("lost"), DONE)
    outcome = await calls("scripted", timeout=0.01)
    assert outcome == Outcome("timeout", error="stopped after 0.01 s", error_kind="timeout")
    assert made() == 1


async def test_an_interrupted_pause_between_tries_is_cancelled(calls, scripted, monkeypatch):
    pausing = asyncio.Event()

    async def sleep(seconds):
        pausing.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(calls.bodies, "_sleep", sleep)
    scripted(ConnectionError("lost"), DONE)
    calls.bodies.start(call_of("scripted"))
    await pausing.wait()
    await calls.bodies.interrupt_all()
    assert calls.ended == [Outcome("cancelled", error="interrupted")]
    assert len(calls.bodies) == 0


async def test_a_call_interrupted_before_its_first_step_ends_too(calls, scripted):
    made = scripted(DONE)
    calls.bodies.start(call_of("scripted"))
    assert calls.bodies.interrupt(7)
    await calls.bodies.interrupt_all()
    assert calls.ended == [Outcome("cancelled", error="interrupted")]
    assert made() == 0


async def test_a_tool_that_is_not_there_is_named_with_those_that_are(calls):
    outcome = await calls("no_such_tool")
    assert outcome.error_kind == "missing"
    assert "no_such_tool" in outcome.error
    assert "edit_file, " in outcome.error


# --- arguments


def test_every_tool_of_the_house_says_what_it_takes():
    from jsonschema import Draft202012Validator

    names = ("noop", "command", "read_file", "write_file", "edit_file", "observe")
    for name in names:
        Draft202012Validator.check_schema(tools.SCHEMAS[name])
        assert name in TOOLS


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("read_file", {}, "'path' is a required property"),
        ("read_file", {"path": 3}, "path: 3 is not of type 'string'"),
        ("read_file", {"path": "a", "lines": 3}, "'lines' was unexpected"),
        ("read_file", {"path": "a", "offset": -1}, "offset: -1 is less than the minimum of 0"),
        ("write_file", {"path": "a"}, "'content' is a required property"),
        ("edit_file", {"path": "a", "old": "", "new": ""}, "old: "),
        ("edit_file", {"path": "a", "old": "x", "new": "", "count": "3"}, "count: '3' is not of type 'integer'"),
        ("command", {"argv": ["echo", 3]}, "argv.1: 3 is not of type 'string'"),
    ],
)
def test_wrong_arguments_name_the_key_and_show_the_schema(name, arguments, message):
    with pytest.raises(BadArguments) as refused:
        check_arguments(name, arguments)
    assert str(refused.value).startswith(f"{name}: ")
    assert message in str(refused.value)
    assert json.dumps(tools.SCHEMAS[name], separators=(",", ":")) in str(refused.value)


def test_a_tool_without_a_schema_takes_anything():
    check_arguments("no_such_tool", {"any": "thing"})


@pytest.mark.parametrize("arguments", [{}, {"argv": []}, {"argv": "make test"}, {"argv": ["echo", 3]}, {"argv": ["a\0"]}])
async def test_a_command_that_is_no_list_of_texts_has_bad_arguments(calls, arguments, workspace):
    outcome = await calls("command", arguments)
    assert (outcome.outcome, outcome.error_kind, outcome.digest) == ("failed", "bad_arguments", None)
    assert not workspace.exists()


# --- commands


async def test_a_commands_output_and_its_end_are_told(calls):
    outcome = await calls.python("print('x' * 5000); print('{\"passed\": 3}')")
    assert (outcome.outcome, outcome.result, outcome.exit_code, outcome.error_kind) == ("completed", {"passed": 3}, 0, "")
    assert outcome.text == ("x" * 5000 + '\n{"passed": 3}\n')[-4000:]


async def test_equal_output_says_the_same_whatever_its_pieces_and_mixture(calls):
    first = await calls.python("import sys; print('ab'); print('error', file=sys.stderr)")
    second = await calls.python("import sys; print('error', file=sys.stderr); print('a', end='', flush=True); print('b')")
    assert first.digest == second.digest
    assert len(first.digest) == 16


@pytest.mark.parametrize("program", ["print('other')", "print('ab'); exit(1)", "import sys; print('ab', file=sys.stderr)", ""])
async def test_other_output_or_another_end_says_something_else(calls, program):
    assert (await calls.python("print('ab')")).digest != (await calls.python(program)).digest


@pytest.mark.parametrize(
    ("argv", "kind", "error"),
    [
        (["no-such-program"], "missing", "command not found: no-such-program"),
        (["/etc/passwd"], "permission", "the command cannot be started: /etc/passwd: Permission denied"),
    ],
)
async def test_a_command_that_cannot_start_says_which_kind_of_error_it_is(calls, argv, kind, error):
    outcome = await calls.command(*argv)
    assert outcome == Outcome("failed", error=error, error_kind=kind)


async def test_a_command_that_fails_is_no_error_of_a_kind(calls):
    outcome = await calls.command("false")
    assert (outcome.outcome, outcome.exit_code, outcome.error_kind) == ("failed", 1, "")


async def test_a_command_that_takes_too_long_keeps_what_it_had_said(calls):
    outcome = await calls.command("sh", "-c", "echo '{\"at\": 3}'; sleep 600", timeout=0.3)
    assert (outcome.outcome, outcome.error_kind, outcome.error) == ("timeout", "timeout", "stopped after 0.3 s")
    assert (outcome.result, outcome.text, outcome.exit_code) == ({"at": 3}, '{"at": 3}\n', -9)


async def test_the_file_a_command_writes_is_looked_at_before_and_after(calls):
    first = await calls.command("sh", "-c", "printf one > out.txt", writes="out.txt")
    second = await calls.command("sh", "-c", "printf two > out.txt", writes="out.txt")
    third = await calls.command("rm", "out.txt", writes="out.txt")
    states = [ABSENT, text_digest("one"), text_digest("two"), ABSENT]
    assert [(outcome.before, outcome.digest) for outcome in (first, second, third)] == list(itertools.pairwise(states))


async def test_a_command_whose_file_is_outside_does_not_run(calls, workspace):
    outcome = await calls.command("touch", "ran", writes="../out.txt")
    assert (outcome.outcome, outcome.error_kind) == ("failed", "permission")
    assert "../out.txt" in outcome.error
    assert not workspace.exists()


@pytest.mark.parametrize("then", ["mkdir out", "ln -s /etc/passwd out"])
async def test_something_else_in_the_files_place_is_not_looked_at(calls, then):
    outcome = await calls.command("sh", "-c", then, writes="out")
    assert (outcome.outcome, outcome.before, outcome.digest) == ("completed", ABSENT, None)


async def test_a_command_sees_the_blackboard(calls):
    program = "import json, os; print(json.dumps(json.loads(os.environ['ORRERY_BLACKBOARD'])))"
    board = {"branch": "main", "n": [1, None], "é": "\0"}
    outcome = await calls.python(program + "; print(os.environ['ORRERY_BLACKBOARD'])", blackboard=board)
    assert json.loads(outcome.text.splitlines()[0]) == board
    assert '"n":[1,null]' in outcome.text


@pytest.mark.parametrize("board", [{}, {"text": "x" * 64_000}])
async def test_a_blackboard_that_is_empty_or_too_large_is_left_out(calls, board):
    assert (await calls.python("import os; print('ORRERY_BLACKBOARD' in os.environ)", blackboard=board)).text == "False\n"


async def test_the_largest_blackboard_can_be_given_to_a_process(calls):
    board = {"t": "é" * ((commands.BLACKBOARD_CHARACTERS - 8) // 6)}
    outcome = await calls.python("import os; print(len(os.environ['ORRERY_BLACKBOARD']))", blackboard=board)
    assert commands.BLACKBOARD_CHARACTERS - 6 < outcome.result <= commands.BLACKBOARD_CHARACTERS


def test_an_outcome_is_the_same_after_its_way_through_a_file():
    outcome = Outcome(
        "failed", result=0, error="e", exit_code=1, error_kind="timeout", digest="a", before="b", reason="r", text="t"
    )
    assert Outcome(**json.loads(json.dumps(outcome.as_json()))) == outcome
    assert Outcome("completed").as_json() == {"outcome": "completed"}


# --- files


async def test_a_file_is_written_edited_and_read(calls):
    written = await calls("write_file", {"path": "src/main.py", "content": "a = 1\n"})
    edited = await calls("edit_file", {"path": "src/main.py", "old": "1", "new": "22"})
    read = await calls("read_file", {"path": "src/main.py"})
    assert (written.outcome, written.before, written.digest) == ("completed", ABSENT, text_digest("a = 1\n"))
    assert (edited.outcome, edited.before, edited.digest) == ("completed", text_digest("a = 1\n"), text_digest("a = 22\n"))
    assert (written.result, edited.result) == (
        {"path": "src/main.py", "size": 6}, {"path": "src/main.py", "size": 7, "replaced": 1},
    )  # fmt: skip
    assert read.result == {"path": "src/main.py", "content": "a = 22\n", "offset": 0, "size": 7}
    assert (read.digest, read.before, read.text) == (text_digest("a = 22\n"), None, "a = 22\n")


async def test_a_part_of_a_file_says_only_that(calls):
    await calls("write_file", {"path": "a", "content": "0123456789"})
    read = await calls("read_file", {"path": "a", "offset": 2.0, "limit": 3})
    assert read.result == {"path": "a", "content": "234", "offset": 2, "size": 10}
    assert read.digest == text_digest("234")


async def test_a_text_that_is_not_there_is_an_ordinary_failure_that_names_the_file(calls):
    await calls("write_file", {"path": "main.py", "content": "a"})
    outcome = await calls("edit_file", {"path": "main.py", "old": "b", "new": "c"})
    assert outcome == Outcome("failed", error="text to replace not found in main.py")


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "named"),
    [
        ("read_file", {"path": "no/such.txt"}, "missing", "no/such.txt"),
        ("read_file", {"path": "/etc/passwd"}, "permission", "/etc/passwd"),
        ("write_file", {"path": "../out", "content": ""}, "permission", "../out"),
        ("edit_file", {"path": "a/../../out", "old": "a", "new": ""}, "permission", "a/../../out"),
        ("read_file", {"paht": "a"}, "bad_arguments", "paht"),
        ("write_file", {"path": "a", "content": "x" * (1 << 21)}, "bad_arguments", "content"),
        ("write_file", {"path": "a", "content": "é" * (1 << 20)}, "bad_arguments", "too large"),
        ("observe", {"path": "a"}, "bad_arguments", "path"),
    ],
)
async def test_what_a_file_tool_refuses_has_a_kind_and_names_the_place(calls, tool, arguments, kind, named):
    outcome = await calls(tool, arguments)
    assert (outcome.outcome, outcome.error_kind, outcome.digest) == ("failed", kind, None)
    assert named in outcome.error
    assert len(outcome.error) < 2000


async def test_the_workspace_is_observed(calls):
    await calls("write_file", {"path": "a", "content": "x"})
    first, second = await calls("observe"), await calls("observe")
    assert [file["path"] for file in first.result["files"]] == ["a"]
    assert first.digest == second.digest
    json.dumps(first.as_json())


async def test_file_work_is_not_done_on_the_loop_and_an_interrupt_waits_for_its_end(calls, monkeypatch):
    begun, leave = threading.Event(), threading.Event()
    seen = []

    def work():
        begun.set()
        leave.wait(30)
        seen.append(threading.current_thread() is threading.main_thread())
        return Outcome("completed")

    async def slow(call):
        return await file_tools.in_thread(call, work)

    monkeypatch.setitem(TOOLS, "slow", slow)
    calls.bodies.start(call_of("slow"))
    await asyncio.to_thread(begun.wait, 30)
    calls.bodies.interrupt(7)
    await asyncio.sleep(0)
    assert calls.ended == []
    calls.bodies.interrupt(7)
    await asyncio.sleep(0)
    assert calls.ended == []
    leave.set()
    await calls.bodies.interrupt_all()
    assert seen == [False]
    assert calls.ended == [Outcome("cancelled", error="interrupted")]


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "observe"])
def test_every_tool_of_files_has_a_time_out_of_its_own(tool):
    assert tools.SECONDS[tool] == 60.0


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("write_file", {"path": "a", "content": "new"}), ("edit_file", {"path": "a", "old": "old", "new": "new"})],
)
async def test_a_change_that_is_stuck_is_over_when_its_time_is_and_comes_to_nothing(calls, monkeypatch, tool, arguments):
    """As on a disk that answers no more: the new content is written, and the old is not replaced by it yet."""
    await calls("write_file", {"path": "a", "content": "old"})
    stuck, goes_on, gone_on = threading.Event(), threading.Event(), threading.Event()
    keep = files.keep_mode

    def slow(*place):
        stuck.set()
        goes_on.wait(30)
        keep(*place)

    real = os.unlink

    def unlink(*args, **kwargs):
        real(*args, **kwargs)
        gone_on.set()

    monkeypatch.setattr(files, "keep_mode", slow)
    monkeypatch.setattr(file_tools, "ENDS_S", 0.0)
    monkeypatch.setitem(tools.SECONDS, tool, 0.1)
    outcome = await calls(tool, arguments, timeout=None)
    assert (outcome.outcome, outcome.error, outcome.error_kind) == ("timeout", "stopped after 0.1 s", "timeout")
    assert stuck.is_set()
    monkeypatch.setattr(os, "unlink", unlink)
    goes_on.set()
    await asyncio.to_thread(gone_on.wait, 30)
    assert gone_on.is_set()
    monkeypatch.setattr(files, "keep_mode", keep)
    assert (await calls("read_file", {"path": "a"})).result["content"] == "old"
    assert [file["path"] for file in (await calls("observe")).result["files"]] == ["a"]


async def test_a_change_that_is_being_made_is_waited_for(calls, monkeypatch):
    begun, leave = threading.Event(), threading.Event()
    real = os.rename

    def rename(*args, **kwargs):
        begun.set()
        leave.wait(30)
        real(*args, **kwargs)

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(file_tools, "ENDS_S", 0.0)
    calls.bodies.start(call_of("write_file", {"path": "a", "content": "new"}))
    await asyncio.to_thread(begun.wait, 30)
    calls.bodies.interrupt(7)
    for _ in range(3):
        await asyncio.sleep(0)
    assert calls.ended == []
    leave.set()
    await calls.bodies.interrupt_all()
    assert calls.ended == [Outcome("cancelled", error="interrupted")]
    calls.ended.clear()
    assert (await calls("read_file", {"path": "a"})).result["content"] == "new"


async def test_a_file_that_the_host_has_no_handle_for_is_tried_again(calls, monkeypatch):
    await calls("write_file", {"path": "a", "content": "x"})
    real, refusals = os.open, [OSError(24, "Too many open files")] * 2

    def opened(*args, **kwargs):
        if refusals and kwargs.get("dir_fd") is not None:
            raise refusals.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(os, "open", opened)
    assert (await calls("read_file", {"path": "a"})).text == "x"
    assert len(calls.slept) == 2


@pytest.mark.parametrize(
    ("said", "tool", "fields", "seconds"),
    [
        ({}, "noop", {}, 3600.0),
        ({}, "command", {}, None),
        ({}, "read_file", {}, file_tools.SECONDS),
        ({"default": 5.0}, "noop", {}, 5.0),
        ({"default": 5.0}, "command", {}, 5.0),
        ({"default": 5.0}, "read_file", {}, file_tools.SECONDS),
        ({"default": 5.0, "read_file": 9.0}, "read_file", {}, 9.0),
        ({"default": 5.0, "noop": 7.0}, "noop", {"timeout": 2.0}, 2.0),
        ({"default": 5.0}, "noop", {"body": lambda call: None}, None),
    ],
)  # fmt: skip
def test_every_tool_has_a_time_out(settings, said, tool, fields, seconds):
    settings.TOOL_SECONDS = said
    assert tool_seconds(call_of(tool, **{"timeout": None, **fields})) == seconds


async def test_a_tool_is_ended_by_the_settings_time_out(calls, settings, monkeypatch):
    async def hangs(call):
        await asyncio.Event().wait()

    monkeypatch.setitem(TOOLS, "hangs", hangs)
    settings.TOOL_SECONDS = {"hangs": 0.05}
    outcome = await calls("hangs", timeout=None)
    assert (outcome.outcome, outcome.error, outcome.error_kind) == ("timeout", "stopped after 0.05 s", "timeout")


async def test_a_command_is_ended_by_the_settings_time_out(calls, settings):
    settings.TOOL_SECONDS = {"default": 0.2}
    outcome = await calls.command("sleep", "30", timeout=None)
    assert (outcome.outcome, outcome.error_kind) == ("timeout", "timeout")
