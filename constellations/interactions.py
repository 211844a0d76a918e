"""How an interaction is worked on: registers constellations with the engine."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agents.engine.drive import Drive
from agents.engine.registry import register_handler
from agents.errors import AgentsError
from agents.models import Agent
from agents.tables import Fields
from constellations import adoption, planner
from constellations.adoption import hand_down_files
from constellations.subjects import subjects_of
from constellations.work import ConstellationWork


class ConstellationHandler:
    """Interactions become constellations."""

    def check(self, payload: Fields) -> None:
        _prepare(payload)

    def prepare(self, payload: Fields) -> Any:
        """What `beginnings.begin` takes, or the error that the constellation agent fails with."""
        try:
            prepared = _prepare(payload)
            if isinstance(prepared, adoption.Forked):
                hand_down_files(prepared.fields["forked_from_id"])
            return prepared
        except AgentsError as error:
            return error

    def open(self, drive: Drive, interaction: Fields) -> ConstellationWork:
        return ConstellationWork(drive, interaction)

    def load(self, drive: Drive, interaction: Fields) -> ConstellationWork:
        work = ConstellationWork(drive, interaction)
        work.load()
        return work

    def subjects(self, agent: Agent) -> list[tuple[datetime, int]]:
        return subjects_of(agent)


def _prepare(payload: Fields) -> Any:
    return adoption.prepare(payload) if adoption.is_about(payload) else planner.prepare(payload)


register_handler(ConstellationHandler())
