"""Is it alive? Without a login, and so without anything worth knowing."""

from __future__ import annotations

from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Runner

RUNNER_DEAD_S = 10
"""Seconds without renewal after which a runner's leases are void."""


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """{status: ok | no_runner | error, database: ok | unreachable, runners: how many are alive}; 503 on error."""
    since = timezone.now() - timedelta(seconds=RUNNER_DEAD_S)
    try:
        runners = Runner.objects.filter(state="LIVE", renewed_at__gte=since).count()
    except DatabaseError:
        connection.close()
        return JsonResponse({"status": "error", "database": "unreachable", "runners": 0}, status=503)
    answer = {"status": "ok" if runners else "no_runner", "database": "ok", "runners": runners}
    return JsonResponse(answer, headers={"Cache-Control": "no-store"})
