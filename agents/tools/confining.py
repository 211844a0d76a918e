"""Which walls the commands of this installation are behind, and who may run commands where there are none."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.access import ancestry
from agents.devices.confinement import NONE, TOLD, UID, Confinement, ConfinementMissing, Walls, find_confinement
from agents.devices.limits import CommandLimits
from agents.errors import AgentsError
from agents.models import Session, Token

AGAIN_S = 30.0
"""Walls whose trial took too long are tried again after this, then after twice as long each time, ..."""
LONGEST_AGAIN_S = 3600.0
"""...at most."""
HOW_TO_CONFINE = (
    "Install bubblewrap (apt install bubblewrap), or set ORRERY_UNCONFINED_COMMANDS=1 so that others than admins may run "
    "commands here (docs/confinement.md)."
)


class NotConfined(AgentsError):
    """The command may not run without walls that are missing here."""

    code = "not_confined"
    status = 403
    error_kind = "broken"  # nothing that the task could do about it


@dataclass
class _Finding:
    """What trials have found with one setting. `again_at`: when they are made again, in seconds of the monotonic clock."""

    found: Confinement
    tries: int
    again_at: float


_findings: dict[tuple[str, Path], _Finding] = {}


def current_confinement() -> Confinement:
    """Tried once in each process, and by `try_walls_again`. Raises ConfinementMissing where ORRERY_CONFINEMENT asks for walls
    that do not hold here.
    """
    known = _findings.get((settings.CONFINEMENT, settings.STATE_DIR)) or _try_walls(0)
    return known.found


def _try_walls(tries: int) -> _Finding:
    found = find_confinement(settings.CONFINEMENT, settings.STATE_DIR)
    pause = min(AGAIN_S * 2**tries, LONGEST_AGAIN_S) if found.is_unsure else math.inf
    finding = _Finding(found, tries + 1, time.monotonic() + pause)
    _findings[settings.CONFINEMENT, settings.STATE_DIR] = finding
    return finding


def are_walls_due() -> bool:
    """Whether it is time for `try_walls_again`."""
    known = _findings.get((settings.CONFINEMENT, settings.STATE_DIR))
    return known is not None and time.monotonic() >= known.again_at


def try_walls_again() -> tuple[str, str] | None:
    """Try the walls anew: what commands were behind and are now, where that has changed. Takes as long as the trials do."""
    known = _findings[settings.CONFINEMENT, settings.STATE_DIR]
    found = _try_walls(known.tries).found
    return None if found.mechanism == known.found.mechanism else (known.found.told, found.told)


def confinement_text() -> str:
    """What this process has found, as a device shows it."""
    try:
        return current_confinement().told
    except ConfinementMissing as missing:
        return f"{TOLD[NONE]}: {missing}"


def is_confined() -> bool:
    """Whether the commands of this installation are behind walls."""
    try:
        return current_confinement().mechanism != NONE
    except ConfinementMissing:
        return False


def command_walls(limits: Mapping[str, Any], shared: Path) -> Walls | None:
    """What a command of a device with these limits is behind; None for no walls. Raises NotConfined."""
    try:
        found = current_confinement()
    except ConfinementMissing as missing:
        raise NotConfined(str(missing)) from missing
    network = settings.COMMANDS_NETWORK and CommandLimits.of(limits).network
    if not network and found.mechanism in (NONE, UID):
        raise NotConfined(f"commands of this device are to have no network, and that cannot be: here they are {found.told}")
    if found.mechanism == NONE:
        return None
    readable = (settings.BASE_DIR / "examples", *settings.READABLE)
    hidden = (settings.STATE_DIR, settings.BASE_DIR)
    return Walls(found.mechanism, (shared,), readable, settings.WRITABLE, hidden, network)


def is_open_to_all() -> bool:
    """Whether everybody who may submit work may run commands here, as far as walls matter."""
    return settings.UNCONFINED_COMMANDS or confinement_text() != TOLD[NONE]  # `command_walls` tells of missing ones


def refuse_unconfined(session_id: int, by: str = "") -> None:
    """Raises NotConfined unless the session is an admin's, and each token that began it or asks now has the scope for that."""
    from agents.access.permissions import why_refused  # large, and no runner with walls needs it

    session = Session.objects.select_related("owner").filter(pk=session_id).first()
    if session is None:
        return
    keys = {key for key in (session.token_key, ancestry.token_key_of(by)) if key}
    tokens = list(Token.objects.filter(token_key__in=keys))
    reasons = [why_refused(session.owner, token, "govern") for token in (None, *tokens)]
    if len(tokens) < len(keys):
        reasons.append("the token that began it is revoked")
    if reason := next(filter(None, reasons), ""):
        raise NotConfined(f"commands are not confined on this host, so only admins may run them: {reason}. {HOW_TO_CONFINE}")
