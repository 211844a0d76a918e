"""The planner in its editing mode: what it proposes when tasks have ended becomes edits (docs/plans.md, "Replan rules")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.errors import AgentsError
from agents.streams.statements import cursor, store
from agents.streams.tables import Fields
from agents.streams.turn import PIECE, Turn
from constellations.errors import LimitReached
from constellations.limits import EDITING_SESSIONS, REOPEN
from constellations.live.rows import Node
from constellations.machines import CONSTELLATION_AGENT
from constellations.reads.watching import Watched
from constellations.runs import planner
from constellations.services.dispatcher import InTurn, commands_of, execute_commands
from constellations.services.edits import PLANNERS

if TYPE_CHECKING:
    from constellations.runs.run import ConstellationWork

EDITING = "editing"
"""The weaving mode of an editing session; the other is `creation` (beginnings)."""
SO_FAR = "SELECT count(*) FROM agents_transition WHERE subject_id = %s AND event = 'edited'"
"""Editing sessions of a constellation agent; one may make several edits, or none."""


class Replanning:
    """`failure` names the limit that was reached, if one was; `ending` is the rule that ends the run or begins it once more."""

    def __init__(self, work: ConstellationWork):
        self._work = work
        self._sessions = 0
        self.failure = ""
        self.ending: planner.Proposal | None = None

    def load(self) -> None:
        self._sessions = store().execute(cursor(), SO_FAR, (self._work.agent["id"],)).fetchone()[0]

    def session(self, turn: Turn) -> None:
        """One editing session over all ends that wait; it edits if any rule of the plan answers to them."""
        work = self._work
        assert work.live is not None
        proposals, notes = planner.propose(work.live, work.drive.devices)
        self._record_taken(turn, work.live.take_news())
        for note in notes:
            turn.record("condition_unknown", message=note)
        if not proposals:
            return
        if self._sessions >= EDITING_SESSIONS:
            self.failure = f"limit reached: {EDITING_SESSIONS} editing sessions"
            return
        self._sessions += 1
        for proposal in proposals:
            if proposal.does == "edit":
                self._apply(turn, proposal)
                continue
            self._count(proposal)
            if proposal.does == "restart" and REOPEN in work.interaction["payload"]:
                self._refuse(turn, proposal, "the constellation was reopened, so there is no request to plan anew")
                continue  # the run goes on, so the others have their say
            self.ending = proposal
            break  # nothing is left to be changed for the others
        turn.transition(
            CONSTELLATION_AGENT, "agent", work.agent, "edited", reason="; ".join(p.rule for p in proposals)[:500],
            also={"constellation": {str(work.subject): {"fired": work.constellation["fired"]}}},
        )  # fmt: skip

    def _record_taken(self, turn: Turn, taken: list[Node]) -> None:
        """The record of an editing session, in pieces: which ends it took. No other session takes them again."""
        for at in range(0, len(taken), PIECE):
            piece = taken[at : at + PIECE]
            turn.record(
                "ends_taken", mode=EDITING, agent_id=self._work.agent["id"], tasks=[node.key for node in piece],
                set={"task": {str(node.row["id"]): {"untold": False} for node in piece}},
            )  # fmt: skip

    def _apply(self, turn: Turn, proposal: planner.Proposal) -> None:
        work = self._work
        assert work.live is not None
        count = self._count(proposal)
        devices = {row["name"]: row for row in work.drive.devices.values()}
        target = InTurn(work.live, turn, Watched(devices, work.drive.policies))
        commands, edit_id = commands_of(proposal.operations), f"{PLANNERS}{proposal.rule}:{count}"
        try:
            done = execute_commands(commands, target, author=planner.AUTHOR, reason=proposal.reason, edit_id=edit_id)
        except LimitReached as error:
            self.failure = str(error)
            return
        except AgentsError as error:
            self._refuse(turn, proposal, str(error), error.problems)
            return
        work.set_deadlines(entry["task"] for entry in done.diff if "task" in entry and entry["change"] != "removed")

    def _refuse(self, turn: Turn, proposal: planner.Proposal, message: str, problems: Sequence[Fields] = ()) -> None:
        turn.record("edit_refused", rule=proposal.rule, message=message, problems=list(problems))

    def _count(self, proposal: planner.Proposal) -> int:
        """How often the rule has fired now."""
        fired = self._work.constellation["fired"]
        count = fired.get(proposal.rule, 0) + 1
        self._work.constellation["fired"] = {**fired, proposal.rule: count}
        return count
