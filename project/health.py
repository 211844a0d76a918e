"""Is it alive? Without a login, and so without anything worth knowing."""

from __future__ import annotations

from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.devices.host import storage_flaw
from agents.models import Runner

RUNNER_DEAD_S = 10
"""Seconds without renewal after which a runner's leases are void."""


@require_safe
def report_health(request: HttpRequest) -> JsonResponse:
    """{status, database: ok | unreachable, storage: ok | full, runners: how many are alive}.

    The status is ok or no_runner; or, with 503, storage_full (the state folder takes nothing) or error (no database).
    """
    storage = "full" if storage_flaw() else "ok"
    since = timezone.now() - timedelta(seconds=RUNNER_DEAD_S)
    try:
        runners = Runner.objects.filter(state="LIVE", renewed_at__gte=since).count()
    except DatabaseError:
        connection.close()
        return _answer("error", "unreachable", storage, 0)
    return _answer("storage_full" if storage != "ok" else "ok" if runners else "no_runner", "ok", storage, runners)


def _answer(status: str, database: str, storage: str, runners: int) -> JsonResponse:
    code = 200 if status in ("ok", "no_runner") else 503
    content = {"status": status, "database": database, "storage": storage, "runners": runners}
    return JsonResponse(content, status=code, headers={"Cache-Control": "no-store"})
