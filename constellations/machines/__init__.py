"""The tables of the task, the constellation and the constellation agent.

May import: agents.
Begin at: constellations.machines.task, constellations.machines.constellation, constellations.machines.constellation_agent.
Called by: live, runs and models; the machinery that reads the tables is agents.machines.
"""

from constellations.machines.constellation import CONSTELLATION
from constellations.machines.constellation_agent import CONSTELLATION_AGENT
from constellations.machines.task import TASK

__all__ = ["CONSTELLATION", "CONSTELLATION_AGENT", "TASK"]
