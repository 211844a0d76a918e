"""Agents that are or were taken for stuck, with what people say of them: for whoever looks after the rules (docs/stuck.md)."""

from __future__ import annotations

from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from agents import ids
from agents.machines import DEVICE_AGENT
from agents.models import Evidence, Loop, Session
from agents.reads.verdicts import describe_rule, describe_verdict, set_since

PAGE = 50
"""Loops of one page, the latest first."""
SCANNED = 5_000
"""Rows of evidence with a verdict that are looked at, the latest."""
ROWS_SHOWN = 12
"""Rows of evidence that are told of one loop: those that the verdict names."""
SAID = ("", "stuck", "free", "open")
"""What a person says of it: anything, that it was stuck, that it was not, nothing yet."""


def stuck_loops(user: Any, *, rule: str = "", said: str = "", before: int | None = None) -> dict[str, Any]:
    """{"results", "next", "rules"}: loops whose rows have a verdict, with the latest of them, in sessions that `user` may see.

    `rule`: only verdicts of this rule; `said`: one of SAID; `before`: the id of a loop, older ones only.
    """
    judged = Evidence.objects.filter(verdict__isnull=False, loop__agent__session__in=Session.objects.visible_to(user))
    latest = list(judged.order_by("-id").values_list("loop_id", flat=True)[:SCANNED])
    loops: QuerySet[Loop] = Loop.objects.filter(pk__in=set(latest)).select_related("agent__session", "agent__device")
    newest = Evidence.objects.filter(loop=OuterRef("pk"), verdict__isnull=False).order_by("-number")
    loops = loops.annotate(judged=Subquery(newest.values("pk")[:1]))
    rules = _rules_of(judged)
    if rule:
        loops = loops.filter(pk__in=judged.filter(verdict__rule=rule).values("loop_id"))
    if said == "open":
        loops = loops.filter(label__isnull=True)
    elif said:
        loops = loops.filter(label__stuck=said == "stuck")
    if before is not None:
        loops = loops.filter(pk__lt=before)
    found = list(loops.order_by("-pk")[: PAGE + 1])
    rows = {row.pk: row for row in Evidence.objects.filter(pk__in=[one.judged for one in found[:PAGE]])}
    results = [_described(one, rows[one.judged]) for one in found[:PAGE]]
    return {"results": results, "next": found[PAGE - 1].pk if len(found) > PAGE else None, "rules": rules}


def _rules_of(judged: QuerySet[Evidence]) -> list[tuple[str, str, int]]:
    """(rule, in plain words, how often) of the latest verdicts, the most frequent first."""
    counts: dict[str, int] = {}
    for rule in judged.order_by("-id").values_list("verdict__rule", flat=True)[:SCANNED]:
        counts[rule] = counts.get(rule, 0) + 1
    return [(rule, describe_rule(rule), count) for rule, count in sorted(counts.items(), key=lambda each: -each[1])]


def _described(loop: Loop, row: Evidence) -> dict[str, Any]:
    set_since([row])
    verdict = describe_verdict(row) or {}
    named = Evidence.objects.filter(loop=loop.pk).filter(Q(number__in=verdict.get("rows", [])[-ROWS_SHOWN:]))
    evidence = named.order_by("number").values(
        "number", "kind", "tool", "target", "success", "raw_error", "started_at", loop_agent=F("loop__agent_id")
    )
    return {
        "loop": loop.pk, "session": ids.stream_of(loop.pk), "title": str(loop.agent.session), "agent": loop.agent_id,
        "name": loop.agent.name, "device": loop.agent.device.name if loop.agent.device else "", "state": loop.state,
        "lives": not DEVICE_AGENT.is_terminal(loop.agent.state), "verdict": verdict, "evidence": list(evidence),
        "label": loop.label,
    }  # fmt: skip
