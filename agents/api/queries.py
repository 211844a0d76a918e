"""What a request asks for in its query string: what the OpenAPI description names of the operation, and nothing else.

A parameter is declared once, for the description, and this asks the description. So what a view reads and does not
declare never gets to it, and what is misspelt is told instead of being passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.api.schema import query_parameters

SHOWN = 80
"""Characters of an unknown name that an answer repeats."""


def query_flaws(given: Mapping[str, Sequence[str]], known: Iterable[str]) -> dict[str, str]:
    """What is wrong with a query string, names and their values, by name: there is none such, or it is there twice."""
    known = sorted(known)
    strange = {name[:SHOWN]: unknown_parameter_text(name, known) for name in given if name not in known}
    twice = {name: len(given[name]) for name in known if len(given.get(name, ())) > 1}
    return strange | {name: f"is given {times} times, and has one value" for name, times in twice.items()}


def unknown_parameter_text(name: str, known: Sequence[str]) -> str:
    """What is said of a parameter that there is not: the nearest one, and all that there are."""
    said = "unknown parameter" if name else "a parameter without a name"
    if not known:
        return f"{said}; there are none here"
    close = get_close_matches(name[:SHOWN].lower(), known, 1)
    hint = f"did you mean {close[0]}? Known" if close else "known"
    return f"{said}; {hint} are {', '.join(known)}"


class ByAccept(DefaultContentNegotiation):
    """What Accept says decides: to DRF `?format=` does too, whether or not a view declares it."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        return renderers


class KnownQuery(APIView):
    """A view that refuses what its description does not name, once it is known who asks and that they may."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method == "OPTIONS" or not hasattr(self, method.lower()):
            return  # what the address is, and that it takes no such method, has no parameters
        given = dict(request.query_params.lists())
        if given and (wrong := query_flaws(given, query_parameters(method, request))):
            raise ValidationError(wrong)
