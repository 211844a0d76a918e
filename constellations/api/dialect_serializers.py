"""What goes in and out over REST of constellations in other dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.serializers.fields import ClientId, RequestBody, StrictText
from agents.api.serializers.problems import ProblemPlace
from agents.api.serializers.sessions import Accepted
from constellations.api.edit_serializers import BasedOn
from constellations.plan.dialects import NAMES
from constellations.plan.documents import MAX_JSON_BYTES
from constellations.services.edits import REASON_LENGTH


@extend_schema_field({"oneOf": [{"type": "string", "minLength": 1, "maxLength": MAX_JSON_BYTES}, {"type": "object"}]})
class Document(serializers.JSONField):
    """A constellation, as text (YAML or JSON) or as an object."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | Mapping) or data == "":
            raise serializers.ValidationError("must be text or an object")
        return data


class CheckBody(RequestBody):
    """`dialect` is told by the document's keys when it is left out."""

    document = Document()
    dialect = serializers.ChoiceField(NAMES, required=False)


class ImportBody(CheckBody):
    client_id = ClientId()


class Imported(Accepted):
    warnings = ProblemPlace(many=True, help_text="Tasks in words alone, which will not start; the first of them.")


class EditImportBody(CheckBody):
    """What an agent answers when it edits a constellation: actions, in its words."""

    reason = StrictText(required=False, allow_blank=True, max_length=REASON_LENGTH, help_text="Else the answer's own thought.")
    edit_id = ClientId()
    based_on = BasedOn()


class Checked(serializers.Serializer):
    dialect = serializers.ChoiceField(NAMES, help_text="The one it was read in.")
    name = serializers.CharField()
    tasks = serializers.IntegerField(help_text="How many.")
    dependencies = serializers.IntegerField(help_text="How many.")
    plan = serializers.DictField(help_text="What would be submitted.")
    warnings = ProblemPlace(many=True, help_text="Tasks in words alone, which would not start; the first of them.")
