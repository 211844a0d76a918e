"""Streams, their events and the history of transitions (docs/engine.md, "From decision to row")."""

from django.db import models

from agents import ids


class Stream(models.Model):
    """An ordered log: one per session, one per device, one `system`.

    `head` is the last seq given out, `rows` the last row number, `token` the fence of the lease on it.
    """

    KINDS = ("session", "device", "system")

    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in KINDS])
    head = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=1, help_text="Last row number given out; 1 is the stream's own row.")
    token = models.BigIntegerField(default=0, help_text="Fencing token: grows with every lease.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=("kind",), condition=models.Q(kind="system"), name="one_system_stream")]

    def __str__(self) -> str:
        return f"{self.kind} stream {self.pk} at {self.head}"


class StreamRecord(models.Model):
    """Something at one place of a stream; the key holds stream and seq, see `agents.ids`."""

    id = models.BigIntegerField(primary_key=True)
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, db_index=False, related_name="+")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    by = models.CharField(max_length=80, help_text="user:ID, token:ID, agent:ID or system")

    class Meta:
        abstract = True
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.stream_id}:{self.seq}"


class Event(StreamRecord):
    """One record of a stream. `data` holds the new values of what changed (`add`, `set`, `del`), never differences."""

    type = models.CharField(max_length=40)
    v = models.SmallIntegerField(default=1)
    request_id = models.CharField(max_length=40, blank=True)
    data = models.JSONField(default=dict)

    class Meta(StreamRecord.Meta):
        constraints = [
            models.CheckConstraint(
                condition=models.Q(id=models.F("stream_id") * ids.CAPACITY + models.F("seq")),
                name="event_key_is_stream_and_seq",
            )
        ]


class Transition(StreamRecord):
    """One step of one machine, at the place in the stream of the event that recorded it."""

    machine = models.CharField(max_length=32)
    subject_id = models.BigIntegerField(help_text="The row the machine belongs to: actor, agent, task or constellation.")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    event = models.CharField(max_length=32)
    reason = models.TextField(blank=True)
    spent = models.FloatField(null=True, help_text="Seconds spent in `from_state`.")

    class Meta(StreamRecord.Meta):
        indexes = [models.Index(fields=("subject_id",), name="transition_subject")]

    def __str__(self) -> str:
        return f"{self.machine} {self.subject_id}: {self.from_state} > {self.to_state}"
