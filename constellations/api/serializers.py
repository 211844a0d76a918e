"""What goes out over REST of what is to be done."""

from __future__ import annotations

from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.serializers.costs import Cost
from agents.api.serializers.work import ApprovalRow
from constellations.models import Attempt, Constellation, Dependency, Task
from constellations.plan.keys.fields import CHANGEABLE, STORED
from constellations.plan.keys.kinds import Lists, Shape
from constellations.reads.progress import same_stream

LISTED = tuple(key for key, field in STORED.items() if Lists.REST in field.lists)
"""Keys of a task that lists show."""
Built = tuple[type[serializers.Field], dict[str, Any]]
INCOMING = 1_000
"""Dependencies into a task that its detail shows."""


class ConstellationRow(serializers.ModelSerializer):
    session = serializers.IntegerField(source="session_id")
    interaction = serializers.IntegerField(source="interaction_id")
    replaces = serializers.IntegerField(source="replaces_id", allow_null=True, help_text="Which a restart cancelled.")
    forked_from = serializers.IntegerField(source="forked_from_id", allow_null=True)
    forked_at = serializers.IntegerField(allow_null=True, help_text="The seq in the stream of that one's session.")
    result = serializers.JSONField(allow_null=True)

    class Meta:
        model = Constellation
        fields: tuple[str, ...] = (
            "id", "session", "interaction", "replaces", "forked_from", "forked_at", "name", "state", "reason", "version",
            "result", "created_at", "entered_at", "ended_at",
        )  # fmt: skip


class GraphTask(serializers.Serializer):
    """A node, as much of it as a picture needs."""

    id = serializers.IntegerField()
    task_id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    priority = serializers.IntegerField(help_text="From 0 (LOW) to 3 (CRITICAL).")
    attempt = serializers.IntegerField()
    device_id = serializers.IntegerField(allow_null=True)


class GraphDependency(serializers.Serializer):
    id = serializers.IntegerField()
    dependency_id = serializers.CharField()
    upstream_id = serializers.IntegerField()
    downstream_id = serializers.IntegerField()
    type = serializers.CharField()
    condition = serializers.CharField()


class ConstellationDetail(ConstellationRow):
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Tasks by state.")
    tasks = GraphTask(many=True)
    dependencies = GraphDependency(many=True)
    truncated = serializers.BooleanField(help_text="There are more: page through /api/tasks/.")

    class Meta(ConstellationRow.Meta):
        fields = (*ConstellationRow.Meta.fields, "counts", "tasks", "dependencies", "truncated")


class WordOfPlace(serializers.CharField):
    """The word of an enum that is kept as its place among them."""

    def __init__(self, *, choices: tuple[str, ...], **kwargs: Any):
        super().__init__(**kwargs)
        self.choices = choices

    def to_representation(self, value: int) -> str:
        return self.choices[value]


class TaskRow(serializers.ModelSerializer):
    constellation = serializers.IntegerField(source="constellation_id")
    device = serializers.CharField(source="device.name", allow_null=True, default=None, help_text="Where it runs or ran.")
    result = serializers.JSONField(allow_null=True)

    class Meta:
        model = Task
        fields: tuple[str, ...] = (
            "id", "constellation", *LISTED, "state", "reason", "device", "attempt", "result", "error", "condition_failed",
            "created_at", "entered_at", "started_at", "ended_at", "retry_at",
        )  # fmt: skip

    def build_standard_field(self, field_name: str, model_field: models.Field[Any, Any]) -> Built:
        """As the keys of a plan say it: Django does not know what is in a list."""
        key = STORED.get(field_name)
        built, said = super().build_standard_field(field_name, model_field)
        if key is None:
            return built, said
        told = {"help_text": key.about or key.hint}
        match key.takes.shape:
            case Shape.PLACE:
                return WordOfPlace, told | {"choices": key.takes.choices}
            case Shape.NAMES | Shape.TEXTS:
                return serializers.ListField, told | {"child": serializers.CharField()}
            case Shape.OBJECT:
                return serializers.DictField, told
            case _:
                return built, said | told


class AttemptRow(serializers.ModelSerializer):
    device = serializers.CharField(source="device.name")
    agent = serializers.IntegerField(source="agent_id")
    result = serializers.JSONField(allow_null=True)

    class Meta:
        model = Attempt
        fields = ("id", "number", "agent", "device", "started_at", "ended_at", "outcome", "exit_code", "result", "error")


class OutputPiece(serializers.Serializer):
    attempt = serializers.IntegerField(help_text="Id of the attempt.")
    offset = serializers.IntegerField(help_text="Of the text's first character in the whole output.")
    text = serializers.CharField(allow_blank=True)


class TestCounts(serializers.Serializer):
    passed = serializers.IntegerField()
    failed = serializers.IntegerField()


class TaskProgress(serializers.Serializer):
    """How far the latest attempt is, by the phases of its agents."""

    phases_done = serializers.IntegerField()
    phases_total = serializers.IntegerField()
    elapsed_s = serializers.FloatField(allow_null=True, help_text="Seconds, until now while it runs; null before the first.")
    files_changed = serializers.ListField(child=serializers.CharField(), help_text="The first of them, in order.")
    files_changed_total = serializers.IntegerField()
    tests = TestCounts()


class Incoming(serializers.ModelSerializer):
    """A dependency into a task, with all that can be edited of it."""

    upstream = serializers.CharField(source="upstream.task_id")

    class Meta:
        model = Dependency
        fields = ("dependency_id", "upstream", *CHANGEABLE)


class TaskDetail(TaskRow):
    settings = serializers.DictField(source="progress", help_text="What a plan says in `progress`, as far as it differs.")
    incoming = serializers.SerializerMethodField(help_text=f"Dependencies into it, the first {INCOMING:,}.")
    attempts = AttemptRow(source="latest", many=True, help_text="The latest, oldest first.")
    output = OutputPiece(allow_null=True, help_text="The end of what the last attempt printed.")
    progress = TaskProgress(source="so_far")
    cost = Cost(source="spent", help_text="Of calls of models that worked on it.")
    approvals = ApprovalRow(source="waiting_for", many=True, help_text="What it waits for somebody to decide.")

    class Meta(TaskRow.Meta):
        fields = (
            *TaskRow.Meta.fields, "error_kind", *(key for key in STORED if key not in (*LISTED, "progress")), "settings",
            "version", "incoming", "attempts", "output", "progress", "cost", "approvals",
        )  # fmt: skip

    @extend_schema_field(Incoming(many=True))
    def get_incoming(self, task: Task) -> list[dict[str, Any]]:
        found = same_stream(task.upstream_dependencies.select_related("upstream"), task.pk).order_by("id")[:INCOMING]
        return list(Incoming(found, many=True).data)
