"""Budgets, costs and calls of models as REST shows and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from agents.api.pagination import LARGEST
from agents.api.serializers.fields import RequestBody, WholeNumber
from agents.api.serializers.model_profiles import AnyNumber
from agents.models import Budget, ModelCall
from agents.models.budgets import PERIODS, SCOPES, WAYS
from agents.services.budgets import FIELDS, LARGEST_MONEY, LARGEST_TOKENS


class BudgetUsed(serializers.Serializer):
    """What counts for a budget until now."""

    tokens = serializers.IntegerField(help_text="With what is reserved, and what was never told.")
    money = serializers.FloatField()
    raised_tokens = serializers.IntegerField(help_text="What people have added to it.")
    raised_money = serializers.FloatField()


class BudgetRow(serializers.ModelSerializer):
    used = BudgetUsed(allow_null=True, help_text="Null where it is one for each user, session, task or call.")

    class Meta:
        model = Budget
        fields = ("id", *FIELDS, "owned", "created_at", "used")


@extend_schema_serializer(many=False)
class BudgetList(serializers.Serializer):
    results = BudgetRow(many=True)
    next = serializers.IntegerField(allow_null=True)


def _tokens() -> WholeNumber:
    text = "Of questions and answers; null: any number."
    return WholeNumber(min_value=0, max_value=LARGEST_TOKENS, required=False, allow_null=True, help_text=text)


def _money() -> AnyNumber:
    text = "In the currency of the profiles' prices; null: any amount."
    return AnyNumber(min_value=0, max_value=LARGEST_MONEY, required=False, allow_null=True, help_text=text)


class OwnBudgetBody(RequestBody):
    """How much a session may use, as its owner wants it: tokens or money, or both."""

    tokens = _tokens()
    money = _money()
    then = serializers.ChoiceField(WAYS, required=False, help_text="When it is used up: stop, or ask for more.")


class BudgetChange(OwnBudgetBody):
    """What a budget is to say; what is not given stays."""

    scope = serializers.ChoiceField(SCOPES, required=False)
    subject = WholeNumber(
        min_value=1, max_value=LARGEST, required=False, allow_null=True,
        help_text="The one user or session that it is for; null: for each of them.",
    )  # fmt: skip
    per = serializers.ChoiceField(PERIODS, required=False, help_text="A day begins at 0:00 UTC.")


class BudgetBody(BudgetChange):
    """A new budget."""

    scope = serializers.ChoiceField(SCOPES)


class ModelCallRow(serializers.ModelSerializer):
    """One call of a model, as the agent sees it."""

    session = serializers.IntegerField(source="session_id")
    interaction = serializers.IntegerField(source="interaction_id")
    agent = serializers.IntegerField(source="agent_id")
    taken = serializers.JSONField()
    added = serializers.JSONField(allow_null=True, help_text="Messages that came into the conversation with it.")
    reply = serializers.JSONField(allow_null=True)
    actions = serializers.JSONField()
    result = serializers.JSONField(allow_null=True)
    tries = serializers.ListField(child=serializers.DictField(), help_text="That failed: profile, code, waited_s.")
    devices = serializers.JSONField()

    class Meta:
        model = ModelCall
        fields: tuple[str, ...] = tuple(
            field.name for field in ModelCall._meta.concrete_fields
        )  # fmt: skip


class ModelCallDetail(ModelCallRow):
    prompt = serializers.SerializerMethodField(help_text="The system prompt that was sent; null where it is not kept.")

    class Meta(ModelCallRow.Meta):
        fields = (*ModelCallRow.Meta.fields, "prompt")

    def get_prompt(self, row: Any) -> str | None:
        text: str | None = self.context["prompt"]
        return text
