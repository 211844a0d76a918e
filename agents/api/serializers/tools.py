"""Tools of tool servers over REST."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.fields import RequestBody, StrictText

DIGEST_LENGTH = 64
"""Hexadecimal digits."""


class ServerTool(serializers.Serializer):
    name = serializers.CharField(help_text="With its namespace, as plans call it.")
    description = serializers.CharField(help_text="What the server says; nobody vouches for it.")
    arguments = serializers.DictField(help_text="JSON Schema, as far as it is kept.")
    digest = serializers.CharField(help_text="Of the whole definition.")


class DeviceTools(serializers.Serializer):
    tools = ServerTool(many=True)
    offered = ServerTool(many=True, allow_null=True, help_text="What the server offers by now; null: the same.")
    changes = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()), help_text="Names: changed, added, removed."
    )
    digest = serializers.CharField(allow_blank=True, help_text="Of what is offered: who accepts it says this.")


class AcceptedTools(RequestBody):
    """An admin's word."""

    digest = StrictText(max_length=DIGEST_LENGTH)
