"""Devices over REST: what somebody asks for one to be, and what is shown of one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.access.permissions import why_refused
from agents.api.pagination import LARGEST
from agents.api.serializers.fields import RequestBody, StrictText, Truth, WholeNumber
from agents.devices.profiles.ceilings import POWERS, SWITCHES
from agents.devices.profiles.profile import ENTRIES, HOST_LENGTH, MOST_SLOTS, TEXT_LENGTH, USERS
from agents.devices.profiles.recipes import recipe_problems
from agents.masks.values import shown_limits
from agents.models import Device, DeviceLink, DeviceReading, DeviceToken, Token
from agents.reads.confinement import confinement_shown
from agents.reads.devices import shown_connection, status_of
from agents.services.device_tokens import ENROLMENT, LONGEST_ENROLMENT

REASON_LENGTH = 500
NAME_OF_USER = 160
"""Characters of user:NAME or group:NAME."""
STATUSES = ("disconnected", "connecting", "idle", "busy", "draining", "failed", "retired")


class DeviceChange(RequestBody):
    """What a device is to offer and may use; what is not given stays. agents.devices.profiles.profile looks at it."""

    platform = StrictText(max_length=TEXT_LENGTH, required=False, help_text="Of its agents; by its kind unless given.")
    os = StrictText(max_length=TEXT_LENGTH, allow_blank=True, required=False)
    type = StrictText(max_length=TEXT_LENGTH, allow_blank=True, required=False)
    capabilities = serializers.ListField(child=StrictText(max_length=TEXT_LENGTH), max_length=ENTRIES, required=False)
    labels = serializers.ListField(
        child=StrictText(max_length=TEXT_LENGTH, trim_whitespace=False), max_length=ENTRIES, required=False,
        help_text="What policies know it by.",
    )  # fmt: skip
    recipes = serializers.DictField(required=False, help_text="Named commands with parameters.")
    metadata = serializers.DictField(required=False, help_text="Whatever its owner wants known of it.")
    limits = serializers.DictField(
        required=False,
        help_text="Of a command: seconds, memory_mb, output_mb, processes. When work pauses: pause_memory_percent (95), "
        "pause_disk_percent (95), pause_cpu_percent (0: no limit), each exceeded for pause_hold_s (30). Beyond the "
        "installation's ceilings, and `env` and `path` at all, only an admin sets them. env: variables of its commands, text "
        "or {secret: NAME}. network: false takes it from its commands.",
    )  # fmt: skip
    max_concurrent = WholeNumber(min_value=1, max_value=MOST_SLOTS, required=False)
    unasked = serializers.DictField(
        required=False, help_text="Calls that models make here without asking, and which are asked about: commands, tools, ask."
    )
    connection = serializers.DictField(
        required=False, help_text="How it is reached, by its kind (docs/devices.md). What starts a program only an admin sets."
    )
    host = StrictText(
        max_length=HOST_LENGTH, allow_blank=True, required=False,
        help_text="Whose processes carry out its calls; empty: the first that takes it. Only an admin sets it.",
    )  # fmt: skip
    owner = StrictText(max_length=NAME_OF_USER, allow_blank=True, required=False, help_text="A user's name; empty: nobody.")
    used_by = serializers.ListField(
        child=StrictText(max_length=NAME_OF_USER), max_length=USERS, required=False,
        help_text="Whose sessions may use it beside its owner's: everybody, user:NAME, group:NAME.",
    )  # fmt: skip
    apps = serializers.DictField(
        required=False, help_text="By name, what an agent that is held to it gets: process, visual, tools, prompts."
    )
    is_offered = Truth(
        required=False, help_text="Tasks that wish for no device may land on it; unless given so of a local device only."
    )

    def validate_recipes(self, recipes: dict[str, Any]) -> dict[str, Any]:
        wrong: dict[str, list[str]] = {}
        for each in recipe_problems(recipes):
            wrong.setdefault(each["key"], []).append(each["message"])
        if wrong:
            raise serializers.ValidationError(wrong)
        return recipes

    def validate_limits(self, limits: dict[str, Any]) -> dict[str, Any]:
        number, wrong = WholeNumber(min_value=0, max_value=LARGEST), {}
        for key, value in limits.items():
            if key not in (*POWERS, *SWITCHES):
                try:
                    number.run_validation(value)
                except serializers.ValidationError as error:
                    wrong[key] = error.detail
        if wrong:
            raise serializers.ValidationError(wrong)
        return limits


class DeviceBody(DeviceChange):
    """A new device; what is not given has its default, its owner is whoever makes it."""

    name = StrictText(max_length=TEXT_LENGTH, trim_whitespace=False)
    kind = serializers.ChoiceField(Device.KINDS, required=False)


class DeviceReason(RequestBody):
    reason = StrictText(max_length=REASON_LENGTH, allow_blank=True, default="")


class DrainedTask(serializers.Serializer):
    session = serializers.IntegerField()
    constellation = serializers.IntegerField()
    task_id = serializers.CharField()
    attempt = serializers.IntegerField(required=False, help_text="Number of the one that runs there.")
    waits = serializers.BooleanField(required=False, help_text="It has given its slot back until something comes.")
    to = serializers.CharField(required=False, help_text="The device that it would get.")


class DrainPart(serializers.Serializer):
    total = serializers.IntegerField()
    tasks = DrainedTask(many=True, help_text="The first of them, of sessions that the reader sees.")


class DrainPreview(serializers.Serializer):
    ends = DrainPart(help_text="What runs there, and ends there.")
    moves = DrainPart(help_text="Ready tasks that could run there and would get another device.")
    nowhere = DrainPart(help_text="Ready tasks that could run there and nowhere else.")


class CurrentTask(serializers.Serializer):
    agent = serializers.IntegerField(source="id")
    task = serializers.CharField()
    session = serializers.IntegerField(source="session_id")
    state = serializers.CharField()
    entered_at = serializers.DateTimeField()


class LinkRow(serializers.ModelSerializer):
    """Who holds the device's connection, and what was heard of it last."""

    class Meta:
        model = DeviceLink
        fields = ("holder", "since", "renewed_at", "heard_at", "readings", "version", "peer")


