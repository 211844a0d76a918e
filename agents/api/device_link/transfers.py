"""Files over the connection of a device: a call's inputs go there before it, its outputs come from there after it.

Each file is an errand: a call that this side makes up, that has no row, and that ends with its connection.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, BinaryIO, Protocol

from django.conf import settings

from agents.artifacts.keeping import Reference, in_own_thread, keep_artifact
from agents.artifacts.reading import pieces_beside, whole_content
from agents.artifacts.store import ArtifactRefused
from agents.artifacts.workspace import MOST_OUTPUTS, InputMissing
from agents.devices.protocol.messages import FILE_BYTES, PIECE_BYTES, WINDOW, Ack, CallBegun, FilePiece, Message, Result

TAKES_S = 60.0
"""A device that takes, or sends, no piece of a file for so long has given it up."""
FIRST_ERRAND = 1 << 53
"""Keys of errands begin here, beyond all that rows have (agents.ids)."""

Send = Callable[[Message], Awaitable[None]]


class FileBroken(ArtifactRefused):
    """What comes of a file is not what the device says of it, or the device does not take, or give, the file."""

    code = "file_broken"


class Errand:
    """A call of ours. `pieces` came from the device; of what goes there it has written `taken` bytes; `result` ends it."""

    def __init__(self, key: int, send: Send):
        self.key, self._send = key, send
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pieces: asyncio.Queue[FilePiece] = asyncio.Queue()
        self._taken = 0
        self._room = asyncio.Event()
        self.result.add_done_callback(lambda _: self._room.set())

    def hear_piece(self, piece: FilePiece) -> bool:
        """False where the device sends more than it may."""
        self._pieces.put_nowait(piece)
        return self._pieces.qsize() * PIECE_BYTES <= 2 * WINDOW

    def hear_taken(self, upto: int) -> None:
        self._taken = max(self._taken, upto)
        self._room.set()

    async def end(self) -> Any:
        """What its result says. Raises FileBroken where it did not go well."""
        async with asyncio.timeout(TAKES_S):
            ended = await asyncio.shield(self.result)
        if ended.outcome != "completed":
            raise FileBroken(ended.error or ended.outcome)
        return ended.result

    async def send_content(self, sha256: str) -> None:
        """Send the content of that digest, as fast as the device writes it; no more when the device has ended the errand."""
        sent = 0
        async for piece in pieces_beside(await asyncio.to_thread(whole_content, sha256)):
            for at in range(0, len(piece), PIECE_BYTES):
                part = piece[at : at + PIECE_BYTES]
                while sent - self._taken > WINDOW and not self.result.done():
                    self._room.clear()
                    async with asyncio.timeout(TAKES_S):
                        await self._room.wait()
                if self.result.done():
                    return
                await self._send(FilePiece(self.key, sent, base64.b64encode(part).decode()))
                sent += len(part)

    async def receive_content(self, file: BinaryIO) -> None:
        """Write what comes until the result does. Raises FileBroken where that is not what the device says."""
        digest, size = hashlib.sha256(), 0
        async for piece in self._come():
            try:
                data = base64.b64decode(piece.data, validate=True)
            except binascii.Error as error:
                raise FileBroken("a piece of the file is no base64") from error
            if piece.offset != size or size + len(data) > FILE_BYTES:
                raise FileBroken(f"a piece of the file at {piece.offset} came behind {size:,} bytes")
            digest.update(data)
            size += len(data)
            await asyncio.to_thread(file.write, data)
            await self._send(Ack(self.key, size))
        told = await self.end()
        if not isinstance(told, dict) or (told.get("size"), told.get("sha256")) != (size, digest.hexdigest()):
            raise FileBroken(f"{size:,} bytes with the digest {digest.hexdigest()} came, and the device says {told}")

    async def _come(self) -> AsyncIterator[FilePiece]:
        """The pieces until the result has come, which it does behind all of them."""
        while not (self._pieces.empty() and self.result.done()):
            if self._pieces.empty():
                waiting = asyncio.ensure_future(self._pieces.get())
                both: list[asyncio.Future[Any]] = [waiting, self.result]
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=TAKES_S)
                if waiting in done:
                    yield waiting.result()
                    continue
                waiting.cancel()
                if not done:
                    raise TimeoutError
            else:
                yield self._pieces.get_nowait()


class Errands(Protocol):
    """Who makes errands over a connection."""

    def begin_errand(self, key_of: Callable[[int], CallBegun]) -> Awaitable[Errand]: ...

    def forget_errand(self, errand: Errand) -> None: ...


async def place_inputs(over: Errands, inputs: list[Mapping[str, Any]]) -> None:
    """Put all of them into the device's workspace, each whole. Raises InputMissing before any is placed, and FileBroken."""
    for each in inputs:
        if each.get("missing"):
            raise InputMissing(f"{each['path']}: {each['missing']}")
    for each in inputs:
        said = {"path": each["path"], "size": each["size"], "sha256": each["sha256"]}
        errand = await over.begin_errand(_errand("put_file", said))
        try:
            await errand.send_content(each["sha256"])
            await errand.end()
        except FileBroken as error:
            raise FileBroken(f"{each['path']}: {error}") from error
        finally:
            over.forget_errand(errand)


async def keep_outputs(over: Errands, patterns: list[str]) -> list[Reference]:
    """Keep the files of the device's workspace that fit any of the patterns, under their paths. Raises as stores do."""
    search = await over.begin_errand(_errand("find_files", {"patterns": list(patterns), "most": MOST_OUTPUTS}))
    try:
        found = await search.end()
    finally:
        over.forget_errand(search)
    paths = found.get("paths") if isinstance(found, dict) else None
    if not isinstance(paths, list) or len(paths) > MOST_OUTPUTS or not all(isinstance(path, str) for path in paths):
        raise FileBroken("the device does not say which files it has")
    return [await _keep_file(over, path) for path in paths]


async def _keep_file(over: Errands, path: str) -> Reference:
    errand = await over.begin_errand(_errand("get_file", {"path": path}))
    try:
        with tempfile.TemporaryFile(dir=settings.STATE_DIR) as file:
            await errand.receive_content(file)
            file.seek(0)
            return await in_own_thread(keep_artifact, file, name=path)
    except FileBroken as error:
        raise FileBroken(f"{path}: {error}") from error
    finally:
        over.forget_errand(errand)


def _errand(tool: str, arguments: dict[str, Any]) -> Callable[[int], CallBegun]:
    return lambda key: CallBegun(key, 0, tool, arguments)
