"""The planner in its editing mode: what it proposes when tasks have ended becomes edits (docs/plans.md, "Replan rules")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.errors import AgentsError
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import Fields
from agents.streams.turn import PIECE, Turn
from constellations.errors import LimitReached
from constellations.limits import EDITING_SESSIONS, REOPEN
from constellations.machines import CONSTELLATION_AGENT
from constellations.reads.watching import GateWatch
from constellations.runs import planner
from constellations.runs.context import Context
from constellations.services.dispatcher import InTurn, commands_of, execute_commands
from constellations.services.edits import PLANNERS

EDITING = "editing"
"""The weaving mode of an editing session; the other is `creation` (beginnings)."""
SO_FAR = "SELECT count(*) FROM agents_transition WHERE subject_id = %s AND event = 'edited'"
"""Editing sessions of a constellation agent; one may make several edits, or none."""


@dataclass(slots=True)
class Replanned:
    """What came of an editing session. `timed` are tasks that may have a new deadline, some of which may be gone.

    `failure` names the limit that was reached, if one was; `ending` is the rule that ends the run or begins it once more.
    """

    timed: list[str] = field(default_factory=list)
    failure: str = ""
    ending: planner.RuleProposal | None = None


class Replanning:
    """Counts the editing sessions of one constellation agent."""

    def __init__(self, context: Context):
        self._context = context
        self._sessions = 0

    def load(self) -> None:
        self._sessions = current_store().execute(raw_cursor(), SO_FAR, (self._context.agent["id"],)).fetchone()[0]

    def session(self, turn: Turn) -> Replanned:
        """One editing session over all ends that wait; it edits if any rule of the plan answers to them."""
        context, replanned = self._context, Replanned()
        proposals, notes = planner.propose_firings(context.graph, context.devices)
        taken = context.graph.take_news()
        for at in range(0, len(taken), PIECE):  # no other session takes these ends again
            piece = taken[at : at + PIECE]
            turn.record(
                "ends_taken", mode=EDITING, agent_id=context.agent["id"], tasks=[node.key for node in piece],
                set={"task": {str(node.row["id"]): {"untold": False} for node in piece}},
            )  # fmt: skip
        for note in notes:
            turn.record("condition_unknown", message=note)
        if not proposals:
            return replanned
        if self._sessions >= EDITING_SESSIONS:
            replanned.failure = f"limit reached: {EDITING_SESSIONS} editing sessions"
            return replanned
        self._sessions += 1
        for proposal in proposals:
            if proposal.does == "edit":
                self._apply(turn, proposal, replanned)
                continue
            self._count(proposal)
            if proposal.does == "restart" and REOPEN in context.interaction["payload"]:
                self._refuse(turn, proposal, "the constellation was reopened, so there is no request to plan anew")
                continue  # the run goes on, so the others have their say
            replanned.ending = proposal
            break  # nothing is left to be changed for the others
        turn.transition(
            CONSTELLATION_AGENT, "agent", context.agent, "edited", reason="; ".join(p.rule for p in proposals)[:500],
            also={"constellation": {str(context.constellation["id"]): {"fired": context.constellation["fired"]}}},
        )  # fmt: skip
        return replanned

    def _apply(self, turn: Turn, proposal: planner.RuleProposal, replanned: Replanned) -> None:
        context, count = self._context, self._count(proposal)
        devices = {row["name"]: row for row in context.devices.values()}
        target = InTurn(context.graph, turn, GateWatch(devices, context.policies))
        commands, edit_id = commands_of(proposal.operations), f"{PLANNERS}{proposal.rule}:{count}"
        try:
            done = execute_commands(commands, target, author=planner.AUTHOR, reason=proposal.reason, edit_id=edit_id)
        except LimitReached as error:
            replanned.failure = str(error)
        except AgentsError as error:
            self._refuse(turn, proposal, str(error), error.problems)
        else:
            replanned.timed += [
                entry["task"] for entry in done.diff if "task" in entry and entry["change"] != "removed"
            ]  # fmt: skip

    def _refuse(self, turn: Turn, proposal: planner.RuleProposal, message: str, problems: Sequence[Fields] = ()) -> None:
        turn.record("edit_refused", rule=proposal.rule, message=message, problems=list(problems))

    def _count(self, proposal: planner.RuleProposal) -> int:
        """How often the rule has fired now."""
        constellation = self._context.constellation
        count: int = constellation["fired"].get(proposal.rule, 0) + 1
        constellation["fired"] = {**constellation["fired"], proposal.rule: count}
        return count
