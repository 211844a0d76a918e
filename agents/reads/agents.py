"""What a page on an agent shows of its work. Every read is bounded, and goes by keys: see `agents.ids`."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from agents import ids
from agents.crews.script import DELEGATIONS
from agents.models import Agent, Approval, Evidence
from agents.reads.verdicts import set_since

EVIDENCE_ROWS = 200
APPROVALS = 100
PHASES = 100
CHILDREN = 1_000
"""The latest that a page shows; of phases and children the first."""
TARGET_LENGTH = 500
ERROR_LENGTH = 2_000
"""Characters of an action's target and of its error that are shown."""
RECENT_ACTIONS = 20
FILES = 10_000
"""Files counted at most."""


def evidence_of(agent: int) -> QuerySet[Evidence]:
    """The agent's actions as a page shows them, oldest first: their long texts cut, without what they gave and got."""
    cut = {"target_start": Left("target", TARGET_LENGTH), "error_start": Left("raw_error", ERROR_LENGTH)}
    rows = Evidence.objects.filter(loop__agent=agent).order_by("id").annotate(**cut)
    return rows.defer("target", "raw_error", "arguments", "result", "call", "error", "outcome", "before", "exit_code")


def latest_evidence(agent: int) -> list[Evidence]:
    """Its last rows, oldest first."""
    rows = list(evidence_of(agent).order_by("-id")[:EVIDENCE_ROWS])[::-1]
    set_since(rows)
    return rows


def progress_of(agent: int, evidence: list[Evidence]) -> dict[str, int]:
    """What `evidence`, its last rows, and the files it changed say of how the work goes."""
    ended = [row.success for row in evidence if row.kind in Evidence.ACTIONS and row.success is not None]
    recent = ended[-RECENT_ACTIONS:]
    changes = Evidence.objects.filter(loop__agent=agent, before__isnull=False, outcome__isnull=False)
    files = changes.exclude(before=F("outcome")).order_by().values("target").distinct()[:FILES]
    failed_at_the_end = len(ended) if True not in ended else ended[::-1].index(True)
    return {
        "files_modified": files.count(), "recent_successes": sum(recent),
        "recent_failures": len(recent) - sum(recent), "consecutive_errors": failed_at_the_end,
    }  # fmt: skip


def approvals_of(agent: Agent) -> list[Approval]:
    """The latest that the agent asked for, oldest first."""
    low, high = ids.row_range(agent.session_id)
    rows = Approval.objects.filter(session=agent.session_id, agent=agent.pk, id__gte=low, id__lt=high)
    return list(rows.order_by("-id")[:APPROVALS])[::-1]


def agents_below(agent: int, levels: int = DELEGATIONS) -> list[int]:
    """Ids of the agents that `agent` delegated to, and those in turn, in the order they began. A child is younger."""
    beyond = ids.row_range(ids.stream_of(agent))[1]
    wanted, path = Q(), "parent"
    for _ in range(levels):
        wanted |= Q(**{path: agent})
        path = f"parent__{path}"
    rows = Agent.objects.filter(wanted, id__gt=agent, id__lt=beyond)
    return list(rows.order_by("id").values_list("pk", flat=True)[:CHILDREN])
