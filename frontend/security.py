"""Headers that keep pages to their own scripts, styles and connections."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = (
    "default-src 'self'; connect-src 'self' {sockets}; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
STYLES = "; style-src 'self' 'nonce-{nonce}'"
NONCE_BYTES = 16


class StyleNonce:
    """What a page gives to a library of ours that writes styles: made when a template writes it, and another one each time."""

    def __init__(self) -> None:
        self.written = ""

    def __str__(self) -> str:
        self.written = self.written or secrets.token_urlsafe(NONCE_BYTES)
        return self.written


class ContentSecurityPolicy:
    """Adds the policy to every answer that has none of its own; templates have `request.style_nonce`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        nonce = StyleNonce()
        request.style_nonce = nonce  # type: ignore[attr-defined]
        response = self.get_response(request)
        if "Content-Security-Policy" not in response:
            # Named, because older browsers do not count websockets of the same host among 'self'.
            sockets = f"{'wss' if request.is_secure() else 'ws'}://{request.get_host()}"
            styles = STYLES.format(nonce=nonce.written) if nonce.written else ""
            response["Content-Security-Policy"] = POLICY.format(sockets=sockets) + styles
        return response
