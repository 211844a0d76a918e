"""How each tool is carried out on the client's machine. What goes wrong is an answer, never raised."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import queue
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from agents.devices import answers
from agents.devices.answers import Answer
from agents.devices.client.place import ClientRefused, Place
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH, run_command
from agents.devices.protocol.messages import FILE_BYTES, PIECE_BYTES, CallBegun
from agents.devices.workspace import contents, files
from agents.errors import AgentsError
from agents.faults import error_kind_of

GIVES_UP_S = 60.0
"""A file of which no piece comes, or is taken, for so long is given up."""


class Wire(Protocol):
    """What a call may say and hear while it is under way."""

    def print(self, text: str) -> None:
        """It has printed something."""

    async def send_piece(self, offset: int, data: str) -> None:
        """Send a piece of a file, as soon as there is room; raises ConnectionResetError when the connection is lost."""

    async def next_piece(self) -> tuple[int, str]:
        """The next piece of a file that comes; raises as above."""
        ...

    def take_piece(self, upto: int) -> None:
        """So many bytes of the file have come and are written."""


Worker = Callable[[CallBegun, Place, Wire], Awaitable[Answer]]


async def carry_out(call: CallBegun, place: Place, wire: Wire) -> Answer:
    """The fields of the call's result."""
    worker = WORKERS.get(call.tool)
    if worker is None:
        return _failed(f"this device has no tool called {call.tool}; it has {', '.join(WORKERS)}", "missing")
    try:
        async with asyncio.timeout(call.timeout if call.tool != "command" else None):  # a command keeps its own
            return await worker(call, place, wire)
    except TimeoutError:
        return {"outcome": "timeout", "error": f"stopped after {call.timeout:g} s", "error_kind": "timeout"}
    except (KeyError, TypeError, ValueError) as error:
        return _failed(f"wrong arguments: {type(error).__name__}: {error}", "bad_arguments")
    except ClientRefused as error:
        return _failed(str(error), "broken")
    except Exception as error:  # a broken tool is a failed call, never a broken client
        text = str(error) if isinstance(error, AgentsError) else f"{type(error).__name__}: {error}"
        return _failed(text, error_kind_of(error))


def _failed(error: str, kind: str) -> Answer:
    return {"outcome": "failed", "error": error, "error_kind": kind}


async def _command(call: CallBegun, place: Place, wire: Wire) -> Answer:
    before = await asyncio.to_thread(files.content_state, place.workspace, call.writes) if call.writes else None
    limits = CommandLimits.of(call.limits)
    shared = await asyncio.to_thread(place.shared_folder, call.scope, call.inherits)
    ended = await run_command(
        call.arguments["argv"],
        workspace=place.workspace,
        attempt_id=call.attempt,
        instance=place.mark,
        limits=limits,
        timeout=call.timeout,
        env={"ORRERY_ARTIFACTS": str(shared), **call.environment},
        on_output=wire.print,
        path=call.limits.get("path", DEFAULT_PATH),
        walls=place.walls(limits, shared),
    )
    after = await asyncio.to_thread(answers.state_after, place.workspace, call.writes) if call.writes else None
    return answers.command_answer(ended, before, after)


async def _read_file(call: CallBegun, place: Place, wire: Wire) -> Answer:
    return await asyncio.to_thread(answers.read_answer, place.workspace, call.arguments)


async def _observe(call: CallBegun, place: Place, wire: Wire) -> Answer:
    return await asyncio.to_thread(answers.observe_answer, place.workspace)


async def _write_file(call: CallBegun, place: Place, wire: Wire) -> Answer:
    return await _change(answers.write_answer, call, place)


async def _edit_file(call: CallBegun, place: Place, wire: Wire) -> Answer:
    return await _change(answers.edit_answer, call, place)


