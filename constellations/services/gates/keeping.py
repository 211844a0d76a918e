"""Who may take a gate away, and what is done about an edit whose author may not (docs/editing.md, "Gates")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from django.utils import timezone

from agents import ids
from agents.access import ancestry, lineage
from agents.access.approvers import why_no_approver
from agents.access.permissions import why_refused
from agents.engine import environment
from agents.gates.policies import Rule
from agents.models import Policy
from agents.services.policies import POLICIES
from agents.streams.row_types import PolicyRow
from constellations.editor.editor import MAX_PROBLEMS, Changes
from constellations.errors import GateKept, LimitReached
from constellations.live.live import LiveGraph
from constellations.reads import watching
from constellations.reads.devices import known_devices
from constellations.reads.task_authors import authors_of
from constellations.reads.watching import GateWatch
from constellations.services.gates import openings

REMEMBERED = 20_000
"""Actions whose gates were made or taken away by edits: one constellation remembers so many."""
TASKS = 50
"""Whose gates a token takes away in one edit; of more a person decides, because their authors are looked for one by one."""


def known_rules() -> list[Rule]:
    """The policies, in their order."""
    return [environment.rule_of(cast(PolicyRow, row)) for row in Policy.objects.order_by("order", "id").values()[:POLICIES]]


def watched_now() -> GateWatch:
    """The installation's devices and policies. Read it before a session's lock is taken: they have streams of their own."""
    return GateWatch(known_devices(), known_rules())


def weigh_gates(live: LiveGraph, changes: Changes, author: str, watched: GateWatch, *, approved: bool = False) -> None:
    """Raise GateKept where a change set lets something be done unasked, and its author may not decide that.

    Where it goes through, `changes.gates` is what the constellation has to remember from then on, None for nothing new.
    `approved`: a person has decided about it. Call it on the newest graph, under its lock, before the changes are applied.
    """
    if not changes:
        return
    remembered, found = set(live.constellation["gates"]), _found(live, changes, watched)
    kept = remembered | found.kept
    if found.problems:
        if not (approved or may_open(author, live, [task_id for task_id, _ in found.problems])):
            raise GateKept(found.problems[:MAX_PROBLEMS])
        kept -= {watching.name_of(key) for key in found.loose}
    if len(kept) > REMEMBERED:
        raise LimitReached(f"edits make or take away the gates of at most {REMEMBERED:,} actions in one constellation")
    if kept != remembered:
        changes.gates = sorted(kept)


def gates_taken_away(live: LiveGraph, changes: Changes, watched: GateWatch) -> list[str]:
    """What a change set would let be done unasked, in words."""
    return [message for _, message in _found(live, changes, watched).problems] if changes else []


def _found(live: LiveGraph, changes: Changes, watched: GateWatch) -> openings.Findings:
    graph = live.snapshot()
    return openings.find_gate_changes(
        graph.tasks, graph.dependencies, changes.before, changes.after, live.constellation["gates"], watched
    )


def may_open(author: str, live: LiveGraph, task_ids: Iterable[str]) -> bool:
    """Whether an author may decide what these tasks do unasked: somebody who could approve it.

    That is a person with the role for it, or a token with the scope for it that has no part in this run, nor has written these
    tasks, and neither has another one of its user. The planner never may.
    """
    kind, _, key = author.partition(":")
    return _is_free(key, live, task_ids) if kind == "token" else not why_no_approver(author)


def _is_free(key: str, live: LiveGraph, task_ids: Iterable[str]) -> bool:
    try:
        token = lineage.good_token(key)
    except lineage.TokenEnded:
        return False
    if why_refused(token.user, token, "approve"):
        return False
    if len(wanted := dict.fromkeys(task_ids)) > TASKS:
        return False
    hand = ancestry.UserTokens(key)
    rows = [live.nodes[task_id].row["id"] for task_id in wanted if task_id in live.nodes]
    writers = (hand.part_of_writers(list(authors_of(row))) for row in rows)
    return not (hand.part_in(ids.stream_of(live.constellation["id"]), timezone.now()) or any(writers))
