"""What the constellation agent asks its model in one creation or editing session, until an answer can be used.

Each call is a row and a body (agents.minds.calls). One that a runner took with it when it died is made again, by a row of its
own. An answer that cannot be used is asked for again, with what is wrong with it; all of them stay on record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agents.clock import from_iso
from agents.errors import AgentsError
from agents.gates.approvals import expire_approval, has_expired, use_approval, withdraw_approval
from agents.llm.conversation import Message, Text, ToolCall, read_conversation
from agents.llm.exchange import CALL_S, Patience
from agents.llm.faults import AnswerEmpty, AnswerTooLarge, AnswerUnreadable, BudgetUsedUp, CallTooLong
from agents.llm.profiles import NoModelProfile, Profile
from agents.minds.budgets.more import KIND, asks, open_budget_approval
from agents.minds.calls import ERROR, begin_call, conversation_of, ended_fields
from agents.minds.question import Question
from agents.streams.row_types import ApprovalRow, ModelCallRow
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import TABLES, Fields, fold_rows
from agents.streams.turn import Turn
from agents.tools.calls import Call, Outcome
from constellations import limits
from constellations.errors import ConstellationsError, LimitReached
from constellations.prompts.answers import Answer
from constellations.prompts.prompter import prompter_for
from constellations.prompts.scene import Scene
from constellations.runs.context import Context
from constellations.runs.weaving.drafts import ask_and_draft
from constellations.runs.weaving.scenes import devices_shown

CREATION, EDITING = "creation", "editing"
"""The weaving modes, and the purposes of their calls."""
ASKED_AGAIN = 3
"""Answers of one session that are asked for again because they cannot be used."""
LOST = 5
"""Calls of one session that are made again because their runner died."""
UNUSABLE = (AnswerEmpty.code, AnswerUnreadable.code, AnswerTooLarge.code)
"""Faults of a call that are an answer, if a bad one."""
GRACE_S = 5.0
"""A call that does not keep its own time is cut off so long after it."""
UNDECIDED = "agent_id = %s AND kind = %s AND used_at IS NULL AND state IN ('waiting', 'approved', 'rejected')"
LAST = "agent_id = %s AND number = (SELECT max(number) FROM agents_modelcall WHERE agent_id = %s)"
SESSIONS = "SELECT coalesce(max(editing_session), 0), coalesce(max(number), 0) FROM agents_modelcall WHERE agent_id = %s"
T = TypeVar("T")


class GivenUp(ConstellationsError):
    """The model could not be asked, or none of its answers could be used."""

    code = "planning_given_up"


class AnswerFlaw(ConstellationsError):
    """The call has brought something that is no answer."""

    code = "answer_unusable"


class ModelCalls:
    """The calls of one session, in `rows`, oldest first; none while the agent asks nothing.

    The last one is under way, or it has ended and nothing is decided about it yet. `choose` gives the profiles that are asked;
    it may raise NoModelProfile.
    """

    def __init__(self, context: Context):
        self._context = context
        self.rows: list[ModelCallRow] = []
        self.choose: Callable[[], Sequence[Profile]] = tuple
        self._calls: list[Call] = []
        self._end: Fields = {}
        self._asked = 0
        self._shortage: Mapping[str, Any] | None = None
        self._approval: ApprovalRow | None = None

    # `_calls`: to be begun once they are durable; `_end`: what is not yet recorded of the last call's end; `_asked`: calls of
    # the agent. `_shortage`: what the budget lacks that has stopped the last call, where that is known; `_approval`: of more.

    @property
    def busy(self) -> bool:
        """Whether a session is under way: nothing can be decided that its answer may change."""
        return bool(self.rows)

    @property
    def purpose(self) -> str:
        return self.rows[-1]["purpose"] if self.rows else ""

    def load(self) -> None:
        """From the rows, after another runner began it."""
        context, agent = self._context, self._context.agent["id"]
        sessions, self._asked = current_store().execute(raw_cursor(), SESSIONS, (agent,)).fetchone()
        context.editing_sessions = max(context.editing_sessions, sessions)
        if not self._asked:
            return
        last: ModelCallRow = fold_rows("model_call", LAST, agent, agent)[0]
        if self._is_under_way(last):
            first = last["number"] - last["asked_again"]
            self.rows = fold_rows("model_call", "agent_id = %s AND number >= %s", agent, first)
            self._approval = next(iter(fold_rows("approval", UNDECIDED, agent, KIND)), None)
        elif last["status"] == "FINISH":
            context.said = (last["result"] or {}).get("said")

    def _is_under_way(self, row: ModelCallRow) -> bool:
        """Whether a row, the agent's last, is still to be decided about: it is of this constellation, or of the one to come."""
        context = self._context
        begins = context.live is None
        if (row["purpose"] == CREATION) != begins or row["id"] < context.constellation.get("id", 0):
            return False
        if row["outcome"] == "cancelled":  # by a pause; a creation is begun anew, with what is known by then
            return not begins
        return row["outcome"] in ("", "lost", "failed") or (row["outcome"] == "answered" and not row["status"])

    # --- asking

    def begin(
        self, turn: Turn, purpose: str, choose: Callable[[], Sequence[Profile]], scene: Scene, **more: Any
    ) -> None:  # fmt: skip
        """A session begins; `more` are fields of its rows. Raises GivenUp where nobody can be asked."""
        self.rows, self.choose = [], choose
        self._ask(turn, scene, purpose, [prompter_for(purpose).render_user(scene)], **more)

    def _ask_again(self, turn: Turn, scene: Scene, added: Sequence[Message]) -> None:
        first = self.rows[0]
        more = {"editing_session": first["editing_session"], "taken": first["taken"], "asked_again": len(self.rows)}
        self._ask(turn, scene, self.purpose, added, **more)

    def _ask(self, turn: Turn, scene: Scene, purpose: str, added: Sequence[Message], **more: Any) -> None:
        context, prompter = self._context, prompter_for(purpose)
        try:
            profiles = tuple(self.choose())
        except NoModelProfile as error:
            raise GivenUp(str(error)) from error
        said = [message for message in conversation_of(self.rows) if message.parts]
        question = Question(
            profiles, prompter.render_system(scene), (*said, *added), reply_schema=prompter.reply_schema,
            patience=Patience(call_s=min(CALL_S, limits.PLANNING_S - self._spent(turn.ts))),
            context={"session": context.stream, "interaction": context.interaction["id"], "by": context.interaction["by"]},
        )  # fmt: skip
        self._asked += 1
        row, call = begin_call(
            turn, context.agent, self._asked, purpose, question, added, devices=devices_shown(context),
            version_before=context.constellation.get("version") if purpose == EDITING else None, **more,
        )  # fmt: skip
        if purpose == CREATION:
            call = replace(call, body=ask_and_draft)
        turn.record("model_asked", call_id=row["id"], mode=purpose, add={"model_call": [TABLES["model_call"].told(row)]})
        self.rows.append(row)
        self._calls.append(call)

    def take_calls(self) -> list[Call]:
        """Those that may begin now that what was decided is durable."""
        calls, self._calls = self._calls, []
        return calls

    def running(self) -> dict[int, int]:
        """The call under way: its key, and whose output it prints."""
        row = self._open
        return {} if row is None else {row["id"]: row["agent_id"]}

    @property
    def _open(self) -> ModelCallRow | None:
        return self.rows[-1] if self.rows and not self.rows[-1]["outcome"] else None

    # --- ends

    def take(self, turn: Turn, key: int, outcome: Outcome) -> bool:
        """A call has ended; False when it is none of these."""
        row = self._open
        if row is None or row["id"] != key:
            return False
        self._end = ended_fields(row, outcome, turn.at, planning_s=self._spent(turn.ts))
        self._shortage = outcome.result.get("budget") if isinstance(outcome.result, dict) else None
        return True

    def record_end(self, turn: Turn) -> None:
        """Keep how the call has ended; what follows from it is decided later, perhaps by another runner."""
        if self._end:
            self._record(turn)

    def drop(self, turn: Turn) -> None:
        """Nobody wants the answer any more."""
        row, was_open = (self.rows[-1] if self.rows else None), self._open is not None
        if row is not None:
            if was_open:
                self._context.interrupt(row["id"])
                self._end = {"ended_at": turn.at}
            self._record(turn, outcome="cancelled")
        if self._approval is not None:
            withdraw_approval(turn, self._approval, "the planner does not ask any more")
        self.rows, self._calls, self._approval = [], [], None

    def settle(self, turn: Turn, make_scene: Callable[[], Scene], use: Callable[[Answer], tuple[T, Fields]]) -> T | None:
        """What `use` makes of the answer, if there is one: that, and fields of the row. None while the model is asked.

        An AgentsError of `use` is told to the model; raises GivenUp where it is not asked again, and where a limit is reached.
        """
        if not self.rows or self._open is not None:
            return None
        try:
            return self._settle(turn, self.rows[-1], make_scene, use)
        except GivenUp:
            self.rows = []
            raise

    def _settle(
        self, turn: Turn, row: ModelCallRow, make_scene: Callable[[], Scene], use: Callable[[Answer], tuple[T, Fields]]
    ) -> T | None:  # fmt: skip
        if row["outcome"] in ("lost", "cancelled"):
            self.record_end(turn)
            self._repeat(turn, make_scene())
            return None
        if row["error_kind"] == BudgetUsedUp.code:
            if self._may_have_more(turn, row):
                self._repeat(turn, make_scene())
            return None
        try:
            answer = self._read_answer(row)
            found, more = use(answer)
        except (GivenUp, LimitReached) as error:
            self._record(turn, error=str(error)[:ERROR], error_kind=row["error_kind"] or error.code)
            raise GivenUp(str(error), error.problems) from error
        except AgentsError as error:
            self._refuse(turn, row, error, make_scene)
            return None
        self._record(turn, **more)
        self.rows = []
        return found

    def _may_have_more(self, turn: Turn, row: ModelCallRow) -> bool:
        """The budget had no room: whether a person has allowed more, who is asked first. Raises GivenUp where nobody has."""
        self.record_end(turn)
        approval, shortage = self._approval, self._shortage
        if approval is None and shortage is None:
            return True  # its runner knew what is missing, and has died: asked again, the call says it again
        if approval is None:
            if not asks(shortage):
                raise GivenUp(f"the model could not be asked: {row['error']}")
            agent = self._context.agent["id"]
            self._approval = open_budget_approval(turn, self._context.stream, agent, shortage or {}, agent=agent)
            return False
        if has_expired(approval, turn.ts):
            expire_approval(turn, approval)
        elif approval["state"] == "waiting":
            return False
        else:
            use_approval(turn, approval)
        self._approval = None
        if approval["state"] != "approved":
            raise GivenUp(f"the model could not be asked: {row['error']}; more was not allowed")
        return True

    def apply_foreign(self, data: Fields) -> None:
        """Somebody has decided about the approval."""
        if self._approval is not None:
            fields = data.get("set", {}).get("approval", {}).get(str(self._approval["id"]), {})
            self._approval.update(fields)

    def _read_answer(self, row: ModelCallRow) -> Answer:
        if row["outcome"] == "failed":
            if row["error_kind"] == CallTooLong.code and self._spent_all(row["ended_at"]):
                raise GivenUp(self._out_of_time())
            if row["error_kind"] not in UNUSABLE:
                raise GivenUp(f"the model could not be asked: {row['error']}")
            raise AnswerFlaw(row["error"])
        prompter = prompter_for(row["purpose"])
        answer = prompter.read_answer(_text_of(row, prompter.reply_schema.name))
        self._end |= {
            "observation": answer.observation, "thought": answer.thought, "status": answer.status, "actions": answer.actions,
        }  # fmt: skip
        return answer

    def _refuse(self, turn: Turn, row: ModelCallRow, error: AgentsError, make_scene: Callable[[], Scene]) -> None:
        """The answer cannot be used: the model is told why, unless that has been so too often."""
        outcome = "failed" if row["outcome"] == "failed" else "rejected"
        self._record(turn, outcome=outcome, error=str(error)[:ERROR], error_kind=row["error_kind"] or error.code)
        refused = sum(each["outcome"] == "rejected" or each["error_kind"] in UNUSABLE for each in self.rows)
        if refused > ASKED_AGAIN:
            raise GivenUp(f"no answer of the model could be used, {refused} times: {error}", error.problems)
        if self._spent_all(turn.at):
            raise GivenUp(self._out_of_time())
        scene = make_scene()
        is_about_form = row["purpose"] == CREATION or isinstance(error, AnswerFlaw) or error.code == AnswerFlaw.code
        correction = prompter_for(row["purpose"]).render_correction(error, None if is_about_form else scene)
        self._ask_again(turn, scene, [correction])

    def _repeat(self, turn: Turn, scene: Scene) -> None:
        """The same is asked again: nobody has read an answer."""
        lost = sum(each["outcome"] == "lost" for each in self.rows)
        if lost > LOST:
            raise GivenUp(f"{lost} calls of the model were lost with their runners")
        if self._spent_all(turn.at):
            raise GivenUp(self._out_of_time())
        self._ask_again(turn, scene, [])

    def _record(self, turn: Turn, **more: Any) -> None:
        row, fields = self.rows[-1], self._end | more
        self._end = {}
        row.update(fields)  # type: ignore[typeddict-item]  # columns of the table
        turn.record("model_answered", call_id=row["id"], outcome=row["outcome"], set={"model_call": {str(row["id"]): fields}})

    # --- time

    def cut_off_late(self, turn: Turn, now: float) -> None:
        """End a call that takes longer than its session may; raises GivenUp."""
        wake, row = self.wake_at(), self._open
        if row is not None and wake is not None and now >= wake:
            self._context.interrupt(row["id"])
            told = self._out_of_time()
            self._end = {"ended_at": turn.at, "planning_s": self._spent(turn.ts)}
            self._record(turn, outcome="failed", error=told, error_kind=CallTooLong.code)
            self.rows = []
            raise GivenUp(told)

    def wake_at(self) -> float | None:
        """When the call under way is to be cut off, or nobody may be asked for more any longer."""
        row = self._open
        if self._approval is not None and self._approval["expires_at"] is not None:
            return from_iso(self._approval["expires_at"])
        if row is None:
            return None
        return from_iso(row["started_at"]) + limits.PLANNING_S + GRACE_S - self._spent(from_iso(row["started_at"]))

    def _spent(self, now: float) -> float:
        """Seconds of the session's calls; nobody knows how long a lost one took."""
        spans = [
            (now if each["ended_at"] is None else from_iso(each["ended_at"])) - from_iso(each["started_at"])
            for each in self.rows
            if each["outcome"] != "lost"
        ]
        return round(sum(spans), 3)

    def _spent_all(self, at: str | None) -> bool:
        return at is not None and self._spent(from_iso(at)) >= limits.PLANNING_S - 1

    def _out_of_time(self) -> str:
        mode = "a creation" if self.purpose == CREATION else "an editing session"
        return f"limit reached: {limits.PLANNING_S:g} s for {mode}"


def _text_of(row: ModelCallRow, schema: str) -> str:
    """What the answer says: by the call that follows the schema, else in words."""
    parts = [part for message in read_conversation(row["reply"]) for part in message.parts] if row["reply"] else []
    calls = [part.arguments for part in parts if isinstance(part, ToolCall) and part.tool == schema]
    return calls[0] if calls else "".join(part.text for part in parts if isinstance(part, Text))
