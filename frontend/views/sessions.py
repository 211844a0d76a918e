"""Page shells: what a page needs to begin; the rest comes over REST and websocket."""

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.permissions import why_refused
from agents.machines import ACTOR
from agents.models import Device, InboxItem, Session
from agents.models.sessions import SessionQuerySet
from agents.reads.confinement import confinement_shown
from agents.reads.heartbeats import heartbeat_of, is_stale
from agents.streams.tables import TABLES
from frontend.examples import list_examples
from frontend.logins.links import redeem_link
from frontend.views.approvals import decision_config

SESSIONS_PAGE = 50
DEVICES_SHOWN = 200
DEVICE_FIELDS = ("id", "name", "kind", "platform", "type", "labels", "max_concurrent", "used", "state")
LARGEST_ID = (1 << 63) - 1


@require_GET
@login_required
def sessions_page(request: HttpRequest) -> HttpResponse:
    """The sessions a user may see, newest first, and the request box. `?before=ID` shows older ones."""
    found: list[Any] = list(
        _listed(Session.objects.visible_to(request.user), request.GET.get("before", ""))[: SESSIONS_PAGE + 1]
    )
    for each in found:
        each.heartbeat_at = heartbeat_of(each.active_at, each.renewed_at)
        each.is_stale = is_stale(each.actor_state, each.heartbeat_at)
    older = found[SESSIONS_PAGE - 1].pk if len(found) > SESSIONS_PAGE else None
    may_operate = _may_operate(request.user)
    context = {
        "sessions": found[:SESSIONS_PAGE],
        "older": older,
        "may_operate": may_operate,
        "examples": list_examples() if may_operate else [],
    }
    return render(request, "frontend/sessions.html", context)


def _listed(visible: SessionQuerySet, before: str) -> SessionQuerySet:
    """With the state of the latest actor and the latest interaction, in one query."""
    asked = InboxItem.objects.filter(session=OuterRef("pk"), kind="interaction").order_by("-id")
    if before.isascii() and before.isdigit() and int(before) <= LARGEST_ID:
        visible = visible.filter(pk__lt=int(before))
    return (
        visible.select_related("owner")
        .with_latest_actor()
        .annotate(
            last_state=Subquery(asked.values("state")[:1]),
            last_outcome=Subquery(asked.values("outcome")[:1]),
            when=Coalesce(Subquery(asked.values("ended_at")[:1]), Subquery(asked.values("created_at")[:1]), "created_at"),
        )
    )


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
            "session": found.pk,
            "may_operate": may_operate,
            "people": {f"user:{found.owner_id}": found.owner.get_username()},
            "admin": reverse("admin:constellations_constellation_change", args=[0]),
            "defaults": {table.name: table.defaults for table in TABLES.values()},
            "actor_choices": {state: ACTOR.choices(state) for state in ACTOR.states},
            "devices": [{**row, "confinement": confinement} for row in Device.objects.values(*DEVICE_FIELDS)[:DEVICES_SHOWN]],
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
