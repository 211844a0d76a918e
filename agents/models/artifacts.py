"""What attempts leave behind as files: the rows that tell of them, and the contents that the store holds for these rows."""

from django.db import models

from agents.models.sessions import Session


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def visible_to(self, user) -> "ArtifactQuerySet":
        """Those of the sessions that `user` sees."""
        return self.filter(session__in=Session.objects.visible_to(user))


class Artifact(models.Model):
    """A content of the store under the name that an attempt of a session, or somebody's upload, gave it.

    `attempt_id` is None of an upload. `call_id` is the call that it came from. Its content is in the store until `removed_at`.
    """

    KINDS = ("file", "picture", "output", "result", "upload")
    NAME_LENGTH = 500

    id = models.BigIntegerField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="artifacts")
    attempt_id = models.BigIntegerField(null=True, db_index=True)
    call_id = models.BigIntegerField(null=True)
    name = models.CharField(max_length=NAME_LENGTH, help_text="Relative, as a path in a workspace.")
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in KINDS])
    media_type = models.CharField(max_length=80, help_text="By what its first bytes are, whatever its name says.")
    size = models.BigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64, db_index=True, help_text="Of its content, and where the store has it.")
    is_kept = models.BooleanField(default=False, help_text="It is not removed for its age, nor to make room.")
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, help_text="Its content is not there any more.")

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        indexes = [models.Index(fields=("created_at",), name="artifact_age")]

    def __str__(self) -> str:
        return self.name


class StoredContent(models.Model):
    """A content of the store, whoever refers to it. Outside the fold.

    Who adds or removes a content locks its row meanwhile. `claimed_at` is when somebody last wanted it to be there: what nobody
    refers to is removed a good while after.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    claimed_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.sha256
