"""The state machines of what is to be done."""

from constellations.machines.constellation import CONSTELLATION
from constellations.machines.constellation_agent import CONSTELLATION_AGENT
from constellations.machines.task import TASK

__all__ = ["CONSTELLATION", "CONSTELLATION_AGENT", "TASK"]
