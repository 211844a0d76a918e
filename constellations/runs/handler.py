"""How an interaction is worked on: registers constellations with the engine."""

from __future__ import annotations

from datetime import datetime

from agents.engine.drives.work import OwnedSession, register_handler
from agents.errors import AgentsError
from agents.models import Agent
from agents.streams.row_types import InboxRow
from agents.streams.tables import Fields
from constellations.plan.plan import Plan
from constellations.reads.subjects import subjects_of
from constellations.runs.run import ConstellationWork
from constellations.services import adopt, plans
from constellations.services.adopt import hand_down_files

Prepared = Plan | adopt.ForkedGraph | adopt.ReopenedGraph


class ConstellationHandler:
    """Interactions become constellations."""

    def check(self, payload: Fields) -> plans.CheckedPlan | adopt.CheckedFollowUp:
        if adopt.is_about(payload):
            adopt.prepare_follow_up(payload, "")
            return adopt.CheckedFollowUp(payload)
        return plans.check_plan(payload)

    def prepare(self, item: InboxRow) -> Prepared | AgentsError:
        """What `begin_run` takes, or the error that the constellation agent fails with."""
        try:
            if not adopt.is_about(item["payload"]):
                return plans.requested_plan(item["id"], item["payload"])
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
        work.load()
        return work

    def subjects(self, agent: Agent) -> list[tuple[datetime, int]]:
        return subjects_of(agent)


register_handler(ConstellationHandler())
