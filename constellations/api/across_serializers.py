"""What goes out over REST of reads over many sessions: the inbox, hits of a search, runs of one plan."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from agents.api.serializers.sessions import StandingRow
from agents.api.serializers.work import ApprovalRow


class SessionNamed(serializers.Serializer):
    id = serializers.IntegerField()
    title = serializers.CharField()


class TaskNamed(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()


class TaskCounts(serializers.Serializer):
    """Of the latest constellation."""

    total = serializers.IntegerField()
    ended = serializers.IntegerField()
    failed = serializers.IntegerField()


class HomeRow(serializers.Serializer):
    id = serializers.IntegerField()
    title = serializers.CharField()
    owner = serializers.CharField()
    standing = StandingRow()
    plan = serializers.CharField(allow_blank=True, help_text="Name of its latest constellation.")
    constellation = serializers.IntegerField(allow_null=True)
    tasks = TaskCounts()
    begun_at = serializers.DateTimeField(allow_null=True, help_text="Of its latest request.")
    ended_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    cost = serializers.FloatField()
    waits = serializers.ListField(child=serializers.CharField(), help_text="Titles of what waits for a person.")
    heartbeat_at = serializers.DateTimeField(allow_null=True, help_text="Its last sign of life.")
    stale = serializers.BooleanField(help_text="It has not ended, and has shown none for two minutes.")


@extend_schema_serializer(many=False)
class HomePage(serializers.Serializer):
    results = HomeRow(many=True)
    next = serializers.IntegerField(allow_null=True, help_text="Cursor of the next page.")
    now = serializers.DateTimeField()


class InboxEntry(serializers.Serializer):
    """One thing that waits for a person, or is worth a look."""

    key = serializers.CharField()
    kind = serializers.CharField(help_text="That of an approval, or stuck, plan, device_lost, budget_used, failed.")
    waits = serializers.BooleanField(help_text="Somebody has to do something.")
    title = serializers.CharField()
    by = serializers.CharField(allow_blank=True, help_text="Who asks: an agent's name, or an author.")
    since = serializers.DateTimeField(allow_null=True)
    session = SessionNamed(allow_null=True)
    task = TaskNamed(allow_null=True)
    agent = serializers.IntegerField(allow_null=True)
    device = serializers.CharField(allow_blank=True)
    details = serializers.DictField(help_text="By its kind.")
    approval = ApprovalRow(allow_null=True)


@extend_schema_serializer(many=False)
class InboxPage(serializers.Serializer):
    entries = InboxEntry(many=True)
    more = serializers.BooleanField(help_text="Approvals were left out: they follow once these are decided.")


class DecidedPage(serializers.Serializer):
    entries = InboxEntry(many=True, help_text="With exactly what was allowed: the approval's action, as it was used.")
    next = serializers.IntegerField(allow_null=True, help_text="`before` of the next page.")


class SearchHit(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    session = SessionNamed()
    task = serializers.IntegerField(allow_null=True)
    excerpt = serializers.CharField()
    begins = serializers.IntegerField(help_text="Of the hit in the excerpt, in characters.")
    ends = serializers.IntegerField()


class SearchGroup(serializers.Serializer):
    hits = SearchHit(many=True)
    next = serializers.IntegerField(allow_null=True, help_text="`before` of the next answer about this group.")


@extend_schema_serializer(many=False)
class SearchAnswer(serializers.Serializer):
    """Only the groups that were asked for."""

    sessions = SearchGroup(required=False)
    tasks = SearchGroup(required=False)
    results = SearchGroup(required=False)
    outputs = SearchGroup(required=False)
    agents = SearchGroup(required=False)


class LatestRun(serializers.Serializer):
    id = serializers.IntegerField()
    session = serializers.IntegerField()
    at = serializers.DateTimeField()


class PlanRow(serializers.Serializer):
    plan = serializers.CharField(help_text="Of its normal form; of one without, the constellation's id.")
    name = serializers.CharField()
    runs = serializers.IntegerField()
    states = serializers.DictField(child=serializers.IntegerField(), help_text="How many runs are in which state.")
    latest = LatestRun()


@extend_schema_serializer(many=False)
class PlanList(serializers.Serializer):
    results = PlanRow(many=True)


class RunColumn(serializers.Serializer):
    id = serializers.IntegerField()
    session = SessionNamed()
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField()
    forked_from = serializers.IntegerField(allow_null=True)
    replaces = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    duration_s = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField()


class RunCell(serializers.Serializer):
    id = serializers.IntegerField(help_text="Of the task.")
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    attempts = serializers.IntegerField()
    duration_s = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField()
    result = serializers.CharField(help_text="Digest of result and error: equal where these are.")


class TaskOfRuns(serializers.Serializer):
    task_id = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    cells = serializers.ListField(child=RunCell(allow_null=True), help_text="One for each run, in their order.")


class RunsGrid(serializers.Serializer):
    plan = serializers.CharField()
    name = serializers.CharField()
    runs = RunColumn(many=True)
    tasks = TaskOfRuns(many=True)
