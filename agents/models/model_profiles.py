"""Model profiles: which language models an installation may ask, and how."""

from django.db import models


class ModelProfile(models.Model):
    """How a language model is asked, kept in the system stream. The key is named, and never is it here."""

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=80, unique=True, help_text="What plans and fallbacks know it by; it stays.")
    provider = models.CharField(max_length=32, help_text="The protocol that is spoken.")
    model = models.CharField(max_length=200, help_text="The model's name at the provider.")
    base_url = models.CharField(max_length=500, blank=True, help_text="Where it is asked; empty: the provider's own address.")
    key = models.CharField(
        max_length=64, blank=True,
        help_text="The key's name: NAME of the variable ORRERY_KEY_NAME, or of a file in ORRERY_SECRETS_DIR.",
    )  # fmt: skip
    context_window = models.PositiveIntegerField(null=True, blank=True, help_text="Tokens of question and answer together.")
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True, help_text="Tokens of one answer, at most.")
    price_input = models.FloatField(null=True, blank=True, help_text="For a million tokens; empty: not known.")
    price_cached_input = models.FloatField(null=True, blank=True, help_text="The same for those that the provider had cached.")
    price_output = models.FloatField(null=True, blank=True, help_text="For a million tokens of answers.")
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Of the whole installation; empty: any.")
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Of questions and answers together.")
    calls_in_flight = models.PositiveIntegerField(null=True, blank=True, help_text="Calls at one time.")
    temperature = models.FloatField(null=True, blank=True, help_text="From 0 to 2; empty: the provider's own.")
    thinking = models.CharField(max_length=8, blank=True, help_text="How much it thinks first; empty: the provider's own.")
    sees = models.BooleanField(default=False, help_text="It is shown pictures: what its agents look at.")
    fallbacks = models.JSONField(default=list, blank=True, help_text="Names of profiles, asked in this order where it fails.")
    purposes = models.JSONField(default=list, blank=True, help_text="What it is asked for: creation, editing, device_agent.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