async def _change(change: Callable[..., Answer], call: CallBegun, place: Place) -> Answer:
    """In a thread. A cancel takes back the leave to change anything, or waits for a change that is just being made."""
    leave = files.ChangeLeave()
    work = asyncio.ensure_future(asyncio.to_thread(change, place.workspace, call.arguments, leave))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if not leave.take_back():
            await asyncio.wait([work])
        raise


async def _find_files(call: CallBegun, place: Place, wire: Wire) -> Answer:
    """Arguments `patterns` and `most`; its result is {"paths"}."""
    patterns, most = list(call.arguments["patterns"]), int(call.arguments["most"])
    paths = await asyncio.to_thread(contents.find_files, place.workspace, patterns, most)
    return {"outcome": "completed", "result": {"paths": paths}}


async def _get_file(call: CallBegun, place: Place, wire: Wire) -> Answer:
    """Argument `path`; its result is {"path", "size", "sha256"}, told behind the last piece."""
    path, offset, digest = call.arguments["path"], 0, hashlib.sha256()
    with contents.opened_file(place.workspace, path) as file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            if offset + len(piece) > FILE_BYTES:
                raise files.FileRefused(f"{path} is too large: {FILE_BYTES:,} bytes are allowed")
            async with asyncio.timeout(GIVES_UP_S):
                await wire.send_piece(offset, base64.b64encode(piece).decode())
            offset += len(piece)
            digest.update(piece)
    return {"outcome": "completed", "result": {"path": path, "size": offset, "sha256": digest.hexdigest()}}


Incoming = queue.SimpleQueue[tuple[int, str] | None]


async def _put_file(call: CallBegun, place: Place, wire: Wire) -> Answer:
    """Arguments `path`, `size`, `sha256`; nothing is there before all of it has come and has its digest."""
    path, size, sha256 = call.arguments["path"], int(call.arguments["size"]), str(call.arguments["sha256"])
    if size > FILE_BYTES:
        raise files.FileRefused(f"{path} is too large: {size:,} bytes, {FILE_BYTES:,} are allowed")
    incoming: Incoming = queue.SimpleQueue()
    feeding = asyncio.ensure_future(_feed(incoming, wire))
    loop = asyncio.get_running_loop()
    pieces = _announced(incoming, path, size, sha256, lambda upto: loop.call_soon_threadsafe(wire.take_piece, upto))
    try:
        await asyncio.to_thread(contents.place_file, place.workspace, path, pieces)
    finally:
        feeding.cancel()
        incoming.put(None)
    return {"outcome": "completed", "result": {"path": path, "size": size, "sha256": sha256}}


async def _feed(incoming: Incoming, wire: Wire) -> None:
    """Hand what comes to the thread that writes it; None where nothing will come any more."""
    try:
        while True:
            incoming.put(await wire.next_piece())
    finally:
        incoming.put(None)


def _announced(
    incoming: Incoming, path: str, size: int, sha256: str, written: Callable[[int], object]
) -> Iterator[bytes]:  # fmt: skip
    """The bytes of a file as they come. Raises FileRefused in the place of an end where they are not what was announced."""
    upto, digest = 0, hashlib.sha256()
    while upto < size:
        try:
            piece = incoming.get(timeout=GIVES_UP_S)
        except queue.Empty:
            raise TimeoutError from None
        if piece is None:
            raise ConnectionResetError("the connection to the server was lost")
        offset, data = piece[0], base64.b64decode(piece[1], validate=True)
        if offset != upto or upto + len(data) > size:
            raise files.FileRefused(f"{path}: a piece at {offset} came where {upto} of {size} bytes were there")
        digest.update(data)
        yield data
        upto += len(data)
        written(upto)
    if digest.hexdigest() != sha256:
        raise files.FileRefused(f"{path} has the digest {digest.hexdigest()}, and {sha256} was announced")


WORKERS: dict[str, Worker] = {
    "command": _command, "read_file": _read_file, "write_file": _write_file, "edit_file": _edit_file, "observe": _observe,
    "get_file": _get_file, "put_file": _put_file, "find_files": _find_files,
}  # fmt: skip
