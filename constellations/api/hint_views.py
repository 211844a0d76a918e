"""REST of hints: a person's word to an agent with a model."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.serializers.fields import ClientId, RequestBody, StrictText
from agents.api.views import Api, request_id
from agents.models import Agent, Session
from constellations.api.lifecycle_views import require_edit
from constellations.services import hints


class HintBody(RequestBody):
    text = StrictText(max_length=hints.HINT_CHARACTERS, help_text="What the agent is to know.")
    client_id = ClientId()


class HintTaken(serializers.Serializer):
    changed = serializers.BooleanField()
    command = serializers.IntegerField(allow_null=True, help_text="Its row in the inbox, where the agent works.")
    tasks = serializers.ListField(child=serializers.CharField(), help_text="All that begin again, where the agent had ended.")
    interaction = serializers.IntegerField(allow_null=True, help_text="That reopens a constellation which had ended.")


class HintViews(Api):
    """Hints to the agent in the address."""

    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Agent]:
        return Agent.objects.filter(session__in=Session.objects.visible_to(self.request.user))

    @extend_schema(request=HintBody, responses={200: HintTaken, 202: HintTaken}, filters=False)
    @action(detail=True, methods=["post"], pagination_class=None)
    def hint(self, request: Request, pk: str) -> Response:
        """Tell an agent something: it reads that next; where it has ended, its task begins again with the hint."""
        agent, body = self.get_object(), self.body(HintBody)
        if not hints.is_at_work(agent):  # the task is edited
            require_edit(request)
        found = hints.agent_hint(agent, by=actor_name(request), request_id=request_id(request), **body)
        retry = found.retry
        item = None if retry is None else retry.interaction
        answer = {
            "changed": found.changed, "command": None if found.command is None else found.command.pk,
            "tasks": [] if retry is None else retry.tasks, "interaction": None if item is None else item.pk,
        }  # fmt: skip
        return Response(answer, status=202 if found.changed and (found.command or item) else 200)
