"""The calls that a client knows: what runs, what that has printed, and results that the server has not stored yet.

Nothing here knows how messages travel. While there is a connection, `next_messages` gives what may be sent now; after a lost
one `resume` begins again from what the server has stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from agents.devices.client.place import Place
from agents.devices.client.work import carry_out
from agents.devices.protocol.messages import (
    CALLS,
    PIECE_BYTES,
    WINDOW,
    Ack,
    CallBegun,
    FilePiece,
    Message,
    Output,
    Result,
    Update,
)

FIRST_REPORT_S = 5.0
"""A command says after this how far it is, and then each time after twice as long."""
LAST_CHARACTERS = 200
"""Of what it has printed in which it may say how much of it is done."""
PERCENT = re.compile(r"(?<![\d.])(\d{1,2}(?:\.\d+)?|100(?:\.0+)?) ?%")
ERROR_CHARACTERS = 60_000
"""Of an error that is told."""

log = logging.getLogger(__name__)


class KnownCall:
    """One call, and its wire (agents.devices.client.work.Wire)."""

    def __init__(self, begun: CallBegun, changed: asyncio.Event):
        self.begun, self._changed = begun, changed
        self.task: asyncio.Task[None] | None = None
        self.result: Result | None = None
        self.printed = self.stored = self.sent = self.lines = 0
        self._last = ""
        self._kept: deque[str] = deque()
        self._said: deque[Message] = deque()
        self._pieces: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._taken = 0
        self.result_sent = self.lost = False

    # `printed`: characters in all; `stored` of them by the server, whose text is forgotten; `sent` on this connection. `_kept`
    # is the text from `stored` on. `_taken`: bytes of a file that the server has.

    def print(self, text: str) -> None:
        self.printed += len(text)
        self.lines += text.count("\n")
        self._last = (self._last + text[-LAST_CHARACTERS:])[-LAST_CHARACTERS:]
        self._kept.append(text)
        self._changed.set()

    def report(self, seconds: float) -> None:
        """Say how far it is; what an earlier connection was to say of that is forgotten with it."""
        found = PERCENT.findall(self._last)
        percent = float(found[-1]) if found else None
        self._said.append(Update(self.begun.key, self.printed, self.lines, round(seconds, 1), percent))
        self._changed.set()

    async def send_piece(self, offset: int, data: str) -> None:
        while offset - self._taken > WINDOW and not self.lost:
            self._room.clear()
            await self._room.wait()
        if self.lost:
            raise ConnectionResetError("the connection to the server was lost")
        self._said.append(FilePiece(self.begun.key, offset, data))
        self._changed.set()

    async def next_piece(self) -> tuple[int, str]:
        piece = None if self.lost else await self._pieces.get()
        if piece is None:
            raise ConnectionResetError("the connection to the server was lost")
        return piece

    def take_piece(self, upto: int) -> None:
        self._said.append(Ack(self.begun.key, upto))
        self._changed.set()

    def hear_piece(self, piece: FilePiece) -> None:
        self._pieces.put_nowait((piece.offset, piece.data))

    def hear_stored(self, upto: int) -> None:
        """The server has this much: of output in characters, of a file in bytes."""
        if self.begun.tool == "get_file":
            self._taken = max(self._taken, upto)
            self._room.set()
            return
        self._forget(min(upto, self.sent))
        self._changed.set()

    def _forget(self, upto: int) -> None:
        """Text before there is needed no more."""
        gone = max(0, upto - self.stored)
        self.stored += gone
        while gone:
            first = self._kept.popleft()
            if len(first) > gone:
                self._kept.appendleft(first[gone:])
            gone -= min(gone, len(first))

    def begin_again(self, stored: int) -> None:
        """On a new connection, where the server has so many characters."""
        self._forget(min(stored, self.printed))
        self.sent, self.result_sent = self.stored, False

    def lose_connection(self) -> None:
        """Files under way fail with it; a command does not care."""
        if self.begun.tool in ("get_file", "put_file"):
            self.lost = True
            self._room.set()
            self._pieces.put_nowait(None)
        self._said.clear()

    def messages(self) -> Iterator[Message]:
        """What may be sent now, in order; the result comes behind all that was printed."""
        while self._said:
            yield self._said.popleft()
        while self.sent < min(self.printed, self.stored + WINDOW):
            text = self._text_at(self.sent, min(PIECE_BYTES, self.stored + WINDOW - self.sent))
            yield Output(self.begun.key, self.sent, text)
            self.sent += len(text)
        if self.result is not None and self.sent == self.printed and not self.result_sent:
            self.result_sent = True
            yield self.result

    def _text_at(self, offset: int, most: int) -> str:
        skipped, found = offset - self.stored, ""
        for text in self._kept:
            if skipped >= len(text):
                skipped -= len(text)
                continue
            found += text[skipped : skipped + most - len(found)]
            skipped = 0
            if len(found) == most:
                break
        return found


class Calls:
    """Of one client. `changed` is set when there may be something to send. A command's first report comes after `report_s`."""

    def __init__(self, place: Place, report_s: float = FIRST_REPORT_S):
        self._place, self._report_s = place, report_s
        self._known: dict[int, KnownCall] = {}
        self.changed = asyncio.Event()

    def states(self) -> list[dict[str, Any]]:
        """For the handshake: key, characters printed, whether it has ended."""
        return [{"key": key, "output": one.printed, "ended": one.result is not None} for key, one in self._known.items()]

    def begin(self, begun: CallBegun) -> None:
        """Begin a call; one that runs already is the same, told again."""
        before = self._known.get(begun.key)
        if before is not None and before.result is None:
            log.info("call %s runs already", begun.key)
            return
        known = self._known[begun.key] = KnownCall(begun, self.changed)
        if len(self._known) > CALLS:
            known.result = Result(begun.key, "failed", error=f"more than {CALLS} calls", error_kind="server_error")
            self.changed.set()
            return
        known.task = asyncio.get_running_loop().create_task(self._run(known))

    async def _run(self, known: KnownCall) -> None:
        key = known.begun.key
        reporting = asyncio.get_running_loop().create_task(self._report(known))
        try:
            answer = await carry_out(known.begun, self._place, known)
        except asyncio.CancelledError:
            answer = {"outcome": "cancelled", "error": "interrupted"}
        finally:
            reporting.cancel()
        known.result = Result(key, printed=known.printed, **answer | {"error": answer.get("error", "")[:ERROR_CHARACTERS]})
        self.changed.set()

    async def _report(self, known: KnownCall) -> None:
        """Say again and again how far a command is, until it has ended; other calls say it by what they answer."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), self._report_s
        while known.begun.tool == "command":
            await asyncio.sleep(pause)
            known.report(loop.time() - began)
            pause *= 2

    def cancel(self, key: int) -> None:
        """End a call; one that is not known, or has ended, needs no more."""
        known = self._known.get(key)
        if known is not None and known.task is not None:
            known.task.cancel()

    def hear_piece(self, piece: FilePiece) -> None:
        if piece.key in self._known:
            self._known[piece.key].hear_piece(piece)

    def hear_ack(self, ack: Ack) -> None:
        """A result that is stored is forgotten, with its call."""
        known = self._known.get(ack.key)
        if known is None:
            return
        if ack.upto is not None:
            known.hear_stored(ack.upto)
        elif known.result is not None:
            del self._known[ack.key]

    def forget(self, key: int) -> None:
        """The server will never take the result of this call."""
        known = self._known.get(key)
        if known is not None and known.result is not None:
            del self._known[key]

    def resume(self, going_on: dict[int, int]) -> None:
        """A new connection: these calls go on, each with what of its output is stored; all others are ended."""
        for key, known in self._known.items():
            if key in going_on:
                known.begin_again(going_on[key])
            else:
                known.begin_again(known.printed)
                self.cancel(key)
        self.changed.set()

    def lose_connection(self) -> None:
        for known in self._known.values():
            known.lose_connection()

    def next_messages(self) -> Iterator[Message]:
        """What may be sent now."""
        for known in list(self._known.values()):
            yield from known.messages()

    async def end_all(self) -> None:
        """End all that runs, and wait until it has ended."""
        tasks = [known.task for known in self._known.values() if known.task is not None]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
