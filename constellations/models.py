"""Constellations, their tasks and dependencies, attempts and edits."""

from django.db import models

from agents.models import Agent, Device, InboxItem, Session
from agents.models.checks import agent_state_check, state_check
from constellations.machines import CONSTELLATION, CONSTELLATION_AGENT, TASK

PRIORITIES = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
DEPENDENCY_TYPES = ("UNCONDITIONAL", "COMPLETION_ONLY", "SUCCESS_ONLY", "CONDITIONAL")
ON_LOST = ("retry", "fail", "ask")

Agent._meta.constraints = [*Agent._meta.constraints, agent_state_check(CONSTELLATION_AGENT)]


def choices(values) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


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


class Task(models.Model):
    """A node of the graph (machine 5; the seeds' TaskStar). `task_id` is unique in its constellation."""

    id = models.BigIntegerField(primary_key=True)
    constellation = models.ForeignKey(Constellation, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    task_id = models.CharField(max_length=120)
    name = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    tips = models.JSONField(default=list)
    wanted_device = models.CharField(max_length=80, blank=True, help_text="Named by the plan; empty: by capability.")
    device_type = models.CharField(max_length=80, blank=True)
    capabilities = models.JSONField(default=list)
    not_device = models.JSONField(default=list, help_text="Names of devices that it must not run on.")
    tool = models.CharField(max_length=80, default="command")
    arguments = models.JSONField(default=dict, help_text="Arguments of the tool; `argv` of a command.")
    priority = models.SmallIntegerField(default=1, choices=list(enumerate(PRIORITIES)))
    timeout = models.FloatField(null=True, help_text="Seconds a single attempt may run.")
    deadline = models.FloatField(null=True, help_text="Seconds from the constellation's start, waiting included.")
    max_attempts = models.PositiveIntegerField(default=1)
    backoff = models.FloatField(default=1.0, help_text="Seconds before the second attempt; doubles with each.")
    confirm = models.BooleanField(default=False)
    phases = models.JSONField(default=list, help_text="Of a task in steps: [{description, expected_duration, steps}].")
    policies = models.JSONField(default=list, help_text="Policies of its own; they can only be stricter than the others.")
    progress = models.JSONField(default=dict, help_text="Settings of its stuck detection that differ.")
    accepted = models.JSONField(default=list, help_text="Loop identities with which somebody said to go on anyway.")
    on_lost = models.CharField(max_length=8, default="retry", choices=choices(ON_LOST))
    replaces = models.CharField(max_length=120, blank=True, help_text="task_id of the task that it stands in for.")
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


class Dependency(models.Model):
    """An edge of the graph (the seeds' TaskStarLine)."""

    id = models.BigIntegerField(primary_key=True)
    constellation = models.ForeignKey(Constellation, on_delete=models.CASCADE, related_name="dependencies", db_index=False)
    dependency_id = models.CharField(max_length=250)
    upstream = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="downstream_dependencies", db_index=False)
    downstream = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="upstream_dependencies", db_index=False)
    type = models.CharField(max_length=20, default="SUCCESS_ONLY", choices=choices(DEPENDENCY_TYPES))
    condition = models.TextField(blank=True)
    description = models.TextField(blank=True)

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
    ran_s = models.FloatField(default=0.0, help_text="Seconds it held a slot, up to when it last gave it back.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, blank=True, choices=choices(OUTCOMES))
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
