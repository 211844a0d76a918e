"""The admin's pages of devices, kept by who may make them through the services, and of their links, calls and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from agents.access.permissions import groups_of, why_refused
from agents.admin.readonly import ReadOnlyAdmin, author_column
from agents.devices.profiles.profile import CHANGEABLE
from agents.errors import AgentsError
from agents.masks.values import mask_value, shown_limits
from agents.models import Device, DeviceCall, DeviceCallMessage, DeviceLink, DeviceReading, DeviceToken
from agents.reads.confinement import confinement_shown
from agents.reads.devices import shown_connection, status_of
from agents.services import devices
from agents.services.tool_pins import describe_tools, tools_accept

KEPT = tuple(name for name in CHANGEABLE if name != "owner")
"""Fields that are columns; an owner is named."""
FORM_FIELDS = {"owner": "owner_name"}
BY_KIND: dict[str, Any] = {"is_offered": None, "platform": ""}
"""What follows from a device's kind unless it is filled in."""
EMPTY: dict[str, Any] = {
    "capabilities": [], "labels": [], "recipes": {}, "metadata": {}, "limits": {}, "unasked": {}, "connection": {},
    "used_by": [], "apps": {},
}  # fmt: skip
"""What an empty field of JSON stands for."""


class DeviceForm(forms.ModelForm):  # type: ignore[type-arg]  # it takes no argument when the program runs
    """Says what is wrong with a device as the services would."""

    owner_name = forms.CharField(label="Owner", required=False, help_text="A user's name; empty: nobody.")
    is_offered = forms.NullBooleanField(
        required=False, help_text="Tasks that wish for no device may land on it; unknown: if it is local."
    )
    by = ""
    may_exceed = False

    class Meta:
        model = Device
        fields = ("name", "kind", *KEPT)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for name in {*EMPTY, "host", "platform"} & set(self.fields):
            self.fields[name].required = self.fields[name].show_hidden_initial = False
        if self.instance.pk is None:
            self.initial.update(BY_KIND)
        elif self.fields:
            self.initial["owner_name"] = self.instance.owner.username if self.instance.owner else ""
            self.fields.pop("name", None)
            self.fields.pop("kind", None)
        self.initial = mask_value(self.initial)  # as the page shows them: what comes back so was not changed

    def said(self) -> dict[str, Any]:
        """What was filled in; of a device that is there, what was changed."""
        found = {name: value for name, value in self.cleaned_data.items() if name in self.changed_data or not self.instance.pk}
        for name in set(found) & set(EMPTY):
            found[name] = EMPTY[name] if found[name] is None else found[name]
        for name, unsaid in BY_KIND.items():
            if found.get(name, ...) == unsaid:
                del found[name]
        if "owner_name" in found:
            found["owner"] = found.pop("owner_name")
        return found

    def clean(self) -> dict[str, Any]:
        self.cleaned_data = super().clean() or {}
        if self.errors:
            return self.cleaned_data
        said = self.said()
        name = said.pop("name", self.instance.name)
        try:
            devices.check_device(name, said, self.instance.pk, by=self.by, may_exceed=self.may_exceed)
        except AgentsError as refused:
            for each in refused.problems or [{"key": "", "message": str(refused)}]:
                field = FORM_FIELDS.get(first := re.split(r"[.\[]", each["key"])[0], first)
                self.add_error(field if field in self.fields else None, f"{each['key']}: {each['message']}".lstrip(": "))
        return self.cleaned_data


def ask_of(name: str, service: Callable[..., Device], words: str) -> Callable[..., None]:
    """An action of the list that asks `service` of each device that was chosen."""

    def action(shown: DeviceAdmin, request: HttpRequest, chosen: QuerySet[Device]) -> None:
        for device in chosen:
            try:
                service(device.pk, by=f"user:{request.user.pk}")
            except AgentsError as refused:
                shown.message_user(request, str(refused), "ERROR")
            else:
                shown.message_user(request, f"{device.name}: {words}")

    action.__name__ = name
    return admin.action(description=words, permissions=["change"])(action)


