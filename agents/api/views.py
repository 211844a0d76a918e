"""REST of those who act. Every list is paged, every object is looked for among what its reader may see."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import orjson
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from agents.access.permissions import actor_name
from agents.api.pagination import LARGEST, PAGE, optional_parameter, read_parameter
from agents.api.parsers import StrictJson
from agents.api.queries import ByAccept, KnownQuery
from agents.api.schema import ProblemSchema
from agents.api.serializers import sessions as session_serializers
from agents.api.serializers.budgets import BudgetRow, ModelCallRow, OwnBudgetBody
from agents.api.serializers.fields import KEY_HEADER, with_key
from agents.api.serializers.machines import History, MachineList, MachineTable
from agents.api.serializers.tokens import FreshToken, TokenBody, TokenRow
from agents.engine import requests
from agents.engine.drives.work import Checked
from agents.errors import AgentsError
from agents.ids import CAPACITY
from agents.machines import ACTOR, MACHINES, Machine
from agents.models import Actor, InboxItem, Session, Stream, Token
from agents.reads import history
from agents.reads.costs import calls_of, cost_of_place, with_used
from agents.reads.standings import read_standings, viewer_of
from agents.services import sessions
from agents.services.budgets import session_budget_clear, session_budget_set
from agents.services.same_request import refuse_another_request, session_begun_as
from agents.services.tokens import token_create, token_revoke
from agents.streams import fold
from agents.streams.statements import write_transaction
from agents.streams.tail import read_events

EVENTS_LIMIT = 1_000
EVENTS_BYTES = 5_000_000
"""Events, and bytes of events, of one answer; the client asks again from `next`."""
ACTORS = 20
"""The latest that a detail shows."""
TOKENS = 100
"""Of one user at most."""
KEY = "[0-9]{1,18}"
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,40}")

SNAPSHOT = OpenApiParameter("snapshot", OpenApiTypes.INT, enum=[0, 1], description="1: with all rows of the session.")
SINCE = OpenApiParameter(
    "since", {"type": "integer", "minimum": 0, "maximum": CAPACITY, "default": 0}, description="Events after this seq."
)
MOST_ROWS = OpenApiParameter(
    "most_rows",
    {"type": "integer", "minimum": 0, "maximum": EVENTS_LIMIT},
    description="Of the rows that an event adds to a table no more than this; all of them without it.",
)
LIMIT = OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": EVENTS_LIMIT, "default": EVENTS_LIMIT})

HISTORY_PAGE = [
    OpenApiParameter("cursor", {"type": "integer", "minimum": 0, "maximum": LARGEST}, description="`next` of the page before."),
    OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": history.PAGE_LIMIT, "default": PAGE}),
]
EPOCH = OpenApiParameter(
    "epoch", {"type": "integer", "minimum": 1, "maximum": LARGEST}, description="Which of its actors; else the latest."
)


class TooManyTokens(AgentsError):
    """The user has as many tokens as one may have."""

    code = "too_many_tokens"
    status = 409


class Api(KnownQuery, viewsets.GenericViewSet):
    """What all views share. `needs` says by action what permissions.NEEDS asks for."""

    content_negotiation_class = ByAccept
    renderer_classes = [JSONRenderer]
    parser_classes = [StrictJson]
    schema = ProblemSchema()
    lookup_value_regex = KEY
    needs: dict[str, str] = {}

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)

    def body(self, kind: type[Serializer]) -> dict[str, Any]:
        """The request's body, checked; raises ValidationError."""
        form = kind(data=self.request.data)
        if (key := self.request.headers.get(KEY_HEADER)) is not None:
            form.initial_data = with_key(form, key)
        form.is_valid(raise_exception=True)
        return form.validated_data


def history_page(request: Request, row: Any, machine: str, about: history.About) -> Response:
    """A page of what the machine of `row` went through; to be read inside `consistent_read`."""
    cursor = read_parameter(request, "cursor", 0, 0, LARGEST)
    limit = read_parameter(request, "limit", PAGE, 1, history.PAGE_LIMIT)
    return Response(History(history.transitions_page(row, machine, cursor, limit, about)).data)


