"""Attempts to log in, in the admin: admins see who is locked out, and delete what was counted to let them in again."""

from __future__ import annotations

from axes.models import AccessAttempt
from django.contrib import admin
from django.http import HttpRequest

from agents.access.permissions import why_refused
from frontend.logins.limits import PER_NAME_AND_ADDRESS


@admin.register(AccessAttempt)
class LoginAttemptAdmin(admin.ModelAdmin):
    """Wrong passwords by name and address; deleting a row forgets them."""

    list_display = ("username", "ip_address", "failures_since_start", "is_locked_out", "attempt_time")
    search_fields = ("username__startswith", "ip_address__startswith")
    fields = readonly_fields = ("username", "ip_address", "failures_since_start", "attempt_time", "user_agent", "path_info")

    @admin.display(boolean=True, description="locked out")
    def is_locked_out(self, attempt: AccessAttempt) -> bool:
        """By its own row; a name or an address may be so by several."""
        return attempt.failures_since_start >= PER_NAME_AND_ADDRESS

    def has_add_permission(self, request: HttpRequest, obj: AccessAttempt | None = None) -> bool:
        return False

    has_change_permission = has_add_permission

    def has_view_permission(self, request: HttpRequest, obj: AccessAttempt | None = None) -> bool:
        return request.user.is_active and request.user.is_staff and not why_refused(request.user, None, "govern")

    has_delete_permission = has_view_permission

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)
