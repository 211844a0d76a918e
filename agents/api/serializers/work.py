"""What goes in and out over REST of agents at work: their loops, evidence and approvals, and the policies they work under."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from agents.api.serializers.costs import Cost
from agents.api.serializers.fields import AuthorName, RequestBody, StrictText, Truth, WholeNumber
from agents.api.serializers.machines import TransitionRow
from agents.decisions import DECISIONS
from agents.ids import CAPACITY
from agents.models import Agent, Approval, Evidence, Loop, PhaseRecord, Policy
from agents.patterns import LENGTH as PATTERN_LENGTH
from agents.reads.verdicts import describe_verdict
from agents.services.approvals import ANSWER_LENGTH, REASON_LENGTH, STATES
from agents.services.labels import REASON_LENGTH as LABEL_REASON_LENGTH
from agents.services.policies import NAME_LENGTH, NOTE_LENGTH, ORDER_LIMIT

DIGEST_LENGTH = 64
"""Hexadecimal digits."""


class AgentRow(serializers.ModelSerializer):
    session = serializers.IntegerField(source="session_id")
    interaction = serializers.IntegerField(source="interaction_id")
    parent = serializers.IntegerField(source="parent_id", allow_null=True)
    device = serializers.CharField(source="device.name", allow_null=True, default=None)

    class Meta:
        model = Agent
        fields: tuple[str, ...] = (
            "id", "session", "interaction", "parent", "machine", "name", "platform", "device", "state", "reason",
            "created_at", "entered_at",
        )  # fmt: skip


class LoopRow(serializers.ModelSerializer):
    position = serializers.JSONField(help_text="Where its script stands.")
    label = serializers.JSONField(allow_null=True, help_text="What a person says of it: stuck, since, reason, by, at.")

    class Meta:
        model = Loop
        fields: tuple[str, ...] = ("id", "state", "reason", "left", "position", "label", "created_at", "entered_at")


class LoopDetail(LoopRow):
    time_per_state = serializers.DictField(child=serializers.FloatField(), help_text="Seconds, the present state included.")
    choices = serializers.ListField(child=serializers.CharField(), help_text="Events its state takes.")

    class Meta(LoopRow.Meta):
        fields = (*LoopRow.Meta.fields, "time_per_state", "choices")


class PhaseRow(serializers.ModelSerializer):
    files_changed = serializers.ListField(child=serializers.CharField())
    tests = serializers.ListField(child=serializers.DictField(), help_text="{name, passed}, the latest of each.")
    blockers = serializers.JSONField()

    class Meta:
        model = PhaseRecord
        fields = (
            "id", "number", "total", "description", "expected_s", "started_at", "ended_at", "outcome", "files_changed",
            "tests", "blockers",
        )  # fmt: skip


class LabelBody(RequestBody):
    stuck = Truth(help_text="Whether the agent was stuck.")
    since = WholeNumber(min_value=1, max_value=CAPACITY, required=False, help_text="Of one that was: a row of its evidence.")
    reason = StrictText(max_length=LABEL_REASON_LENGTH, required=False, allow_blank=True, default="")


class EvidenceRow(serializers.ModelSerializer):
    """One action; long texts are cut (agents.reads.agents)."""

    target = serializers.CharField(source="target_start")
    raw_error = serializers.CharField(source="error_start")
    success = serializers.BooleanField(allow_null=True, help_text="Null while it has not ended.")
    verdict = serializers.SerializerMethodField(
        help_text="What the rules said of it, also in words (about, followed), and where it began (since: {row, at})."
    )

    class Meta:
        model = Evidence
        fields = (
            "id", "number", "phase", "kind", "tool", "target", "ordered", "success", "error_kind", "raw_error", "verdict",
            "started_at", "ended_at",
        )  # fmt: skip

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_verdict(self, row: Evidence) -> dict[str, Any] | None:
        return describe_verdict(row)


class PlanEntry(serializers.Serializer):
    content = serializers.CharField()
    status = serializers.ChoiceField(Agent.PLAN_STATUSES)


class AgentProgress(serializers.Serializer):
    files_modified = serializers.IntegerField()
    recent_successes = serializers.IntegerField(help_text="Of its last actions.")
    recent_failures = serializers.IntegerField()
    consecutive_errors = serializers.IntegerField(help_text="Since its last success.")


class ApprovalRow(serializers.ModelSerializer):
    session = serializers.IntegerField(source="session_id")
    agent = serializers.IntegerField(source="agent_id", allow_null=True)
    action = serializers.DictField(help_text="Exactly what is to be done: {tool, arguments} or {phases}.")
    observed = serializers.JSONField(allow_null=True)
    options = serializers.ListField(child=serializers.CharField())
    answer = serializers.JSONField(allow_null=True)
    decided_by_name = AuthorName(source="decided_by")

    class Meta:
        model = Approval
        fields: tuple[str, ...] = (
            "id", "session", "agent", "kind", "subject_id", "title", "action", "digest", "observed", "options", "state",
            "asked_at", "expires_at", "decided_at", "decided_by", "decided_by_name", "reason", "answer", "edited", "used_at",
        )  # fmt: skip


class ApprovalDecision(ApprovalRow):
    changed = serializers.BooleanField(help_text="False: the same author had decided so before; nothing was recorded.")

    class Meta(ApprovalRow.Meta):
        fields = (*ApprovalRow.Meta.fields, "changed")


@extend_schema_field({"oneOf": [{"type": "string", "minLength": 1, "maxLength": ANSWER_LENGTH}, {"type": "object"}]})
class Answer(serializers.Field):
    """Text, or an object."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            return data
        return StrictText(max_length=ANSWER_LENGTH, trim_whitespace=False).run_validation(data)

    def to_representation(self, value: Any) -> Any:
        return value


