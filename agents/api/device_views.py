"""REST of devices: their profiles, what is asked of them, their history, and the tokens with which they dial in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name, why_refused
from agents.api.pagination import read_parameter
from agents.api.serializers.devices import (
    CurrentTask,
    DeviceBody,
    DeviceChange,
    DeviceHistory,
    DeviceReadings,
    DeviceReason,
    DeviceRow,
    DeviceTokenRow,
    DeviceTokens,
    DrainedDevice,
    DrainPreview,
    Enrolled,
    EnrolmentBody,
    FreshDeviceToken,
)
from agents.api.tool_views import ToolPins
from agents.api.views import SINCE, Api, session_head
from agents.ids import CAPACITY
from agents.links.kept_readings import kept_readings
from agents.models import Device, DeviceToken, Token
from agents.reads.devices import device_events, listed_devices, set_current_tasks, set_queued_tasks
from agents.services import device_tokens, devices
from agents.services.devices import DeviceExists, DeviceInUse

HISTORY_LIMIT = 200
HISTORY_BYTES = 1_000_000
"""Events, and bytes of events, of one page."""
RETIRED = OpenApiParameter("retired", OpenApiTypes.INT, enum=[0, 1], description="1: with those that are retired.")
EVENTS = OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": HISTORY_LIMIT, "default": HISTORY_LIMIT})
BEARER = "bearer "


class DeviceViews(ToolPins, mixins.ListModelMixin, mixins.RetrieveModelMixin, Api):
    """Where tasks run; making and changing them takes the role `devices` or `admin`, and of a token that scope."""

    serializer_class = DeviceRow
    filter_backends: list[Any] = []
    needs = {
        **dict.fromkeys(("list", "retrieve", "history", "readings", "drain_preview", "tools"), "read"),
        **dict.fromkeys(("create", "partial_update", "destroy", "drain", "undrain", "offline", "online", "reset"), "devices"),
        **dict.fromkeys(("enrolment", "tokens", "revoke", "rotate"), "devices"),
        "accept": "govern",
    }

    def get_queryset(self) -> QuerySet[Device]:
        listing = self.action == "list"
        return listed_devices(with_retired=not listing or bool(read_parameter(self.request, "retired", 0, 0, 1)))

    @extend_schema(parameters=[RETIRED])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        rows = self.paginate_queryset(self.get_queryset())
        assert rows is not None, "lists are paged"
        set_current_tasks(rows, request.user)
        set_queued_tasks(rows)
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self._shown(self.get_object().pk)

    @extend_schema(request=DeviceBody, responses={201: DeviceRow})
    def create(self, request: Request) -> Response:
        body = {"owner": request.user.get_username(), **self.body(DeviceBody)}
        try:
            made = devices.device_create(**body, by=actor_name(request), may_exceed=self._may_exceed())
        except IntegrityError as error:
            raise DeviceExists(f"there is a device called {body['name']} already") from error
        return self._shown(made.pk, status=201)

    @extend_schema(request=DeviceChange, responses=DeviceRow)
    def partial_update(self, request: Request, pk: str) -> Response:
        """What is given changes; its name and its kind stay."""
        row, body = self.get_object(), self.body(DeviceChange)
        devices.device_change(row.pk, **body, by=actor_name(request), may_exceed=self._may_exceed())
        return self._shown(row.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Retire it for good; 409 with `current_tasks` while something runs there. Its history stays, and its name."""
        row = self.get_object()
        try:
            devices.device_retire(row.pk, by=actor_name(request))
        except DeviceInUse as refused:
            set_current_tasks([row], request.user)
            refused.members = {"current_tasks": CurrentTask(row.current_tasks, many=True).data}
            raise
        return Response(status=204)

    @extend_schema(request=DeviceReason, responses=DrainedDevice)
    @action(detail=True, methods=["post"], pagination_class=None)
    def drain(self, request: Request, pk: str) -> Response:
        """Let nothing new begin there; what runs ends. `preview` is what becomes of the work."""
        preview = devices.device_drain_preview(self.get_object().pk, request.user)
        answer = self._asked(devices.device_drain)
        answer.data["preview"] = DrainPreview(preview).data
        return answer

    @extend_schema(responses=DrainPreview, filters=False)
    @drain.mapping.get
    def drain_preview(self, request: Request, pk: str) -> Response:
        """What would become of its work if it were drained: what ends there, moves elsewhere, has nowhere to go."""
        return Response(DrainPreview(devices.device_drain_preview(self.get_object().pk, request.user)).data)

    @extend_schema(request=DeviceReason, responses=DeviceRow)
    @action(detail=True, methods=["post"], pagination_class=None)
    def undrain(self, request: Request, pk: str) -> Response:
        """Let it take work again."""
        return self._asked(devices.device_undrain)

    @extend_schema(request=DeviceReason, responses=DeviceRow)
    @action(detail=True, methods=["post"], pagination_class=None)
    def offline(self, request: Request, pk: str) -> Response:
        """Disconnect it until it is brought back; what runs there is lost, and `on_lost` decides."""
        return self._asked(devices.device_take_offline)

    @extend_schema(request=DeviceReason, responses=DeviceRow)
    @action(detail=True, methods=["post"], pagination_class=None)
    def online(self, request: Request, pk: str) -> Response:
        """Let it be connected again."""
        return self._asked(devices.device_bring_back)

    @extend_schema(request=DeviceReason, responses=DeviceRow)
    @action(detail=True, methods=["post"], pagination_class=None)
    def reset(self, request: Request, pk: str) -> Response:
        """Let it be connected again after it has failed."""
        return self._asked(devices.device_reset)

    @extend_schema(parameters=[SINCE, EVENTS], responses=DeviceHistory, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def history(self, request: Request, pk: str) -> Response:
        """What became of it, and by whom: the events of its stream, oldest first."""
        since = read_parameter(request, "since", 0, 0, CAPACITY)
        limit = read_parameter(request, "limit", HISTORY_LIMIT, 1, HISTORY_LIMIT)
        row = self.get_object()
        rights = {"to_admin": self._may("govern"), "to_maker": self._may("devices")}
        found = device_events(row.pk, since, limit, HISTORY_BYTES, **rights)
        last = found[-1]["seq"] if found else since
        return Response(DeviceHistory({"results": found, "next": last if last < session_head(row.pk) else None}).data)

    @extend_schema(responses=DeviceReadings, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def readings(self, request: Request, pk: str) -> Response:
        """How it was in the last day: its load and its slots every five minutes, oldest first."""
        return Response(DeviceReadings({"results": kept_readings(self.get_object().pk)}).data)

    @extend_schema(request=EnrolmentBody, responses={201: FreshDeviceToken})
    @action(detail=True, methods=["post"], pagination_class=None)
    def enrolment(self, request: Request, pk: str) -> Response:
        """A token with which a remote device enrols once; an earlier one that was not used is good no more."""
        lifetime = timedelta(seconds=self.body(EnrolmentBody)["seconds"])
        return self._fresh(*device_tokens.enrolment_create(self.get_object().pk, by=actor_name(request), lifetime=lifetime))

    @extend_schema(responses=DeviceTokens, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def tokens(self, request: Request, pk: str) -> Response:
        """The tokens that it has, and the latest that are good no more."""
        return Response(DeviceTokens({"results": self.get_object().tokens.all()}).data)

    @extend_schema(responses={204: None})
    @tokens.mapping.delete
    def revoke(self, request: Request, pk: str) -> Response:
        """End all of its tokens, and with them its connection."""
        device_tokens.device_tokens_revoke(self.get_object().pk, by=actor_name(request))
        return Response(status=204)

    @extend_schema(request=None, responses={201: FreshDeviceToken})
    @action(detail=True, methods=["post"], pagination_class=None, url_path="tokens/rotate")
    def rotate(self, request: Request, pk: str) -> Response:
        """A new token of the device; the earlier one is good until this one is first used."""
        return self._fresh(*device_tokens.device_token_rotate(self.get_object().pk, by=actor_name(request)))

    @extend_schema(request=None, responses={201: Enrolled})
    @action(
        detail=False, methods=["post"], pagination_class=None, authentication_classes=[], permission_classes=[AllowAny]
    )  # fmt: skip
    def enrol(self, request: Request) -> Response:
        """The device's own token for an enrolment token, which is given as `Authorization: Bearer ore_...`; nobody logs in."""
        given = request.headers.get("Authorization", "")
        token = device_tokens.enrol(given[len(BEARER) :].strip() if given.lower().startswith(BEARER) else "")
        answer = Response({"token": token}, status=201)
        answer.shown_once = token
        return answer

    def _shown(self, pk: int, status: int = 200) -> Response:
        row = listed_devices(with_retired=True).get(pk=pk)
        set_current_tasks([row], self.request.user)
        set_queued_tasks([row])
        return Response(DeviceRow(row, context=self.get_serializer_context()).data, status=status)

    def _asked(self, service: Any) -> Response:
        """Have one of the services that take a reason done, and show the device as it is then."""
        row = self.get_object()
        said = self.body(DeviceReason)
        service(row.pk, by=actor_name(self.request), **({"reason": said["reason"]} if said["reason"] else {}))
        return self._shown(row.pk)

    def _fresh(self, row: DeviceToken, text: str) -> Response:
        answer = Response({**DeviceTokenRow(row).data, "token": text}, status=201)
        answer.shown_once = text
        return answer

    def _may(self, need: str) -> bool:
        token = self.request.auth if isinstance(self.request.auth, Token) else None
        return not why_refused(self.request.user, token, need)

    def _may_exceed(self) -> bool:
        return self._may("govern")
