"""Who calls over MCP, and what they may do and see: a token's user, by the same table as REST and the websocket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import AuthenticationFailed

from agents import approvals
from agents.authentication import token_of
from agents.errors import AgentsError
from agents.models import Approval, Session, Token
from agents.permissions import refusal
from constellations.errors import NoSuchConstellation
from constellations.models import Constellation


class NotAllowed(AgentsError):
    """The caller may not do this."""

    code = "permission_denied"
    status = 403


@dataclass(frozen=True)
class Caller:
    """A valid token and its user."""

    user: Any
    token: Token

    @property
    def by(self) -> str:
        """As records name an author."""
        return f"token:{self.token.token_key}"

    @property
    def who(self) -> str:
        """As a person reads it."""
        return f"{self.token.name or 'A program'} ({self.by}) of {self.user.get_username()}"

    def refusal(self, need: str) -> str:
        """Why the caller may not do what needs `need`; empty when it may."""
        return refusal(self.user, self.token, need)

    def demand(self, *needs: str) -> None:
        """Raise NotAllowed unless the caller may do what needs any of `needs`; it says what is missing of the first."""
        refusals = [self.refusal(need) for need in needs]
        if all(refusals):
            raise NotAllowed(refusals[0])


def caller_of(text: str) -> Caller:
    """Whose token `text` is; raises AuthenticationFailed."""
    if not text:
        raise AuthenticationFailed("a token is needed, as `Authorization: Bearer orr_...`; manage.py token_create makes one")
    token = token_of(text)
    return Caller(token.user, token)


def constellations_of(caller: Caller) -> QuerySet[Constellation]:
    """Those that the caller may see."""
    return Constellation.objects.filter(session__in=Session.objects.visible_to(caller.user))


def constellation_of(caller: Caller, constellation_id: int) -> Constellation:
    """Raises NoSuchConstellation, with the same words for what is not there and what is not the caller's to see."""
    found = constellations_of(caller).filter(pk=constellation_id).first()
    if found is None:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}, or it is not yours to see")
    return found


def approvals_of(caller: Caller) -> QuerySet[Approval]:
    """Those that people decide, of sessions that the caller may see; a call-back is awaited from outside."""
    return approvals.visible_to(caller.user).exclude(kind="callback")
