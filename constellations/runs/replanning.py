"""The planner in its editing mode: what it proposes when tasks have ended becomes edits (docs/plans.md, "Replan rules")."""

from __future__ import annotations

from collections.abc import Sequence

from agents.errors import AgentsError
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import Fields
from agents.streams.turn import PIECE, Turn
from constellations.errors import LimitReached
from constellations.limits import EDITING_SESSIONS, REOPEN
from constellations.live.rows import Node
from constellations.machines import CONSTELLATION_AGENT
from constellations.reads.watching import GateWatch
from constellations.runs import planner
from constellations.runs.context import Context
from constellations.runs.planner import ReplanResult
from constellations.runs.rules import Firing
from constellations.services.dispatcher import InTurn, commands_of, execute_commands
from constellations.services.edits import PLANNERS

EDITING = "editing"
"""The weaving mode of an editing session; the other is `creation` (beginnings)."""
SO_FAR = "SELECT count(*) FROM agents_transition WHERE subject_id = %s AND event = 'edited'"
"""Editing sessions of a constellation agent; one may make several edits, or none."""


class Replanning:
    """Counts the editing sessions of one constellation agent."""

    def __init__(self, context: Context):
        self._context = context

    def load(self) -> None:
        self._context.editing_sessions = (
            current_store().execute(raw_cursor(), SO_FAR, (self._context.agent["id"],)).fetchone()[0]
        )

    def take_ends(self, turn: Turn) -> list[Node]:
        """All ends that wait; no session takes them again. Where the run is given up, nobody answers to them."""
        context = self._context
        taken = context.graph.take_news()
        for at in range(0, len(taken), PIECE):
            piece = taken[at : at + PIECE]
            turn.record(
                "ends_taken", mode=EDITING, agent_id=context.agent["id"], tasks=[node.key for node in piece],
                set={"task": {str(node.row["id"]): {"untold": False} for node in piece}},
            )  # fmt: skip
        return taken

    def session(self, turn: Turn) -> ReplanResult:
        """One editing session over all ends that wait; it edits if any rule of the plan answers to them."""
        context = self._context
        firings, notes = planner.find_firings(context.graph, context.devices)
        replanned = ReplanResult(self.take_ends(turn))
        for note in notes:
            turn.record("condition_unknown", message=note)
        if not firings:
            return replanned
        if context.editing_sessions >= EDITING_SESSIONS:
            replanned.failure = f"limit reached: {EDITING_SESSIONS} editing sessions"
            return replanned
        context.editing_sessions += 1
        for firing in firings:
            if firing.does == "edit":
                self._apply(turn, firing, replanned)
                continue
            self._count(firing)
            if firing.does == "restart" and REOPEN in context.interaction["payload"]:
                self._refuse(turn, firing, "the constellation was reopened, so there is no request to plan anew")
                continue  # the run goes on, so the others have their say
            replanned.ending = firing
            break  # nothing is left to be changed for the others
        turn.transition(
            CONSTELLATION_AGENT, "agent", context.agent, "edited", reason="; ".join(firing.rule for firing in firings)[:500],
            also={"constellation": {str(context.constellation["id"]): {"fired": context.constellation["fired"]}}},
        )  # fmt: skip
        return replanned

    def _apply(self, turn: Turn, firing: Firing, replanned: ReplanResult) -> None:
        context, count = self._context, self._count(firing)
        target = InTurn(context.graph, turn, GateWatch(context.known_devices, context.policies))
        commands, edit_id = commands_of(firing.operations), f"{PLANNERS}{firing.rule}:{count}"
        try:
            done = execute_commands(commands, target, author=planner.AUTHOR, reason=firing.reason, edit_id=edit_id)
        except LimitReached as error:
            replanned.failure = str(error)
        except AgentsError as error:
            self._refuse(turn, firing, str(error), error.problems)
        else:
            replanned.timed += [
                entry["task"] for entry in done.diff if "task" in entry and entry["change"] != "removed"
            ]  # fmt: skip

    def _refuse(self, turn: Turn, firing: Firing, message: str, problems: Sequence[Fields] = ()) -> None:
        turn.record("edit_refused", rule=firing.rule, message=message, problems=list(problems))

    def _count(self, firing: Firing) -> int:
        """How often the rule has fired now."""
        constellation = self._context.constellation
        count: int = constellation["fired"].get(firing.rule, 0) + 1
        constellation["fired"] = {**constellation["fired"], firing.rule: count}
        return count
