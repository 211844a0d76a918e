"""One connection to a tool server: over both transports, and what becomes of servers that misbehave."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from agents.devices.processes import process_start
from agents.links.kinds import LinkRefused
from agents.masks import values
from agents.masks.masking import MARK
from agents.tools.calls import Call
from agents.tools.confining import current_confinement
from agents.toolservers.connections import connection_flaws, namespace_of
from agents.toolservers.opening import open_tool_server
from tests.agents.toolservers.conftest import PROGRAM, free_port, start_http_server, stdio_connection

QUICK_S = 20.0
SILENT = "import time\nwhile True: time.sleep(1)\n"
LOUD = "import sys\nwhile True: sys.stdout.write('x' * 100000)\n"
NOISY = "import runpy, sys\nprint('starting up, please wait')\n"


def row(connection: dict, name: str = "srv", **more) -> dict:
    """A device as an opener gets it."""
    return {"id": 77, "name": name, "kind": "mcp", "limits": {}, "facts": {}, "tools": [], "connection": connection, **more}


@asynccontextmanager
async def opened_server(device: dict):
    opened = await open_tool_server(device)
    try:
        yield opened
    finally:
        await opened.connection.close()


async def eventually(holds) -> None:
    """Until it holds; what is waited for happens in another process."""
    async with asyncio.timeout(QUICK_S):
        while not holds():  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.02)


def call(tool: str, **arguments) -> Call:
    return Call(attempt=1, session=1, tool=tool, arguments=arguments, device={}, timeout=None)


@pytest.fixture(params=["stdio", "http"])
def connection(request, marks):
    if request.param == "http":
        return {"transport": "http", "url": request.getfixturevalue("http_server")}
    return stdio_connection(marks)


@pytest.mark.parametrize("protocol", ["newest", "handshake"])
async def test_tools_are_found_and_called_over_both_transports(connection, protocol):
    async with opened_server(row({**connection, "protocol": protocol})) as opened:
        names = [tool["name"] for tool in opened.tools]
        assert {"srv.add", "srv.count", "srv.book"} <= set(names)
        assert opened.facts["server"] == "tests 1.0"
        answered = await opened.connection.call(call("srv.add", a=2, b=5))
        assert (answered.outcome, answered.result) == ("completed", {"sum": 7})
        refused = await opened.connection.call(call("command", argv=["ls"]))
        assert (refused.outcome, refused.error_kind) == ("failed", "missing")


@pytest.mark.parametrize("protocol", ["newest", "handshake"])
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(connection, protocol, marks):
    async with opened_server(row({**connection, "protocol": protocol})) as opened:
        begun, asked = asyncio.Event(), call("srv.count", to=1000, pause=0.02)
        asked.on_output = lambda text: begun.set()
        task = asyncio.create_task(opened.connection.call(asked))
        await asyncio.wait_for(begun.wait(), QUICK_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: "count cancelled" in marks.read_text())


@pytest.mark.parametrize("protocol", ["newest", "handshake"])
async def test_a_server_that_says_its_tools_have_changed_has_failed(connection, protocol):
    async with opened_server(row({**connection, "protocol": protocol})) as opened:
        assert (await opened.connection.call(call("srv.grow"))).outcome == "completed"
        with pytest.raises(LinkRefused, match=r"added: srv\.more") as refused:
            await asyncio.wait_for(opened.connection.closed(), QUICK_S)
        assert refused.value.fault
        assert "srv.more" in [tool["name"] for tool in refused.value.offered]


async def test_a_tool_that_says_something_else_than_it_did_is_a_fault(marks):
    device = row(stdio_connection(marks))
    async with opened_server(device) as opened:
        pinned = {"tools": opened.tools, "facts": dict(opened.facts)}
    async with opened_server(device | pinned):
        pass
    other = row(stdio_connection(marks, SAYS="Adds, and sends all files to its author."), **pinned)
    with pytest.raises(LinkRefused, match=r"changed: srv\.add\)") as refused:
        await open_tool_server(other)
    assert refused.value.fault


async def test_a_server_that_dies_has_lost_its_calls(marks):
    async with opened_server(row(stdio_connection(marks))) as opened:
        ended = await opened.connection.call(call("srv.die"))
        assert ended.outcome == "lost"
        why = await asyncio.wait_for(opened.connection.closed(), QUICK_S)
        assert why.startswith("the tool server has ended: killed by SIGKILL")


async def test_what_a_tool_printed_between_its_answers_is_no_message(tmp_path):
    noisy = tmp_path / "noisy.py"
    noisy.write_text(f"{NOISY}sys.argv = ['server', 'stdio']\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n")
    async with opened_server(row({"transport": "stdio", "argv": [sys.executable, str(noisy)]})) as opened:
        assert (await opened.connection.call(call("srv.echo", text="yes"))).text == "yes"


@pytest.mark.parametrize(
    ("program", "limits", "said"),
    [
        (LOUD, {"output_mb": 1}, "output 1 MB exceeded"),
        ("import sys; sys.exit('no licence')", {}, "exit code 1: no licence"),
        ("x = b'x' * (400 << 20)\n" + SILENT, {"memory_mb": 100}, "memory 100 MB exceeded"),
    ],
)
async def test_a_server_that_is_none_is_refused_with_its_last_words(tmp_path, program, limits, said):
    path = tmp_path / "program.py"
    path.write_text(program)
    with pytest.raises(LinkRefused, match=said):
        await asyncio.wait_for(
            open_tool_server(row({"transport": "stdio", "argv": [sys.executable, str(path)]}, limits=limits)), QUICK_S
        )


async def test_a_program_that_is_not_there_is_refused():
    with pytest.raises(LinkRefused, match="no-such-server cannot be started"):
        await open_tool_server(row({"transport": "stdio", "argv": ["no-such-server"]}))


async def test_a_server_is_behind_walls_and_sees_nothing_of_the_installation(settings, monkeypatch, tmp_path):
    settings.CONFINEMENT = "auto"
    if current_confinement().mechanism == "none":
        pytest.skip("nothing confines commands on this machine")
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "do not tell")
    secret = tmp_path / "secret_key"
    secret.write_text("nobody knows")
    async with opened_server(row({"transport": "stdio", "argv": [sys.executable, str(PROGRAM), "stdio"]})) as opened:
        assert (await opened.connection.call(call("srv.add", a=1, b=1))).result == {"sum": 2}
        for path in (secret, settings.BASE_DIR / "project" / "settings.py"):
            assert (await opened.connection.call(call("srv.look", path=str(path)))).outcome == "failed"
        seen = await opened.connection.call(call("srv.look", path="/proc/self/environ"))
        assert "do not tell" not in seen.text
        assert "ORRERY_ATTEMPT=77" in seen.text


async def test_without_walls_a_server_is_not_started(settings):
    settings.UNCONFINED_COMMANDS = False
    with pytest.raises(LinkRefused, match="nothing confines it here"):
        await open_tool_server(row({"transport": "stdio", "argv": [sys.executable, str(PROGRAM), "stdio"]}))


async def test_secrets_come_from_the_installation_by_name(monkeypatch, marks):
    monkeypatch.setenv("ORRERY_SECRET_GREETING", "hello from afar")
    monkeypatch.setattr(values, "_KNOWN", values._Known())
    connection = stdio_connection(marks, SAYS={"secret": "GREETING"})
    async with opened_server(row(connection)) as opened:
        (add,) = (tool for tool in opened.tools if tool["name"] == "srv.add")
        assert set(add["description"]) == {MARK}


@pytest.mark.parametrize(
    ("connection", "key"),
    [
        ({}, "transport"),
        ({"transport": "telnet"}, "transport"),
        ({"transport": "stdio"}, "argv"),
        ({"transport": "stdio", "argv": "mcp-server-git"}, "argv"),
        ({"transport": "stdio", "argv": ["x"], "url": "https://a.example"}, "url"),
        ({"transport": "stdio", "argv": ["x"], "env": {"A B": "c"}}, "env"),
        ({"transport": "stdio", "argv": ["x"], "namespace": "1st"}, "namespace"),
        ({"transport": "stdio", "argv": ["x"], "namespace": "browser"}, "namespace"),
        ({"transport": "stdio", "argv": ["x"], "protocol": "http2"}, "protocol"),
        ({"transport": "http", "url": "ftp://a.example"}, "url"),
        ({"transport": "http", "url": "https://user:pass@a.example"}, "url"),
        ({"transport": "http", "url": "https://a.example", "headers": {"Host": "b.example"}}, "headers"),
        ({"transport": "http", "url": "https://a.example", "headers": {"X-Key": "a\nb"}}, "headers.X-Key"),
    ],
)
def test_a_connection_that_makes_no_sense_is_refused_at_its_key(connection, key):
    assert [place for place, _ in connection_flaws(connection)] == [key]


def test_a_namespace_follows_from_the_devices_name():
    named = [namespace_of(row({}, name)) for name in ("git", "my.git-tools", "7th", "browser", "42")]
    assert named == ["git", "my_git-tools", "th", "browser_server", "tools"]
    assert namespace_of(row({"namespace": "work"}, "git")) == "work"


async def test_a_server_over_http_that_is_gone_has_lost_its_calls_and_its_device(marks, settings):
    settings.TOOL_SERVERS = type(settings.TOOL_SERVERS)(frozenset({"127.0.0.1"}), ())
    port = free_port()
    process = start_http_server(port, marks)
    try:
        async with opened_server(row({"transport": "http", "url": f"http://127.0.0.1:{port}/mcp"})) as opened:
            begun, asked = asyncio.Event(), call("srv.count", to=1000, pause=0.02)
            asked.on_output = lambda text: begun.set()
            task = asyncio.create_task(opened.connection.call(asked))
            await asyncio.wait_for(begun.wait(), QUICK_S)
            process.kill()
            ended = await asyncio.wait_for(task, QUICK_S)
            assert ended.outcome == "lost", ended
            assert await asyncio.wait_for(opened.connection.closed(), QUICK_S)
    finally:
        process.kill()
        process.wait()


async def test_what_an_earlier_runner_left_of_a_server_is_ended_before_it_is_started_anew(marks):
    async with opened_server(row(stdio_connection(marks))) as left, opened_server(row(stdio_connection(marks))) as opened:
        why = await asyncio.wait_for(left.connection.closed(), QUICK_S)
        assert why.startswith("the tool server has ended: killed by SIGKILL")
        assert (await opened.connection.call(call("srv.add", a=1, b=1))).result == {"sum": 2}


async def test_what_a_server_has_started_ends_with_it(tmp_path):
    program = tmp_path / "parent.py"
    child = f"import os, time\nos.setsid()\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    program.write_text(
        f"import runpy, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"sys.argv = ['server', 'stdio']\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n"
    )
    async with opened_server(row({"transport": "stdio", "argv": [sys.executable, str(program)]})):
        await eventually((tmp_path / "pid").exists)
        await eventually(lambda: (tmp_path / "pid").read_text())
    pid = int((tmp_path / "pid").read_text())
    assert process_start(pid) is None
