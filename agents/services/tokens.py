"""Tokens: one function for each thing that a person or another program asks of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from agents.access import ancestry, lineage
from agents.errors import AgentsError, NoSuchSession
from agents.models import Session, Token
from agents.streams.door import door, system_stream


class ScopeMissing(AgentsError):
    """A token cannot make one that may do more than itself."""

    code = "scope_missing"
    status = 403


class TokenRejected(AgentsError):
    """Whoever asks may not make such a token."""

    code = "token_rejected"
    status = 403


def token_create(
    user, name: str, scopes: Iterable[str], lifetime: timedelta, *, by: str, session: int | None = None
) -> tuple[Token, str]:  # fmt: skip
    """A new API token of `user`: (its row, its text). The text is nowhere stored and cannot be shown again.

    One that a token makes is that token's child (`agents.access.lineage`): it has no other user and no more scopes, and its
    lifetime ends with its parent's at the latest. With `session`, one that the user may see, it is for whoever works inside
    that session: see `agents.access.ancestry`. Raises NoSuchSession, ScopeMissing, TokenEnded, and TokenRejected where `by`
    is a token of a session or of somebody else.
    """
    if session is not None and not Session.objects.visible_to(user).filter(pk=session).exists():
        raise NoSuchSession(f"there is no session {session}, or it is not one that {user.get_username()} may see")
    wanted, maker = sorted(set(scopes)), ancestry.token_key_of(by)
    with door(system_stream(), by) as opened:  # under which tokens are revoked, too
        parent = _parent_for(maker, user, wanted) if maker else None
        token, text = Token.objects.create(
            user, expiry=lifetime, name=name, scopes=wanted, session_id=session, parent=parent
        )  # fmt: skip
        if parent is not None and parent.expiry is not None and parent.expiry < token.expiry:
            token.expiry = parent.expiry
            token.save(update_fields=["expiry"])
        told = {"user_id": user.pk, "token_key": token.token_key, "name": name, "scopes": token.scopes}
        opened.turn.record("token_created", **told, session_id=session)
    return token, text


def _parent_for(maker: str, user: Any, scopes: Iterable[str]) -> Token:
    """The token that makes another one, if it may."""
    parent = lineage.good_token(maker)
    if parent.session_id is not None:
        raise TokenRejected(f"this token was issued for session {parent.session_id}, and such a token makes no others")
    if parent.user_id != user.pk:
        raise TokenRejected("a token makes tokens of its own user, and of nobody else")
    if more := sorted(set(scopes) - set(parent.scopes)):
        raise ScopeMissing(f"this token cannot give the scopes {', '.join(more)}: it lacks them")
    return parent


def token_revoke(token: Token, *, by: str) -> None:
    """The token is no good from now on, and neither is any that descends from it."""
    with door(system_stream(), by) as opened:
        for each in lineage.with_descendants(token):
            opened.turn.record("token_revoked", user_id=each.user_id, token_key=each.token_key, name=each.name)
        Token.objects.filter(digest=token.digest).delete()  # and its children with it
