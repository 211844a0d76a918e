"""Sessions, their actors and agents, and what they are asked."""

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Left, Length
from django.db.models.lookups import GreaterThan

from agents.machines import ACTOR, DEVICE_AGENT
from agents.models.checks import agent_state_check, state_check
from agents.models.runners import Lease

REQUEST_SHOWN = 2_000
"""Characters of a request or a plan that a list shows."""


class SessionQuerySet(models.QuerySet["Session"]):
    def visible_to(self, user) -> "SessionQuerySet":
        """What REST, websocket, dashboard and admin show `user`: own sessions; all of them to admins."""
        if not user.is_authenticated:
            return self.none()
        if user.is_superuser or user.groups.filter(name="admin").exists():
            return self
        return self.filter(owner=user)

    def with_latest_actor(self) -> "SessionQuerySet":
        """Each with state and last step of its latest actor, and the last renewal of the runner that has its lease."""
        actor = Actor.objects.filter(session=OuterRef("pk")).order_by("-epoch")
        lease = Lease.objects.filter(stream=OuterRef("pk"))
        return self.annotate(
            actor_state=models.Subquery(actor.values("state")[:1]),
            active_at=models.Subquery(actor.values("active_at")[:1]),
            renewed_at=models.Subquery(lease.values("runner__renewed_at")[:1]),
        )


class Session(models.Model):
    """One long-lived chat, owned by a user. Its id is its stream's."""

    id = models.BigIntegerField(primary_key=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agent_sessions")
    title = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    token_key = models.CharField(
        max_length=25, blank=True, db_index=True, help_text="Key of the token that started it, also when that is revoked."
    )
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="children", help_text="The session it was started from."
    )
    depth = models.SmallIntegerField(default=0, help_text="Sessions above it.")
    model_profiles = models.JSONField(default=dict, help_text="Names by purpose, in the place of the installation's.")
    start = models.CharField(max_length=8, blank=True, help_text="review: what a model plans waits for a person to start it.")

    max_concurrent = models.PositiveIntegerField(
        default=0, help_text="Attempts that may have slots at one time; 0: as many as the installation says."
    )

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.title or f"session {self.pk}"


class Actor(models.Model):
    """One incarnation of a session (machine 1). At most one of a session's actors is not terminal."""

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="actors")
    epoch = models.IntegerField(help_text="1, 2, ... within the session")
    state = models.CharField(max_length=32, default=ACTOR.initial)
    reason = models.TextField(blank=True)
    pausing = models.BooleanField(default=False, help_text="A cooperative pause waits for the tool call in flight.")
    held_from = models.BigIntegerField(
        default=0, help_text="Request of the pause that holds it: only an interaction that was sent after it resumes."
    )
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField(help_text="When the present state was entered.")
    active_at = models.DateTimeField(help_text="Last command or step: what inactivity is counted from.")

    class Meta:
        constraints = [
            state_check(ACTOR),
            models.UniqueConstraint(fields=("session", "epoch"), name="actor_epoch_once"),
            models.UniqueConstraint(
                fields=("session",), condition=~models.Q(state__in=sorted(ACTOR.terminal)), name="one_live_actor"
            ),
        ]

    def __str__(self) -> str:
        return f"actor {self.session_id}/{self.epoch} {self.state}"


class InboxQuerySet(models.QuerySet["InboxItem"]):
    def asked_in(self, session: int) -> "InboxQuerySet":
        """Its interactions as a list shows them: of the request, or the plan, the first REQUEST_SHOWN characters."""
        rows = self.filter(session=session, kind="interaction").defer("payload")
        starts = {f"{key}_start": Left(KeyTextTransform(key, "payload"), REQUEST_SHOWN) for key in ("request", "plan")}
        length = Length(Coalesce(KeyTextTransform("request", "payload"), KeyTextTransform("plan", "payload"), Value("")))
        return rows.annotate(**starts, truncated=GreaterThan(length, REQUEST_SHOWN))


class InboxItem(models.Model):
    """What a session was asked: an interaction or a command to its actor, once per id of the client's choosing."""

    KINDS = (
        "interaction",
        "pause",
        "resume",
        "cancel",
        "ping",
        "shutdown",
        "go_on",
        "ruling",
        "stop",
        "restart",
        "retry",
        "cancel_task",
    )
    STATES = ("queued", "running", "done", "refused")

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="inbox")
    client_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in KINDS])
    payload = models.JSONField(default=dict)
    by = models.CharField(max_length=80)
    state = models.CharField(max_length=16, default="queued", choices=[(state, state) for state in STATES])
    outcome = models.CharField(max_length=32, blank=True, help_text="completed, partially_failed, failed, cancelled")
    result = models.JSONField(null=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = InboxQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=("session", "client_id"), name="inbox_item_once")]
        indexes = [models.Index(fields=("state",), name="inbox_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.client_id} {self.state}"


class Agent(models.Model):
    """One machine that works: the constellation agent of an interaction, or a device agent on one attempt."""

    PLAN_STATUSES = ("pending", "in_progress", "completed")

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="agents", db_index=False)
    interaction = models.ForeignKey(InboxItem, on_delete=models.CASCADE, related_name="+", db_index=False)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    machine = models.CharField(max_length=32)
    name = models.CharField(max_length=200)
    platform = models.CharField(max_length=32, blank=True)
    device = models.ForeignKey("agents.Device", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=32)
    reason = models.TextField(blank=True)
    blackboard = models.JSONField(default=dict, help_text="What a host and its app agents share; kept by the host.")
    plan = models.JSONField(default=list, help_text="What it means to do, as it said last: {content, status} of each entry.")
    app = models.JSONField(default=dict, help_text="The app it is held to: name, visual, process, tools, prompts; empty: none.")
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        constraints = [agent_state_check(DEVICE_AGENT)]  # and those of apps with agents of their own: models.checks

    def __str__(self) -> str:
        return f"{self.name} {self.state}"
