"""`python -m project.web_server`: daphne, with bounds for what comes in while it comes in.

Daphne hands a request to the application when all of it is there, and twisted lets a client take its time. Here a request
is refused as soon as it is seen to be too large or too slow, an address has so many connections, and a websocket so many
frames a second. What a body may have is `project.admission.requests`'s to say; the options are daphne's.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import unquote_to_bytes

import daphne.server
import orjson
from daphne.cli import CommandLineInterface
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.web import http

import project.asgi  # noqa: F401 (it sets Django up, for what follows)

# isort: split
from agents.api.problems import MEDIA_TYPE, RETRY_AFTER_S, problem_body
from agents.devices.protocol.frames import FRAME_BYTES as DEVICE_FRAME_BYTES
from agents.rates import Allowance
from project.admission.pieces import PiecedBody
from project.admission.requests import body_limit, body_seconds, is_trusted, too_large, too_slow

HEADERS_S = 15.0
"""Seconds from a request's first byte to the end of its headers."""
LINGER_S = 1.0
LINGER_BYTES = 5_000_000
"""So long, and so much, of what still comes of a refused request is read and dropped: a client that sends does not hear."""
IN_MEMORY_BYTES = 3_000_000
"""A larger body is read from twisted's file piece by piece, as the application asks for it."""
BODIES_BYTES = 200_000_000
"""Of all bodies that are under way."""
FRAMES_AT_ONCE = 2_000
FRAMES_PER_S = 400
"""Of one websocket, of any kind: of what the live view takes it counts by itself, and less."""
FRAME_BYTES = 4_096
"""Of a websocket, from its client: the live view takes short messages. Daphne's own bound is for both ways..."""
DEVICES_PATH = b"/ws/devices"
"""...and devices that dial in send larger ones."""
MALFORMED = 4400
BODIES_FULL = 503, "busy", "too many bodies are coming in; try again"


class CountedRequest(WebRequest):
    """A request whose body is counted while it comes."""

    held = 0
    """Bytes of its body."""
    content: Any

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.takes(len(data)):
            self.held += len(data)
            super().handleContentChunk(data)

    def process(self) -> Any:
        if self.held > IN_MEMORY_BYTES and self.requestHeaders.getRawHeaders(b"upgrade") is None:
            self.content = PiecedBody(self.content, self.held)
        return super().process()

    def finish(self) -> None:
        self._let_go()
        super().finish()

    def connectionLost(self, reason) -> None:
        self._let_go()
        super().connectionLost(reason)

    def _let_go(self) -> None:
        self.server.http_factory.held -= self.held
        self.held = 0


class BoundedChannel(http.HTTPChannel):
    """One connection. A request that is too large or too slow gets its answer, and the connection ends."""

    transport: Any
    _began_at = 0.0
    _timer: Any = None
    _path: Any
    _refused = False
    _dropped = 0

    def dataReceived(self, data: bytes) -> None:
        if self._refused:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.transport.pauseProducing()
            return
        if self._timer is None and not self._handlingRequest:
            self._began_at = monotonic()
            self._timer = self.callLater(HEADERS_S, self._late_headers)
        super().dataReceived(data)

    def lineReceived(self, line: bytes) -> None:
        if not self._refused:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._refused:
            super().rawDataReceived(data)

    def allHeadersReceived(self) -> None:
        self._stop_timer()
        self._limit = body_limit(unquote_to_bytes(self._path.partition(b"?")[0]).decode("latin-1"))
        if self.length is not None and self.length > self._limit:
            self.refuse(*too_large(self._limit))
            return
        self._began_at = monotonic()
        self._watch_body()
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        self._stop_timer()
        if not self._refused:
            super().allContentReceived()

    def connectionLost(self, reason=connectionDone) -> None:
        self._stop_timer()
        self.factory.left(self.transport)
        super().connectionLost(reason)

    def takes(self, more: int) -> bool:
        """Whether so many bytes more of a body are taken; else it has been refused."""
        if self._refused:
            return False
        if self.requests[-1].held + more > self._limit:
            self.refuse(*too_large(self._limit))
        elif self.factory.held + more > BODIES_BYTES:
            self.refuse(*BODIES_FULL)
        else:
            self.factory.held += more
        return not self._refused

    def _late_headers(self) -> None:
        self._timer = None
        self.refuse(*too_slow("the request"))

    def _watch_body(self) -> None:
        left = self._began_at + body_seconds(self.requests[-1].held) - monotonic()
        if left > 0:
            self._timer = self.callLater(left, self._watch_body)
        else:
            self._timer = None
            self.refuse(*too_slow("the body"))

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def refuse(self, status: int, code: str, detail: str) -> None:
        """Answer with problem details, and end the connection: no more of it is read."""
        self._stop_timer()
        self.setTimeout(None)
        self._refused = True
        body = orjson.dumps(problem_body(status, code, detail))
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {MEDIA_TYPE}", f"Content-Length: {len(body)}",
            *([f"Retry-After: {RETRY_AFTER_S}"] if status == HTTPStatus.SERVICE_UNAVAILABLE else []), "Connection: close",
        ]  # fmt: skip
        self.transport.write("\r\n".join([*lines, "\r\n"]).encode() + body)
        self.transport.loseWriteConnection()
        self.callLater(LINGER_S, self.transport.abortConnection)


