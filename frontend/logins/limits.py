"""How often somebody may try to log in with a password: django-axes counts in the database, for all web servers.

A name from an address has few attempts. A name from everywhere together, and an address with all names together, have more;
these two do not bind a person who comes from where they have logged in before. So nobody can keep others out of their account.
"""

from __future__ import annotations

import unicodedata
from datetime import timedelta

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt, AccessLog
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

PER_NAME_AND_ADDRESS = settings.AXES_FAILURE_LIMIT
PER_NAME = 50
PER_ADDRESS = 100
"""Wrong passwords within AXES_COOLOFF_TIME of each other."""
KNOWN = timedelta(days=30)
"""Since a login from an address, for which it counts as its owner's."""
NAME_LENGTH = 150


def tried_name(request: HttpRequest, credentials: dict | None = None) -> str:
    """The name somebody tries, however it is written: databases differ on whether case matters."""
    given = (credentials or {}).get("username") or request.POST.get("username") or ""
    return unicodedata.normalize("NFKC", given).casefold()[:NAME_LENGTH]


class LoginAttempts(AxesDatabaseHandler):
    """What counts as locked out."""

    def is_locked(self, request, credentials: dict | None = None) -> bool:
        name, address = get_client_username(request, credentials), request.axes_ip_address
        recent = AccessAttempt.objects.filter(attempt_time__gt=timezone.now() - settings.AXES_COOLOFF_TIME)
        if _failures(recent, username=name, ip_address=address) >= PER_NAME_AND_ADDRESS:
            return True
        if _failures(recent, username=name) < PER_NAME and _failures(recent, ip_address=address) < PER_ADDRESS:
            return False
        known = AccessLog.objects.filter(username__iexact=name, ip_address=address, attempt_time__gt=timezone.now() - KNOWN)
        return not known.exists()

    def user_logged_in(self, sender, request, user, **kwargs) -> None:
        super().user_logged_in(sender, request, user, **kwargs)
        AccessLog.objects.filter(attempt_time__lte=timezone.now() - KNOWN).delete()


def _failures(recent, **which) -> int:
    return recent.filter(**which).aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def answer_locked_out(request: HttpRequest, response: HttpResponse | None, credentials: dict | None) -> HttpResponse:
    """What is answered to one attempt too many, in the dashboard and in the admin."""
    wait = settings.AXES_COOLOFF_TIME
    page = render(request, "frontend/locked_out.html", {"minutes": int(wait.total_seconds()) // 60}, status=429)
    page["Retry-After"] = str(int(wait.total_seconds()))
    return page
