"""REST of reads over many sessions: the list of the home page, the inbox, search, runs of one plan."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.pagination import LARGEST, optional_parameter, read_parameter
from agents.api.views import Api
from agents.models import Approval, Session, Token
from agents.reads.standings import viewer_of
from agents.streams.fold import consistent_read
from constellations.api import across_serializers
from constellations.reads.across import inbox, runs, search, sessions

TITLE_CHARACTERS = 200
NAME_CHARACTERS = 150
PLAN_PATTERN = "[0-9a-f]{1,18}"


def number_parameter(name: str, about: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": 0, "maximum": LARGEST}, description=about)


def text_parameter(name: str, longest: int, about: str, *, required: bool = False) -> OpenApiParameter:
    shape = {"type": "string", "maxLength": longest}
    return OpenApiParameter(name, shape, description=about, required=required)


BEFORE = number_parameter("before", "`next` of the answer before.")
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": sessions.PAGE_LIMIT, "default": sessions.PAGE}, description="Rows."
)
STATE = OpenApiParameter("state", OpenApiTypes.STR, enum=list(sessions.STATES), description="How they stand for who asks.")
MINE = OpenApiParameter("mine", OpenApiTypes.INT, enum=[0, 1], description="1: of the asker's own only.")
SINCE = OpenApiParameter("since", OpenApiTypes.DATETIME, description="Made from then on.")
UNTIL = OpenApiParameter("until", OpenApiTypes.DATETIME, description="Made before.")
GROUP = OpenApiParameter("group", OpenApiTypes.STR, enum=list(search.GROUPS), description="This one only; else all of them.")


def text_of(request: Request, name: str, longest: int) -> str:
    """A text of the query string; raises ValidationError where it is too long."""
    text: str = request.query_params.get(name, "")
    if len(text) > longest:
        raise ValidationError({name: f"has at most {longest} characters"})
    return text


def time_of(request: Request, name: str) -> datetime | None:
    """A time of the query string with its zone, or None; raises ValidationError where it is none."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or timezone.is_naive(found):
        raise ValidationError({name: "is a time with its zone, as 2026-11-22T10:00:00Z"})
    return found


def choice_of(request: Request, name: str, known: tuple[str, ...]) -> str:
    """One of some words of the query string, or empty; raises ValidationError for another one."""
    word: str = request.query_params.get(name, "")
    if word and word not in known:
        raise ValidationError({name: f"must be one of {', '.join(known)}"})
    return word


class HomeViews(Api):
    """Sessions as the home page lists them."""

    serializer_class = across_serializers.HomePage
    pagination_class = None
    filter_backends: list[Any] = []

    @extend_schema(
        operation_id="home_list", responses=across_serializers.HomePage,
        parameters=[
            text_parameter("q", TITLE_CHARACTERS, "In their titles."), STATE, MINE, SINCE, UNTIL, BEFORE, LIMIT,
            text_parameter("owner", NAME_CHARACTERS, "Name of a user."),
        ],
    )  # fmt: skip
    def list(self, request: Request) -> Response:
        """Sessions, newest first: how each stands for who asks, how far it is, how long, what it cost, and what waits."""
        wanted = sessions.Wanted(
            state=choice_of(request, "state", tuple(sessions.STATES)), text=text_of(request, "q", TITLE_CHARACTERS),
            owner=text_of(request, "owner", NAME_CHARACTERS), is_mine=bool(read_parameter(request, "mine", 0, 0, 1)),
            since=time_of(request, "since"), until=time_of(request, "until"),
        )  # fmt: skip
        before, token = optional_parameter(request, "before", 0, LARGEST), request.auth
        limit = read_parameter(request, "limit", sessions.PAGE, 1, sessions.PAGE_LIMIT)
        viewer = viewer_of(request.user, token if isinstance(token, Token) else None)
        with consistent_read():
            found = sessions.list_sessions(request.user, viewer, wanted, before, limit)
        return Response(across_serializers.HomePage({**found, "now": timezone.now()}).data)


class InboxViews(Api):
    """What waits for a person, and what was decided."""

    serializer_class = across_serializers.InboxPage
    pagination_class = None
    filter_backends: list[Any] = []

    @extend_schema(operation_id="inbox_list", responses=across_serializers.InboxPage)
    def list(self, request: Request) -> Response:
        """All that waits for a person, oldest first; then what is worth a look, newest first."""
        with consistent_read():
            found = inbox.list_inbox(request.user)
        return Response(across_serializers.InboxPage(found).data)

    @extend_schema(operation_id="inbox_decided", parameters=[BEFORE], responses=across_serializers.DecidedPage)
    @action(detail=False, methods=["get"])
    def decided(self, request: Request) -> Response:
        """What was decided, newest first: by whom, and exactly what was allowed."""
        before = optional_parameter(request, "before", 0, LARGEST)
        with consistent_read():
            row = None if before is None else self._decided_before(request, before)
            found = inbox.list_decided(request.user, row)
        return Response(across_serializers.DecidedPage(found).data)

    def _decided_before(self, request: Request, number: int) -> Approval:
        rows = inbox.asked_of_people(Session.objects.visible_to(request.user)).filter(decided_at__isnull=False)
        if (row := rows.filter(pk=number).first()) is None:
            raise ValidationError({"before": "must be the `next` of an earlier page"})
        return row


class SearchViews(Api):
    """A text, wherever it stands."""

    serializer_class = across_serializers.SearchAnswer
    pagination_class = None
    filter_backends: list[Any] = []

    @extend_schema(
        operation_id="search_list", responses=across_serializers.SearchAnswer,
        parameters=[
            text_parameter("q", search.TEXT_CHARACTERS, "In capital or small letters.", required=True), GROUP, BEFORE,
        ],
    )  # fmt: skip
    def list(self, request: Request) -> Response:
        """Where a text stands in sessions, tasks, results, outputs and agents; newest first, `next` of each group goes on."""
        text, group = text_of(request, "q", search.TEXT_CHARACTERS), choice_of(request, "group", search.GROUPS)
        before = optional_parameter(request, "before", 0, LARGEST)
        if not text.strip():
            raise ValidationError({"q": f"what is to be found has 1 to {search.TEXT_CHARACTERS} characters"})
        if before is not None and not group:
            raise ValidationError({"before": "goes with the group that it is the `next` of"})
        with consistent_read():
            found = search.search_everything(request.user, text, (group,) if group else search.GROUPS, before)
        return Response(across_serializers.SearchAnswer(found).data)


class RunViews(Api):
    """Runs of one plan."""

    serializer_class = across_serializers.RunsGrid
    pagination_class = None
    filter_backends: list[Any] = []
    lookup_url_kwarg, lookup_value_regex = "plan", PLAN_PATTERN

    @extend_schema(operation_id="runs_list", responses=across_serializers.PlanList)
    def list(self, request: Request) -> Response:
        """The plans of the latest runs, and how often each was run."""
        with consistent_read():
            found = runs.list_plans(request.user)
        return Response(across_serializers.PlanList({"results": found}).data)

    @extend_schema(
        operation_id="runs_compare", responses=across_serializers.RunsGrid,
        parameters=[OpenApiParameter("plan", OpenApiTypes.STR, OpenApiParameter.PATH)],
    )  # fmt: skip
    def retrieve(self, request: Request, plan: str) -> Response:
        """The latest runs of one plan by its tasks: state, duration, attempts and cost of each."""
        with consistent_read():
            found = runs.compare_runs(request.user, plan)
        if found is None:
            raise NotFound("there is no such plan among the latest runs, or none of them is yours to see")
        return Response(across_serializers.RunsGrid(found).data)
