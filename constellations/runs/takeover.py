"""What a runner reads of a run that another one has begun (docs/engine.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agents.streams.garbage import note_rows_made, nothing_collected
from agents.streams.row_types import AgentRow, LoopRow
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import fold_rows
from constellations.live.live import LiveGraph
from constellations.live.row_types import AttemptRow, ConstellationRow
from constellations.live.rows import Node
from constellations.machines import CONSTELLATION_AGENT
from constellations.runs.context import Context, Start

if TYPE_CHECKING:
    from agents.engine.drives.work import OwnedSession

OPEN_ATTEMPTS = (
    "outcome = '' AND task_id IN (SELECT id FROM constellations_task WHERE constellation_id = %s AND state = 'RUNNING')"
)
OPEN_LOOPS = f"agent_id IN (SELECT agent_id FROM constellations_attempt WHERE {OPEN_ATTEMPTS})"
OF_THE_RUN = "interaction_id = %s AND machine = %s"
QUEUES = "SELECT device_id FROM agents_slotrequest WHERE session_id = %s"


def load_context(context: Context, drive: OwnedSession, on_ready: Callable[[Node], None]) -> int:
    """Rows of the run into `context`: its constellation, its agent, its graph, its open attempts; how often it was restarted.

    There is no constellation where a model still makes the first plan, and no graph where the run was about to begin once more.
    """
    constellations: list[ConstellationRow] = drive.read("constellation", "interaction_id = %s", context.interaction["id"])
    if not constellations:
        agents: list[AgentRow] = drive.read("agent", OF_THE_RUN, context.interaction["id"], CONSTELLATION_AGENT.name)
        context.agent = agents[0] if agents else context.agent
        return 0
    context.constellation = constellations[-1]
    context.agent = drive.read("agent", "id = %s", context.constellation["agent_id"])[0]
    if context.agent["state"] != CONSTELLATION_AGENT.initial:
        context.live = live = LiveGraph(context.constellation, on_ready)
        key = context.constellation["id"]
        with nothing_collected():
            tasks = drive.read("task", "constellation_id = %s", key)
            live.load(tasks, drive.read("dependency", "constellation_id = %s", key))
            note_rows_made(len(live.nodes))
        loops: dict[int, LoopRow] = {row["agent_id"]: row for row in fold_rows("loop", OPEN_LOOPS, key)}
        attempts: list[AttemptRow] = drive.read("attempt", OPEN_ATTEMPTS, key)
        for row in attempts:
            agent: AgentRow = drive.read("agent", "id = %s", row["agent_id"])[0]
            context.attempts[row["id"]] = Start(live.ids[row["task_id"]], agent, row, loops.get(row["agent_id"]))
    return len(constellations) - 1


def queued_devices(session: int) -> list[int]:
    """Devices in whose queues for slots the session is."""
    return [device for (device,) in current_store().execute(raw_cursor(), QUEUES, (session,)).fetchall()]
