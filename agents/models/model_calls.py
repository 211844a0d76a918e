"""What language models were asked and what they answered: a row for each call, and the prompts, each text once."""

from django.db import models

from agents.models.sessions import Agent, InboxItem, Session

PURPOSES = ("creation", "editing", "device_agent", "summary", "judging")
"""What a call is for. The first two are the weaving modes of the constellation agent."""
OUTCOMES = ("", "answered", "rejected", "failed", "cancelled", "lost")
"""Empty while it is under way. `rejected`: the answer could not be used, and the model is asked again or given up."""


def list_choices(values) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


class ModelCall(models.Model):
    """One call of a language model, as the agent sees it: retries and fallbacks are part of it (agents.minds).

    Written when it begins, completed when it has ended. `added` and `reply` of an agent's calls, one after the other, are its
    conversation (agents.llm.conversation).
    """

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="model_calls", db_index=False)
    interaction = models.ForeignKey(InboxItem, on_delete=models.CASCADE, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="model_calls", db_index=False)
    number = models.PositiveIntegerField(help_text="1, 2, ... of its agent.")
    purpose = models.CharField(max_length=16, choices=list_choices(PURPOSES))
    editing_session = models.PositiveIntegerField(default=0, help_text="Of the constellation agent, from 1; 0: none.")
    asked_again = models.PositiveSmallIntegerField(default=0, help_text="How often the same was asked before, in vain.")
    taken = models.JSONField(default=list, help_text="Events that an editing session took: task_id, state, reason.")
    profile = models.CharField(max_length=80, help_text="The model profile that was asked, in the end.")
    model = models.CharField(max_length=200, blank=True, help_text="As the provider calls it.")
    prompt_digest = models.CharField(max_length=64, blank=True, help_text="Of the system prompt (Prompt).")
    prompt_version = models.CharField(max_length=40, blank=True, help_text="Of the templates it was rendered from.")
    added = models.JSONField(null=True, help_text="Messages that came into the conversation for this call.")
    reply = models.JSONField(null=True, help_text="The model's message.")
    observation = models.TextField(blank=True)
    thought = models.TextField(blank=True)
    status = models.CharField(max_length=32, blank=True, help_text="What the model decided about its own machine.")
    actions = models.JSONField(default=list, help_text="What it wanted done.")
    result = models.JSONField(null=True, help_text="What came of that.")
    reserved_tokens = models.PositiveIntegerField(default=0, help_text="Of question and longest answer, before it was asked.")
    input_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True, help_text="Part of the input.")
    output_tokens = models.PositiveIntegerField(null=True)
    cost = models.FloatField(null=True, help_text="By the profile's prices; null: not known.")
    first_token_s = models.FloatField(null=True)
    call_s = models.FloatField(null=True)
    planning_s = models.FloatField(null=True, help_text="From the first question of a creation or editing session.")
    tries = models.JSONField(default=list, help_text="Tries that failed before: profile, code, waited_s.")
    devices = models.JSONField(default=list, help_text="The devices as the prompt showed them.")
    version_before = models.IntegerField(null=True, help_text="Of the constellation.")
    version_after = models.IntegerField(null=True)
    outcome = models.CharField(max_length=16, blank=True, choices=list_choices(OUTCOMES))
    error = models.TextField(blank=True)
    error_kind = models.CharField(
        max_length=40, blank=True, help_text="The code of a model's fault, or of a flaw in its answer."
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=("agent", "number"), name="model_call_once")]

    def __str__(self) -> str:
        return f"{self.purpose} call {self.number} of agent {self.agent_id}"


class Prompt(models.Model):
    """A system prompt as it was sent, once for all calls that had it. Outside the fold: it follows from a template and rows."""

    digest = models.CharField(max_length=64, primary_key=True, help_text="SHA-256 of the text.")
    version = models.CharField(max_length=40)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"prompt {self.digest[:12]}"


class ModelDelta(models.Model):
    """What a model says while it says it, for live views. Outside the fold, and gone when its call has ended."""

    call_id = models.BigIntegerField(help_text="Row of the call.")
    offset = models.PositiveIntegerField(help_text="Characters of this kind that the call had said before.")
    kind = models.CharField(max_length=8, help_text="text or thinking.")
    text = models.TextField()

    class Meta:
        indexes = [models.Index(fields=("call_id",), name="model_delta_call")]

    def __str__(self) -> str:
        return f"{self.kind} of call {self.call_id} from {self.offset}"
