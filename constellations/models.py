"""Constellations, their tasks and dependencies, attempts and edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models

from agents.models import Agent, Device, InboxItem, Session
from agents.models.checks import agent_state_check, state_check
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT, TASK
from constellations.plan import assigning
from constellations.plan.keys import fields
from constellations.plan.keys.kinds import Field, Shape

Agent._meta.constraints = [*Agent._meta.constraints, agent_state_check(CONSTELLATION_AGENT)]


def list_choices(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


def column_of(field: Field) -> models.Field[Any, Any]:
    """The column that holds a key of a plan."""
    said: dict[str, Any] = {"help_text": field.about}
    kind, default = field.takes, field.default
    match kind.shape:
        case Shape.ID:
            return models.CharField(max_length=kind.limit, **said)
        case Shape.LINE | Shape.PROSE:
            return models.TextField(blank=True, **said)
        case Shape.WORD:
            usual: dict[str, Any] = {"default": default} if default else {"blank": True}
            return models.CharField(max_length=kind.limit, **usual, **said)
        case Shape.CHOICE:
            return models.CharField(max_length=kind.limit, default=default, choices=list_choices(kind.choices), **said)
        case Shape.PLACE:
            return models.SmallIntegerField(default=default, choices=list(enumerate(kind.choices)), **said)
        case Shape.FLAG:
            return models.BooleanField(default=default, **said)
        case Shape.COUNT:
            return models.PositiveIntegerField(default=default, **said)
        case Shape.NUMBER:
            usual = {"null": True} if default is None else {"default": default}
            return models.FloatField(**usual, **said)
        case Shape.NAMES | Shape.TEXTS | Shape.LIST | Shape.OBJECT:
            return models.JSONField(default=type(default), **said)


Model = TypeVar("Model", bound=type[models.Model])


def with_keys(keys: Iterable[Field]) -> Callable[[Model], Model]:
    """Gives a model a column for each key that rows have."""

    def give(model: Model) -> Model:
        for field in keys:
            if field.is_stored:
                model.add_to_class(field.name, column_of(field))
        return model

    return give


class Constellation(models.Model):
    """A graph of tasks that answers one interaction (machine 6). `version` grows with every edit.

    Reopening it hands it to an interaction of its own, and to that one's constellation agent.
    """

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="constellations")
    interaction = models.ForeignKey(InboxItem, on_delete=models.CASCADE, related_name="constellations")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="constellations")
    replaces = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=32, default=CONSTELLATION.initial)
    reason = models.TextField(blank=True)
    version = models.IntegerField(default=1)
    rules = models.JSONField(default=list, help_text="Replan rules, as in the plan file.")
    fired = models.JSONField(default=dict, help_text="How often each replan rule has fired.")
    added = models.PositiveIntegerField(default=0, help_text="Tasks that edits have added, in this interaction.")
    gates = models.JSONField(
        default=list, help_text="Digests of actions whose gates edits have made, or taken away unasked: they stay gated."
    )
    model_profiles = models.JSONField(
        default=dict, help_text="Names by purpose. With `editing` a model edits it when tasks end, else its rules do."
    )
    max_concurrent = models.PositiveIntegerField(
        default=0, help_text="Attempts that may have slots at one time; 0: as many as the session's may."
    )
    assignment = models.CharField(
        max_length=16, blank=True, choices=list_choices(assigning.NAMES), help_text="How tasks get devices; empty: the setting."
    )
    forked_from = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="forks")
    forked_at = models.BigIntegerField(null=True, help_text="The seq in that one's stream at which it was forked.")
    result = models.JSONField(null=True)
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        constraints = [state_check(CONSTELLATION)]

    def __str__(self) -> str:
        return self.name or f"constellation {self.pk}"


class NormalForm(models.Model):
    """The plan that an interaction asks for, as the service that took it has read it.

    It is beside the fold: it follows from the payload, and where the seal does not fit the payload is read again.
    """

    interaction = models.OneToOneField(InboxItem, on_delete=models.CASCADE, primary_key=True, related_name="+")
    form = models.TextField(help_text="JSON (constellations.plan.condensed).")
    seal = models.CharField(max_length=64, help_text="Of the code that read the plan, of the payload and of the form.")

    def __str__(self) -> str:
        return f"normal form of request {self.pk}"


@with_keys(fields.TASK)
class Task(models.Model):
    """A node of the graph (machine 5; the seeds' TaskStar). `task_id` is unique in its constellation.

    Its columns are the keys of a task in a plan, which `fields.TASK` names, and these.
    """

    if TYPE_CHECKING:  # the keys that code reads by their names
        task_id: str
        name: str
        description: str
        tool: str
        phases: list[dict[str, Any]]
        max_attempts: int

    id = models.BigIntegerField(primary_key=True)
    constellation = models.ForeignKey(Constellation, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    chosen = models.BooleanField(default=False, help_text="A model chose what it does, so its calls are asked about.")
    accepted = models.JSONField(default=list, help_text="Loop identities with which somebody said to go on anyway.")
    state = models.CharField(max_length=32, default=TASK.initial)
    reason = models.CharField(max_length=500, blank=True)
    version = models.IntegerField(default=1, help_text="Grows with every edit of the task or of a dependency into it.")
    attempt = models.PositiveIntegerField(default=0, help_text="Number of the present or last attempt.")
    attempts_before = models.PositiveIntegerField(default=0, help_text="Attempts made before the last `retry` by a person.")
    device = models.ForeignKey(Device, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=20, blank=True, help_text="Of the last attempt's error, where that was a fault.")
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True, help_text="A failed attempt is repeated from then on.")
    condition_failed = models.BooleanField(
        default=False, help_text="Skipped because a condition could not be evaluated, its own or one further up."
    )
    untold = models.BooleanField(default=False, help_text="Its end is still to be told to the planner.")

    class Meta:
        ordering = ("id",)
        constraints = [
            state_check(TASK),
            models.UniqueConstraint(fields=("constellation", "task_id"), name="task_id_once"),
        ]

    def __str__(self) -> str:
        return self.task_id


@with_keys(field for field in fields.DEPENDENCY if field.key not in ("from", "to"))
class Dependency(models.Model):
    """An edge of the graph (the seeds' TaskStarLine). Its columns are the keys of a dependency in a plan, and these."""

    if TYPE_CHECKING:  # the keys that code reads by their names
        dependency_id: str
        type: str
        condition: str
        description: str

    id = models.BigIntegerField(primary_key=True)
    constellation = models.ForeignKey(Constellation, on_delete=models.CASCADE, related_name="dependencies", db_index=False)
    upstream = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="downstream_dependencies", db_index=False)
    downstream = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="upstream_dependencies", db_index=False)

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "dependencies"
        constraints = [
            models.UniqueConstraint(fields=("constellation", "dependency_id"), name="dependency_id_once"),
            models.UniqueConstraint(fields=("upstream", "downstream"), name="edge_once"),
            models.CheckConstraint(condition=~models.Q(upstream=models.F("downstream")), name="no_self_loop"),
        ]

    def __str__(self) -> str:
        return self.dependency_id


