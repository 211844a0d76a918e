"""The one way out of a browser: a proxy of ours, which looks a host up itself and connects to the very address it looked at.

Whatever a page does (redirects, websockets, workers, a name whose address changes) it has to come by here. Each attempt has a
name and a password of its own at the gateway; what comes without, as what the browser wants for itself, gets nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings

from agents.browsing.sites import PORTS, Sites, plain_host
from agents.devices.host import runtime_dir

HEAD_BYTES = 64 * 1024
"""Of a request or an answer up to its first empty line."""
PIECE_BYTES = 64 * 1024
CONNECT_S = 20.0
HEAD_S = 120.0
"""An answer may begin so late."""
HOP = ("connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade")
"""Headers that are for the next station only."""
CANNOT = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError)

Refuse = Callable[[str, str], None]
"""Is told of each refusal: the address, and why."""


class Refused(Exception):
    """The browser may not go there."""


@dataclass(frozen=True)
class Head:
    """The first line of a request or an answer, in three words, and its headers."""

    words: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without_hops(self, first: str) -> bytes:
        """To be sent on: one exchange, after which the connection ends."""
        kept = [f"{key}: {value}" for key, value in self.headers if key.lower() not in HOP]
        return "\r\n".join([first, *kept, "Connection: close", "", ""]).encode("latin-1")


class Gateway:
    """Of one browser."""

    def __init__(self, sites: Sites):
        self._sites = sites
        self._known: dict[str, tuple[str, Refuse]] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def open(self) -> str:
        """Listen; the address of the gateway."""
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0, limit=HEAD_BYTES)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self.address

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def let_in(self, refuse: Refuse) -> tuple[str, str]:
        """A name and a password; `refuse` is told of what they ask for in vain."""
        name, password = secrets.token_hex(8), secrets.token_hex(16)
        self._known[name] = password, refuse
        return name, password

    def let_out(self, name: str) -> None:
        self._known.pop(name, None)

    # --- one connection

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = await read_head(reader)
            if (refuse := self._refuse_of(head)) is None:
                await _answer(writer, "407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="gateway"')
                return
            try:
                await self._pass_on(head, reader, writer)
            except Refused as refused:
                refuse(head.words[1], str(refused))
                await _answer(writer, "403 Forbidden")
            except CANNOT:
                await _answer(writer, "502 Bad Gateway")
        except CANNOT:
            pass  # the browser has gone, or speaks something else
        finally:
            self._tasks.discard(task)
            writer.close()

    def _refuse_of(self, head: Head) -> Refuse | None:
        """Who is to be told of refusals; None for whoever is not known."""
        kind, _, told = head.get("proxy-authorization").partition(" ")
        with contextlib.suppress(ValueError):
            name, _, password = base64.b64decode(told, validate=True).decode().partition(":")
            known, refuse = self._known.get(name, ("", None))
            if kind == "Basic" and refuse is not None and secrets.compare_digest(known, password):
                return refuse
        return None

    async def _pass_on(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = head.words
        if method == "CONNECT":
            parts = urlsplit(f"//{target}")
            host, port = plain_host(parts.hostname or ""), parts.port or 443
            there, away = await self._connect(host, port, self._sites.why_not_tunnel(host, port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _join(reader, writer, there, away)
            return
        parts = urlsplit(target)
        if parts.scheme != "http":
            raise Refused(f"{parts.scheme}: is not passed on")
        host, port = plain_host(parts.hostname or ""), parts.port or PORTS["http"]
        there, away = await self._connect(host, port, self._sites.why_not_host("http", host, port))
        try:
            await _exchange(head, reader, writer, there, away)
        finally:
            away.close()

    async def _connect(self, host: str, port: int, why_not: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address of the host that was looked at. Raises Refused."""
        if why_not:
            raise Refused(why_not)
        if is_own_name(host):
            raise Refused(f"{host} is Orrery itself")
        async with asyncio.timeout(CONNECT_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
            why = [self._why_not(host, address, port) for address in addresses]
            if (allowed := next((address for address, no in zip(addresses, why, strict=True) if not no), None)) is None:
                raise Refused(next(filter(None, why), f"{host} has no address"))
            return await asyncio.open_connection(allowed, port, limit=HEAD_BYTES)

    def _why_not(self, host: str, address: str, port: int) -> str:
        if is_own_address(address, port):
            return f"{host}:{port} is Orrery itself"
        return self._sites.why_not_address(host, address, port)


async def _exchange(
    head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: asyncio.StreamReader,
    away: asyncio.StreamWriter,
) -> None:  # fmt: skip
    """One request and its answer: what comes behind them on the same connection might be meant for another host."""
    method, target, _ = head.words
    parts = urlsplit(target)
    if head.get("transfer-encoding"):
        raise Refused("a request of unknown length is not passed on")
    path = parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
    away.write(head.without_hops(f"{method} {path} HTTP/1.1"))
    left = int(head.get("content-length") or 0)
    while left > 0 and (piece := await reader.read(min(left, PIECE_BYTES))):
        left -= len(piece)
        away.write(piece)
        await away.drain()
    async with asyncio.timeout(HEAD_S):
        answer = await read_head(there)
        while answer.words[1].startswith("1"):
            answer = await read_head(there)
    writer.write(answer.without_hops(" ".join(answer.words)))
    await _copy(there, writer)


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Raises ValueError for what is no head."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = [*lines[0].split(" ", 2), "", ""]
    pairs = [line.partition(":") for line in lines[1:] if line]
    return Head((words[0], words[1], words[2]), tuple((key.strip(), value.strip()) for key, _, value in pairs))


async def _answer(writer: asyncio.StreamWriter, status: str, *headers: str) -> None:
    lines = [f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode())
    with contextlib.suppress(OSError):
        await writer.drain()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(PIECE_BYTES):
            sink.write(piece)
            await sink.drain()


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: asyncio.StreamReader, away: asyncio.StreamWriter
) -> None:  # fmt: skip
    """Both ways, until one side ends."""
    ways = [asyncio.ensure_future(_copy(reader, away)), asyncio.ensure_future(_copy(there, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        away.close()


# --- this installation itself


def is_own_name(host: str) -> bool:
    """Whether Orrery is asked by this name; by names of the host itself only its own ports are refused."""
    if host == "localhost" or _is_loopback(host):
        return False
    names = [plain_host(name) for name in settings.ALLOWED_HOSTS]
    return any(host == name.lstrip(".") or (name.startswith(".") and host.endswith(name)) for name in names)


def is_own_address(address: str, port: int) -> bool:
    """Whether Orrery listens there: the port is its own, and the address is one of this host."""
    return port in own_ports() and _is_here(address)


def own_ports() -> set[int]:
    """Of ORRERY_OWN_PORTS, and of the `up` that serves this installation on this host."""
    found = set(settings.OWN_PORTS)
    with contextlib.suppress(OSError, ValueError, KeyError):
        found.add(urlsplit(json.loads((runtime_dir() / "up.json").read_text())["address"]).port or 80)
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_here(address: str) -> bool:
    """Whether an address is one of this host: only such a one can be listened on."""
    found = ip_address(address.partition("%")[0])
    if found.is_loopback or found.is_unspecified:
        return True
    with socket.socket(socket.AF_INET6 if found.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
