"""How an interaction is worked on: registers constellations with the engine."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from agents.engine.drives.work import OwnedSession, register_handler
from agents.errors import AgentsError
from agents.models import Agent
from agents.streams.row_types import InboxRow
from agents.streams.tables import Fields
from constellations.errors import LimitReached, PlanRejected
from constellations.limits import PLANNING_S
from constellations.plan.plain_text.text import HINT
from constellations.plan.plan import Plan
from constellations.reads.draining import preview_drain
from constellations.reads.holding import held_sessions
from constellations.reads.memory import read_memory
from constellations.reads.queues import count_queued
from constellations.reads.subjects import subjects_of
from constellations.runs.run import ConstellationWork
from constellations.services import adopt, plans
from constellations.services.adopt import hand_down_files

Prepared = Plan | plans.Words | adopt.ForkedGraph | adopt.ReopenedGraph


class ConstellationHandler:
    """Interactions become constellations."""

    def check(self, payload: Fields) -> plans.CheckedPlan | plans.CheckedWords | adopt.CheckedFollowUp:
        if adopt.is_about(payload):
            adopt.prepare_follow_up(payload, "")
            return adopt.CheckedFollowUp(payload)
        return plans.check_plan(payload)

    def prepare(self, item: InboxRow) -> Prepared | AgentsError:
        """What `begin_run` takes, or the error that the constellation agent fails with."""
        began = time.monotonic()
        prepared = self._prepare(item)
        if time.monotonic() - began > PLANNING_S:
            return LimitReached(f"{PLANNING_S:g} s for a creation")
        return prepared

    def _prepare(self, item: InboxRow) -> Prepared | AgentsError:
        try:
            if not adopt.is_about(item["payload"]):
                return _requested(item)
            prepared = adopt.prepare_follow_up(item["payload"], item["by"])
            if isinstance(prepared, adopt.ForkedGraph):
                hand_down_files(prepared.fields["forked_from_id"])
            return prepared
        except AgentsError as error:
            return error

    def open(self, drive: OwnedSession, interaction: InboxRow) -> ConstellationWork:
        return ConstellationWork(drive, interaction)

    def load(self, drive: OwnedSession, interaction: InboxRow) -> ConstellationWork:
        work = ConstellationWork(drive, interaction)
        work.load(lambda: _read_words(interaction), lambda: read_memory(interaction["session_id"], interaction["id"]))
        return work

    def preview_drain(self, device: int, user: Any) -> Fields:
        return preview_drain(device, user)

    def count_queued(self) -> dict[int, int]:
        return count_queued()

    def held_sessions(self, sessions: list[int]) -> dict[int, str]:
        return held_sessions(sessions)

    def subjects(self, agent: Agent) -> list[tuple[datetime, int]]:
        return subjects_of(agent)


def _requested(item: InboxRow) -> Plan | plans.Words:
    """The plan that an interaction asks for, or the words that a model makes one of."""
    try:
        return plans.requested_plan(item["id"], item["payload"])
    except PlanRejected as refused:
        return _with_memory(item, refused)


def _with_memory(item: InboxRow, refused: PlanRejected) -> plans.Words:
    """The words, and what the session did before them."""
    words = plans.read_words(item["session_id"], item["payload"], refused)
    return replace(words, memory=read_memory(item["session_id"], item["id"]))


def _read_words(item: InboxRow) -> plans.Words | AgentsError:
    """The words of an interaction whose creation is under way, or why nobody can be asked about them any more."""
    try:
        refused = PlanRejected([{"line": None, "key": "", "message": HINT}], "request")
        return _with_memory(item, refused)
    except AgentsError as error:
        return error


register_handler(ConstellationHandler())
