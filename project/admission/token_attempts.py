"""How many wrong tokens, and wrong one-time links, an address may try: over REST, MCP, websocket and event streams alike.

To guess one is hopeless; what this spares is the work of looking. So it writes to no database: the cache counts (Redis, where
there is one, and then for all web servers). A token that has been good passes also from an address that tries wrong ones.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any

from asgiref.sync import sync_to_async
from channels.security.websocket import WebsocketDenier
from django.core.cache import cache

from agents.access.logins import token_in_scope
from project.admission.requests import is_address, send_problem

WRONG = 30
"""From one address, within..."""
WITHIN_S = 60
"""...so many seconds from the first of them."""
REMEMBERED = 10_000
"""Good tokens and blocked addresses, at most."""
LINK = "/login/link/"
CHECKED = re.compile(r"/api/|/mcp\b")
"""Addresses that answer nothing good to a token that is none."""
NETWORK = 64
"""Bits of an IPv6 address that are one customer's."""
NOT_AUTHENTICATED = 4401

log = logging.getLogger(__name__)


def credential_of(scope: dict[str, Any]) -> str:
    """What is tried: a token, or the address of a one-time link; empty where there is neither."""
    return token_in_scope(scope) or (scope["path"] if scope["path"].startswith(LINK) else "")


def place_of(scope: dict[str, Any]) -> str:
    """From where: an address, or of IPv6 its network."""
    address = str((scope.get("client") or [""])[0])
    if is_address(address) and ip_address(address).version == 6:
        return str(ip_network(f"{address}/{NETWORK}", strict=False))
    return address


def count_attempt(place: str) -> int:
    """How many there have been, with this one. Where Redis does not answer nobody is kept out: it is optional."""
    key = f"wrong-tokens:{place}"
    try:
        return 1 if cache.add(key, 1, WITHIN_S) else cache.incr(key)
    except ValueError:  # it was forgotten between the two
        return 1
    except Exception as error:
        from redis.exceptions import RedisError  # 10 MB that nobody needs who has no Redis

        if not isinstance(error, RedisError):
            raise
        log.warning("wrong tokens are not counted: %s", error)
        return 0


class TokenAttempts:
    """The ASGI application, for addresses that have not tried too many wrong tokens."""

    def __init__(self, application: Callable):
        self.application = application
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._blocked: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: dict[str, Any], receive, send) -> None:
        credential = credential_of(scope) if scope["type"] in ("http", "websocket") else ""
        place = place_of(scope) if credential else ""
        if not place:  # by a socket of this host's files there is no address
            await self.application(scope, receive, send)
            return
        digest = hashlib.sha256(credential.encode()).digest()
        left_s = self._blocked.get(place, 0.0) - time.monotonic()
        if left_s > 0 and digest not in self._good:
            await self._refuse(scope, receive, send, left_s)
            return

        async def told(message: dict[str, Any]) -> None:
            wrong = is_wrong(scope, message)
            if wrong:
                self._good.pop(digest, None)
                if await sync_to_async(count_attempt, thread_sensitive=False)(place) > WRONG:
                    _remember(self._blocked, place, time.monotonic() + WITHIN_S)
            elif wrong is not None:
                _remember(self._good, digest, None)
            await send(message)

        await self.application(scope, receive, told)

    async def _refuse(self, scope: dict[str, Any], receive, send, left_s: float) -> None:
        if scope["type"] == "websocket":
            await WebsocketDenier.as_asgi()(scope, receive, send)
            return
        said = f"more than {WRONG} wrong tokens came from your address; wait {left_s:.0f} s"
        await send_problem(send, 429, "too_many_attempts", said, [(b"retry-after", b"%d" % (left_s + 1))])


def is_wrong(scope: dict[str, Any], message: dict[str, Any]) -> bool | None:
    """Whether an answer says that the token, or link, is no good; None where it says nothing of it."""
    if message["type"] == "http.response.start":
        is_link = scope["path"].startswith(LINK)
        if message["status"] == (403 if is_link else 401):
            return True
        is_good = message["status"] == 302 if is_link else 200 <= message["status"] < 300 and CHECKED.match(scope["path"])
        return False if is_good else None
    if message["type"] == "websocket.close":
        return message.get("code") == NOT_AUTHENTICATED or None
    return False if message["type"] == "websocket.send" and '"error"' not in str(message.get("text"))[:20] else None


def _remember(known: OrderedDict, key: Any, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > REMEMBERED:
        known.popitem(last=False)
