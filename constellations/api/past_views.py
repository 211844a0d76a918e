"""REST of a session's time: all of its rows now or at any moment of the past, when things happened, and who did them."""

from __future__ import annotations

import time
import zlib
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.pagination import optional_parameter, read_parameter
from agents.api.views import Api
from agents.clock import iso_of, to_iso
from agents.ids import CAPACITY
from agents.masks.doors import AS_IT_IS
from agents.masks.values import mask_json
from agents.models import Session
from agents.reads.authors import names_of
from agents.streams import fold, past
from agents.streams.columns import tell_columns, tell_difference
from agents.streams.garbage import nothing_collected
from constellations.reads.density import authors_in, read_density

BUCKETS, MOST_BUCKETS = 120, 1_000
LEVEL = 1
"""Of gzip: the first step saves most, and takes a tenth of the time of the last."""
NOT_KEPT = ["readings", "output", "lease"]
"""What is outside the fold, and so not known of a moment of the past."""

SEQ = OpenApiParameter("seq", {"type": "integer", "minimum": 0, "maximum": CAPACITY}, description="As it was after this event.")
AT = OpenApiParameter("at", OpenApiTypes.DATETIME, description="As it was at this moment.")
SINCE = OpenApiParameter(
    "since",
    {"type": "integer", "minimum": 0, "maximum": CAPACITY},
    description="With `seq` or `at`: only what differs from what was after this event, earlier or later.",
)
IN_BUCKETS = OpenApiParameter("buckets", {"type": "integer", "minimum": 1, "maximum": MOST_BUCKETS, "default": BUCKETS})


class TableByColumns(serializers.Serializer):
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(), help_text="A column that is left out has its default in all.")


class SnapshotByColumns(serializers.Serializer):
    """All rows at one moment; `seq` is the last event in them, `at` when that was, `head` the stream's last.

    Where `since` is said, only what differs from the rows after that event; 0 stands for no rows at all.
    """

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    head = serializers.IntegerField()
    tables = serializers.DictField(child=TableByColumns())
    not_kept = serializers.ListField(child=serializers.CharField(), help_text="What of that moment is not known any more.")
    since = serializers.IntegerField(required=False, help_text="0 where all rows were asked for, or are known sooner.")
    changed = serializers.DictField(
        child=TableByColumns(), required=False, help_text="Rows that are there before and after: what has another value now."
    )
    gone = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField()), required=False, help_text="Ids of rows not there now."
    )


class Bucket(serializers.Serializer):
    at = serializers.DateTimeField(help_text="Where it begins.")
    seq = serializers.IntegerField(help_text="The last event up to its end.")
    events = serializers.IntegerField()
    edits = serializers.IntegerField()
    failures = serializers.IntegerField()


class Mark(serializers.Serializer):
    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="edit, failure, request, approval or outcome.")
    by = serializers.CharField()
    text = serializers.CharField()


class Density(serializers.Serializer):
    """When things happened: events by equal spans of time, and the latest moments of each kind."""

    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    head = serializers.IntegerField()
    buckets = Bucket(many=True)
    marks = Mark(many=True)


class PastViews(Api):
    """A session's rows at a moment, and its time as a whole."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Session]:
        return Session.objects.visible_to(self.request.user)

    @extend_schema(parameters=[SEQ, AT, SINCE], responses=SnapshotByColumns, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def snapshot(self, request: Request, pk: str) -> HttpResponse:
        """All rows of a session, now or at a moment of the past, by columns and compressed."""
        session = self.get_object().pk
        seq, moment = optional_parameter(request, "seq", 0, CAPACITY), _moment(request)
        since = optional_parameter(request, "since", 0, CAPACITY)
        if seq is not None and moment is not None:
            raise ValidationError({"at": "give at most one of seq and at"})
        if moment is not None:
            seq = past.seq_at(session, moment)
        if since is not None and seq is None:
            raise ValidationError({"since": "goes with seq or at"})
        with nothing_collected():
            told = _present(session) if seq is None else _past(session, seq, since or 0)
            body = orjson.dumps(told)
        return _compressed(request, mask_json(body))

    @extend_schema(parameters=[IN_BUCKETS], responses=Density, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def density(self, request: Request, pk: str) -> Response:
        """When things happened, for a line of time."""
        buckets = read_parameter(request, "buckets", BUCKETS, 1, MOST_BUCKETS)
        return Response(read_density(self.get_object().pk, buckets))

    @extend_schema(responses=OpenApiTypes.OBJECT, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def people(self, request: Request, pk: str) -> Response:
        """The names of all who did something in it, by author as records name them."""
        return Response(names_of(authors_in(self.get_object().pk)))


def _moment(request: Request) -> Any:
    """The time of `at`; None where there is none."""
    if (text := request.query_params.get("at")) is None:
        return None
    try:
        found = parse_datetime(text.replace(" ", "+"))  # a + that was not written as %2B
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValidationError({"at": "must be a time with its zone, as 2026-11-23T03:05:12Z"})
    return found


def _present(session: int) -> dict[str, Any]:
    with fold.consistent_read():
        head, columns = fold.stream_head(session), fold.read_columns(session)
    told = {"seq": head, "at": to_iso(time.time()), "head": head}
    return {**told, "tables": tell_columns(columns), "not_kept": []}


def _past(session: int, seq: int, since: int) -> dict[str, Any]:
    head = fold.stream_head(session)
    for name, asked in (("seq", seq), ("since", since)):
        if asked > head:
            raise ValidationError({name: f"the last event is {head}"})
    if not past.is_known_soon(session, since, seq):
        since = 0
    at = past.time_of(session, max(seq, 1))
    told = {"seq": seq, "at": None if at is None else iso_of(at), "head": head, "since": since}
    return {**told, **tell_difference(past.difference(session, since, seq)), "not_kept": NOT_KEPT}


def _compressed(request: Request, body: bytes) -> HttpResponse:
    """The body, already masked, with gzip where the reader takes it."""
    takes = "gzip" in request.headers.get("Accept-Encoding", "")
    if takes:
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        body = packer.compress(body) + packer.flush()
    answer = HttpResponse(body, content_type="application/json")
    answer.headers["Vary"] = "Accept-Encoding"
    if takes:
        answer.headers["Content-Encoding"] = "gzip"
        setattr(answer, AS_IT_IS, True)  # masked before it was compressed
    return answer
