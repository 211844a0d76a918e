"""What the OpenAPI description says of every operation: the problems it may answer with."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema

from agents.problems import MEDIA_TYPE
from agents.serializers import Body, Problem

Direction = Literal["request", "response"]
ALWAYS = ("400", "401", "403", "404", "405", "406")
WITH_BODY = ("409", "413", "415")


class ProblemSchema(AutoSchema):
    """drf-spectacular's view of an operation, and the problems."""

    def get_summary(self) -> str:
        """What the page of the API shows beside an address: the first line of what is said of it."""
        return self.get_description().partition("\n")[0].rstrip(".")

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        found = super()._get_response_bodies(direction=direction)
        for status in (*ALWAYS, *(WITH_BODY if self.method not in ("GET", "HEAD") else ())):
            found.setdefault(status, self._get_response_for_code(Problem, status, media_types=[MEDIA_TYPE]))
        return found

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        """Bodies refuse what they do not know, and say what else they ask for."""
        found = super()._map_basic_serializer(serializer, direction)
        return {**found, **serializer.also} if isinstance(serializer, Body) else found
