"""The page of all devices: how they are, and for who may make them what is asked of them. Its script asks REST."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents.access.permissions import why_refused


def device_config(user: Any) -> dict[str, Any]:
    """What scripts know of the reader about devices."""
    return {"may_make_devices": not why_refused(user, None, "devices")}


@require_GET
@login_required
def devices_page(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/devices.html", {"config": {**device_config(request.user), "now": time.time() * 1000}})
