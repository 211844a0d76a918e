"""Who may what: one table, used by REST and websocket alike (docs/mcp.md, "A token")."""

from __future__ import annotations

from typing import Any, NamedTuple

from rest_framework import permissions

from agents.models import Token


class Need(NamedTuple):
    """What a request asks for: the scope a token must have, and the groups of which its user must have one."""

    scope: str
    groups: frozenset[str] | None
    other_scope: str = ""
    """A wider one, which will do as well."""


PROPOSE = "propose"
"""The scope of a coding agent's token: it sees its own constellation and proposes edits of it. Nobody else is given it."""
EVERYBODY = None
"""Any login: what is found is limited to what `visible_to` shows."""
NEEDS = {
    "own": Need("read", EVERYBODY),
    "read": Need("read", frozenset({"viewer", "operator", "admin"})),
    "operate": Need("operate", frozenset({"operator", "admin"})),
    "edit": Need("edit", frozenset({"operator", "admin"})),
    "propose": Need(PROPOSE, frozenset({"operator", "admin"})),
    "approve": Need("approve", frozenset({"operator", "admin"})),
    "devices": Need("devices", frozenset({"devices", "admin"}), "admin"),
    "govern": Need("admin", frozenset({"admin"})),
    "tokens": Need("admin", EVERYBODY),
}
UNSAFE = "operate"
"""What an action that says nothing needs when it may change something."""


def groups_of(user: Any) -> frozenset[str]:
    """Names of the user's groups, read once for each user object; a superuser is an admin."""
    known = getattr(user, "_group_names", None)
    if known is None:
        known = frozenset(user.groups.values_list("name", flat=True)) | ({"admin"} if user.is_superuser else set())
        user._group_names = known
    return known


def why_refused(user: Any, token: Token | None, need: str) -> str:
    """Why `user`, by `token` or by login, may not do what needs `need`; empty when they may."""
    scope, groups, other_scope = NEEDS[need]
    if token is not None and scope not in token.scopes and other_scope not in token.scopes:
        return f"the token lacks the scope {scope}"
    if groups is not EVERYBODY and not groups & groups_of(user):
        return f"this needs one of the roles {', '.join(sorted(groups))}"
    return ""


class RoleAndScope(permissions.BasePermission):
    """Asks the table for what the view's `needs` says of the action, else `own` for reads and `operate` for changes."""

    def has_permission(self, request, view) -> bool:
        if not request.user or not request.user.is_authenticated:
            return False
        default = "own" if request.method in permissions.SAFE_METHODS else UNSAFE
        need = getattr(view, "needs", {}).get(getattr(view, "action", None), default)
        token = request.auth if isinstance(request.auth, Token) else None
        self.message = why_refused(request.user, token, need)
        return not self.message


def actor_name(request) -> str:
    """The request's author as records name one: token:KEY or user:ID."""
    if isinstance(request.auth, Token):
        return f"token:{request.auth.token_key}"
    return f"user:{request.user.pk}"
