"""Editing sessions with a model: it is told which tasks have ended, and its answer is one change set, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.llm.profiles import Profile, choose_profiles
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations.editor import editor
from constellations.errors import EditRefused
from constellations.limits import EDITING_SESSIONS, REOPEN
from constellations.live.rows import Node
from constellations.machines import CONSTELLATION_AGENT
from constellations.plan.hidden_texts import refuse_hidden
from constellations.prompts.answers import Answer
from constellations.prompts.scene import Scene
from constellations.reads.watching import GateWatch
from constellations.runs.context import Context
from constellations.runs.planner import AUTHOR, ReplanResult, RunEnding, ended_task
from constellations.runs.weaving.model_calls import EDITING, GivenUp, ModelCalls
from constellations.runs.weaving.scenes import editing_scene
from constellations.services.dispatcher import InTurn, execute_commands, operations_of
from constellations.services.edits import MODELS, REASON_LENGTH

REASON = 500
"""Characters of a transition's reason, and of that with which a model ends a run."""
NAMED = 5
"""Open tasks that a refusal names."""


class ModelEditing:
    """Of one constellation agent."""

    def __init__(self, context: Context, calls: ModelCalls):
        self._context, self._calls = context, calls

    @property
    def listens(self) -> bool:
        """Whether a model edits this constellation."""
        return bool(self._profile)

    @property
    def _profile(self) -> str:
        name: str = self._context.constellation.get("model_profiles", {}).get(EDITING, "")
        return name

    def load(self) -> None:
        """After another runner began it, perhaps with a session under way."""
        self._calls.choose = self._choose

    def _choose(self) -> tuple[Profile, ...]:
        return choose_profiles(self._context.profiles, EDITING, self._profile)

    def begin(self, turn: Turn, taken: Sequence[Node]) -> None:
        """A session over the ends that were taken; raises GivenUp."""
        context = self._context
        if context.editing_sessions >= EDITING_SESSIONS:
            raise GivenUp(f"limit reached: {EDITING_SESSIONS} editing sessions")
        context.editing_sessions += 1
        context.said = None
        rows = [node.row for node in taken]
        self._calls.begin(
            turn, EDITING, self._choose, editing_scene(context, [ended_task(row, context.devices) for row in rows]),
            editing_session=context.editing_sessions,
            taken=[{"task_id": row["task_id"], "state": row["state"], "reason": row["reason"]} for row in rows],
        )  # fmt: skip

    def decide(self, turn: Turn, now: float) -> ReplanResult | None:
        """What came of the session, once the model has answered. Raises GivenUp."""
        self._calls.cut_off_late(turn, now)
        return self._calls.settle(turn, self._scene, lambda answer: self._use(turn, answer))

    def _scene(self) -> Scene:
        """The newest graph, and what the session has taken; a task that is gone has nothing more to tell."""
        context = self._context
        taken = [each["task_id"] for each in self._calls.rows[0]["taken"]]
        rows = [context.graph.nodes[key].row for key in taken if key in context.graph.nodes]
        return editing_scene(context, [ended_task(row, context.devices) for row in rows])

    def _use(self, turn: Turn, answer: Answer) -> tuple[ReplanResult, Fields]:
        """Carry out what the model decided; raises what the editor refuses."""
        said: Fields = {"said": answer.result}
        why = str(answer.result or answer.thought or "the model does not say why")[:REASON]
        if answer.status == "FAIL":
            return ReplanResult(ending=RunEnding("fail", why)), {"result": said}
        if answer.status == "START":
            if REOPEN in self._context.interaction["payload"]:
                raise _refusal("START: the constellation was reopened, so there is no request to plan anew")
            return ReplanResult(ending=RunEnding("restart", answer.thought[:REASON])), {"result": said}
        if answer.status == "FINISH" and (left := self._left_open(answer.actions)):
            more = f" and {len(left) - NAMED:,} more" if len(left) > NAMED else ""
            raise _refusal(f"FINISH: not everything has ended yet: {', '.join(left[:NAMED])}{more}. CONTINUE, or remove them")
        replanned, done = self._edit(turn, answer)
        if answer.status == "FINISH":
            self._context.said = answer.result
        turn.transition(CONSTELLATION_AGENT, "agent", self._context.agent, "edited", reason=answer.thought[:REASON])
        return replanned, {"result": {**said, **done}, "version_after": self._context.constellation["version"]}

    def _edit(self, turn: Turn, answer: Answer) -> tuple[ReplanResult, Fields]:
        """The one edit of the session."""
        replanned = ReplanResult()
        if not answer.actions:
            return replanned, {"changed": False}
        refuse_hidden(operations_of(answer.actions))
        context, row = self._context, self._calls.rows[-1]
        done = execute_commands(
            answer.actions, InTurn(context.graph, turn, GateWatch(context.known_devices, context.policies)), author=AUTHOR,
            reason=answer.thought[:REASON_LENGTH], edit_id=f"{MODELS}{row['agent_id']}:{row['editing_session']}",
        )  # fmt: skip
        replanned.timed = [entry["task"] for entry in done.diff if "task" in entry and entry["change"] != "removed"]
        return replanned, {"changed": done.changed, "edit_id": done.edit_id}

    def _left_open(self, actions: Sequence[Any]) -> list[str]:
        """The tasks that would be open after these actions."""
        live, changes = self._context.graph, editor.Changes()
        if actions:
            changes = editor.apply_operations(live.snapshot(), operations_of(actions), self._context.known_devices)
        gone = set(changes.removed_tasks)
        added = [row["task_id"] for row in changes.added_tasks]
        return [*(key for key, node in live.nodes.items() if not node.ended and key not in gone), *added]


def _refusal(message: str) -> EditRefused:
    return EditRefused([{"operation": None, "op": "", "field": "status", "message": message}], conflict=True)