@admin.action(description="accept the tools that its server offers now", permissions=["change"])
def accept_tools(shown: DeviceAdmin, request: HttpRequest, chosen: QuerySet[Device]) -> None:
    """An admin takes what tool servers offer by now, as their pages show it among the facts."""
    if why := why_refused(request.user, None, "govern"):
        shown.message_user(request, f"Only admins accept tools: {why}", "ERROR")
        return
    for device in chosen:
        try:
            tools_accept(device.pk, describe_tools(device)["digest"], by=f"user:{request.user.pk}")
        except AgentsError as refused:
            shown.message_user(request, str(refused), "ERROR")
        else:
            shown.message_user(request, f"{device.name}: its tools are accepted")


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    """Staff see devices; who may make devices keeps them."""

    ordering = ("name",)
    open_to_staff = True
    form = DeviceForm
    list_display = ("id", "name", "kind", "platform", "type", "labels", "status", "used", "max_concurrent", "owner")
    list_select_related = ("owner",)
    list_filter = ("state", "kind")
    search_fields = ("name__istartswith", "type__istartswith")
    actions = (
        ask_of("drain", devices.device_drain, "drain: nothing new begins there"),
        ask_of("undrain", devices.device_undrain, "take work again"),
        ask_of("offline", devices.device_take_offline, "take offline: what runs there is lost"),
        ask_of("online", devices.device_bring_back, "bring back"),
        ask_of("reset", devices.device_reset, "reset after a failure"),
        ask_of("retire", devices.device_retire, "retire for good"),
        accept_tools,
    )

    def __init__(self, model: Any, site: admin.AdminSite):
        super().__init__(model, site)
        self._shown.append("confinement")
        said_by_form = (*CHANGEABLE, "kind")
        self._fixed = [self._column(field) for field in model._meta.concrete_fields if field.name not in said_by_form]
        self._fixed.append("confinement")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request) and not why_refused(request.user, None, "devices")

    has_change_permission = has_add_permission

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.by, form.may_exceed = f"user:{request.user.pk}", "admin" in groups_of(request.user)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if not self.has_change_permission(request):
            return self._shown
        return [*KEPT, "owner_name", *self._fixed] if obj else ["name", "kind", *KEPT, "owner_name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if not self.has_change_permission(request):
            return self._shown
        return self._fixed if obj else []

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.limits = shown_limits(found.limits, to_admin="admin" in groups_of(request.user))
            found.connection = shown_connection(found.connection, not why_refused(request.user, None, "devices"))
        return found

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        said, rights = form.said(), {"by": form.by, "may_exceed": form.may_exceed}
        if change:
            devices.device_change(obj.pk, **rights, **said)
        else:
            obj.pk = devices.device_create(said.pop("name"), **rights, **said).pk

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except AgentsError as refused:  # somebody else was first
            self.message_user(request, str(refused), "ERROR")
            return HttpResponseRedirect(request.path)

    @admin.display(description="state", ordering="state")
    def status(self, row: Device) -> str:
        return status_of(row)

    @admin.display(description="its commands")
    def confinement(self, row: Device) -> str:
        return confinement_shown() if row.kind == "local" else str(row.facts.get("confinement", ""))


@admin.register(DeviceLink)
class DeviceLinkAdmin(ReadOnlyAdmin):
    """Who holds which device, and what was heard of it last."""

    open_to_staff = True
    numbers = ("device_id",)
    list_display = ("device", "holder", "fence", "heard_at", "renewed_at", "readings", "version", "peer")
    list_select_related = ("device",)
    search_fields = ("device__name__istartswith", "holder__startswith")


@admin.register(DeviceReading)
class DeviceReadingAdmin(ReadOnlyAdmin):
    """How devices were in the last day."""

    open_to_staff = True
    numbers = ("id", "device_id")
    list_display = ("id", "device", "at", "readings", "used", "max_concurrent")
    list_select_related = ("device",)
    search_fields = ("device__name__istartswith",)


@admin.register(DeviceCall)
class DeviceCallAdmin(ReadOnlyAdmin):
    """Calls that another process carries out."""

    session_path = "session"
    numbers = ("key", "session_id", "device_id", "attempt_id")
    list_display = ("key", "tool", "device", "session", "attempt_id", "state", "created_at", "taken_at", "ended_at")
    list_select_related = ("device", "session")
    list_filter = ("state",)
    search_fields = ("tool__startswith", "device__name__istartswith")


@admin.register(DeviceCallMessage)
class DeviceCallMessageAdmin(ReadOnlyAdmin):
    """What such calls say, and are told."""

    session_path = "call__session"
    numbers = ("id", "call_id")
    list_display = ("id", "call_id", "way", "kind")
    list_filter = ("way",)
    search_fields = ("kind__startswith",)


@admin.register(DeviceToken)
class DeviceTokenAdmin(ReadOnlyAdmin):
    """Without the digest. Admins alone see them."""

    exclude = ("digest",)
    author_field = "created_by"
    numbers = ("id", "device_id")
    list_display = (
        "token_key", "purpose", "device", author_column("created_by"), "created_at", "expires_at", "used_at", "revoked_at",
        "last_used",
    )  # fmt: skip
    list_select_related = ("device",)
    list_filter = ("purpose",)
    search_fields = ("token_key__startswith", "device__name__istartswith")
