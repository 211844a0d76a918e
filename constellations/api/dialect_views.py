"""REST of constellations in other dialects: export, import, and a look at what an import would be."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.pagination import read_parameter
from agents.api.parsers import DocumentJson
from agents.api.views import Api, request_id, session_head
from agents.models import Session
from agents.services import sessions
from agents.streams.fold import consistent_read
from constellations.api import dialect_serializers
from constellations.api.edit_serializers import EditMade
from constellations.api.edit_views import edit_response
from constellations.api.versioned import IF_MATCH, Versioned, etag_header, seen_version
from constellations.models import Constellation
from constellations.plan.dialects import NAMES, ORRERY
from constellations.reads.exports import export_document
from constellations.services import imports

DIALECT = OpenApiParameter("dialect", OpenApiTypes.STR, enum=NAMES, default=ORRERY)
STATES = OpenApiParameter("states", OpenApiTypes.INT, enum=[0, 1], description="1: with how far tasks have come.")


class ExportViews(Api):
    """Constellations as documents."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Constellation]:
        return Constellation.objects.filter(session__in=Session.objects.visible_to(self.request.user))

    @extend_schema(parameters=[DIALECT, STATES], responses=OpenApiTypes.OBJECT, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def export(self, request: Request, pk: str) -> HttpResponse:
        dialect, states = request.query_params.get("dialect", ORRERY), read_parameter(request, "states", 0, 0, 1)
        if dialect not in NAMES:
            raise ValidationError({"dialect": f"must be one of {', '.join(NAMES)}"})
        with consistent_read():
            constellation = self.get_object()
            text = export_document(constellation, dialect, bool(states))
        name = {"Content-Disposition": f'attachment; filename="constellation-{pk}.{dialect}.json"'}
        return HttpResponse(text, content_type="application/json", headers=name | etag_header(constellation.version))


class ImportViews(Api):
    """Documents as requests to a session."""

    filter_backends: list[Any] = []
    parser_classes = [DocumentJson]

    def get_queryset(self) -> QuerySet[Session]:
        return Session.objects.visible_to(self.request.user)

    @extend_schema(request=dialect_serializers.ImportBody, responses={202: dialect_serializers.Imported})
    @action(detail=True, methods=["post"], url_path="import", url_name="import")
    def take(self, request: Request, pk: str) -> Response:
        session, body = self.get_object().pk, self.body(dialect_serializers.ImportBody)
        checked, warnings = imports.read_document(body["document"], body.get("dialect", ""))
        seq = session_head(session)  # before the request, so that whoever follows from here misses nothing of it
        by, client_id = actor_name(request), body.get("client_id", "")
        item, created = sessions.request_submit(
            session, "interaction", client_id, checked.payload, by=by, request_id=request_id(request), checked=checked
        )
        ids = {"session": session, "interaction": item.pk, "client_id": item.client_id}
        return Response({**ids, "created": created, "seq": seq, "warnings": warnings}, status=202)


class EditImportViews(Versioned):
    """Documents as edits of the constellation in the address."""

    filter_backends: list[Any] = []
    parser_classes = [DocumentJson]
    needs = {"apply": "edit"}
    by_version = frozenset(needs)

    def get_queryset(self) -> QuerySet[Constellation]:
        return Constellation.objects.filter(session__in=Session.objects.visible_to(self.request.user))

    @extend_schema(parameters=[IF_MATCH], request=dialect_serializers.EditImportBody, responses={200: EditMade, 201: EditMade})
    @action(detail=True, methods=["post"], pagination_class=None, url_path="import", url_name="import")
    def apply(self, request: Request, pk: str) -> Response:
        """Edit: the actions of an agent's answer, in its dialect, are applied as one change set, or none of them."""
        constellation, body = self.get_object(), self.body(dialect_serializers.EditImportBody)
        body["based_on"] = seen_version(request, body.get("based_on"))
        body |= {"author": actor_name(request), "request_id": request_id(request)}
        edit, changed = imports.apply_edit(constellation.pk, **body)
        return edit_response(constellation, edit, changed, body.get("edit_id", ""), body["based_on"])


class CheckViews(Api):
    """What documents would become."""

    filter_backends: list[Any] = []
    parser_classes = [DocumentJson]
    needs = {"check": "read"}

    @extend_schema(request=dialect_serializers.CheckBody, responses=dialect_serializers.Checked)
    @action(detail=False, methods=["post"], pagination_class=None)
    def check(self, request: Request) -> Response:
        body = self.body(dialect_serializers.CheckBody)
        return Response(imports.check_document(body["document"], body.get("dialect", "")))
