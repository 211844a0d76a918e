"""Devices, their tokens, who holds their connections, the calls that reach them as rows, their queues, and output."""

from django.conf import settings
from django.db import models

from agents.machines import DEVICE
from agents.models.checks import state_check
from agents.models.sessions import Session


def everybody() -> list[str]:
    return ["everybody"]


class Device(models.Model):
    """Where tasks run. Its id is its stream's. `used` and `queued` count slots and sessions; they are outside the fold."""

    KINDS = ("local", "remote", "mcp", "acp", "browser")

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=16, default="local", choices=[(kind, kind) for kind in KINDS])
    platform = models.CharField(max_length=32, default="shell")
    os = models.CharField(max_length=80, blank=True)
    type = models.CharField(max_length=80, blank=True, help_text="Device type a task may ask for, e.g. gpu.")
    capabilities = models.JSONField(default=list)
    labels = models.JSONField(default=list, help_text="What policies know it by; given by who may make devices.")
    recipes = models.JSONField(default=dict, help_text="Named commands with parameters.")
    metadata = models.JSONField(default=dict, help_text="Whatever its owner wants known of it.")
    facts = models.JSONField(default=dict, help_text="What it said of itself at its last handshake.")
    host = models.CharField(max_length=120, blank=True, help_text="Whose processes carry out its calls; empty: none yet.")
    connection = models.JSONField(default=dict, help_text="How it is reached, by its kind (docs/devices.md).")
    tools = models.JSONField(default=list, help_text="What it offers: name, description, arguments.")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    used_by = models.JSONField(default=everybody, help_text="Who may use it beside its owner: everybody, user:, group:.")
    apps = models.JSONField(default=dict, help_text="What agents held to one app are given: process, visual, tools, prompts.")
    is_offered = models.BooleanField(default=True, help_text="Tasks that wish for no device may land on it.")
    is_off = models.BooleanField(default=False, help_text="A person has taken it offline: nothing connects it.")
    limits = models.JSONField(default=dict, help_text="seconds, memory_mb, output_mb, processes of one command.")
    unasked = models.JSONField(default=dict, help_text="Calls that a model may choose here without asking, or may not.")
    max_concurrent = models.PositiveIntegerField(default=4)
    state = models.CharField(max_length=16, default=DEVICE.initial, choices=[(state, state) for state in DEVICE.states])
    reason = models.TextField(blank=True, help_text="Why it is in this state.")
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField()
    used = models.PositiveIntegerField(default=0, db_default=0, help_text="Slots taken or granted.")
    queued = models.PositiveIntegerField(default=0, db_default=0, help_text="Sessions in the queue.")

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=models.Q(used__lte=models.F("max_concurrent")), name="slots_within_limit"),
            state_check(DEVICE),
        ]

    def __str__(self) -> str:
        return self.name


class DeviceLink(models.Model):
    """Who holds the connection of a device: one process, until it lets go or has not renewed. Outside the fold.

    `fence` grows with every holder, so that one which has lost the device can do nothing for it any more.
    """

    device = models.OneToOneField(Device, primary_key=True, on_delete=models.CASCADE, related_name="link")
    holder = models.CharField(max_length=200, blank=True, help_text="Host, pid and start of the process; empty: nobody.")
    fence = models.BigIntegerField(default=0)
    since = models.DateTimeField(null=True)
    renewed_at = models.DateTimeField(null=True, help_text="By the process that holds it.")
    heard_at = models.DateTimeField(null=True, help_text="The last heartbeat of the device itself.")
    readings = models.JSONField(default=dict, help_text="With that heartbeat: memory, disk, cpu in percent.")
    version = models.CharField(max_length=40, blank=True, help_text="Of the protocol and the client.")
    peer = models.CharField(max_length=200, blank=True, help_text="Where it dialled in from.")

    def __str__(self) -> str:
        return f"link of device {self.device_id}"


class DeviceReading(models.Model):
    """How a device was in one span of time: what it said last, and its slots. Kept for a day, outside the fold."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="kept_readings")
    span = models.BigIntegerField(help_text="The how manieth span since 1970: one reading in each.")
    at = models.DateTimeField(db_index=True)
    readings = models.JSONField(default=dict, help_text="Of its last heartbeat then: memory, disk, cpu in percent.")
    used = models.PositiveIntegerField(help_text="Slots that were taken...")
    max_concurrent = models.PositiveIntegerField(help_text="...of so many.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=("device", "span"), name="one_reading_a_span")]

    def __str__(self) -> str:
        return f"reading of device {self.device_id} at {self.at}"


class DeviceCall(models.Model):
    """A call whose device another process holds: written by the session's runner, carried out by the holder. Outside the fold.

    `key` is that of the call (agents.tools.calls.Call), `fence` the session's lease that asks for it now. It waits, is taken by
    a holder (`link_fence`), and ends with an outcome; who takes the session over goes on waiting for it.
    """

    STATES = ("waiting", "taken", "ended")

    key = models.BigIntegerField(primary_key=True)
    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    attempt_id = models.BigIntegerField(db_index=True)
    fence = models.BigIntegerField()
    tool = models.CharField(max_length=200)
    arguments = models.JSONField(default=dict)
    given = models.JSONField(default=dict, help_text="The other fields of the call: timeout, scope, inherits, writes, ...")
    state = models.CharField(max_length=8, default="waiting", choices=[(state, state) for state in STATES])
    link_fence = models.BigIntegerField(default=0)
    cancel = models.BooleanField(default=False)
    outcome = models.JSONField(null=True)
    created_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=("device", "state"), name="device_call_open")]

    def __str__(self) -> str:
        return f"{self.tool} of attempt {self.attempt_id} on device {self.device_id}"


class DeviceCallMessage(models.Model):
    """What is said about such a call: `up` what it prints or reports, `down` what it is told. Outside the fold."""

    WAYS = ("up", "down")

    call = models.ForeignKey(DeviceCall, on_delete=models.CASCADE, related_name="messages")
    way = models.CharField(max_length=4, choices=[(way, way) for way in WAYS])
    kind = models.CharField(max_length=40, help_text="output, or one that the device's kind knows.")
    body = models.JSONField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} of call {self.call_id}"


class DeviceToken(models.Model):
    """A token of one device, by its digest: for one enrolment, or for dialling in from then on. Outside the fold.

    It opens nothing else, and no token of a user opens a device's connection (agents.services.device_tokens).
    """

    PURPOSES = ("enrolment", "device")

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="tokens")
    purpose = models.CharField(max_length=12, choices=[(purpose, purpose) for purpose in PURPOSES])
    digest = models.CharField(max_length=128, unique=True)
    token_key = models.CharField(max_length=25, help_text="How it begins: its name in records.")
    created_by = models.CharField(max_length=60)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, help_text="Of an enrolment; a device's token does not expire.")
    used_at = models.DateTimeField(null=True, help_text="First.")
    revoked_at = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.token_key} of device {self.device_id}"


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
