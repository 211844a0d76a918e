"""A device that says exactly what a test wants said: messages over a websocket, without the client's rules."""

from __future__ import annotations

import contextlib
import secrets
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from agents.devices.protocol.frames import FrameReader, split_frames
from agents.devices.protocol.messages import (
    MESSAGE_BYTES,
    VERSION,
    Heartbeat,
    Hello,
    Message,
    Result,
    decode_message,
    encode_message,
)

WAIT_S = 30.0
READINGS = {"memory_percent": 10.0, "disk_percent": 20.0, "cpu_percent": None}


class Dialled:
    """One connection to a server."""

    def __init__(self, port: int, token: str, **headers: str):
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        self.instance = secrets.token_hex(16)
        self.socket: ClientConnection = connect(
            f"ws://127.0.0.1:{port}/ws/devices/", additional_headers={**shown, **headers}, compression=None,
            open_timeout=WAIT_S, max_size=None, proxy=None, legacy=True,
        )  # fmt: skip
        self._reader = FrameReader(MESSAGE_BYTES)

    def say(self, message: Message) -> None:
        self.say_text(encode_message(message))

    def say_text(self, text: str) -> None:
        for frame in split_frames(text):
            self.socket.send(frame)

    def hear(self) -> Any:
        """The next message."""
        while (whole := self._reader.take(self.socket.recv(WAIT_S))) is None:  # type: ignore[arg-type]
            pass
        return decode_message(whole, "down")

    def greet(self, **more: Any) -> Any:
        """Say `hello`; the answer."""
        self.say(Hello(**{"protocol": VERSION, "instance": self.instance, "client": "test 1"} | more))
        return self.hear()

    def beat(self) -> None:
        self.say(Heartbeat(READINGS))

    def answer(self, key: int, result: Any = None) -> None:
        self.say(Result(key, "completed", result=result))

    def code(self) -> int:
        """Read to the end: the code that the server closes with."""
        with contextlib.suppress(ConnectionClosed):
            for _ in self.socket:
                pass
        return self.socket.close_code or 0

    def close(self) -> None:
        self.socket.close()
