"""Sessions over REST: what they are asked, and what is shown of them, their actors, interactions and events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.pagination import LARGEST
from agents.api.serializers.costs import Cost
from agents.api.serializers.fields import ClientId, Parent, RequestBody, StrictText, WholeNumber
from agents.devices.profiles.ceilings import SESSION_SLOTS
from agents.llm.choices import NAME_LENGTH, STARTS
from agents.machines import ACTOR
from agents.models import Actor, InboxItem, Session
from agents.reads.heartbeats import STALE_S, heartbeat_of, is_stale
from agents.reads.standing import Standing

PLAN_LENGTH = 1_000_000
REQUEST_LENGTH = 20_000
REASON_LENGTH = 500
IDENTITY_LENGTH = 200
"""Characters."""
ASKED = ({"required": ["plan"]}, {"required": ["request"]})
"""What an interaction's body holds, as JSON schemas."""
NOT_ASKED = {"not": {"anyOf": [*ASKED, {"required": ["client_id"]}]}}
COMMANDS = ("pause", "resume", "cancel", "ping", "shutdown", "go_on")
CHOSEN = ("models", "start", "max_concurrent")
"""What an interaction may say beside its plan or its request."""
PAUSE_MODES = ("cooperative", "immediate")
GO_ON = ("agent", "identity")
"""What go_on says, and no other command."""


def asked_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a session's first interaction; what is chosen beside it is the session's."""
    return {key: body[key] for key in ("plan", "request") if key in body}


def interaction_payload(body: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of an interaction, with what is chosen for it alone."""
    return {**asked_in(body), **{key: body[key] for key in CHOSEN if key in body}}


NO_PLAN = {
    # Braces are doubled: these are templates.
    "invalid": "a plan is a text; put the JSON into a string",
    "blank": "a plan is a YAML or JSON text with a list of tasks, as `tasks: [{{task_id: a, command: [ls]}}]`",
}


class Models(serializers.Serializer):
    """Names of model profiles by purpose, in the place of those that the session or the installation has."""

    default_error_messages = {"invalid": "must be an object with names of model profiles by purpose"}

    creation = serializers.CharField(required=False, max_length=NAME_LENGTH)
    editing = serializers.CharField(required=False, max_length=NAME_LENGTH)
    device_agent = serializers.CharField(required=False, max_length=NAME_LENGTH)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        """As it is: the service says of each name what is wrong with it."""
        if not isinstance(data, Mapping):
            self.fail("invalid")
        return dict(data)


class Choosing(RequestBody):
    """What may be chosen about models and slots: for one interaction, or for a session and all that it is asked."""

    models = Models(required=False)
    start = serializers.ChoiceField(
        STARTS, required=False, help_text="review: what a model plans waits until somebody starts it."
    )
    max_concurrent = WholeNumber(
        required=False, min_value=0, max_value=SESSION_SLOTS,
        help_text="Attempts that may have slots at one time; 0: as many as is said elsewhere.",
    )  # fmt: skip


class Asking(Choosing):
    """What an interaction asks for: `plan` (YAML or JSON text) or `request` (words)."""

    client_id = ClientId()
    plan = StrictText(max_length=PLAN_LENGTH, required=False, trim_whitespace=False, error_messages=NO_PLAN)
    request = StrictText(max_length=REQUEST_LENGTH, required=False, trim_whitespace=False)


class SessionBody(Asking):
    """A session, and with `plan` or `request` its first interaction: both are made, or neither.

    `models`, `start` and `max_concurrent` are the session's: they hold for all that it is asked.
    """

    also = {**RequestBody.also, "oneOf": [*ASKED, NOT_ASKED]}

    title = StrictText(max_length=200, required=False, allow_blank=True, default="")
    parent = Parent()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "plan" in attrs and "request" in attrs:
            raise serializers.ValidationError("give at most one of plan and request")
        if "client_id" in attrs and not asked_in(attrs):
            raise serializers.ValidationError({"client_id": "it is an interaction's: give a plan or a request with it"})
        return attrs


class SessionChange(Choosing):
    """What of a session may be changed; what is left out stays."""

    title = StrictText(max_length=200, required=False, allow_blank=True)


class InteractionBody(Asking):
    """Exactly one of `plan` (YAML or JSON text) and `request` (words)."""

    also = {**RequestBody.also, "oneOf": [*ASKED]}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(asked_in(attrs)) != 1:
            raise serializers.ValidationError("give exactly one of plan and request")
        return attrs


class CommandBody(RequestBody):
    kind = serializers.ChoiceField(COMMANDS)
    reason = StrictText(max_length=REASON_LENGTH, required=False, allow_blank=True, default="")
    mode = serializers.ChoiceField(
        PAUSE_MODES, required=False, help_text="Of pause: whether what runs may end first (else), or is cut off."
    )
    client_id = ClientId()
    agent = WholeNumber(min_value=1, max_value=LARGEST, required=False, help_text="Of go_on: the agent that was stuck.")
    identity = StrictText(
        max_length=IDENTITY_LENGTH,
        required=False,
        trim_whitespace=False,
        help_text="Of go_on: the loop it may go on with anyway.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["kind"] == "cancel" and not attrs["reason"]:
            raise serializers.ValidationError({"reason": "a cancel needs a reason"})
        if "mode" in attrs and attrs["kind"] != "pause":
            raise serializers.ValidationError({"mode": "only a pause has a mode"})
        wrong = [name for name in GO_ON if (name in attrs) != (attrs["kind"] == "go_on")]
        if wrong:
            raise serializers.ValidationError(dict.fromkeys(wrong, "go_on, and nothing else, names an agent and an identity"))
        return attrs


class Accepted(serializers.Serializer):
    """Ids of what was accepted. Follow the stream from `seq` and you see everything that comes of it."""

    session = serializers.IntegerField()
    interaction = serializers.IntegerField()
    client_id = serializers.CharField()
    created = serializers.BooleanField(help_text="False: the same client_id had been accepted before.")
    seq = serializers.IntegerField()


class CommandAccepted(serializers.Serializer):
    session = serializers.IntegerField()
    command = serializers.IntegerField(allow_null=True)
    changed = serializers.BooleanField(help_text="False: the actor is in that state already; nothing was recorded.")
    seq = serializers.IntegerField()


class EventRow(serializers.Serializer):
    seq = serializers.IntegerField()
    type = serializers.CharField()
    v = serializers.IntegerField()
    at = serializers.DateTimeField()
    by = serializers.CharField()
    request_id = serializers.CharField()
    data = serializers.DictField()
    left_out = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="With `most_rows`: {table: rows beyond those that are told}.",
    )


