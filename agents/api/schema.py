"""What the OpenAPI description says of every operation: the problems it may answer with, the parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, Literal

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from agents.api.problems import MEDIA_TYPE
from agents.api.serializers.fields import KEY_HEADER, RequestBody, id_field
from agents.api.serializers.problems import Problem

Direction = Literal["request", "response"]
ALWAYS = ("400", "401", "403", "404", "405", "406", "503")
WITH_BODY = ("409", "413", "415")
IDEMPOTENCY_KEY = OpenApiParameter(
    KEY_HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER,
    description="An id of the client's choosing, as the body takes it: the same id again is the same request.",
)  # fmt: skip


class ProblemSchema(AutoSchema):
    """drf-spectacular's view of an operation, and the problems."""

    def get_summary(self) -> str:
        """What the page of the API shows beside an address: the first line of what is said of it."""
        return self.get_description().partition("\n")[0].rstrip(".")

    def get_override_parameters(self) -> list[Any]:
        """Requests that have an id of their own may have it in the header."""
        body = self.get_request_serializer() if self.method not in ("GET", "HEAD") else None
        form = body() if isinstance(body, type) else body
        key = [IDEMPOTENCY_KEY] if id_field(form) is not None else []
        return [*super().get_override_parameters(), *key]

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        found = super()._get_response_bodies(direction=direction)
        for status in (*ALWAYS, *(WITH_BODY if self.method not in ("GET", "HEAD") else ())):
            found.setdefault(status, self._get_response_for_code(Problem, status, media_types=[MEDIA_TYPE]))
        return found

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        """Bodies refuse what they do not know, and say what else they ask for."""
        found = super()._map_basic_serializer(serializer, direction)
        return {**found, **serializer.also} if isinstance(serializer, RequestBody) else found


def query_parameters(method: str, request: Request) -> tuple[str, ...]:
    """Names of what `method` takes in the query string at the address of `request`, as the description has them."""
    match = request.resolver_match
    assert match is not None, "a request comes by an address"
    operation = match.func, method
    if operation not in _described:
        with DESCRIBING:
            _described[operation] = tuple(_names(*operation, request))
    return _described[operation]


DESCRIBING = Lock()
"""Views share the object that describes them: one thread at a time asks it."""
_described: dict[tuple[Callable[..., Any], str], tuple[str, ...]] = {}
"""By view and method, once they were asked for: they stay what they are."""


def _names(route: Callable[..., Any], method: str, request: Request) -> Iterator[str]:
    """Asked as the generator of the whole description does, but for the place of the address, of which nothing is wanted."""
    generator = SchemaGenerator()
    view = generator.create_view(route, method)
    view.request = request
    if getattr(view, "filter_backends", ()):
        # Filters are of the rows' model. The generator would look for it, and go on without filters where that fails.
        view.queryset = view.get_queryset()
    schema = view.schema
    schema.method, schema.path, schema.registry = method, "", ComponentRegistry()
    for each in schema._get_parameters():
        if each["in"] == "query":
            yield each["name"]
