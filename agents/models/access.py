"""API tokens: hashed, expiring, scoped."""

from django.db import models
from knox.models import AbstractAuthToken

from agents.models.sessions import Session

SCOPES = ("read", "operate", "edit", "approve", "devices", "admin")


def all_scopes() -> list[str]:
    return list(SCOPES)


class Token(AbstractAuthToken):
    """A knox token with a name, scopes, the time it was last used, and perhaps the token it was made with
    (agents.access.lineage) and the session inside which it is used.
    """

    name = models.CharField(max_length=80, blank=True)
    scopes = models.JSONField(default=all_scopes)
    last_used = models.DateTimeField(null=True)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="children",
        help_text="The token it was made with: it ends with that one, and may never do more.",
    )  # fmt: skip
    session = models.ForeignKey(
        Session, null=True, on_delete=models.CASCADE, related_name="+",
        help_text="What it starts is a child of this one, and it is good for as long as somebody is at work there.",
    )  # fmt: skip

    class Meta:
        ordering = ("-created",)
