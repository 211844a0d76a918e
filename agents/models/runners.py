"""Who works on what right now. Outside the fold."""

from django.db import models

from agents.models.streams import Stream


class Runner(models.Model):
    """One process that drives sessions: a django-q2 job of the cluster `runners`."""

    STATES = ("LIVE", "DRAINING", "ENDED")

    host = models.CharField(max_length=200, help_text="Host name and boot id.")
    pid = models.IntegerField()
    pid_start = models.BigIntegerField(help_text="Start time of the process in clock ticks since boot.")
    state = models.CharField(max_length=16, default="LIVE", choices=[(state, state) for state in STATES])
    stop_wanted = models.BooleanField(default=False)
    files = models.CharField(max_length=400, help_text="Folder of its lock and outcome files on that host.")
    started_at = models.DateTimeField()
    renewed_at = models.DateTimeField()
    confinement = models.TextField(default="", db_default="", help_text="What its commands are behind (docs/confinement.md).")

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"runner {self.pk} {self.state}"


class Lease(models.Model):
    """Who owns a session's stream, and when somebody should next look at it."""

    stream = models.OneToOneField(Stream, primary_key=True, on_delete=models.CASCADE)
    runner = models.ForeignKey(Runner, null=True, on_delete=models.SET_NULL, related_name="leases")
    wake_at = models.DateTimeField(null=True, db_index=True)

    def __str__(self) -> str:
        return f"lease on {self.stream_id}"
