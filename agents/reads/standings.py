"""Standings of sessions, read: the facts of many by four queries, and what of them who looks may decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, F, OuterRef, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from agents.access import ancestry
from agents.access.permissions import why_refused
from agents.engine.drives.work import registered_handler
from agents.models import Actor, Approval, InboxItem, Stream, Token
from agents.reads.standing import HeldLease, SessionFacts, Standing, WaitingApproval, decide_standing

FOR_PEOPLE = tuple(kind for kind in Approval.KINDS if kind != "callback")
"""Kinds of approvals that wait for a person; a call-back is awaited from outside."""
WAITING_READ = 1_000
"""Waiting approvals looked at in one read."""
CHECKED_FOR_TOKEN = 20
"""Approvals of a session whose ancestry is looked at for a token; of more it is said that others decide."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: the author as records name one, and whether role and scope let them decide at all."""

    author: str
    may_decide: bool


def viewer_of(user: Any, token: Token | None) -> Viewer:
    author = f"user:{user.pk}" if token is None else f"token:{token.token_key}"
    return Viewer(author, not why_refused(user, token, "approve"))


def read_facts(sessions: Iterable[int]) -> dict[int, SessionFacts]:
    """The facts of these sessions, by their ids; of one that is not there there are none."""
    wanted = list(sessions)
    waiting, held, now = _waiting(wanted), registered_handler().held_sessions(wanted), timezone.now()
    return {row["pk"]: _facts(row, waiting.get(row["pk"], ()), held.get(row["pk"], ""), now) for row in _rows(wanted)}


def _rows(sessions: list[int]) -> Any:
    actor = Actor.objects.filter(session=OuterRef("pk")).order_by("-epoch")
    asked = InboxItem.objects.filter(session=OuterRef("pk"), kind="interaction").order_by("-id")
    return Stream.objects.filter(pk__in=sessions, kind="session").values(
        "pk", "head",
        actor_state=Subquery(actor.values("state")[:1]), actor_reason=Subquery(actor.values("reason")[:1]),
        pausing=Subquery(actor.values("pausing")[:1]),
        asked_state=Subquery(asked.values("state")[:1]), asked_outcome=Subquery(asked.values("outcome")[:1]),
        runner=F("lease__runner"), renewed_at=F("lease__runner__renewed_at"), wake_at=F("lease__wake_at"),
    )  # fmt: skip


def _facts(row: Mapping[str, Any], waiting: Iterable[WaitingApproval], held: str, now: datetime) -> SessionFacts:
    lease: HeldLease | None = None
    if row["runner"] is not None:
        age_s = max(0.0, (now - row["renewed_at"]).total_seconds())
        lease = {"runner": f"runner {row['runner']}", "age_s": round(age_s, 1)}
    overdue = lease is None and row["wake_at"] is not None
    return SessionFacts(
        head=row["head"], actor_state=row["actor_state"] or "", actor_reason=row["actor_reason"] or "",
        pausing=bool(row["pausing"]), asked_state=row["asked_state"] or "", asked_outcome=row["asked_outcome"] or "",
        lease=lease, overdue_s=(now - row["wake_at"]).total_seconds() if overdue else 0.0, held=held, waiting=tuple(waiting),
    )  # fmt: skip


def _waiting(sessions: list[int]) -> dict[int, list[WaitingApproval]]:
    """What waits for a person, by session; what has expired by now waits no more."""
    rows = Approval.objects.filter(session__in=sessions, state="waiting", kind__in=FOR_PEOPLE)
    author = Cast(KeyTextTransform("author", "action"), CharField())
    found: dict[int, list[WaitingApproval]] = {}
    for key, session, by in rows.order_by("id").values_list("pk", "session_id", author)[:WAITING_READ]:
        found.setdefault(session, []).append(WaitingApproval(key, by or ""))
    return found


def count_decidable(facts: SessionFacts, viewer: Viewer) -> int:
    """How many of what waits the viewer may decide. A person's answer follows from the facts; a token's ancestry is read."""
    if not viewer.may_decide:
        return 0
    others = [row.id for row in facts.waiting if row.author != viewer.author]
    if not others or not ancestry.token_key_of(viewer.author):
        return len(others)
    rows = Approval.objects.filter(pk__in=others[:CHECKED_FOR_TOKEN])
    return sum(not _is_own(row, viewer.author) for row in rows)


def _is_own(row: Approval, author: str) -> bool:
    try:
        ancestry.refuse_own_approval(row, author)
    except ancestry.OwnApproval:
        return True
    return False


def standing_for(facts: SessionFacts, viewer: Viewer) -> Standing:
    return decide_standing(facts, count_decidable(facts, viewer))


def read_standings(sessions: Iterable[int], viewer: Viewer) -> dict[int, Standing]:
    """How these sessions stand for the viewer, by their ids; who may see them is the caller's to know."""
    return {session: standing_for(facts, viewer) for session, facts in read_facts(sessions).items()}
