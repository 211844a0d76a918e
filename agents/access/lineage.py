"""Which token a token was made with, and so on up to one that a person made: docs/mcp.md, "A token's lineage".

A token is good as long as its whole line is, and may do what every token of its line may do. Those that people make, at a
login or by `manage.py token_create`, have nobody above them but their user.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.expressions import RawSQL
from django.utils import timezone

from agents.errors import AgentsError
from agents.ids import row_range
from agents.models import Event, Stream, Token

ABOVE = """
    WITH RECURSIVE line(digest, parent_id) AS (
        SELECT digest, parent_id FROM agents_token WHERE digest = %s
        UNION SELECT t.digest, t.parent_id FROM agents_token t JOIN line ON t.digest = line.parent_id
    ) SELECT digest FROM line"""
BELOW = """
    WITH RECURSIVE line(digest) AS (
        SELECT digest FROM agents_token WHERE digest = %s
        UNION SELECT t.digest FROM agents_token t JOIN line ON t.parent_id = line.digest
    ) SELECT digest FROM line"""
"""A token with all that it descends from, and with all that descend from it. UNION ends where a line met itself."""


class TokenEnded(AgentsError):
    """The token, or one that it descends from, has been revoked or has expired, or its user is inactive."""

    code = "token_ended"
    status = 401


def read_lineage(digest: str) -> list[Token]:
    """The token first, then the others of its line in no order, with their users, by one query; empty where there is none."""
    found = Token.objects.select_related("user").filter(digest__in=RawSQL(ABOVE, [digest]))
    return sorted(found, key=lambda each: each.digest != digest)


def lineage_fault(line: Iterable[Token]) -> str:
    """Why a token of this line is no good; empty where it is."""
    for place, token in enumerate(line):
        if not token.user.is_active:
            return "the token's user is inactive"
        if token.expiry is not None and token.expiry <= timezone.now():
            return "the token has expired" if place == 0 else f"the token was made with {token.token_key}, which has expired"
    return ""


def lineage_scopes(line: Iterable[Token]) -> list[str]:
    """What every token of a line may do: also where one was narrowed after it had made others."""
    every = [set(token.scopes) for token in line]
    return sorted(set.intersection(*every)) if every else []


def good_token(key: str) -> Token:
    """The token of this key, with the scopes of its whole line; raises TokenEnded."""
    digest = Token.objects.filter(token_key=key).values_list("digest", flat=True).first()
    line = [] if digest is None else read_lineage(digest)
    if not line:
        raise TokenEnded(f"token {key} has been revoked")
    if fault := lineage_fault(line):
        raise TokenEnded(fault)
    token = line[0]
    token.scopes = lineage_scopes(line)
    return token


def with_descendants(token: Token) -> list[Token]:
    """The token first, then all that descend from it."""
    found = Token.objects.filter(digest__in=RawSQL(BELOW, [token.digest]))
    return sorted(found, key=lambda each: each.digest != token.digest)


def find_creation(key: str) -> Event | None:
    """How the token came to be; also of one that was revoked."""
    system = Stream.objects.filter(kind="system").first()
    if system is None:
        return None
    return Event.objects.filter(pk__range=row_range(system.pk), type="token_created", data__token_key=key).first()


def token_owner(key: str) -> int | None:
    """Whose the token is, or was before it was revoked; None where nobody knows."""
    for user in Token.objects.filter(token_key=key).values_list("user_id", flat=True):
        return user
    event = find_creation(key)
    return None if event is None else event.data.get("user_id")