class Events(serializers.Serializer):
    events = EventRow(many=True)
    next = serializers.IntegerField(help_text="`since` of the next request.")
    head = serializers.IntegerField(help_text="The stream's last seq.")


class SnapshotRow(serializers.Serializer):
    seq = serializers.IntegerField()
    rows = serializers.DictField(child=serializers.DictField(), help_text="{table: {id: row}}")


HEARTBEAT = "Its last step or command, or the last renewal of the runner that has its session."
STALE = (
    f"It has not ended, and the heartbeat is older than {STALE_S:g} s. One at rest has no runner, and becomes so without harm."
)


class ActorRow(serializers.ModelSerializer):
    """`renewed_at` of the context is of the runner that has the session now; what has ended has none."""

    heartbeat_at = serializers.SerializerMethodField(help_text=HEARTBEAT)
    stale = serializers.SerializerMethodField(help_text=STALE)

    class Meta:
        model = Actor
        fields = (
            "id", "epoch", "state", "reason", "pausing", "created_at", "entered_at", "active_at", "heartbeat_at", "stale",
        )  # fmt: skip

    def get_heartbeat_at(self, actor: Actor) -> datetime | None:
        ended = ACTOR.is_terminal(actor.state)
        return heartbeat_of(actor.active_at, None if ended else self.context.get("renewed_at"))

    def get_stale(self, actor: Actor) -> bool:
        return is_stale(actor.state, self.get_heartbeat_at(actor))


class StandingRow(serializers.Serializer):
    """How it stands for who asks: one word for what is true of it now."""

    name = serializers.CharField(
        help_text="stale, waiting, waiting_others, review, paused, running, queued, idle, or how its last request ended."
    )
    word = serializers.CharField(help_text="What people read.")
    tone = serializers.CharField(help_text="A colour of the pages.")
    waiting = serializers.IntegerField(help_text="What you may decide.")
    waiting_others = serializers.IntegerField(help_text="What waits for somebody else's decision.")
    reason = serializers.CharField(allow_blank=True)


class SessionRow(serializers.ModelSerializer):
    """`standings` of the context are by session; whoever shows one reads those of all that are shown."""

    owner = serializers.IntegerField(source="owner_id")
    owner_name = serializers.CharField(source="owner.username")
    state = serializers.CharField(source="actor_state", allow_null=True, help_text="Of its latest actor.")
    token = serializers.CharField(source="token_key", help_text="Key of the token that started it; empty: a person did.")
    parent = serializers.IntegerField(source="parent_id", allow_null=True, help_text="The session it was started from.")
    stale = serializers.SerializerMethodField(help_text=f"Its latest actor: {STALE}")
    models = serializers.DictField(
        source="model_profiles", child=serializers.CharField(), help_text="Names of model profiles by purpose."
    )

    standing = serializers.SerializerMethodField()

    class Meta:
        model = Session
        fields: tuple[str, ...] = (
            "id", "owner", "owner_name", "title", "created_at", "state", "standing", "stale", "token", "parent", "depth",
            "models", "start", "max_concurrent",
        )  # fmt: skip

    @extend_schema_field(StandingRow)
    def get_standing(self, session: Any) -> Standing:
        standing: Standing = self.context["standings"][session.pk]
        return standing

    def get_stale(self, session: Any) -> bool:
        return is_stale(session.actor_state, heartbeat_of(session.active_at, session.renewed_at))


class SessionDetail(SessionRow):
    actors = ActorRow(many=True, help_text="The latest, newest first.")
    head = serializers.IntegerField(help_text="Last seq of its stream.")
    cost = Cost(help_text="Of calls of models, with those of all that was started from it.")
    snapshot = SnapshotRow(required=False, help_text="With ?snapshot=1: its rows at one moment.")

    class Meta(SessionRow.Meta):
        fields = (*SessionRow.Meta.fields, "actors", "head", "cost", "snapshot")


class SessionMade(SessionDetail):
    interaction = serializers.IntegerField(allow_null=True, help_text="Id of the first one; null when nothing was asked.")

    class Meta(SessionDetail.Meta):
        fields = (*SessionDetail.Meta.fields, "interaction")


class InteractionRow(serializers.ModelSerializer):
    """What was asked, and what came of it; a long request or plan is cut."""

    session = serializers.IntegerField(source="session_id")
    request = serializers.CharField(allow_null=True, source="request_start", help_text="Words; null where it was no request.")
    plan = serializers.CharField(allow_null=True, source="plan_start", help_text="The plan's text; null where it was none.")
    truncated = serializers.BooleanField(help_text="The request or the plan goes on.")
    result = serializers.JSONField(allow_null=True)

    class Meta:
        model = InboxItem
        fields = (
            "id", "session", "client_id", "by", "request", "plan", "truncated", "state", "outcome", "result", "created_at",
            "started_at", "ended_at",
        )  # fmt: skip
