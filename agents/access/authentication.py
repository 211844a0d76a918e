"""Who is asking: an API token, or the session of somebody who logged in."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.utils import timezone
from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxAuthentication
from knox.crypto import hash_token
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed

from agents.access import ancestry, lineage
from agents.models import Token
from agents.streams.statements import not_waiting

USED_EVERY_S = 60
"""A token's `last_used` is written at most this often: a read must not become a write each time."""
TOKEN_LENGTH = 200
"""Characters; what is longer is no token of ours and is not hashed."""


def authenticate_token(text: str) -> Token:
    """The valid token that `text` is, with the scopes of its whole line; raises AuthenticationFailed.

    One query looks at all that it descends from. An expired token stays, so that its owner sees why.
    """
    line = lineage.read_lineage(hash_token(text)) if text.isascii() and len(text) <= TOKEN_LENGTH else []
    if not line:
        raise AuthenticationFailed("there is no such token", code="invalid_token")
    if fault := lineage.lineage_fault(line):
        raise AuthenticationFailed(fault, code="expired_token")
    found = line[0]
    found.scopes = lineage.lineage_scopes(line)
    if found.session_id is not None and ancestry.has_ended(found.session_id):
        raise AuthenticationFailed(
            f"the token was issued for session {found.session_id}, which has ended", code="session_ended"
        )  # fmt: skip
    note_token_use(found)
    return found


def note_token_use(token: Token) -> None:
    """Unless the database is busy: whoever only reads waits for nobody."""
    now = timezone.now()
    if token.last_used is not None and token.last_used >= now - timedelta(seconds=USED_EVERY_S):
        return
    with suppress(DatabaseError), not_waiting():
        Token.objects.filter(pk=token.pk).update(last_used=now)
        token.last_used = now


class TokenAuthentication(KnoxAuthentication):
    """`Authorization: Bearer orr_...`; the request's `auth` is the Token. Unlike knox's, it deletes nothing."""

    def authenticate_credentials(self, token: bytes):
        found = authenticate_token(token.decode("utf-8", errors="replace"))
        return found.user, found


class SessionAuthentication(authentication.SessionAuthentication):
    """The login of the dashboard, with CSRF. Not logged in is 401, because the token's challenge comes first."""


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class CookieScheme(SessionScheme):
    target_class: Any = SessionAuthentication
    name = "cookie"
