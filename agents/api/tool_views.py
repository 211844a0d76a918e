"""REST of tool servers' tools: what they offer, and an admin's word for tools that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.serializers.tools import AcceptedTools, DeviceTools
from agents.services.tool_pins import describe_tools, tools_accept

if TYPE_CHECKING:
    from agents.api.views import Api

    Base = Api
else:
    Base = object


class ToolPins(Base):
    """Of a device."""

    @extend_schema(responses=DeviceTools, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def tools(self, request: Request, pk: str) -> Response:
        """The tools that were accepted, and what the server offers in their place."""
        return Response(describe_tools(self.get_object()))

    @extend_schema(request=AcceptedTools, responses=DeviceTools)
    @action(detail=True, methods=["post"], url_path="tools/accept", pagination_class=None)
    def accept(self, request: Request, pk: str) -> Response:
        """Take what the server offers for its tools; `digest` says what was seen. A failed device is connected again."""
        row, body = self.get_object(), self.body(AcceptedTools)
        return Response(describe_tools(tools_accept(row.pk, body["digest"], by=actor_name(request))))
