"""Who opened a websocket: a token in header or subprotocol, else the cookie of a login.

A token is given by the program that has it, so any origin may use it. A cookie comes by itself: those connections must
come from a page of ours (`agents.consumers` is mounted behind `own_origin` for them).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.contrib.auth import get_user
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated

from agents.authentication import token_of
from agents.models import Token

TOKEN_PREFIX = "token."
"""Of the subprotocol that carries a token, for browsers: they cannot set headers."""


@dataclass
class SessionRequest:
    """As much of a request as Django's `get_user` asks for."""

    session: Any
    META: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Login:
    """A credential, to be checked as often as wanted."""

    token: str = ""
    session_key: str = ""

    def check(self) -> tuple[Any, Token | None]:
        """(user, token or None); reads the database, raises AuthenticationFailed."""
        if self.token:
            found = token_of(self.token)
            return found.user, found
        store = import_module(settings.SESSION_ENGINE).SessionStore(self.session_key or None)
        request: Any = SessionRequest(store)
        user = get_user(request)
        if not (self.session_key and user.is_authenticated):
            raise AuthenticationFailed(NotAuthenticated.default_detail)
        return user, None


def token_in(scope: dict[str, Any]) -> str:
    """The token of a websocket's opening request, else the empty string."""
    for name, value in scope["headers"]:
        scheme, _, rest = value.decode("latin-1").partition(" ")
        if name == b"authorization" and scheme.lower() == "bearer":
            return rest.strip()
    carried = (name for name in scope.get("subprotocols", ()) if name.startswith(TOKEN_PREFIX))
    return next(carried, "").removeprefix(TOKEN_PREFIX)


def login_of(scope: dict[str, Any]) -> Login:
    if token := token_in(scope):
        return Login(token=token)
    return Login(session_key=scope.get("cookies", {}).get(settings.SESSION_COOKIE_NAME, ""))


def own_origin(application):
    """The websocket application behind the origin check, which only a token of one's own passes by."""
    with_cookies = CookieMiddleware(application)
    checked = AllowedHostsOriginValidator(with_cookies)

    async def choose(scope, receive, send):
        await (with_cookies if token_in(scope) else checked)(scope, receive, send)

    return choose