class Attempt(models.Model):
    """One execution of a task by a device agent. It holds a slot of its device until it waits or has an outcome."""

    OUTCOMES = ("completed", "failed", "timeout", "cancelled", "lost")

    id = models.BigIntegerField(primary_key=True)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="+", db_index=False)
    fence = models.BigIntegerField(help_text="Token of the lease under which it was started.")
    holds_slot = models.BooleanField(default=True, help_text="False while it waits, for a person or an event.")
    slot_device = models.ForeignKey(
        Device, on_delete=models.PROTECT, related_name="+", null=True, db_index=False,
        help_text="Where an app agent works that is on another device: whose slot it has or wants. Null: its own.",
    )  # fmt: skip
    ran_s = models.FloatField(default=0.0, help_text="Seconds it held a slot, up to when it last gave it back.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, db_index=True)
    outcome = models.CharField(max_length=16, blank=True, choices=list_choices(OUTCOMES))
    exit_code = models.IntegerField(null=True)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.task_id}"


class Edit(models.Model):
    """A change set that was applied: who, why, on which version, and what it did."""

    id = models.BigIntegerField(primary_key=True)
    constellation = models.ForeignKey(Constellation, on_delete=models.CASCADE, related_name="edits", db_index=False)
    edit_id = models.CharField(max_length=250, help_text="Of the author's choosing: the same id is the same edit.")
    author = models.CharField(max_length=80)
    reason = models.TextField(blank=True)
    undoes = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="undone_by", help_text="The edit that it takes back."
    )
    based_on = models.IntegerField(help_text="The version it was made on; older than the one before it: it was rebased.")
    version = models.IntegerField(help_text="The constellation's version after it.")
    operations = models.JSONField()
    before = models.JSONField()
    after = models.JSONField()
    diff = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=("constellation", "edit_id"), name="edit_once")]

    def __str__(self) -> str:
        return f"edit {self.edit_id}"

    @property
    def rebased_from(self) -> int | None:
        """The version it was made on, where others had edited since."""
        return self.based_on if self.based_on < self.version - 1 else None
