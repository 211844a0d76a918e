"""API tokens: hashed, expiring, scoped."""

from django.db import models
from knox.models import AbstractAuthToken

SCOPES = ("read", "operate", "edit", "approve", "admin")


def all_scopes() -> list[str]:
    return list(SCOPES)


class Token(AbstractAuthToken):
    """A knox token with a name, scopes and the time it was last used."""

    name = models.CharField(max_length=80, blank=True)
    scopes = models.JSONField(default=all_scopes)
    last_used = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created",)
