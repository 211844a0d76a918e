"""What is shown of machines: their tables, and the history of one row."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from agents.models import Transition


class TransitionRow(serializers.ModelSerializer):
    """One step of a machine, as the state it led to was entered."""

    step = serializers.IntegerField(help_text="1, 2, ... of this row's transitions.")
    constellation_id = serializers.IntegerField(allow_null=True, help_text="What it was about; null of an actor.")

    class Meta:
        model = Transition
        fields = ("step", "seq", "at", "by", "from_state", "to_state", "event", "reason", "spent", "constellation_id")


@extend_schema_serializer(many=False)
class History(serializers.Serializer):
    """How the row of a machine came to its state: its transitions, oldest first."""

    id = serializers.IntegerField()
    machine = serializers.CharField()
    state = serializers.CharField()
    entered_at = serializers.DateTimeField()
    time_per_state = serializers.DictField(child=serializers.FloatField(), help_text="Seconds, the present state included.")
    choices = serializers.ListField(child=serializers.CharField(), help_text="Events its state takes.")
    results = TransitionRow(many=True)
    next = serializers.IntegerField(allow_null=True, help_text="Cursor of the next page.")


class MachineStep(serializers.Serializer):
    source = serializers.CharField()
    event = serializers.CharField()
    target = serializers.CharField()
    guard = serializers.DictField()
    effects = serializers.ListField(child=serializers.CharField())
    note = serializers.CharField()


class MachineTable(serializers.Serializer):
    name = serializers.CharField()
    initial = serializers.CharField()
    terminal = serializers.ListField(child=serializers.CharField())
    round_end = serializers.ListField(child=serializers.CharField(), help_text="States that end an interaction's round.")
    subtask_end = serializers.ListField(child=serializers.CharField(), help_text="States that end a task.")
    states = serializers.ListField(child=serializers.CharField())
    events = serializers.ListField(child=serializers.CharField())
    rows = MachineStep(many=True)


@extend_schema_serializer(many=False)
class MachineList(serializers.Serializer):
    results = MachineTable(many=True)
    next = serializers.IntegerField(allow_null=True)
