"""What goes in and out over REST of commands to constellations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.api.serializers.fields import ClientId, Parent, RequestBody, StrictText, WholeNumber
from agents.api.serializers.sessions import REASON_LENGTH
from agents.ids import CAPACITY
from constellations.api.edit_serializers import BasedOn, Operation, Standing
from constellations.editor.editor import MAX_OPERATIONS
from constellations.plan.operations import MAX_TASKS
from constellations.plan.values import MAX_ID
from constellations.services.lifecycle import TITLE_LENGTH

COMMANDS = ("pause", "resume", "cancel", "restart")
TASKS_HELP = (
    "task_ids of tasks that begin again, with all downstream of them that FAILED, was skipped or ended with the run. "
    "What a person cancelled stays so unless it is named."
)


class Said(RequestBody):
    reason = StrictText(max_length=REASON_LENGTH, required=False, allow_blank=True, default="")
    client_id = ClientId()


class StartBody(RequestBody):
    reason = StrictText(max_length=REASON_LENGTH, required=False, allow_blank=True, default="")


class ConstellationCommandBody(Said):
    kind = serializers.ChoiceField(COMMANDS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["kind"] == "cancel" and not attrs["reason"]:
            raise serializers.ValidationError({"reason": "a cancel needs a reason"})
        if attrs["kind"] in ("pause", "resume") and "client_id" in attrs:
            raise serializers.ValidationError({"client_id": "a pause or a resume takes none: the same again changes nothing"})
        return attrs


class TaskIds(serializers.ListField):
    def __init__(self, **kwargs: Any):
        super().__init__(
            child=StrictText(max_length=MAX_ID), max_length=MAX_TASKS, required=False, help_text=TASKS_HELP, **kwargs
        )


class MendBody(Said):
    operations = serializers.ListField(
        child=Operation(), max_length=MAX_OPERATIONS, required=False, help_text="An edit; it may change what begins again."
    )


class TaskRetryBody(MendBody):
    based_on = BasedOn()


class RetryBody(TaskRetryBody):
    tasks = TaskIds()


class ReopenBody(MendBody):
    retry = TaskIds()


class ForkBody(ReopenBody):
    seq = WholeNumber(min_value=1, max_value=CAPACITY, required=False, help_text="The event after which; left out: the last.")
    title = StrictText(max_length=TITLE_LENGTH, required=False, allow_blank=True)
    parent = Parent()


class CommandTaken(serializers.Serializer):
    state = serializers.CharField(help_text="Of the constellation, now.")
    changed = serializers.BooleanField()
    command = serializers.IntegerField(allow_null=True, help_text="Its row in the inbox, where it waits for a runner.")


class RetryTaken(Standing):
    tasks = serializers.ListField(child=serializers.CharField(), help_text="All that begin again.")
    changed = serializers.BooleanField()
    interaction = serializers.IntegerField(allow_null=True, help_text="That reopens a constellation which had ended.")
    edit = serializers.IntegerField(allow_null=True, help_text="Of the operations, where they were made at once.")


class TaskCancelled(serializers.Serializer):
    task_id = serializers.CharField()
    state = serializers.CharField(help_text="Of the task, now.")
    changed = serializers.BooleanField()
    command = serializers.IntegerField(allow_null=True, help_text="Its row in the inbox, where the runner of the task ends it.")


class Reopened(serializers.Serializer):
    session = serializers.IntegerField()
    interaction = serializers.IntegerField()
    created = serializers.BooleanField(help_text="false: this client_id has asked before.")


class ForkMade(serializers.Serializer):
    session = serializers.IntegerField()
    interaction = serializers.IntegerField()
    created = serializers.BooleanField(help_text="false: this client_id has asked before.")
