"""The admin's pages of model profiles: staff see them, admins keep them, through the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from agents.access.permissions import groups_of
from agents.admin.readonly import ReadOnlyAdmin
from agents.llm.choices import PURPOSES
from agents.llm.profiles import PROVIDERS, THINKING_LEVELS
from agents.masks.values import mask_value
from agents.models import ModelProfile
from agents.services import model_profiles
from agents.services.model_profiles import ModelProfileInUse


class ModelProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # it takes no argument when the program runs
    """Says what is wrong with a model profile as the services would."""

    provider = forms.ChoiceField(choices=[(name, name) for name in PROVIDERS])
    thinking = forms.ChoiceField(choices=[(name, name or "as the provider does") for name in THINKING_LEVELS], required=False)
    purposes = forms.MultipleChoiceField(
        choices=[(name, name) for name in PURPOSES], required=False, widget=forms.CheckboxSelectMultiple,
        help_text="What it is asked for; another profile loses what this one takes.",
    )  # fmt: skip

    class Meta:
        model = ModelProfile
        fields = ("name", *model_profiles.FIELDS)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.initial = mask_value(self.initial)  # as the page shows them: what comes back so was not changed
        if self.instance.pk is not None:
            self.fields.pop("name", None)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        cleaned["fallbacks"] = cleaned.get("fallbacks") or []  # the form's empty is None, the row's a list
        name = cleaned.get("name") or self.instance.name
        said = {field: cleaned.get(field) for field in model_profiles.FIELDS}
        if self.instance.pk is not None:
            said |= {field: getattr(self.instance, field) for field in said if field not in self.changed_data}
        elif model_profiles.is_full():
            self.add_error(None, f"there are {model_profiles.PROFILES} model profiles already; delete one first")
        for each in model_profiles.problems_of(name, said) if not self.errors else ():
            self.add_error(each["key"] if each["key"] in self.fields else None, each["message"])
        return cleaned


@admin.register(ModelProfile)
class ModelProfileAdmin(ReadOnlyAdmin):
    """What is saved here goes through the services, so that the stream has it."""

    ordering = ("name",)
    open_to_staff = True
    form = ModelProfileForm
    list_display = ("id", "name", "provider", "model", "base_url", "key", "purposes")
    list_filter = ("provider",)
    search_fields = ("name__istartswith", "model__istartswith")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request) and "admin" in groups_of(request.user)

    has_change_permission = has_delete_permission = has_add_permission

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["name", *model_profiles.FIELDS]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if not self.has_change_permission(request):
            return self.get_fields(request)
        return ["name"] if obj is not None else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        by, said = f"user:{request.user.pk}", form.cleaned_data
        if change:
            fields = {field: said[field] for field in form.changed_data if field in model_profiles.FIELDS}
            model_profiles.model_profile_change(obj.pk, by=by, **fields)
        else:
            fields = {field: said[field] for field in model_profiles.FIELDS}
            obj.pk = model_profiles.model_profile_create(said["name"], by=by, **fields).pk

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        model_profiles.model_profile_delete(obj.pk, by=f"user:{request.user.pk}")

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except ModelProfileInUse as refused:
            self.message_user(request, str(refused), "ERROR")
            return self.response_post_save_change(request, None)
