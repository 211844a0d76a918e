"""REST of language models: profiles and budgets, which admins keep, and what was asked and answered."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name, groups_of
from agents.api.serializers.budgets import BudgetBody, BudgetChange, BudgetList, BudgetRow, ModelCallDetail, ModelCallRow
from agents.api.serializers.model_profiles import ModelProfileBody, ModelProfileChange, ModelProfileList, ModelProfileRow
from agents.api.views import Api, request_id
from agents.models import Budget, ModelCall, ModelProfile, Prompt, Session
from agents.reads.costs import with_used
from agents.services import budgets, model_profiles

BUDGETS_SHOWN = 2_000
"""Of a list, at most: those that admins keep are fewer, and owners of sessions may have more."""


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


class BudgetViews(mixins.RetrieveModelMixin, Api):
    """How much calls of models may use. Everybody sees those that are for all and those that are for them."""

    serializer_class = BudgetRow
    pagination_class = None
    filter_backends: list[Any] = []
    needs = {
        "list": "read", "retrieve": "read", "create": "govern", "partial_update": "govern", "destroy": "govern",
    }  # fmt: skip

    def get_queryset(self) -> QuerySet[Budget]:
        rows, user = Budget.objects.all(), self.request.user
        if "admin" in groups_of(user):
            return rows
        own = Q(scope="session", subject__in=Session.objects.visible_to(user).values("pk"))
        return rows.filter(Q(subject__isnull=True) | Q(scope="user", subject=user.pk) | own)

    @extend_schema(responses=BudgetList, operation_id="budgets_list")
    def list(self, request: Request) -> Response:
        rows = with_used(list(self.get_queryset()[:BUDGETS_SHOWN]))
        return Response({"results": BudgetRow(rows, many=True).data, "next": None})

    @extend_schema(responses=BudgetRow)
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(BudgetRow(with_used([self.get_object()])[0]).data)

    @extend_schema(request=BudgetBody, responses={201: BudgetRow})
    def create(self, request: Request) -> Response:
        made = budgets.budget_create(**self.body(BudgetBody), by=actor_name(request), request_id=request_id(request))
        return Response(BudgetRow(with_used([made])[0]).data, status=201)

    @extend_schema(request=BudgetChange, responses=BudgetRow)
    def partial_update(self, request: Request, pk: str) -> Response:
        row, body = self.get_object(), self.body(BudgetChange)
        changed = budgets.budget_change(row.pk, **body, by=actor_name(request), request_id=request_id(request))
        return Response(BudgetRow(with_used([changed])[0]).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        budgets.budget_delete(self.get_object().pk, by=actor_name(request), request_id=request_id(request))
        return Response(status=204)


class ModelCallViews(Api):
    """One call of a model: what was asked, what was answered, and the system prompt. A session's are at its own address."""

    serializer_class = ModelCallRow

    def get_queryset(self) -> QuerySet[ModelCall]:
        return ModelCall.objects.filter(session__in=Session.objects.visible_to(self.request.user))

    @extend_schema(responses=ModelCallDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        row = self.get_object()
        prompt = Prompt.objects.filter(pk=row.prompt_digest).values_list("text", flat=True).first()
        return Response(ModelCallDetail(row, context={"prompt": prompt}).data)
