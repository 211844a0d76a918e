"""REST of what the views of a session are drawn from: what machines went through, and what all attempts printed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.pagination import LARGEST, optional_parameter, read_parameter
from agents.api.views import Api
from agents.masks.doors import AS_IT_IS
from agents.models import Session
from agents.reads.timeline import ROWS, timeline_of
from agents.streams.fold import consistent_read
from constellations.reads.session_log import PIECES, USUAL_PIECES, LogScope, log_page, whole_log

FROM = OpenApiParameter("from", OpenApiTypes.DATETIME, description="What ended from then on; left out: from the beginning.")
UNTIL = OpenApiParameter("until", OpenApiTypes.DATETIME, description="What ended before then; left out: until now.")
KEY = {"type": "integer", "minimum": 0, "maximum": LARGEST}
TASK = OpenApiParameter("task", KEY, description="The attempts of this task only.")
ATTEMPT = OpenApiParameter("attempt", KEY, description="This attempt only.")
AFTER = OpenApiParameter("after", KEY, description="What came after this place, oldest first; 0 for the beginning.")
BEFORE = OpenApiParameter("before", KEY, description="The last that came before this place.")
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": PIECES, "default": USUAL_PIECES}, description="Pieces at most."
)


class TimelineColumns(serializers.Serializer):
    """Transitions of all machines, a list for each column."""

    machine = serializers.ListField(child=serializers.CharField())
    subject_id = serializers.ListField(child=serializers.IntegerField(), help_text="Row of the agent, loop, task, ...")
    from_state = serializers.ListField(child=serializers.CharField())
    to_state = serializers.ListField(child=serializers.CharField())
    event = serializers.ListField(child=serializers.CharField())
    at = serializers.ListField(child=serializers.DateTimeField())
    spent = serializers.ListField(child=serializers.FloatField(allow_null=True), help_text="Seconds in `from_state`.")


class Timeline(serializers.Serializer):
    """A part of what a session's machines went through."""

    columns = TimelineColumns()
    rows = serializers.IntegerField(help_text="How long each column is.")
    truncated = serializers.BooleanField(help_text=f"There were more than {ROWS:,}: ask for a shorter time.")


class LogPiece(serializers.Serializer):
    """What one attempt printed at one time."""

    id = serializers.IntegerField(help_text="Its place in the log.")
    attempt = serializers.IntegerField()
    number = serializers.IntegerField(help_text="Of the attempt among those of its task.")
    task = serializers.IntegerField()
    task_id = serializers.CharField()
    offset = serializers.IntegerField(help_text="In characters from the attempt's first.")
    text = serializers.CharField(trim_whitespace=False)
    left_out = serializers.IntegerField(help_text="Characters before it that rows keep no more.")
    whole = serializers.IntegerField(allow_null=True, help_text="The artifact that has them.")


class LogPage(serializers.Serializer):
    """Pieces in the order in which they came."""

    pieces = LogPiece(many=True)
    first = serializers.IntegerField(allow_null=True, help_text="Its first place: `before` of the page before it.")
    last = serializers.IntegerField(allow_null=True, help_text="Its last place: `after` of the page that follows.")
    more = serializers.BooleanField(help_text="There was more in the direction that was asked for.")


class OfSession(Api):
    """What is read of the session in the address."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> Any:
        return Session.objects.visible_to(self.request.user)


class TimelineViews(OfSession):
    """What machines went through."""

    @extend_schema(parameters=[FROM, UNTIL], responses=Timeline, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def timeline(self, request: Request, pk: str) -> Response:
        """The transitions of all machines of a session between two moments, in columns."""
        begins, ends = (moment_of(request, name) for name in ("from", "until"))
        with consistent_read():
            found = timeline_of(self.get_object().pk, begins, ends)
        return Response(found)


class LogViews(OfSession):
    """What all attempts printed, as one log."""

    @extend_schema(parameters=[AFTER, BEFORE, TASK, ATTEMPT, LIMIT], responses=LogPage, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def log(self, request: Request, pk: str) -> Response:
        """A page of what the attempts of a session printed, in the order in which it came; else the last page."""
        after, before = (optional_parameter(request, name, 0, LARGEST) for name in ("after", "before"))
        if after is not None and before is not None:
            raise ValidationError({"before": "goes back, and `after` goes on: ask for one of them"})
        limit = read_parameter(request, "limit", USUAL_PIECES, 1, PIECES)
        with consistent_read():
            found = log_page(self._scope(request), after=after, before=before, limit=limit)
        return Response(found)

    @extend_schema(parameters=[TASK, ATTEMPT], responses={(200, "text/plain"): OpenApiTypes.STR}, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None, url_path="log/download")
    def download(self, request: Request, pk: str) -> HttpResponseBase:
        """All that the attempts of a session printed, one attempt after the other, as a text to be kept."""
        scope = self._scope(request)
        is_narrowed = (scope.task, scope.attempt) != (None, None)
        if is_narrowed and not scope.attempts().exists():
            raise NotFound("the session has no such attempt")
        pieces = whole_log(scope)
        streamed: Any = pieces_of_the_loop(pieces) if isinstance(request._request, ASGIRequest) else pieces
        answer = StreamingHttpResponse(streamed, content_type="text/plain; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="session-{scope.session}.log"'
        answer["X-Content-Type-Options"] = "nosniff"
        setattr(answer, AS_IT_IS, True)  # masked piece by piece where it is read
        return answer

    def _scope(self, request: Request) -> LogScope:
        task, attempt = (optional_parameter(request, name, 0, LARGEST) for name in ("task", "attempt"))
        return LogScope(self.get_object().pk, task, attempt)


async def pieces_of_the_loop(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, each read in the request's own thread, which has its connection to the database."""
    with closing(pieces):  # type: ignore[type-var]  # a generator
        following = sync_to_async(lambda: next(pieces, None))
        while (piece := await following()) is not None:
            yield piece


def moment_of(request: Request, key: str) -> datetime | None:
    """A moment of the query string with its offset from UTC, None where it is not there; raises ValidationError."""
    text = request.query_params.get(key)
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or is_naive(found):
        raise ValidationError({key: "must be a time such as 2026-11-23T10:00:00Z"})
    return found
