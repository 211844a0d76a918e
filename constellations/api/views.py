"""REST of what is to be done: constellations, their tasks, what tasks printed, and edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django_filters
from django.db.models import Count, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.filters import IdFilter, SessionFilter, one_of
from agents.api.pagination import LARGEST, optional_parameter, read_parameter
from agents.api.serializers.machines import History
from agents.api.views import HISTORY_PAGE, history_page, request_id
from agents.models import Session
from agents.reads.costs import cost_of_place
from agents.streams.fold import consistent_read
from constellations.api import edit_serializers, lifecycle_serializers, serializers
from constellations.api.edit_views import EditViews
from constellations.api.lifecycle_views import CommandViews, cancel_response, retry_response
from constellations.api.versioned import IF_MATCH, Versioned, etag_header
from constellations.machines import CONSTELLATION, TASK
from constellations.models import Constellation, Dependency, Task
from constellations.plan.keys.kinds import Field
from constellations.reads.excerpts.narrowing import FILTERS, having, help_of
from constellations.reads.output import piece_from, tail_of
from constellations.reads.progress import progress_of, same_stream, waiting_approvals
from constellations.reads.statistics import figures_of, statistics_of
from constellations.reads.why import explain_task
from constellations.services.task_commands import CancelResult, task_cancel, task_skip

GRAPH_ROWS = 20_000
"""Tasks, and dependencies, that a detail shows."""
ATTEMPTS = 50

TASK_COLUMNS = tuple(serializers.GraphTask().fields)
DEPENDENCY_COLUMNS = tuple(serializers.GraphDependency().fields)
ATTEMPT = OpenApiParameter(
    "attempt", {"type": "integer", "minimum": 1, "maximum": LARGEST}, description="Its number; else the last."
)
OFFSET = OpenApiParameter(
    "offset", {"type": "integer", "minimum": 0, "maximum": LARGEST, "default": 0}, description="From this character on."
)


class ConstellationFilter(django_filters.FilterSet):
    session = SessionFilter()
    state = one_of(CONSTELLATION.states)

    class Meta:
        model = Constellation
        fields = ()


class OfConstellation(IdFilter):
    """Tasks of one constellation."""

    def filter(self, queryset: QuerySet[Any], value: int | None) -> QuerySet[Any]:
        return queryset if value is None else same_stream(queryset, int(value)).filter(constellation_id=value)


@extend_schema_field({"type": "string"})
class NameFilter(django_filters.CharFilter):
    """Tasks that have a name in one of their lists."""

    def __init__(self, key: Field):
        super().__init__(max_length=key.takes.limit, help_text=help_of(key))
        self.key = key

    def filter(self, queryset: QuerySet[Task], value: str) -> QuerySet[Task]:
        return having(queryset, self.key, value) if value else queryset


class TaskFilter(django_filters.FilterSet):
    constellation = OfConstellation()
    session = SessionFilter()
    state = one_of(TASK.states)

    class Meta:
        model = Task
        fields = ()

    @classmethod
    def get_filters(cls) -> dict[str, django_filters.Filter]:
        found: dict[str, django_filters.Filter] = super().get_filters()
        return found | {key: NameFilter(field) for key, field in FILTERS.items()}


class ConstellationViews(mixins.ListModelMixin, EditViews, CommandViews):
    """Graphs of tasks, each the answer to an interaction, the edits of them, and commands to them."""

    serializer_class = serializers.ConstellationRow
    filterset_class = ConstellationFilter
    newest_first = True

    def get_queryset(self) -> QuerySet[Constellation]:
        return Constellation.objects.filter(session__in=Session.objects.visible_to(self.request.user))

    @extend_schema(responses=serializers.ConstellationDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One constellation with its tasks and dependencies."""
        with consistent_read():
            constellation = self.get_object()
            found = constellation_detail(constellation)
        return Response(found, headers=etag_header(constellation.version))

    @extend_schema(responses=edit_serializers.ConstellationStatistics, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def statistics(self, request: Request, pk: str) -> Response:
        """How the graph is shaped, and how time was spent."""
        with consistent_read():
            figures = figures_of(self.get_object())
        found = statistics_of(figures)
        return Response(edit_serializers.ConstellationStatistics(found).data, headers=etag_header(found["version"]))

    @extend_schema(responses=History, parameters=HISTORY_PAGE, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """How a constellation came to its state: every transition, oldest first, with its number."""
        with consistent_read():
            constellation = self.get_object()
            return history_page(request, constellation, CONSTELLATION.name, lambda at: constellation.pk)


def constellation_detail(constellation: Constellation) -> dict[str, Any]:
    """The row, its graph up to GRAPH_ROWS, and how many tasks are in which state; to be read inside `consistent_read`."""
    tasks = same_stream(Task.objects.filter(constellation=constellation), constellation.pk)
    edges = same_stream(Dependency.objects.filter(constellation=constellation), constellation.pk)
    counts = dict(tasks.order_by().values_list("state").annotate(Count("pk")))
    nodes = list(tasks.order_by("id").values(*TASK_COLUMNS)[: GRAPH_ROWS + 1])
    lines = list(edges.order_by("id").values(*DEPENDENCY_COLUMNS)[: GRAPH_ROWS + 1])
    return {
        **serializers.ConstellationRow(constellation).data,
        "counts": counts,
        "tasks": nodes[:GRAPH_ROWS],
        "dependencies": lines[:GRAPH_ROWS],
        "truncated": len(nodes) > GRAPH_ROWS or len(lines) > GRAPH_ROWS,
    }


class TaskViews(mixins.ListModelMixin, Versioned):
    """Tasks, their attempts and what those printed."""

    serializer_class = serializers.TaskRow
    filterset_class = TaskFilter
    by_version = frozenset({"retry"})

    def get_queryset(self) -> QuerySet[Task]:
        visible = Session.objects.visible_to(self.request.user)
        return Task.objects.filter(constellation__session__in=visible).select_related("device")

    @extend_schema(responses=serializers.TaskDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One task with its attempts, its progress, and the end of what it printed."""
        with consistent_read():
            task = self.get_object()
            attempts = list(task.attempts.select_related("device").order_by("-number")[:ATTEMPTS])
            task.latest = attempts[::-1]
            task.output = tail_of(attempts[0]) if attempts else None
            task.so_far = progress_of(task, attempts[0] if attempts else None)
            task.waiting_for = waiting_approvals(task)
            task.spent = cost_of_place("task", task.pk)
        return Response(serializers.TaskDetail(task).data)

    @extend_schema(responses=edit_serializers.Why, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def why(self, request: Request, pk: str) -> Response:
        """Why a task is not running."""
        with consistent_read():
            task = self.get_object()
            found = {"id": task.pk, "task_id": task.task_id, "state": task.state, **explain_task(task)}
        return Response(found)

    @extend_schema(responses=History, parameters=HISTORY_PAGE, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """How a task came to its state: every transition, oldest first, with its number and its constellation."""
        with consistent_read():
            task = self.get_object()
            return history_page(request, task, TASK.name, lambda at: task.constellation_id)

    @extend_schema(
        parameters=[IF_MATCH],
        request=lifecycle_serializers.TaskRetryBody,
        responses={200: lifecycle_serializers.RetryTaken, 202: lifecycle_serializers.RetryTaken},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def retry(self, request: Request, pk: str) -> Response:
        """Let one task begin again, and what is downstream of it; operations mend it first."""
        task, body = self.get_object(), self.body(lifecycle_serializers.TaskRetryBody)
        return retry_response(request, task.constellation, [task.task_id], body)

    @extend_schema(
        request=lifecycle_serializers.Said,
        responses={200: lifecycle_serializers.TaskCancelled, 202: lifecycle_serializers.TaskCancelled},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def cancel(self, request: Request, pk: str) -> Response:
        """End one task, whether it waits or runs; what depends on it follows."""
        return self._cancelled(request, task_cancel)

    @extend_schema(request=lifecycle_serializers.Said, responses=lifecycle_serializers.TaskCancelled, filters=False)
    @action(detail=True, methods=["post"], pagination_class=None)
    def skip(self, request: Request, pk: str) -> Response:
        """End one task that has not started; nothing is interrupted."""
        return self._cancelled(request, task_skip)

    def _cancelled(self, request: Request, ask: Callable[..., CancelResult]) -> Response:
        task, body = self.get_object(), self.body(lifecycle_serializers.Said)
        said = {"by": actor_name(request), "request_id": request_id(request), **body}
        return cancel_response(ask(task.constellation_id, task.task_id, **said))

    @extend_schema(parameters=[ATTEMPT, OFFSET], responses=serializers.OutputPiece, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def output(self, request: Request, pk: str) -> Response:
        """What an attempt of a task printed."""
        number, offset = optional_parameter(request, "attempt", 1, LARGEST), read_parameter(request, "offset", 0, 0, LARGEST)
        attempts = self.get_object().attempts.order_by("-number")
        attempt = (attempts if number is None else attempts.filter(number=number)).first()
        if attempt is None:
            raise NotFound("the task has no such attempt")
        return Response(piece_from(attempt, offset))
