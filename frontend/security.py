"""Headers that keep pages to their own scripts, styles and connections."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = (
    "default-src 'self'; connect-src 'self' {sockets}; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class ContentSecurityPolicy:
    """Adds the policy to every answer that has none of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if "Content-Security-Policy" not in response:
            # Named, because older browsers do not count websockets of the same host among 'self'.
            sockets = f"{'wss' if request.is_secure() else 'ws'}://{request.get_host()}"
            response["Content-Security-Policy"] = POLICY.format(sockets=sockets)
        return response