class DecisionBody(RequestBody):
    """A person's word. `digest` is that of the action as it was seen."""

    decision = serializers.ChoiceField(tuple(STATES))
    digest = StrictText(max_length=DIGEST_LENGTH, required=False, help_text="With it, nothing but what was seen is approved.")
    arguments = serializers.DictField(required=False, help_text="To be used in the place of the call's own.")
    answer = Answer(required=False, help_text="To a question, text; to one of a tool server, the object that it asks for.")
    reason = StrictText(max_length=REASON_LENGTH, required=False, allow_blank=True)


class CallbackBody(RequestBody):
    """What came from outside: exactly one of `data` (any JSON) and `error` (words)."""

    also = {**RequestBody.also, "oneOf": [{"required": ["data"]}, {"required": ["error"]}]}

    data = serializers.JSONField(required=False, allow_null=True)
    error = StrictText(max_length=REASON_LENGTH, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError("give exactly one of data and error")
        return attrs


class PolicyRow(serializers.ModelSerializer):
    class Meta:
        model = Policy
        fields = ("id", "order", "tool", "pattern", "device", "label", "decision", "critical", "note", "created_at")


@extend_schema_serializer(many=False)
class PolicyList(serializers.Serializer):
    results = PolicyRow(many=True)
    next = serializers.IntegerField(allow_null=True)


class PolicyChange(RequestBody):
    """What a policy is to say; what is not given stays."""

    order = WholeNumber(min_value=-ORDER_LIMIT, max_value=ORDER_LIMIT, required=False, help_text="The lowest that fits counts.")
    tool = StrictText(max_length=NAME_LENGTH, required=False, help_text="Pattern of a tool's name, as in file names: * and ?.")
    pattern = StrictText(
        max_length=PATTERN_LENGTH, required=False, allow_blank=True, trim_whitespace=False,
        help_text="Regular expression searched in the call's target; empty: any.",
    )  # fmt: skip
    device = StrictText(max_length=NAME_LENGTH, required=False, help_text="Pattern of a device's name.")
    label = StrictText(
        max_length=NAME_LENGTH, required=False,
        help_text="Pattern of one of the labels that its owner gave the device; *: any device, also without labels.",
    )  # fmt: skip
    decision = serializers.ChoiceField(DECISIONS, required=False)
    critical = Truth(required=False, help_text="With ask: the task's gate, refusal fails the task.")
    note = StrictText(max_length=NOTE_LENGTH, required=False, allow_blank=True, help_text="Why.")


class PolicyBody(PolicyChange):
    """A new policy; what is not given is as if for any call."""

    decision = serializers.ChoiceField(DECISIONS)


class AgentDetail(AgentRow):
    transitions = TransitionRow(many=True, help_text="The latest, oldest first.")
    time_per_state = serializers.DictField(child=serializers.FloatField(), help_text="Seconds, the present state included.")
    choices = serializers.ListField(child=serializers.CharField(), help_text="Events its state takes.")
    loop = LoopDetail(allow_null=True)
    phases = PhaseRow(many=True)
    evidence = EvidenceRow(many=True, help_text="The latest, oldest first.")
    approvals = ApprovalRow(many=True, help_text="The latest, oldest first.")
    children = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the agents it delegated to.")
    blackboard = serializers.DictField()
    app = serializers.DictField(help_text="What it is held to: name, visual, process, tools, prompts; empty: nothing.")
    plan = PlanEntry(many=True, help_text="What it means to do, as it said last: a coding agent's own plan.")
    progress = AgentProgress()
    cost = Cost(help_text="Of its own calls of models.")
    stuck = serializers.DictField(
        allow_null=True, help_text="The last verdict, as in evidence, its `row`, and the `ways` on: {way, text}."
    )

    class Meta(AgentRow.Meta):
        fields = (
            *AgentRow.Meta.fields, "transitions", "time_per_state", "choices", "loop", "phases", "evidence", "approvals",
            "children", "blackboard", "app", "plan", "progress", "cost", "stuck",
        )  # fmt: skip
