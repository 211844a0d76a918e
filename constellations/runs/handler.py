"""How an interaction is worked on: registers constellations with the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agents.engine.drives.work import OwnedSession, register_handler
from agents.errors import AgentsError
from agents.models import Agent
from agents.streams.row_types import InboxRow
from agents.streams.tables import Fields
from constellations.plan.keys.calls import COMMAND
from constellations.reads.subjects import subjects_of
from constellations.runs import planner
from constellations.runs.run import ConstellationWork
from constellations.services import adopt
from constellations.services.adopt import hand_down_files

Prepared = planner.PreparedPlan | adopt.ForkedGraph | adopt.ReopenedGraph


class ConstellationHandler:
    """Interactions become constellations."""

    def check(self, payload: Fields) -> None:
        _prepare(payload, "")

    def runs_commands(self, payload: Fields) -> bool:
        """Whatever is reopened or forked counts as running some, and so does what a rule may add."""
        prepared = _prepare(payload, "")
        if not isinstance(prepared, planner.PreparedPlan):
            return True
        return any(COMMAND in tools_of(part) for part in (prepared.plan.tasks, prepared.plan.rules))

    def prepare(self, payload: Fields, by: str) -> Prepared | AgentsError:
        """What `begin_run` takes, or the error that the constellation agent fails with."""
        try:
            prepared = _prepare(payload, by)
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


def tools_of(written: Any) -> Iterator[str]:
    """Names of tools, wherever they stand in tasks, steps and rules."""
    if isinstance(written, Mapping):
        yield from (COMMAND for key in written if key == COMMAND)  # as plans write it
        if isinstance(name := written.get("tool"), str):
            yield name
        written = list(written.values())
    if isinstance(written, list | tuple):
        for part in written:
            yield from tools_of(part)


def _prepare(payload: Fields, by: str) -> Prepared:
    return adopt.prepare_follow_up(payload, by) if adopt.is_about(payload) else planner.prepare_plan(payload)


register_handler(ConstellationHandler())
