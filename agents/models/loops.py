"""How an agent works: its tool loop, the evidence of each action, its phases, and what it asks people for."""

from django.db import models

from agents.decisions import DECISIONS
from agents.machines import TOOL_LOOP
from agents.models.checks import state_check
from agents.models.sessions import Agent, Session


def list_choices(values) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


class Loop(models.Model):
    """The tool loop of one device agent (machine 4)."""

    id = models.BigIntegerField(primary_key=True)
    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, related_name="loop")
    state = models.CharField(max_length=32, default=TOOL_LOOP.initial)
    reason = models.TextField(blank=True)
    left = models.CharField(max_length=32, blank=True, help_text="The state that ResourcePaused will go back to.")
    position = models.JSONField(default=dict, help_text="Where its script stands (agents.crews.script).")
    label = models.JSONField(null=True, help_text="What a person says of it: stuck, since, reason, by, at.")
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        constraints = [state_check(TOOL_LOOP)]

    def __str__(self) -> str:
        return f"tool loop of agent {self.agent_id} {self.state}"


class Evidence(models.Model):
    """One action of a loop, or something that opens a new window on them (docs/plans.md, "Progress").

    Written when a call begins, completed when it has ended. Digests are those of `agents.progress`.
    """

    ACTIONS = ("tool", "test", "message", "poll", "observe")
    CONTROLS = ("user", "nudge", "phase", "compaction", "accept", "ruling")

    id = models.BigIntegerField(primary_key=True)
    loop = models.ForeignKey(Loop, on_delete=models.CASCADE, related_name="evidence")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the loop.")
    phase = models.PositiveIntegerField(default=0, help_text="0 where the work has no phases.")
    kind = models.CharField(max_length=16, choices=list_choices(ACTIONS + CONTROLS))
    tool = models.CharField(max_length=80, blank=True)
    target = models.TextField(blank=True)
    arguments = models.JSONField(default=dict)
    call = models.CharField(max_length=16, blank=True, help_text="Digest of the canonical arguments.")
    call_shape = models.CharField(max_length=64, blank=True, help_text="Shape of the arguments (agents.progress.shapes).")
    ordered = models.BooleanField(default=False, help_text="A retry that the plan orders by its `tries`.")
    success = models.BooleanField(null=True, help_text="None while it has not ended.")
    error = models.CharField(max_length=16, blank=True, help_text="Digest of the normalised error.")
    error_shape = models.CharField(max_length=64, blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    raw_error = models.TextField(blank=True)
    outcome = models.CharField(max_length=16, null=True, help_text="Digest of the result, or of the file after the call.")
    shape = models.CharField(max_length=64, null=True, help_text="Shape of what was answered.")
    before = models.CharField(max_length=16, null=True, help_text="Digest of the file before a change; empty: nobody looked.")
    result = models.JSONField(null=True)
    exit_code = models.IntegerField(null=True)
    verdict = models.JSONField(null=True, help_text="What the rules said of it: rule, identity, rows, sentence, action.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return f"{self.kind} {self.number} of loop {self.loop_id}"


class PhaseRecord(models.Model):
    """One phase of an agent's work (docs/plans.md, "Phases")."""

    id = models.BigIntegerField(primary_key=True)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="phases")
    number = models.IntegerField()
    total = models.IntegerField()
    description = models.TextField(blank=True)
    expected_s = models.FloatField(null=True, help_text="Expected duration in seconds.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=32, blank=True, help_text="success or completed_with_issues")
    files_changed = models.JSONField(default=list)
    tests = models.JSONField(default=list, help_text="The latest result of each test: {name, passed}.")
    blockers = models.JSONField(default=list)

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=("agent", "number"), name="phase_once")]

    def __str__(self) -> str:
        return f"phase {self.number}/{self.total} of agent {self.agent_id}"


class Approval(models.Model):
    """What an agent waits for somebody to give: leave for one exact action, an answer, a call-back. Used once.

    An agent from outside proposes an `edit` of the graph so: approving it makes the edit.
    """

    KINDS = ("task", "tool", "lost", "question", "callback", "edit", "budget", "elicitation")
    STATES = ("waiting", "approved", "rejected", "expired", "withdrawn")

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="approvals")
    agent = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE, related_name="approvals", db_index=False)
    kind = models.CharField(max_length=16, choices=list_choices(KINDS))
    subject_id = models.BigIntegerField(help_text="Row of the task, or for an edit of the constellation, it is about.")
    title = models.CharField(max_length=500)
    action = models.JSONField(default=dict, help_text="Exactly what is to be done: {tool, arguments} or {phases}.")
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the canonical action.")
    observed = models.JSONField(null=True, help_text="What was seen before it was asked.")
    options = models.JSONField(default=list, help_text="Answers to choose from; empty: any text.")
    state = models.CharField(max_length=16, default="waiting", choices=list_choices(STATES))
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=80, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    answer = models.JSONField(null=True)
    edited = models.BooleanField(default=False, help_text="The approver changed the action.")
    used_at = models.DateTimeField(null=True, help_text="When the agent acted on it.")

    class Meta:
        ordering = ("id",)
        indexes = [models.Index(fields=("state",), name="approval_state")]

    def __str__(self) -> str:
        return f"{self.kind} approval {self.pk} {self.state}"


class Policy(models.Model):
    """A rule on what tools may do, kept in the system stream. The first that fits, by `order`, counts."""

    id = models.BigIntegerField(primary_key=True)
    order = models.IntegerField(default=100)
    tool = models.CharField(max_length=80, default="*", help_text="Pattern of a tool's name, as in file names: * and ?.")
    pattern = models.TextField(blank=True, help_text="Regular expression searched in the call's target; empty: any.")
    device = models.CharField(max_length=80, default="*", help_text="Pattern of a device's name.")
    label = models.CharField(
        max_length=80, default="*", help_text="Pattern of one of the device's labels; *: any device, also without labels."
    )
    decision = models.CharField(max_length=8, choices=list_choices(DECISIONS))
    critical = models.BooleanField(default=False, help_text="With ask: the task's gate, refusal fails the task.")
    note = models.CharField(max_length=500, blank=True, help_text="Why; shown to whoever is asked or refused.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("order", "id")
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return f"{self.decision} {self.tool}"
