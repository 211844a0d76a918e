"""Model profiles as REST shows and takes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from agents.api.serializers.fields import RequestBody, StrictText, Truth, WholeNumber
from agents.llm.addresses import BASE_URL_LENGTH
from agents.llm.choices import PURPOSES
from agents.llm.profiles import PROVIDERS, THINKING_LEVELS
from agents.models import ModelProfile
from agents.services.model_profiles import FALLBACKS, FIELDS, HOTTEST, LARGEST_NUMBER, MODEL_LENGTH

NAME_LENGTH = 80
KEY_LENGTH = 64


class ModelProfileRow(serializers.ModelSerializer):
    fallbacks = serializers.ListField(child=serializers.CharField())
    purposes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ModelProfile
        fields = ("id", "name", *FIELDS, "created_at")


@extend_schema_serializer(many=False)
class ModelProfileList(serializers.Serializer):
    results = ModelProfileRow(many=True)
    next = serializers.IntegerField(allow_null=True)


class AnyNumber(serializers.FloatField):
    """A JSON number; `true` and "4" are none."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)


def _count(text: str) -> WholeNumber:
    return WholeNumber(min_value=1, max_value=LARGEST_NUMBER, required=False, allow_null=True, help_text=text)


def _price(text: str) -> AnyNumber:
    return AnyNumber(min_value=0, max_value=LARGEST_NUMBER, required=False, allow_null=True, help_text=text)


class ModelProfileChange(RequestBody):
    """What a model profile is to say; what is not given stays. A changed address clears the key's name."""

    provider = serializers.ChoiceField(PROVIDERS, required=False)
    model = StrictText(max_length=MODEL_LENGTH, required=False, help_text="The model's name at the provider.")
    base_url = StrictText(
        max_length=BASE_URL_LENGTH, required=False, allow_blank=True, help_text="Empty: the provider's own address."
    )
    key = StrictText(
        max_length=KEY_LENGTH, required=False, allow_blank=True,
        help_text="The key's name: NAME of the variable ORRERY_KEY_NAME, or of a file in ORRERY_SECRETS_DIR.",
    )  # fmt: skip
    context_window = _count("Tokens of question and answer together.")
    max_output_tokens = _count("Tokens of one answer, at most.")
    price_input = _price("For a million tokens; null: not known.")
    price_cached_input = _price("The same for tokens that the provider had cached.")
    price_output = _price("For a million tokens of answers.")
    requests_per_minute = _count("Of the whole installation.")
    tokens_per_minute = _count("Of questions and answers together.")
    calls_in_flight = _count("Calls at one time.")
    temperature = AnyNumber(min_value=0, max_value=HOTTEST, required=False, allow_null=True)
    thinking = serializers.ChoiceField(
        THINKING_LEVELS[1:], required=False, allow_blank=True, help_text="How much it thinks first; empty: the provider's own."
    )
    sees = Truth(required=False, help_text="It is shown pictures, such as those of a browser's pages.")
    fallbacks = serializers.ListField(
        child=StrictText(max_length=NAME_LENGTH), max_length=FALLBACKS, required=False,
        help_text="Names of profiles that are asked in this order where it fails.",
    )  # fmt: skip
    purposes = serializers.ListField(
        child=serializers.ChoiceField(PURPOSES), max_length=len(PURPOSES), required=False,
        help_text="What it is asked for on this installation; another profile loses what this one takes.",
    )  # fmt: skip


class ModelProfileBody(ModelProfileChange):
    """A new model profile."""

    name = StrictText(max_length=NAME_LENGTH, help_text="What plans and fallbacks know it by; it stays.")
    provider = serializers.ChoiceField(PROVIDERS)
    model = StrictText(max_length=MODEL_LENGTH, help_text="The model's name at the provider.")
