"""What is shown of an error: `agents.api.problems` makes it, the OpenAPI description names it."""

from __future__ import annotations

from rest_framework import serializers


class ProblemPlace(serializers.Serializer):
    """A part of a document, an operation of an edit, or an edit that came first; what is not known is left out."""

    key = serializers.CharField(required=False)
    line = serializers.IntegerField(required=False)
    column = serializers.IntegerField(required=False)
    message = serializers.CharField()
    operation = serializers.IntegerField(required=False, help_text="Its number, from 1.")
    op = serializers.CharField(required=False, help_text="Its name; empty where it has none.")
    field = serializers.CharField(required=False, help_text="Of its parameters; empty where it is about all of it.")
    version = serializers.IntegerField(required=False, help_text="That the other edit made.")
    edit_id = serializers.CharField(required=False)
    author = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    names = serializers.ListField(child=serializers.CharField(), required=False, help_text="Over which the two disagree.")


class Problem(serializers.Serializer):
    """RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    problems = ProblemPlace(many=True)
    version = serializers.IntegerField(required=False, help_text="Of a stale edit: the newest.")
    between = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="Of a stale edit: the first of the edits since."
    )
    between_total = serializers.IntegerField(required=False, help_text="How many these are.")
