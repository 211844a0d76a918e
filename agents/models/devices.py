"""Devices, the queues in front of them and what their commands print."""

from django.db import models

from agents.models.sessions import Session


class Device(models.Model):
    """Where tasks run. Its id is its stream's. `used` and `queued` count slots and sessions; they are outside the fold."""

    STATES = ("ONLINE", "DRAINING", "OFFLINE")

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=16, default="local")
    platform = models.CharField(max_length=32, default="shell")
    type = models.CharField(max_length=80, blank=True, help_text="Device type a task may ask for, e.g. gpu.")
    capabilities = models.JSONField(default=list)
    labels = models.JSONField(default=list, help_text="What policies know it by; given by who may make devices.")
    recipes = models.JSONField(default=dict, help_text="Named commands with parameters.")
    limits = models.JSONField(default=dict, help_text="seconds, memory_mb, output_mb, processes of one command.")
    unasked = models.JSONField(default=dict, help_text="Calls that a model may choose here without asking, or may not.")
    max_concurrent = models.PositiveIntegerField(default=4)
    state = models.CharField(max_length=16, default="ONLINE", choices=[(state, state) for state in STATES])
    created_at = models.DateTimeField()
    used = models.PositiveIntegerField(default=0, db_default=0, help_text="Slots taken or granted.")
    queued = models.PositiveIntegerField(default=0, db_default=0, help_text="Sessions in the queue.")

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=models.Q(used__lte=models.F("max_concurrent")), name="slots_within_limit")
        ]

    def __str__(self) -> str:
        return self.name


class SlotRequest(models.Model):
    """A session's place in the queue of a full device. A freed slot is granted to the first, then handed over."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="queue")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    priority = models.SmallIntegerField(default=1, help_text="Of the session's first waiting task.")
    wanted = models.PositiveIntegerField(default=1)
    held = models.PositiveIntegerField(default=0, help_text="Slots the session has there: fair share ranks by it.")
    granted = models.PositiveIntegerField(default=0, help_text="Slots handed to it and not yet taken up; counted in `used`.")
    since = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=("device", "session"), name="one_request_a_session")]

    def __str__(self) -> str:
        return f"session {self.session_id} waits for {self.wanted} on device {self.device_id}"


class Output(models.Model):
    """A piece of what an attempt printed; outside the fold, bounded by the device's `output_mb`."""

    attempt_id = models.BigIntegerField(db_index=True)
    offset = models.BigIntegerField(help_text="In characters from the attempt's first.")
    text = models.TextField()

    class Meta:
        ordering = ("attempt_id", "offset")

    def __str__(self) -> str:
        return f"attempt {self.attempt_id} at {self.offset}"