def request_id(request: Request) -> str:
    """The caller's X-Request-ID where it is one, else a fresh one: events and logs carry it."""
    given = request.headers.get("X-Request-ID", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def session_head(stream: int) -> int:
    """The seq of the last event of a session's stream, or of a device's."""
    return Stream.objects.values_list("head", flat=True).get(pk=stream)


class SessionViews(Api):
    """Sessions and what they are asked."""

    serializer_class = session_serializers.SessionRow
    newest_first = True
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Session]:
        return Session.objects.visible_to(self.request.user).select_related("owner").with_latest_actor()

    def list(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.get_queryset())
        shown = session_serializers.SessionRow(rows, many=True, context=self._standings(rows or []))
        return self.get_paginated_response(shown.data)

    def _standings(self, rows: Iterable[Any]) -> dict[str, Any]:
        token = self.request.auth if isinstance(self.request.auth, Token) else None
        return {"standings": read_standings([row.pk for row in rows], viewer_of(self.request.user, token))}

    def only_id(self) -> int:
        """The session of the address, if it is the reader's to see; one query."""
        found = Session.objects.visible_to(self.request.user).filter(pk=self.kwargs["pk"]).values_list("pk", flat=True).first()
        if found is None:
            raise NotFound("there is no such session, or it is not yours to see")
        return found

    @extend_schema(
        request=session_serializers.SessionBody,
        responses={200: session_serializers.SessionMade, 201: session_serializers.SessionMade},
    )
    def create(self, request: Request) -> Response:
        body = self.body(session_serializers.SessionBody)
        payload, interaction = session_serializers.asked_in(body), None
        checked = sessions.check_payload(payload) if payload else None
        client_id, by = body.get("client_id", ""), actor_name(request)
        with write_transaction():
            if client_id:
                User.objects.select_for_update().get(pk=request.user.pk)  # the same, sent twice at once, comes one by one
                if (known := session_begun_as(request.user, by, client_id)) is not None:
                    refuse_another_request(known, "interaction", by, payload)
                    return self._made(known.session_id, known.pk, 200)
            chosen = {key: body[key] for key in session_serializers.CHOSEN if key in body}
            title = body["title"] or (checked.name() if checked else "")
            made = sessions.session_create(request.user, title, by=by, parent=body.get("parent"), **chosen)
            if payload:
                interaction = self._submit(made.pk, "interaction", client_id, payload, checked)[0].pk
        return self._made(made.pk, interaction, 201)

    def _made(self, session: int, interaction: int | None, status: int) -> Response:
        return Response({**self._detail(self.get_queryset().get(pk=session)), "interaction": interaction}, status=status)

    @extend_schema(parameters=[SNAPSHOT], responses=session_serializers.SessionDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        wanted = read_parameter(request, "snapshot", 0, 0, 1)
        session = self.get_object()
        if wanted:
            session.snapshot = fold.stream_snapshot(session.pk)
        return Response(self._detail(session))

    @extend_schema(request=session_serializers.SessionChange, responses=session_serializers.SessionDetail)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Its title, which models work in it from now on, and how many slots it may have."""
        session, body = self.only_id(), self.body(session_serializers.SessionChange)
        sessions.session_change(session, **body, by=actor_name(request), request_id=request_id(request))
        return Response(self._detail(self.get_queryset().get(pk=session)))

    def _detail(self, session: Any) -> dict[str, Any]:
        actors = list(session.actors.order_by("-epoch")[:ACTORS])
        row = session_serializers.SessionRow(session, context=self._standings([session])).data
        row["actors"] = session_serializers.ActorRow(actors, many=True, context={"renewed_at": session.renewed_at}).data
        snapshot = getattr(session, "snapshot", None)
        row["head"] = session_head(session.pk) if snapshot is None else snapshot["seq"]
        row["cost"] = cost_of_place("session", session.pk)
        return row if snapshot is None else {**row, "snapshot": snapshot}

    @extend_schema(methods=["GET"], responses=session_serializers.InteractionRow(many=True))
    @extend_schema(methods=["POST"], request=session_serializers.InteractionBody, responses={202: session_serializers.Accepted})
    @action(detail=True, methods=["get", "post"], serializer_class=session_serializers.InteractionRow)
    def interactions(self, request: Request, pk: str) -> Response:
        """What a session was asked: a plan, or a request in words."""
        session = self.only_id()
        if request.method != "POST":
            rows = self.paginate_queryset(InboxItem.objects.asked_in(session))
            return self.get_paginated_response(session_serializers.InteractionRow(rows, many=True).data)
        body = self.body(session_serializers.InteractionBody)
        payload = session_serializers.interaction_payload(body)
        seq = session_head(session)  # before the request, so that whoever follows from here misses nothing of it
        item, created = self._submit(session, "interaction", body.get("client_id", ""), payload)
        ids = {"session": session, "interaction": item.pk, "client_id": item.client_id}
        return Response({**ids, "created": created, "seq": seq}, status=202)

    def _submit(
        self, session: int, kind: str, client_id: str, payload: dict[str, Any], checked: Checked | None = None
    ) -> tuple[InboxItem, bool]:  # fmt: skip
        by, asked = actor_name(self.request), request_id(self.request)
        return sessions.request_submit(session, kind, client_id, payload, by=by, request_id=asked, checked=checked)

    @extend_schema(
        request=session_serializers.CommandBody,
        responses={200: session_serializers.CommandAccepted, 202: session_serializers.CommandAccepted},
    )
    @action(detail=True, methods=["post"])
    def commands(self, request: Request, pk: str) -> Response:
        """Commands to a session's actor, such as pause and resume."""
        session, body = self.only_id(), self.body(session_serializers.CommandBody)
        client_id, kind, seq = body.get("client_id", ""), body["kind"], session_head(session)
        payload: dict[str, Any] = {name: body[name] for name in ("reason", "mode", *session_serializers.GO_ON) if name in body}
        known = client_id and InboxItem.objects.filter(session_id=session, client_id=client_id).exists()
        if not known and not requests.changes_actor(session, kind, payload):
            return Response({"session": session, "command": None, "changed": False, "seq": seq})
        item, created = self._submit(session, kind, client_id, payload)
        answer = {"session": session, "command": item.pk, "changed": created, "seq": seq}
        return Response(answer, status=202 if created else 200)

    @extend_schema(parameters=[EPOCH, *HISTORY_PAGE], responses=History, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """How one of its actors came to its state: every transition, oldest first, with its number."""
        epoch = optional_parameter(request, "epoch", 1, LARGEST)
        with fold.consistent_read():
            actors = Actor.objects.filter(session=self.only_id()).order_by("-epoch")
            actor = (actors if epoch is None else actors.filter(epoch=epoch)).first()
            if actor is None:
                raise NotFound("the session has had no such actor")
            return history_page(request, actor, ACTOR.name, history.about_nothing)

    @extend_schema(parameters=[SINCE, LIMIT, MOST_ROWS], responses=session_serializers.Events, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def events(self, request: Request, pk: str) -> HttpResponse:
        """The session's stream from a place on."""
        since = read_parameter(request, "since", 0, 0, CAPACITY)
        limit = read_parameter(request, "limit", EVENTS_LIMIT, 1, EVENTS_LIMIT)
        session = self.only_id()
        most_rows = optional_parameter(request, "most_rows", 0, EVENTS_LIMIT)
        found = read_events(session, since, limit, EVENTS_BYTES, most_rows)
        ends = orjson.dumps({"next": found[-1].seq if found else since, "head": session_head(session)})
        body = b'{"events":[' + b",".join(event.json for event in found) + b"]," + ends[1:]
        return HttpResponse(body, content_type="application/json")

    @extend_schema(responses=ModelCallRow(many=True), filters=False)
    @action(detail=True, methods=["get"], serializer_class=ModelCallRow)
    def model_calls(self, request: Request, pk: str) -> Response:
        """What its agents have asked language models, newest first, all columns; the system prompt is in one call's detail."""
        return self.get_paginated_response(ModelCallRow(self.paginate_queryset(calls_of(self.only_id())), many=True).data)

    @extend_schema(request=OwnBudgetBody, responses=BudgetRow)
    @action(detail=True, methods=["put"], pagination_class=None)
    def budget(self, request: Request, pk: str) -> Response:
        """Set the owner's own budget for it, in the place of an earlier one. Others that apply to it stay."""
        session, by = self.only_id(), actor_name(request)
        made = session_budget_set(session, **self.body(OwnBudgetBody), by=by, request_id=request_id(request))
        return Response(BudgetRow(with_used([made])[0]).data)

    @extend_schema(responses={204: None})
    @budget.mapping.delete
    def clear_budget(self, request: Request, pk: str) -> Response:
        """Take the owner's own budget away."""
        session_budget_clear(self.only_id(), by=actor_name(request), request_id=request_id(request))
        return Response(status=204)


@extend_schema_view(
    destroy=extend_schema(parameters=[OpenApiParameter("id", OpenApiTypes.STR, OpenApiParameter.PATH)]),
)
class TokenViews(mixins.ListModelMixin, mixins.DestroyModelMixin, Api):
    """The reader's own API tokens."""

    serializer_class = TokenRow
    filter_backends: list[Any] = []
    lookup_field, lookup_url_kwarg, lookup_value_regex = "token_key", "id", "[A-Za-z0-9_]{1,25}"
    cursor_field = "token_key"
    needs = {"list": "own", "create": "tokens", "destroy": "tokens"}

    def get_queryset(self) -> QuerySet[Token]:
        return Token.objects.select_related("parent").filter(user=self.request.user)

    @extend_schema(request=TokenBody, responses={201: FreshToken})
    def create(self, request: Request) -> Response:
        body = self.body(TokenBody)
        if self.get_queryset().count() >= TOKENS:
            raise TooManyTokens(f"a user has at most {TOKENS} tokens; revoke one first")
        lifetime = timedelta(days=body["days"])
        token, text = token_create(
            request.user, body["name"], body["scopes"], lifetime, by=actor_name(request), session=body.get("session")
        )
        answer = Response({**TokenRow(token).data, "token": text}, status=201)
        answer.shown_once = text  # what else is a token is masked (agents.masks.doors)
        return answer

    def perform_destroy(self, instance: Token) -> None:
        token_revoke(instance, by=actor_name(self.request))


class MachineViews(Api):
    """The tables of all state machines."""

    serializer_class = MachineTable
    pagination_class = None
    filter_backends: list[Any] = []
    lookup_url_kwarg, lookup_value_regex = "name", "[a-z_]{1,32}"

    @extend_schema(responses=MachineList, operation_id="machines_list")
    def list(self, request: Request) -> Response:
        return Response({"results": [machine_table(machine) for machine in MACHINES.values()], "next": None})

    @extend_schema(responses=MachineTable)
    def retrieve(self, request: Request, name: str) -> Response:
        if name not in MACHINES:
            raise NotFound(f"there is no machine called {name}")
        return Response(machine_table(MACHINES[name]))


def machine_table(machine: Machine) -> dict[str, Any]:
    return MachineTable(
        {
            "name": machine.name, "initial": machine.initial, "terminal": sorted(machine.terminal),
            "round_end": sorted(machine.round_end), "subtask_end": sorted(machine.subtask_end),
            "states": machine.states, "events": machine.events, "rows": machine.rows,
        }
    ).data  # fmt: skip
