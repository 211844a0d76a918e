"""REST of constellations as a whole: pause, resume, cancel, restart, start, retry, reopen, fork."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name, why_refused
from agents.api.views import Api, request_id
from agents.models import InboxItem, Token
from constellations.api import lifecycle_serializers
from constellations.api.versioned import IF_MATCH, etag_header, seen_version
from constellations.models import Constellation
from constellations.services import lifecycle, standing
from constellations.services.task_commands import CancelResult


class CommandViews(Api):
    """Commands to the constellation in the address."""

    @extend_schema(
        request=lifecycle_serializers.ConstellationCommandBody,
        responses={200: lifecycle_serializers.CommandTaken, 202: lifecycle_serializers.CommandTaken},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def commands(self, request: Request, pk: str) -> Response:
        """Pause, resume, cancel or restart a constellation."""
        constellation, body = self.get_object(), self.body(lifecycle_serializers.ConstellationCommandBody)
        kind, said = body.pop("kind"), {**self._said(request), "reason": body["reason"]}
        if kind in INBOX:
            item, changed = INBOX[kind](constellation.pk, **said, client_id=body.get("client_id", ""))
            return self._taken(constellation, changed, item)
        _, changed = AT_ONCE[kind](constellation.pk, **said)
        return self._taken(constellation, changed, None)

    def _taken(self, constellation: Constellation, changed: bool, item: InboxItem | None) -> Response:
        state = Constellation.objects.values_list("state", flat=True).get(pk=constellation.pk)
        answer = {"state": state, "changed": changed, "command": item.pk if item is not None else None}
        return Response(answer, status=202 if changed and item is not None else 200)

    @extend_schema(request=lifecycle_serializers.StartBody, responses={200: lifecycle_serializers.CommandTaken}, filters=False)
    @action(detail=True, methods=["post"], pagination_class=None)
    def start(self, request: Request, pk: str) -> Response:
        """Let a constellation run that waits for its review; the same again changes nothing."""
        constellation, body = self.get_object(), self.body(lifecycle_serializers.StartBody)
        _, changed = lifecycle.constellation_start(constellation.pk, **self._said(request), reason=body["reason"])
        return self._taken(constellation, changed, None)

    @extend_schema(
        parameters=[IF_MATCH],
        request=lifecycle_serializers.RetryBody,
        responses={200: lifecycle_serializers.RetryTaken, 202: lifecycle_serializers.RetryTaken},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def retry(self, request: Request, pk: str) -> Response:
        """Let failed and cancelled tasks begin again, and what is downstream of them; operations mend them first."""
        constellation, body = self.get_object(), self.body(lifecycle_serializers.RetryBody)
        return retry_response(request, constellation, body.pop("tasks", None), body)

    @extend_schema(
        request=lifecycle_serializers.ReopenBody,
        responses={200: lifecycle_serializers.Reopened, 202: lifecycle_serializers.Reopened},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def reopen(self, request: Request, pk: str) -> Response:
        """Go on with a constellation that has ended, by an edit, by retries, or both."""
        constellation, body = self.get_object(), self.body(lifecycle_serializers.ReopenBody)
        if body.get("operations"):
            require_edit(request)
        item, created = lifecycle.constellation_reopen(constellation.pk, **self._said(request), **body)
        answer = {"session": item.session_id, "interaction": item.pk, "created": created}
        return Response(answer, status=202 if created else 200)

    @extend_schema(
        request=lifecycle_serializers.ForkBody,
        responses={200: lifecycle_serializers.ForkMade, 201: lifecycle_serializers.ForkMade},
        filters=False,
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def fork(self, request: Request, pk: str) -> Response:
        """Go on in a new session from a constellation as it was after an event."""
        constellation, body = self.get_object(), self.body(lifecycle_serializers.ForkBody)
        if body.get("operations"):
            require_edit(request)
        session, item, created = lifecycle.constellation_fork(
            constellation.pk, request.user, **self._said(request), **body
        )  # fmt: skip
        answer = {"session": session.pk, "interaction": item.pk, "created": created}
        return Response(answer, status=201 if created else 200)

    def _said(self, request: Request) -> dict[str, Any]:
        return {"by": actor_name(request), "request_id": request_id(request)}


INBOX: dict[str, Any] = {"cancel": lifecycle.constellation_cancel, "restart": lifecycle.constellation_restart}
AT_ONCE: dict[str, Any] = {"pause": lifecycle.constellation_pause, "resume": lifecycle.constellation_resume}


def retry_response(request: Request, constellation: Constellation, tasks: list[str] | None, body: dict[str, Any]) -> Response:
    """Let tasks begin again, as `body` says; the ETag is the version that its author may build on, as that of an edit."""
    if body.get("operations"):
        require_edit(request)
    based_on = seen_version(request, body.pop("based_on", None))
    said = {"by": actor_name(request), "request_id": request_id(request), **body}
    found = lifecycle.constellation_retry(constellation.pk, tasks, **said, based_on=based_on)
    item, edit = found.interaction, found.edit
    stands = standing.standing_of(
        constellation.pk, edit, found.changed, edit_id="" if edit is None else edit.edit_id, based_on=based_on,
        before=constellation.version,
    )  # fmt: skip
    answer = {
        "tasks": found.tasks, "changed": found.changed, "interaction": None if item is None else item.pk,
        "edit": None if edit is None else edit.pk, **asdict(stands),
    }  # fmt: skip
    return Response(answer, status=202 if item is not None and found.changed else 200, headers=etag_header(stands.version))


def cancel_response(found: CancelResult) -> Response:
    item, task = found.command, found.task
    answer = {
        "task_id": task.task_id,
        "state": task.state,
        "changed": found.changed,
        "command": None if item is None else item.pk,
    }
    return Response(answer, status=202 if item is not None and found.changed else 200)


def require_edit(request: Request) -> None:
    """Operations are an edit, whatever carries them."""
    message = why_refused(request.user, request.auth if isinstance(request.auth, Token) else None, "edit")
    if message:
        raise PermissionDenied(message)
