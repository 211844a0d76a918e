"""What goes in and out over REST. Bodies are strict: an unknown key is an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from agents.api.pagination import LARGEST
from agents.machines import ACTOR
from agents.models import Actor, InboxItem, Session, Transition
from agents.reads.authors import names_of
from agents.reads.heartbeats import STALE_S, heartbeat_of, is_stale

PLAN_LENGTH = 1_000_000
REQUEST_LENGTH = 20_000
REASON_LENGTH = 500
IDENTITY_LENGTH = 200
"""Characters."""
ASKED = ({"required": ["plan"]}, {"required": ["request"]})
"""What an interaction's body holds, as JSON schemas."""
NOT_ASKED = {"not": {"anyOf": [*ASKED, {"required": ["client_id"]}]}}
COMMANDS = ("pause", "resume", "cancel", "ping", "shutdown", "go_on")
PAUSE_MODES = ("cooperative", "immediate")
GO_ON = ("agent", "identity")
"""What go_on says, and no other command."""


class RequestBody(serializers.Serializer):
    """A request's body; refuses keys it does not know, and turns no number into text.

    `also` is what its JSON schema says beside its fields.
    """

    also: Mapping[str, Any] = {"additionalProperties": False}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields)
            raise serializers.ValidationError({str(key): f"unknown key; known are {known}" for key in unknown})
        if isinstance(data, Mapping) and (no_text := [name for name in data if self._is_no_text(name, data[name])]):
            raise serializers.ValidationError(dict.fromkeys(no_text, "must be a text"))
        return super().to_internal_value(data)

    def _is_no_text(self, name: str, value: Any) -> bool:
        """Whether a field of text would take a value that is none, as the number 0 for "0". `StrictText` looks itself."""
        known = self.fields[name]
        return (
            isinstance(known, serializers.CharField) and not isinstance(known, StrictText) and not isinstance(value, str | None)
        )


class StrictText(serializers.CharField):
    """Text and nothing that is turned into text; at least one character, unless it may be blank."""

    default_error_messages = {"invalid": "must be a text"}

    def __init__(self, *, allow_blank: bool = False, **kwargs: Any):
        super().__init__(allow_blank=allow_blank, min_length=None if allow_blank else 1, **kwargs)
        # Who parsed the body has refused half characters already; this looks at each character of a plan again.
        given: Any = self  # the framework's stubs know no type of `validators`
        given.validators = [one for one in given.validators if not isinstance(one, ProhibitSurrogateCharactersValidator)]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction; `true` and "4" are none."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class ClientId(serializers.RegexField):
    """An id of the client's choosing: the same id again is the same request."""

    default_error_messages = {"invalid": "up to 64 letters, digits and . _ : - make one"}

    def __init__(self, **kwargs: Any):
        super().__init__(r"^[A-Za-z0-9._:-]+\Z", max_length=64, required=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Parent(WholeNumber):
    """The session that a new one is started from."""

    def __init__(self) -> None:
        text = "A session that this token started: the new one is its child, and is cancelled with it. Only of a token."
        super().__init__(min_value=1, max_value=LARGEST, required=False, help_text=text)


class AuthorName(serializers.CharField):
    """Who the author of a row is, as people call them: one look for all rows of an answer (agents.reads.authors)."""

    def __init__(self, source: str):
        super().__init__(source=source, read_only=True, help_text="As people call them; the same where there is no name.")

    def to_representation(self, author: str) -> str:
        known = self.context.setdefault("author_names", {})
        if author and author not in known:
            rows = self.root.instance if isinstance(self.root.instance, list) else []
            known.update(names_of([author, *(getattr(row, self.source) for row in rows)]))
        return known.get(author, author)


def interaction_payload(body: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of an interaction, from a body that may hold one."""
    return {key: body[key] for key in ("plan", "request") if key in body}


NO_PLAN = {
    # Braces are doubled: these are templates.
    "invalid": "a plan is a text; put the JSON into a string",
    "blank": "a plan is a YAML or JSON text with a list of tasks, as `tasks: [{{task_id: a, command: [ls]}}]`",
}


class Asking(RequestBody):
    """What an interaction asks for: `plan` (YAML or JSON text) or `request` (words)."""

    client_id = ClientId()
    plan = StrictText(max_length=PLAN_LENGTH, required=False, trim_whitespace=False, error_messages=NO_PLAN)
    request = StrictText(max_length=REQUEST_LENGTH, required=False, trim_whitespace=False)


class SessionBody(Asking):
    """A session, and with `plan` or `request` its first interaction: both are made, or neither."""

    also = {**RequestBody.also, "oneOf": [*ASKED, NOT_ASKED]}

    title = StrictText(max_length=200, required=False, allow_blank=True, default="")
    parent = Parent()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "plan" in attrs and "request" in attrs:
            raise serializers.ValidationError("give at most one of plan and request")
        if "client_id" in attrs and not interaction_payload(attrs):
            raise serializers.ValidationError({"client_id": "it is an interaction's: give a plan or a request with it"})
        return attrs


class InteractionBody(Asking):
    """Exactly one of `plan` (YAML or JSON text) and `request` (words)."""

    also = {**RequestBody.also, "oneOf": [*ASKED]}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(interaction_payload(attrs)) != 1:
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


class EventRow(serializers.Serializer):
    seq = serializers.IntegerField()
    type = serializers.CharField()
    v = serializers.IntegerField()
    at = serializers.DateTimeField()
    by = serializers.CharField()
    request_id = serializers.CharField()
    data = serializers.DictField()


class Events(serializers.Serializer):
    events = EventRow(many=True)
    next = serializers.IntegerField(help_text="`since` of the next request.")
    head = serializers.IntegerField(help_text="The stream's last seq.")


class SnapshotRow(serializers.Serializer):
    seq = serializers.IntegerField()
    rows = serializers.DictField(child=serializers.DictField(), help_text="{table: {id: row}}")


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


class SessionRow(serializers.ModelSerializer):
    owner = serializers.IntegerField(source="owner_id")
    owner_name = serializers.CharField(source="owner.username")
    state = serializers.CharField(source="actor_state", allow_null=True, help_text="Of its latest actor.")
    token = serializers.CharField(source="token_key", help_text="Key of the token that started it; empty: a person did.")
    parent = serializers.IntegerField(source="parent_id", allow_null=True, help_text="The session it was started from.")
    stale = serializers.SerializerMethodField(help_text=f"Its latest actor: {STALE}")

    class Meta:
        model = Session
        fields: tuple[str, ...] = (
            "id", "owner", "owner_name", "title", "created_at", "state", "stale", "token", "parent", "depth",
        )  # fmt: skip

    def get_stale(self, session: Any) -> bool:
        return is_stale(session.actor_state, heartbeat_of(session.active_at, session.renewed_at))


class SessionDetail(SessionRow):
    actors = ActorRow(many=True, help_text="The latest, newest first.")
    head = serializers.IntegerField(help_text="Last seq of its stream.")
    snapshot = SnapshotRow(required=False, help_text="With ?snapshot=1: its rows at one moment.")

    class Meta(SessionRow.Meta):
        fields = (*SessionRow.Meta.fields, "actors", "head", "snapshot")


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
