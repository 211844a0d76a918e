"""The tools of a client: what each answers, and that none leads out of the workspace."""

from __future__ import annotations

import asyncio
import base64
import hashlib

import pytest

from agents.devices.client.work import carry_out
from agents.devices.protocol.messages import CallBegun


class FileWire:
    """A wire whose other side sends, and takes, a file."""

    def __init__(self, content: bytes = b"", at: int = 0):
        self.incoming = [(at, base64.b64encode(content[n : n + 1000]).decode()) for n in range(0, len(content), 1000)]
        self.incoming = [(n * 1000 + at, data) for n, (_, data) in enumerate(self.incoming)]
        self.sent = b""
        self.taken = 0

    def print(self, text):
        pass

    async def send_piece(self, offset, data):
        assert offset == len(self.sent)
        self.sent += base64.b64decode(data)

    async def next_piece(self):
        if not self.incoming:
            await asyncio.get_running_loop().create_future()
        return self.incoming.pop(0)

    def take_piece(self, upto):
        self.taken = upto


def call(tool: str, **arguments) -> CallBegun:
    return CallBegun(1, 1, tool, arguments, 30.0)


async def test_files_are_read_written_edited_and_looked_at(place):
    wire = FileWire()
    assert (await carry_out(call("write_file", path="a/b", content="old"), place, wire))["outcome"] == "completed"
    edited = await carry_out(call("edit_file", path="a/b", old="old", new="new"), place, wire)
    assert edited["result"] == {"path": "a/b", "size": 3, "replaced": 1}
    assert (await carry_out(call("read_file", path="a/b"), place, wire))["result"]["content"] == "new"
    seen = await carry_out(call("observe"), place, wire)
    assert [file["path"] for file in seen["result"]["files"]] == ["a/b"]


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "get_file", "put_file"])
@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "link/out", ""])
async def test_no_path_climbs_out(place, tool, path):
    (place.workspace / "link").symlink_to(place.state)
    (place.state / "out").write_text("secret")
    given = {"content": "x", "old": "secret", "new": "x", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    answer = await carry_out(call(tool, path=path, **given), place, wire := FileWire(b"x"))
    assert answer["outcome"] == "failed", answer
    assert wire.sent == b""
    assert (place.state / "out").read_text() == "secret"
    assert not (place.workspace.parent / "out").exists()


async def test_a_file_goes_out_and_comes_in_with_its_digest(place):
    content = bytes(range(256)) * 1000
    (place.workspace / "big").write_bytes(content)
    wire = FileWire()
    told = (await carry_out(call("get_file", path="big"), place, wire))["result"]
    assert told == {"path": "big", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert wire.sent == content
    wire = FileWire(content)
    put = await carry_out(call("put_file", path="new/big", size=told["size"], sha256=told["sha256"]), place, wire)
    assert put["outcome"] == "completed"
    assert (place.workspace / "new" / "big").read_bytes() == content
    assert (await carry_out(call("find_files", patterns=["**/big"], most=5), place, wire))["result"]["paths"] == [
        "big",
        "new/big",
    ]


@pytest.mark.parametrize(("content", "size", "at", "error"), [
    (b"abc", 3, 0, "was announced"), (b"abcd", 3, 0, "of 3 bytes"), (b"abc", 3, 1, "came where"),
])  # fmt: skip
async def test_what_is_not_as_it_was_announced_is_not_there(place, content, size, at, error):
    (place.workspace / "a").write_text("before")
    answer = await carry_out(call("put_file", path="a", size=size, sha256="0" * 64), place, FileWire(content, at))
    assert answer["outcome"] == "failed"
    assert error in answer["error"]
    assert [path.name for path in place.workspace.iterdir()] == ["a"]
    assert (place.workspace / "a").read_text() == "before"


async def test_wrong_arguments_and_unknown_tools_are_answers(place):
    for wrong in (call("read_file"), call("command", argv=5), call("command"), call("put_file", path="a", size="x", sha256="")):
        answer = await carry_out(wrong, place, FileWire())
        assert (answer["outcome"], answer["error_kind"]) == ("failed", "bad_arguments"), wrong
    assert "no tool called dance" in (await carry_out(call("dance"), place, FileWire()))["error"]


async def test_a_command_without_network_needs_walls(place):
    answer = await carry_out(CallBegun(1, 1, "command", {"argv": ["true"]}, limits={"network": False}), place, FileWire())
    assert "no network" in answer["error"]
