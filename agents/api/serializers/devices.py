"""Devices over REST: what somebody asks for one to be, and what is shown of one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.access.permissions import why_refused
from agents.api.pagination import LARGEST
from agents.api.serializers.fields import RequestBody, StrictText, WholeNumber
from agents.devices.profiles.ceilings import POWERS, SWITCHES
from agents.devices.profiles.profile import ENTRIES, MOST_SLOTS, TEXT_LENGTH
from agents.devices.profiles.recipes import recipe_problems
from agents.masks.values import shown_limits
from agents.models import Device, Token
from agents.reads.confinement import confinement_shown


class DeviceChange(RequestBody):
    """What a device is to offer and may use; what is not given stays. agents.devices.profiles.profile looks at it."""

    platform = serializers.ChoiceField(("shell",), required=False)
    type = StrictText(max_length=TEXT_LENGTH, allow_blank=True, required=False)
    capabilities = serializers.ListField(child=StrictText(max_length=TEXT_LENGTH), max_length=ENTRIES, required=False)
    labels = serializers.ListField(
        child=StrictText(max_length=TEXT_LENGTH, trim_whitespace=False), max_length=ENTRIES, required=False,
        help_text="What policies know it by.",
    )  # fmt: skip
    recipes = serializers.DictField(required=False, help_text="Named commands with parameters.")
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
    """A new device; what is not given has its default."""

    name = StrictText(max_length=TEXT_LENGTH, trim_whitespace=False)
    kind = serializers.ChoiceField(("local",), required=False)


class DeviceRow(serializers.ModelSerializer):
    capabilities = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    recipes = serializers.DictField()
    limits = serializers.SerializerMethodField(help_text="Values of env are shown to admins only, secrets by their names.")
    unasked = serializers.DictField()
    confinement = serializers.SerializerMethodField(help_text="What its commands are behind (docs/confinement.md).")

    class Meta:
        model = Device
        fields = (
            "id", "name", "kind", "platform", "type", "capabilities", "labels", "recipes", "limits", "max_concurrent",
            "unasked", "used", "state", "confinement", "created_at",
        )  # fmt: skip

    @extend_schema_field(serializers.DictField())
    def get_limits(self, device: Device) -> dict[str, Any]:
        request = self.context.get("request")
        token = request.auth if request is not None and isinstance(request.auth, Token) else None
        return shown_limits(device.limits, to_admin=request is not None and not why_refused(request.user, token, "govern"))

    def get_confinement(self, row: Device) -> str:
        if (found := self.context.get("confinement")) is None:
            found = self.context["confinement"] = confinement_shown()  # once for a page of devices
        return found
