"""What a person is shown when the database is busy or does not answer: a sentence, not the page of a fault of ours."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.html import escape

from agents.api.problems import RETRY_AFTER_S
from agents.errors import AgentsError
from agents.streams.outages import outage_refusal

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Try again</title></head>
<body><h1>Try again</h1><p>{said}</p><p>Go back for what you had filled in, and send it again.</p></body>
</html>
"""


class DatabaseOutage:
    """Answers for a page that met an outage; the API answers for itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        refused = outage_refusal(error)
        return None if refused is None else outage_page(refused)


def outage_page(refused: AgentsError) -> HttpResponse:
    """The page that says so."""
    said = str(refused)
    page = PAGE.format(said=escape(f"{said[0].upper()}{said[1:]}."))
    return HttpResponse(page, status=refused.status, headers={"Retry-After": str(RETRY_AFTER_S)})