class CountedConnections(HTTPFactory):
    """Connections, counted by the address they come from; `held` bytes of bodies are under way."""

    protocol = BoundedChannel

    def __init__(self, server: daphne.server.Server):
        super().__init__(server)
        self.held = 0
        self._connections: Counter[str] = Counter()

    def buildProtocol(self, addr):
        host = getattr(addr, "host", "")
        if self._connections[host] >= settings.CONNECTIONS_PER_ADDRESS and not is_trusted(host):
            return None  # and twisted closes it
        self._connections[host] += 1
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = CountedRequest
        return protocol

    def left(self, transport) -> None:
        """A connection has ended."""
        host = getattr(transport.getPeer(), "host", "")
        self._connections[host] -= 1
        if not self._connections[host]:
            del self._connections[host]


class BoundedSocket(WebSocketProtocol):
    """A websocket whose client may send so many frames of such a size, of any kind: each costs, pings too."""

    _is_refused = False

    def connectionMade(self) -> None:
        super().connectionMade()
        self._frames = Allowance(FRAMES_AT_ONCE, FRAMES_PER_S, monotonic())

    def _frame_bytes(self) -> int:
        return DEVICE_FRAME_BYTES if self.path.startswith(DEVICES_PATH) else FRAME_BYTES

    def dataReceived(self, data: bytes) -> None:
        if not self._is_refused:
            super().dataReceived(data)

    def onFrameBegin(self) -> None:
        super().onFrameBegin()
        if self._is_refused or self.state != self.STATE_OPEN:
            return
        if self.current_frame.length > self._frame_bytes():
            self._refuse("the message is too large")
        elif not self._frames.take(monotonic()):
            self._refuse("too many messages")

    def handle_reply(self, message) -> None:
        """What the application still says after that, or before it heard that the other side is gone, goes nowhere."""
        if not self._is_refused and self.state not in (self.STATE_CLOSING, self.STATE_CLOSED):
            super().handle_reply(message)

    def _refuse(self, why: str) -> None:
        """Close, and read no more; autobahn ends the connection a second later."""
        self._is_refused = True
        self.data = b""
        self.sendClose(MALFORMED, why)
        self.transport.pauseProducing()

    def connectionLost(self, reason) -> None:
        self.factory.server_class.http_factory.left(self.transport)
        super().connectionLost(reason)


class BoundedSockets(WebSocketFactory):
    protocol = BoundedSocket


def main() -> None:
    """Serve, as the command line says."""
    # Daphne has no option for what makes its connections.
    daphne.server.HTTPFactory, daphne.server.WebSocketFactory = CountedConnections, BoundedSockets
    CommandLineInterface.entrypoint()


if __name__ == "__main__":
    main()
