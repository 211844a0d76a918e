"""Page shells: what a page needs to begin; the rest comes over REST and websocket."""

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.permissions import why_refused
from agents.machines import ACTOR
from agents.models import Device, InboxItem, Session
from agents.reads.confinement import confinement_shown
from agents.streams.tables import TABLES
from constellations.limits import FORK, REOPEN
from constellations.reads.across.sessions import STATES
from frontend.examples import list_examples
from frontend.logins.links import redeem_link
from frontend.views.devices import device_config
from frontend.views.inbox import decision_config

RECENT_LOOKED_AT = 30
RECENT_SHOWN = 6
RECENT_CHARACTERS = 64_000
"""Of a request; a longer one is kept as a file by whoever wrote it."""
NAME_CHARACTERS = 80
FOLLOW_UPS = {REOPEN, FORK}
"""Keys of requests that are about a graph that is there."""
STATE_WORDS = {
    "waiting": "waiting for you", "others": "waiting for others", "paused": "paused", "running": "running or queued",
    "stale": "without a runner", "completed": "completed", "failed": "failed, or in part", "cancelled": "cancelled",
    "idle": "idle",
}  # fmt: skip
DEVICES_SHOWN = 200
DEVICE_FIELDS = ("id", "name", "kind", "platform", "type", "labels", "max_concurrent", "used", "state")


@require_GET
@login_required
def sessions_page(request: HttpRequest) -> HttpResponse:
    """The request box, with the reader's own recent requests, and the shell of the list of sessions, which comes over REST."""
    may_operate = _may_operate(request.user)
    context = {
        "may_operate": may_operate,
        "examples": list_examples() if may_operate else [],
        "recent": list_recent(request.user) if may_operate else [],
        "states": [(state, STATE_WORDS[state]) for state in STATES],
    }
    return render(request, "frontend/sessions.html", context)


def list_recent(user: Any) -> list[dict[str, str]]:
    """[{"name", "text"}]: what the user asked for last, each text once, newest first."""
    asked = InboxItem.objects.filter(session__owner=user, by=f"user:{user.pk}", kind="interaction").select_related("session")
    found: dict[str, str] = {}
    for item in asked.order_by("-id")[:RECENT_LOOKED_AT]:
        text = item.payload.get("plan") or item.payload.get("request")
        if isinstance(text, str) and len(text) <= RECENT_CHARACTERS and not FOLLOW_UPS & set(item.payload):
            found.setdefault(text, item.session.title or text[:NAME_CHARACTERS])
    return [{"name": name, "text": text} for text, name in list(found.items())[:RECENT_SHOWN]]


@require_GET
@login_required
def session_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One session, live; 404 where it is not the user's to see."""
    found = get_object_or_404(Session.objects.visible_to(request.user).select_related("owner"), pk=pk)
    may_operate, confinement = _may_operate(request.user), confinement_shown()
    context = {
        "session": found,
        "may_operate": may_operate,
        "examples": list_examples() if may_operate else [],
        "config": {  # what the page's script begins with; `people` are names by author
            **decision_config(request.user),
            **device_config(request.user),
            "session": found.pk,
            "title": found.title,
            "label": str(found),
            "may_operate": may_operate,
            "people": {f"user:{found.owner_id}": found.owner.get_username()},
            "admin": reverse("admin:constellations_constellation_change", args=[0]) if request.user.is_staff else "",
            "defaults": {table.name: table.defaults for table in TABLES.values()},
            "actor_choices": {state: ACTOR.choices(state) for state in ACTOR.states},
            "ended_states": sorted(ACTOR.terminal),
            "devices": [
                {**row, "confinement": confinement if row["kind"] == "local" else ""}
                for row in Device.objects.values(*DEVICE_FIELDS)[:DEVICES_SHOWN]
            ],
        },
    }
    return render(request, "frontend/session.html", context)


def _may_operate(user) -> bool:
    return not why_refused(user, None, "operate")


@require_GET
@never_cache
def log_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Log in by a one-time link (frontend.logins.links) and go on to `?next=`."""
    user = redeem_link(token)
    if user is None:
        response = render(request, "frontend/login_link_void.html", status=403)
    else:
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        path, hosts = request.GET.get("next", ""), {request.get_host()}
        stays = url_has_allowed_host_and_scheme(path, allowed_hosts=hosts, require_https=request.is_secure())
        response = redirect(path if stays else "frontend:sessions")
    response["Referrer-Policy"] = "no-referrer"
    return response
