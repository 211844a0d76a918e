"""REST for model profiles: everybody with a role sees them, admins keep them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.serializers.model_profiles import ModelProfileBody, ModelProfileChange, ModelProfileList, ModelProfileRow
from agents.api.views import Api, request_id
from agents.models import ModelProfile
from agents.services import model_profiles


class ModelProfileViews(mixins.RetrieveModelMixin, Api):
    """Which language models this installation asks, and how. A key is named here, and never shown or taken."""

    queryset = ModelProfile.objects.all()
    serializer_class = ModelProfileRow
    pagination_class = None
    filter_backends: list[Any] = []
    needs = {
        "list": "read", "retrieve": "read", "create": "govern", "partial_update": "govern", "destroy": "govern",
    }  # fmt: skip

    @extend_schema(responses=ModelProfileList, operation_id="model_profiles_list")
    def list(self, request: Request) -> Response:
        rows = ModelProfileRow(self.get_queryset()[: model_profiles.PROFILES], many=True)
        return Response({"results": rows.data, "next": None})

    @extend_schema(request=ModelProfileBody, responses={201: ModelProfileRow})
    def create(self, request: Request) -> Response:
        body = self.body(ModelProfileBody)
        made = model_profiles.model_profile_create(**body, by=actor_name(request), request_id=request_id(request))
        return Response(ModelProfileRow(made).data, status=201)

    @extend_schema(request=ModelProfileChange, responses=ModelProfileRow)
    def partial_update(self, request: Request, pk: str) -> Response:
        row, body = self.get_object(), self.body(ModelProfileChange)
        changed = model_profiles.model_profile_change(row.pk, **body, by=actor_name(request), request_id=request_id(request))
        return Response(ModelProfileRow(changed).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        model_profiles.model_profile_delete(self.get_object().pk, by=actor_name(request), request_id=request_id(request))
        return Response(status=204)
