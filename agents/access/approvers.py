"""Who may let something be done that a person would be asked about, by the author's name as records have it."""

from __future__ import annotations

from django.contrib.auth.models import User

from agents.access import lineage
from agents.access.permissions import why_refused
from agents.errors import AgentsError

SYSTEM = "system"
"""Whoever works at the installation's own command line."""
DIGITS = 18
"""Of a user's id, at most."""


class NotApprover(AgentsError):
    """It lets something be done unasked, and its author may not approve that."""

    code = "not_approver"
    status = 403


def why_no_approver(author: str) -> str:
    """Why an author may approve nothing; empty for who may. A token that was issued for an agent at work never may."""
    kind, _, key = author.partition(":")
    if kind == "user" and key.isascii() and key.isdecimal() and len(key) <= DIGITS:
        user = User.objects.filter(pk=int(key), is_active=True).first()
        return why_refused(user, None, "approve") if user else "there is no such user"
    if kind == "token":
        try:
            token = lineage.good_token(key)
        except lineage.TokenEnded as ended:
            return str(ended)
        if token.session_id is not None:
            return "the token was issued for an agent at work"
        return why_refused(token.user, token, "approve")
    return "" if author == SYSTEM else f"{author} is nobody who approves"
