"""A connection that goes only where it may, whatever a name leads to when it is asked again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httpx2

from agents.outside.addresses import Hosts, is_reachable

CONNECT_S = 10.0
IDLE_CONNECTIONS = 100
"""Connections to one host that are kept open for the next call..."""
IDLE_S = 30.0
"""...for so long."""

Refusal = Callable[[str, str], Exception]
"""What is raised for a host and the first of its addresses that may not be called."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks a host's addresses up, refuses those that no setting allows, and connects to what it has looked at.

    So a name cannot lead elsewhere between the look and the connection. TLS and the Host header keep the name. Each host
    has connections of its own: two names at one address do not share one.
    """

    def __init__(self, inside: Callable[[], Hosts], refusal: Refusal) -> None:
        self._inside, self._refusal = inside, refusal
        self._by_host: dict[str, httpx2.AsyncHTTPTransport] = {}
        self._context = httpx2.create_ssl_context()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        addresses = await self._look_up(request)
        transport = self._by_host.get(host)
        if transport is None:
            limits = httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_S)
            transport = self._by_host[host] = httpx2.AsyncHTTPTransport(verify=self._context, limits=limits)
        for last, address in enumerate(addresses, 1 - len(addresses)):
            # The caller's request keeps the name, by which it tells where a redirect leads.
            there = httpx2.Request(
                request.method, request.url.copy_with(host=address), headers=request.headers, stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )  # fmt: skip
            try:
                return await transport.handle_async_request(there)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not last:
                    raise
        raise httpx2.ConnectError(f"{host} has no address", request=request)

    async def _look_up(self, request: httpx2.Request) -> list[str]:
        host, port = request.url.host, request.url.port
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"nobody says the address of {host}", request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be found: {error}", request=request) from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if refused := [address for address in addresses if not is_reachable(host, address, self._inside())]:
            raise self._refusal(host, refused[0])
        return addresses

    async def aclose(self) -> None:
        for transport in self._by_host.values():
            await transport.aclose()


def guarded_client(transport: httpx2.AsyncBaseTransport, timeout: httpx2.Timeout, **more: Any) -> httpx2.AsyncClient:
    """A client over such a transport. It follows no redirect, which would carry a key elsewhere, and asks no proxy."""
    return httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False, timeout=timeout, **more)
