"""Tokens over REST: what somebody asks for, and what is shown of one."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.pagination import LARGEST
from agents.api.serializers.fields import RequestBody, StrictText, WholeNumber
from agents.models import Token
from agents.models.access import SCOPES

TOKEN_DAYS = 365


class TokenBody(RequestBody):
    name = StrictText(max_length=80, allow_blank=True, default="")
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES), min_length=1, max_length=len(SCOPES))
    days = WholeNumber(
        min_value=1, max_value=TOKEN_DAYS, default=90, help_text="Until it expires, at the latest with its parent."
    )
    session = WholeNumber(
        min_value=1, max_value=LARGEST, required=False, help_text="It is for who works inside this one, and ends with it."
    )  # fmt: skip


class TokenRow(serializers.ModelSerializer):
    id = serializers.CharField(source="token_key")
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES))
    session = serializers.IntegerField(source="session_id", allow_null=True, help_text="The one it was issued for.")
    parent = serializers.SerializerMethodField(help_text="Id of the token that it was made with.")

    class Meta:
        model = Token
        fields: tuple[str, ...] = ("id", "name", "scopes", "created", "expiry", "last_used", "session", "parent")

    def get_parent(self, row: Token) -> str | None:
        return None if row.parent is None else row.parent.token_key


class FreshToken(TokenRow):
    token = serializers.CharField(help_text="Shown this once.")

    class Meta(TokenRow.Meta):
        fields = (*TokenRow.Meta.fields, "token")
