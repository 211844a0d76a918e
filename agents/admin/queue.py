"""The admin's view of django-q2's queue, read-only: its own pages let a superuser run any function as the server's user."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success

from agents.admin.readonly import ReadOnlyAdmin


class JobAdmin(ReadOnlyAdmin):
    """Jobs that have ended. Success and Failure are two views of one table, each with rows of its own."""

    succeeded: ClassVar[bool]
    numbers: ClassVar[tuple[str, ...]] = ("attempt_count",)
    exclude = ("args", "kwargs", "result")  # pickled
    list_display = ("id", "name", "func", "cluster", "started", "stopped")
    list_filter = ("cluster",)
    search_fields = ("name__startswith", "func__startswith")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(success=self.succeeded)


class SuccessAdmin(JobAdmin):
    succeeded = True


class FailureAdmin(JobAdmin):
    succeeded = False


class ScheduleAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "func", "schedule_type", "next_run", "cluster")
    search_fields = ("name__startswith", "func__startswith")


class QueuedAdmin(ReadOnlyAdmin):
    exclude = ("payload",)  # pickled, and signed
    list_display = ("id", "key", "lock")
    list_filter = ("key",)
    search_fields = ("key__startswith",)


for model, pages in ((Schedule, ScheduleAdmin), (Success, SuccessAdmin), (Failure, FailureAdmin), (OrmQ, QueuedAdmin)):
    admin.site.unregister(model)
    admin.site.register(model, pages)