class DeviceRow(serializers.ModelSerializer):
    capabilities = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    recipes = serializers.DictField()
    metadata = serializers.DictField()
    facts = serializers.DictField(help_text="What it told of itself when it was connected.")
    limits = serializers.SerializerMethodField(help_text="Values of env are shown to admins only, secrets by their names.")
    unasked = serializers.DictField()
    connection = serializers.SerializerMethodField(help_text="Shown whole to those who may make devices.")
    tools = serializers.ListField(child=serializers.DictField())
    owner = serializers.CharField(source="owner.username", default="", help_text="A user's name; empty: nobody.")
    used_by = serializers.ListField(child=serializers.CharField())
    apps = serializers.DictField()
    confinement = serializers.SerializerMethodField(help_text="What its commands are behind (docs/confinement.md).")
    status = serializers.SerializerMethodField(help_text="Its state; in the place of connected: idle or busy, by its slots.")
    last_heartbeat = serializers.DateTimeField(source="link.heard_at", default=None, allow_null=True)
    link = serializers.SerializerMethodField()
    queued = serializers.IntegerField(
        source="queued_tasks", help_text="Ready tasks that wait for a slot of it, of all sessions."
    )
    current_tasks = CurrentTask(many=True, help_text="Of sessions that the reader may see.")

    class Meta:
        model = Device
        fields: tuple[str, ...] = (
            "id", "name", "kind", "platform", "os", "type", "capabilities", "labels", "recipes", "metadata", "facts", "limits",
            "max_concurrent", "unasked", "connection", "host", "tools", "owner", "used_by", "apps", "is_offered", "is_off",
            "used", "queued", "state", "status", "reason", "entered_at", "last_heartbeat", "link", "current_tasks",
            "confinement",
            "created_at",
        )  # fmt: skip

    def _may(self, need: str) -> bool:
        request = self.context.get("request")
        if request is None:
            return False
        return not why_refused(request.user, request.auth if isinstance(request.auth, Token) else None, need)

    @extend_schema_field(serializers.DictField())
    def get_limits(self, device: Device) -> dict[str, Any]:
        return shown_limits(device.limits, to_admin=self._may("govern"))

    @extend_schema_field(serializers.DictField())
    def get_connection(self, device: Device) -> dict[str, Any]:
        return shown_connection(device.connection, to_maker=self._may("devices"))

    @extend_schema_field(serializers.ChoiceField(STATUSES))
    def get_status(self, device: Device) -> str:
        return status_of(device)

    @extend_schema_field(LinkRow(allow_null=True))
    def get_link(self, device: Device) -> dict[str, Any] | None:
        link = getattr(device, "link", None)
        return None if link is None else LinkRow(link).data

    def get_confinement(self, row: Device) -> str:
        if row.kind != "local":
            return str(row.facts.get("confinement", ""))
        if (found := self.context.get("confinement")) is None:
            found = self.context["confinement"] = confinement_shown()  # once for a page of devices
        return found


class DrainedDevice(DeviceRow):
    preview = DrainPreview(help_text="What becomes of its work.")

    class Meta(DeviceRow.Meta):
        fields = (*DeviceRow.Meta.fields, "preview")


class DeviceEvent(serializers.Serializer):
    seq = serializers.IntegerField()
    type = serializers.CharField()
    at = serializers.DateTimeField()
    by = serializers.CharField()
    by_name = serializers.CharField()
    data = serializers.DictField()


class DeviceHistory(serializers.Serializer):
    results = DeviceEvent(many=True)
    next = serializers.IntegerField(allow_null=True, help_text="`since` of the next page.")


class DeviceReadingRow(serializers.ModelSerializer):
    readings = serializers.DictField(help_text="Memory, disk, cpu in percent, as far as it says them.")

    class Meta:
        model = DeviceReading
        fields = ("at", "readings", "used", "max_concurrent")


class DeviceReadings(serializers.Serializer):
    results = DeviceReadingRow(many=True)


class EnrolmentBody(RequestBody):
    seconds = WholeNumber(
        min_value=60, max_value=int(LONGEST_ENROLMENT.total_seconds()), default=int(ENROLMENT.total_seconds()),
        help_text="Until the token expires unused.",
    )  # fmt: skip


class DeviceTokenRow(serializers.ModelSerializer):
    id = serializers.CharField(source="token_key")

    class Meta:
        model = DeviceToken
        fields: tuple[str, ...] = (
            "id", "purpose", "created_by", "created_at", "expires_at", "used_at", "revoked_at", "last_used"
        )  # fmt: skip


class FreshDeviceToken(DeviceTokenRow):
    token = serializers.CharField(help_text="Shown this once.")

    class Meta(DeviceTokenRow.Meta):
        fields = (*DeviceTokenRow.Meta.fields, "token")


class DeviceTokens(serializers.Serializer):
    results = DeviceTokenRow(many=True)


class Enrolled(serializers.Serializer):
    token = serializers.CharField(help_text="The device's own token, shown this once.")
