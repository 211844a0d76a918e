"""The page of one agent: where it stands, what it did, what it waits for. Its script takes the parts anew while it lives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_required
from django.db.models import Model, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from agents import ids
from agents.access.permissions import why_refused
from agents.crews.errand import CODING_AGENTS
from agents.machines import MACHINES
from agents.models import Agent, Approval, Evidence, Loop, PhaseRecord, Session, Transition
from agents.reads.authors import names_of
from agents.reads.printed import printed_tail
from agents.reads.verdicts import latest_verdict, set_since
from constellations.models import Attempt
from frontend import words

EVIDENCE_SHOWN = 200
TRANSITIONS_SHOWN = 100
APPROVALS_SHOWN = 50
CHILDREN_SHOWN = 50
PHASES_SHOWN = 100
"""Rows of each table, the latest."""
TEXT_SHOWN = 20_000
"""Characters of the blackboard."""
WORDS_SHOWN = 4_000
"""The last that a coding agent has said."""
SHORTEST_BAR = 0.4
"""Percent of a bar that a state has at least, so that none is invisible."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Span:
    """A state's part of the bar of times: `seconds` in it, and where its rectangle begins and how wide it is, in percent."""

    state: str
    seconds: float
    left: float
    width: float


@require_GET
@login_required
def agent_page(request: HttpRequest, pk: int) -> HttpResponse:
    """One agent; 404 where its session is not the user's to see."""
    seen = Agent.objects.filter(session__in=Session.objects.visible_to(request.user))
    found = get_object_or_404(seen.select_related("session", "device", "parent", "loop"), pk=pk)
    return render(request, "frontend/agent.html", _context(found, why_refused(request.user, None, "operate")))


def _context(agent: Agent, refused: str) -> dict[str, Any]:
    loop: Loop | None = getattr(agent, "loop", None)
    # The attempt it works on; an app agent works on its host's.
    workers = [agent.pk, *([agent.parent_id] if agent.parent_id else [])]
    attempts = of_session(Attempt.objects.filter(agent__in=workers), agent.session_id)
    attempt = attempts.select_related("task").order_by("-id").first()
    approvals = list(Approval.objects.filter(session=agent.session_id, agent=agent).order_by("-id")[:APPROVALS_SHOWN])
    names = names_of(row.decided_by for row in approvals)
    evidence = list(Evidence.objects.filter(loop=loop).order_by("-id")[:EVIDENCE_SHOWN]) if loop else []
    set_since(evidence)
    spent = _spent([agent.pk, *([loop.pk] if loop else [])])
    lives = agent.machine in MACHINES and not MACHINES[agent.machine].is_terminal(agent.state)
    return {
        "agent": agent,
        "machine_title": words.LINES[agent.machine][0] if agent.machine in words.LINES else agent.machine,
        "lives": lives,
        "loop": loop,
        "attempt": attempt,
        "spans": state_spans(agent.machine, agent.state, agent.entered_at, spent.get(agent.pk, {})),
        "loop_spans": state_spans("tool_loop", loop.state, loop.entered_at, spent.get(loop.pk, {})) if loop else [],
        "phases": list(PhaseRecord.objects.filter(agent=agent).order_by("number")[:PHASES_SHOWN]),
        "evidence": [(row, latest_verdict([row], lives=lives)) for row in evidence],
        "accepted": attempt.task.accepted if attempt else [],
        "may_go_on": lives and not refused,
        "is_program": agent.platform == CODING_AGENTS,
        "says": printed_tail(attempt.pk, WORDS_SHOWN)[1] if attempt and agent.platform == CODING_AGENTS else "",
        "blackboard": json.dumps(agent.blackboard, indent=2, ensure_ascii=False)[:TEXT_SHOWN] if agent.blackboard else "",
        "approvals": [(row, names[row.decided_by]) for row in approvals],
        "children": of_session(Agent.objects.filter(parent=agent), agent.session_id).order_by("id")[:CHILDREN_SHOWN],
        "transitions": Transition.objects.filter(subject_id=agent.pk).order_by("-id")[:TRANSITIONS_SHOWN],
    }


def of_session(rows: QuerySet[Row], session: int) -> QuerySet[Row]:
    """Those of one session, by their primary keys: the foreign keys of the busiest tables have no index."""
    low, high = ids.row_range(session)
    return rows.filter(pk__gte=low, pk__lt=high)


def _spent(subjects: list[int]) -> dict[int, dict[str, float]]:
    """Seconds by subject and state, of the states that were left."""
    rows = Transition.objects.filter(subject_id__in=subjects).order_by().values_list("subject_id", "from_state")
    found: dict[int, dict[str, float]] = {}
    for subject, state, seconds in rows.annotate(Sum("spent")):
        found.setdefault(subject, {})[state] = seconds or 0.0
    return found


def state_spans(machine: str, state: str, entered_at: datetime, spent: dict[str, float]) -> list[Span]:
    """The states it was in, in the machine's order; in the present one until now, unless that is its end."""
    seconds = dict(spent)
    table = MACHINES.get(machine)
    if table is None or not table.is_terminal(state):
        seconds[state] = seconds.get(state, 0.0) + max(0.0, (timezone.now() - entered_at).total_seconds())
    order = [name for name in (table.states if table else ()) if name in seconds]
    order += [name for name in seconds if name not in order]
    total = sum(seconds.values())
    wide = [max(SHORTEST_BAR, 100 * seconds[name] / total if total else 0.0) for name in order]
    scale, left, found = 100 / max(sum(wide), 1e-9), 0.0, []
    for name, width in zip(order, wide, strict=True):
        found.append(Span(name, seconds[name], round(left, 3), round(width * scale, 3)))
        left += width * scale
    return found
