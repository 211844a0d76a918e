"""How an interaction is worked on: registers constellations with the engine."""

from __future__ import annotations

from typing import Any

from agents.engine.drive import Drive
from agents.engine.registry import register_handler
from agents.errors import AgentsError
from agents.tables import Fields
from constellations import planner
from constellations.work import ConstellationWork


class ConstellationHandler:
    """Interactions become constellations."""

    def check(self, payload: Fields) -> None:
        planner.prepare(payload)

    def prepare(self, payload: Fields) -> Any:
        """The plan and its changes, or the error that the constellation agent fails with."""
        try:
            return planner.prepare(payload)
        except AgentsError as error:
            return error

    def open(self, drive: Drive, interaction: Fields) -> ConstellationWork:
        return ConstellationWork(drive, interaction)

    def load(self, drive: Drive, interaction: Fields) -> ConstellationWork:
        work = ConstellationWork(drive, interaction)
        work.load()
        return work


register_handler(ConstellationHandler())
