"""Who opened a websocket: a token in header or subprotocol, else the cookie of a login.

A token is given by the program that has it, so any origin may use it. A cookie comes by itself: those connections must
come from a page of ours, of the same scheme, host and port as REST's forms (`is_own_origin`, `is_foreign_page`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from channels.security.websocket import WebsocketDenier
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.contrib.auth import get_user
from django.utils.http import is_same_domain
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated

from agents.access.authentication import authenticate_token
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
            found = authenticate_token(self.token)
            return found.user, found
        store = import_module(settings.SESSION_ENGINE).SessionStore(self.session_key or None)
        request: Any = SessionRequest(store)
        user = get_user(request)
        if not (self.session_key and user.is_authenticated):
            raise AuthenticationFailed(NotAuthenticated.default_detail)
        return user, None


def token_in_scope(scope: dict[str, Any]) -> str:
    """The token of a websocket's opening request, else the empty string."""
    for name, value in scope["headers"]:
        scheme, _, rest = value.decode("latin-1").partition(" ")
        if name == b"authorization" and scheme.lower() == "bearer":
            return rest.strip()
    carried = (name for name in scope.get("subprotocols", ()) if name.startswith(TOKEN_PREFIX))
    return next(carried, "").removeprefix(TOKEN_PREFIX)


def login_of(scope: dict[str, Any]) -> Login:
    if token := token_in_scope(scope):
        return Login(token=token)
    return Login(session_key=scope.get("cookies", {}).get(settings.SESSION_COOKIE_NAME, ""))


def require_own_origin(application):
    """The websocket application behind the origin check, which only a token of one's own passes by."""
    with_cookies, denied = CookieMiddleware(application), WebsocketDenier.as_asgi()

    async def choose(scope, receive, send):
        allowed = token_in_scope(scope) or is_own_origin(scope)
        await (with_cookies if allowed else denied)(scope, receive, send)

    return choose


SCHEMES = {"ws": "http", "wss": "https"}
"""Of a page, by that of its websockets."""


def is_own_origin(scope: dict[str, Any]) -> bool:
    """Whether a request names as its origin the server that it came to, or one of ORRERY_TRUSTED_ORIGINS.

    As Django's check of forms has it: scheme, host and port. A server that says no scheme of websockets has no TLS of its own.
    """
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    scheme = scope.get("scheme", "ws")
    own = f"{SCHEMES.get(scheme, scheme)}://{headers.get(b'host', b'').decode('latin-1').lower()}"
    return bool(origin) and (
        origin == own or any(_is_trusted(origin, trusted.lower()) for trusted in settings.CSRF_TRUSTED_ORIGINS)
    )


def _is_trusted(origin: str, trusted: str) -> bool:
    """`trusted` is an origin, or one with * in the place of the first names of its host."""
    scheme, _, host = trusted.partition("://")
    if not host.startswith("*"):
        return origin == trusted
    own_scheme, _, own_host = origin.partition("://")
    return own_scheme == scheme and is_same_domain(own_host, host[1:])


def is_foreign_page(scope: dict[str, Any]) -> bool:
    """Whether a page of somebody else's has a browser ask. Browsers name no origin where a page reads from its own server."""
    headers = dict(scope["headers"])
    if b"origin" in headers:
        return not is_own_origin(scope)
    return headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin")
