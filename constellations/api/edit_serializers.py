"""What goes in and out over REST of edits, and of how a constellation stands."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.pagination import LARGEST
from agents.api.serializers.fields import AuthorName, ClientId, RequestBody, StrictText, WholeNumber
from constellations.editor.editor import MAX_OPERATIONS
from constellations.models import Edit
from constellations.reads.why import KINDS
from constellations.services.edits import REASON_LENGTH


class EditWhole(serializers.ModelSerializer):
    operations = serializers.ListField(child=serializers.DictField())
    diff = serializers.JSONField()
    author_name = AuthorName(source="author")
    undoes = serializers.IntegerField(source="undoes_id", allow_null=True, help_text="The edit that it takes back.")
    rebased_from = serializers.IntegerField(allow_null=True, help_text="The version it was made on, where others came since.")

    class Meta:
        model = Edit
        fields: tuple[str, ...] = (
            "id", "edit_id", "author", "author_name", "reason", "undoes", "based_on", "rebased_from", "version", "operations",
            "diff", "at",
        )  # fmt: skip


class EditRow(EditWhole):
    """As much of an edit as the history shows: `history.cut_edit` has had it."""

    operations_total = serializers.IntegerField(help_text="Of them the first are shown.")
    diff_total = serializers.IntegerField(help_text="Of its entries the first are shown.")
    truncated = serializers.BooleanField(help_text="There are more; the edit by itself has all.")

    class Meta(EditWhole.Meta):
        fields = (*EditWhole.Meta.fields, "operations_total", "diff_total", "truncated")


class EditDetail(EditWhole):
    before = serializers.DictField(help_text="What it changed, as it was: tasks and dependencies by their ids; null for new.")
    after = serializers.DictField(help_text="The same as it was after it; null for what was removed.")

    class Meta(EditWhole.Meta):
        fields = (*EditWhole.Meta.fields, "before", "after")


class EditBetween(serializers.Serializer):
    """Somebody else's edit, in a few words."""

    version = serializers.IntegerField(help_text="The constellation's after it.")
    edit_id = serializers.CharField()
    author = serializers.CharField()
    author_name = serializers.CharField(help_text="As people call the author.")
    reason = serializers.CharField()
    changes = serializers.CharField(help_text="What it did, in words; the edit by itself has all of it.")


class Standing(serializers.Serializer):
    """What an author has seen, and what not."""

    version = serializers.IntegerField(help_text="The one to build on, as the ETag is: that which this edit made.")
    newest = serializers.IntegerField(help_text="The constellation's now.")
    between = EditBetween(many=True, help_text="The first of the edits that its author has not seen.")
    between_total = serializers.IntegerField(help_text="How many these are.")


class EditMade(Standing):
    edit = EditRow(allow_null=True, help_text="null where there was nothing to change, and while it is proposed.")
    changed = serializers.BooleanField()
    proposal = serializers.IntegerField(
        allow_null=True, help_text="Id of the approval that it waits for, where it would let something be done unasked."
    )


class Operation(serializers.JSONField):
    """{"op": "add_task", "parameters": {...}}, or in short {"add_task": {...}}; the editor says what is wrong with it."""


class BasedOn(WholeNumber):
    """What its author has seen."""

    def __init__(self) -> None:
        said = "The version it was made on; or If-Match."
        super().__init__(required=False, min_value=1, max_value=LARGEST, help_text=said)


class Operations(RequestBody):
    operations = serializers.ListField(child=Operation(), max_length=MAX_OPERATIONS)


class PreviewBody(Operations):
    based_on = BasedOn()


class EditBody(Operations):
    reason = StrictText(required=False, allow_blank=True, max_length=REASON_LENGTH)
    edit_id = ClientId()
    based_on = BasedOn()


class UndoBody(RequestBody):
    reason = StrictText(required=False, allow_blank=True, max_length=REASON_LENGTH)
    edit_id = ClientId(help_text="Of the new edit.")
    based_on = BasedOn()


class SkippedTask(serializers.Serializer):
    task_id = serializers.CharField()
    reason = serializers.CharField()


class Consequences(serializers.Serializer):
    """What would follow, by task_ids."""

    ready = serializers.ListField(child=serializers.CharField())
    blocked = serializers.ListField(child=serializers.CharField())
    skipped = SkippedTask(many=True)
    revived = serializers.ListField(child=serializers.CharField())
    critical_path_before = serializers.ListField(child=serializers.CharField())
    critical_path_after = serializers.ListField(child=serializers.CharField())
    approvals_needed = serializers.ListField(child=serializers.CharField())


class Preview(Standing):
    diff = serializers.JSONField()
    before = serializers.DictField()
    after = serializers.DictField()
    consequences = Consequences()


class ConstellationStatistics(serializers.Serializer):
    """Lengths and widths are in tasks, times in seconds."""

    version = serializers.IntegerField()
    total = serializers.IntegerField()
    by_state = serializers.DictField(child=serializers.IntegerField())
    dependencies = serializers.IntegerField()
    critical_path = serializers.ListField(child=serializers.CharField(), help_text="task_ids of the longest chain.")
    critical_path_length = serializers.IntegerField()
    slowest_path = serializers.ListField(
        child=serializers.CharField(), help_text="task_ids of the chain whose attempts have taken longest together."
    )  # fmt: skip
    slowest_path_s = serializers.FloatField()
    layers = serializers.IntegerField()
    max_width = serializers.IntegerField(help_text="Of the widest layer.")
    parallelism_ratio = serializers.FloatField(help_text="Tasks by the length of the critical path; 1.0 is a chain.")
    truncated = serializers.BooleanField(help_text="The graph is too large for its shape to be computed.")
    wall_s = serializers.FloatField(help_text="From creation to end, without the times in which it was closed.")
    work_s = serializers.FloatField(help_text="Of all attempts together.")
    waiting_s = serializers.FloatField(help_text="In which tasks were ready and did not run, together.")


class Why(serializers.Serializer):
    """Why a task is not running."""

    id = serializers.IntegerField()
    task_id = serializers.CharField()
    state = serializers.CharField()
    kind = serializers.ChoiceField(KINDS)
    text = serializers.CharField()
    fields = serializers.DictField()
