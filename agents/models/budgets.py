"""What language models may cost and have cost: budgets as rows of the fold, and the books outside it.

The books are outside the fold because they are written beside a call, and not by the turn that begins or ends it. They name
sessions and tasks by number only: money that was spent stays spent when these are gone.
"""

from django.db import models

SCOPES = ("installation", "user", "session", "task", "call")
"""What a budget is for. One of a user or a session is for all of them, or for the one that it names."""
PERIODS = ("total", "day")
WAYS = ("stop", "ask")
RESERVED = ("open", "settled", "unknown")
"""States of a reservation. `unknown`: what the call used was never told, so all that was reserved counts as used."""


def list_choices(values) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


class Budget(models.Model):
    """How much may be used, kept in the system stream. Of all that apply to a call, each must have room for it."""

    id = models.BigIntegerField(primary_key=True)
    scope = models.CharField(max_length=16, choices=list_choices(SCOPES), help_text="What it is for.")
    subject = models.BigIntegerField(
        null=True, blank=True, help_text="Id of the one user or session that it is for; empty: for each of them."
    )
    tokens = models.BigIntegerField(null=True, blank=True, help_text="Of questions and answers; empty: any number.")
    money = models.FloatField(null=True, blank=True, help_text="In the currency of the profiles' prices; empty: any amount.")
    per = models.CharField(max_length=8, choices=list_choices(PERIODS), default="total", help_text="A day begins at 0:00 UTC.")
    then = models.CharField(
        max_length=8,
        choices=list_choices(WAYS),
        default="stop",
        help_text="When it is used up: stop, or ask a person for more.",
    )
    owned = models.BooleanField(default=False, help_text="Set for a session by its owner.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"budget of {self.scope}" + (f" {self.subject}" if self.subject is not None else "")


class Reservation(models.Model):
    """What one try of a call may use at most, from before its request leaves until it is known what it used."""

    id = models.BigIntegerField(primary_key=True)
    call = models.BigIntegerField(help_text="Id of the model call.")
    profile = models.CharField(max_length=80)
    session = models.BigIntegerField()
    task = models.BigIntegerField(default=0, help_text="0: none.")
    owner = models.BigIntegerField(default=0, help_text="Of the session.")
    runner = models.BigIntegerField(null=True, help_text="In whose process the call is; null: in none of a runner's.")
    tokens = models.BigIntegerField(help_text="Reserved, and once it is settled, used.")
    micros = models.BigIntegerField(null=True, help_text="The same in millionths of the currency; null: prices are not known.")
    state = models.CharField(max_length=8, choices=list_choices(RESERVED))
    at = models.DateTimeField()
    until = models.DateTimeField(help_text="It is unknown after this: no call takes so long.")

    class Meta:
        ordering = ("-at",)
        indexes = [
            models.Index(fields=("profile", "at"), name="reserved_of_profile"),
            models.Index(fields=("profile", "until"), condition=models.Q(state="open"), name="reserved_and_open"),
            models.Index(fields=("at",), name="reserved_at"),
        ]

    def __str__(self) -> str:
        return f"{self.tokens} tokens of {self.profile}, {self.state}"


def _count(text: str) -> models.BigIntegerField:
    return models.BigIntegerField(default=0, db_default=0, help_text=text)


class Spending(models.Model):
    """What was used in one place: by the installation, a user, a session with all that was started from it, a task."""

    scope = models.CharField(max_length=16, choices=list_choices(SCOPES))
    key = models.BigIntegerField(help_text="Id of the user, session or task; 0: the installation.")
    period = models.CharField(max_length=10, blank=True, help_text="A day as 2026-11-22; empty: ever.")
    calls = _count("Tries that were settled.")
    input_tokens = _count("Of questions.")
    cached_tokens = _count("Part of the input.")
    output_tokens = _count("Of answers.")
    micros = _count("Millionths of the currency.")
    unpriced_tokens = _count("Of profiles whose prices are not known; part of the tokens, and of no money.")
    open_calls = _count("Tries under way.")
    open_tokens = _count("Reserved by these.")
    open_micros = _count("The same in money.")
    unknown_calls = _count("Tries of which nobody told what they used.")
    unknown_tokens = _count("What these had reserved.")
    unknown_micros = _count("The same in money.")
    raised_tokens = _count("By which people have raised every budget of this place.")
    raised_micros = _count("The same in money.")
    warned_tokens = _count("The largest budget of which 80% were used, and a warning was given.")
    warned_micros = _count("The same in money.")

    class Meta:
        ordering = ("-id",)
        constraints = [models.UniqueConstraint(fields=("scope", "key", "period"), name="spending_once")]

    def __str__(self) -> str:
        return f"{self.scope} {self.key or ''} {self.period}".strip()
