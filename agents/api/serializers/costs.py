"""What calls of models have used, as REST shows it of sessions, tasks and agents."""

from __future__ import annotations

from rest_framework import serializers


class Cost(serializers.Serializer):
    """What calls of models have used."""

    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cached = serializers.IntegerField(help_text="Part of tokens_in.")
    cost = serializers.FloatField(help_text="By the profiles' prices, of what has prices.")
    unpriced_tokens = serializers.IntegerField(help_text="Of profiles whose prices are not known; their cost is in no sum.")
    unknown_calls = serializers.IntegerField(help_text="Of which nobody told what they used.")
    unknown_tokens = serializers.IntegerField(help_text="What these had reserved, and count for in budgets.")
    open_tokens = serializers.IntegerField(help_text="Reserved by calls under way.")
