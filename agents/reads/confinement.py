"""What commands run behind, as the runners say: read by whoever shows devices or starts nothing itself."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from agents.devices.confinement import NONE, TOLD
from agents.engine.leases import LEASE_S
from agents.models import Runner

RUNNERS = 64
"""The newest, asked what their commands are behind."""

UNKNOWN = "not yet known: no runner has lived"


def confinement_shown() -> str:
    """What commands on this installation's devices are behind: as the runners say that live, else the last that did.

    A runner runs the commands of its sessions on its own host, so hosts may differ; then all are named.
    """
    alive = timezone.now() - timedelta(seconds=LEASE_S)
    newest = list(Runner.objects.exclude(confinement="").values("state", "renewed_at", "confinement")[:RUNNERS])
    living = {one["confinement"] for one in newest if one["state"] == "LIVE" and one["renewed_at"] > alive}
    found = living or {one["confinement"] for one in newest[:1]}
    return "; ".join(sorted(found, reverse=True)) or UNKNOWN


def only_admins_may() -> bool:
    """The same by what the runners tell, for processes that run no commands."""
    return not settings.UNCONFINED_COMMANDS and confinement_shown() == TOLD[NONE]
