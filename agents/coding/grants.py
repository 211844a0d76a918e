"""The token by which an agent may look at its own constellation and propose edits of it, for as long as it works there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection

from agents.access.permissions import PROPOSE
from agents.models import Session, Token
from agents.services.tokens import token_create, token_revoke
from agents.tools.calls import Call

T = TypeVar("T")
NAME = "orrery"
"""Of our server, as the agent knows it."""
LIFETIME = timedelta(days=7)
SEEN_S = 8.0
"""An agent that has not called our server after so long has not been able to, or does so later."""
LOOK_S = 0.1


@dataclass(frozen=True)
class Grant:
    """`text` is the token itself, which is nowhere kept."""

    token: Token
    text: str

    def as_server(self) -> dict[str, Any]:
        """Our server as a session of the protocol is told of it."""
        return {"type": "http", "name": NAME, "url": settings.MCP_URL, "headers": [
            {"name": "Authorization", "value": f"Bearer {self.text}"},
        ]}  # fmt: skip


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that uses the database in a thread, whose connection ends with it."""

    def called() -> T:
        try:
            return function(*arguments)
        finally:
            connection.close()

    return await asyncio.to_thread(called)


async def make_grant(call: Call) -> Grant | None:
    """A token for the session of a call; None where this installation says no address of its server."""
    return await in_thread(_make, call) if settings.MCP_URL else None


def _make(call: Call) -> Grant:
    owner = Session.objects.select_related("owner").get(pk=call.session).owner
    name = f"attempt {call.attempt} on {call.device['name']}"[:80]
    return Grant(*token_create(owner, name, [PROPOSE], LIFETIME, by="system", session=call.session))


async def was_seen(grant: Grant) -> bool:
    """Wait until our server has been called with the token, for SEEN_S at most: agents say nothing of a token that is bad."""

    def is_used() -> bool:
        return Token.objects.filter(pk=grant.token.pk, last_used__isnull=False).exists()

    for _ in range(int(SEEN_S / LOOK_S)):
        if await in_thread(is_used):
            return True
        await asyncio.sleep(LOOK_S)
    return False


async def end_grant(grant: Grant) -> None:
    await in_thread(_revoke, grant.token.pk)


def _revoke(digest: str) -> None:
    if found := Token.objects.filter(pk=digest).first():
        token_revoke(found, by="system")
