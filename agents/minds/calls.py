"""A call of a language model as a row and as a body: how it begins, how it ends, and the conversation that such rows are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from agents.llm.conversation import Message, read_conversation, write_conversation
from agents.minds.asking import ask_model
from agents.minds.question import Question
from agents.streams.row_types import AgentRow, ModelCallRow
from agents.streams.tables import TABLES, Fields
from agents.streams.turn import Turn
from agents.tools.calls import Call, Outcome

ERROR = 4_000
"""Characters of an error that a row keeps."""
TOLD = (
    "profile",
    "model",
    "reply",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "cost",
    "first_token_s",
    "call_s",
    "tries",
)
"""What an outcome's result says of the row's columns."""
OUTCOME = {"completed": "answered", "cancelled": "cancelled", "lost": "lost"}


def begin_call(
    turn: Turn, agent: AgentRow, number: int, purpose: str, question: Question, added: Sequence[Message], *,
    key: int = 0, attempt: int = 0, **more: Any,
) -> tuple[ModelCallRow, Call]:  # fmt: skip
    """The row of a call, which the caller records (`add={"model_call": [told]}` of TABLES), and the call, to be begun once
    that is durable.

    `added` are the messages that come into the agent's conversation with it. `attempt`: of the task that it is for.
    """
    profile = question.profiles[0]
    row = cast(
        ModelCallRow,
        TABLES["model_call"].whole(
            {
                "id": key or turn.take(), "session_id": agent["session_id"], "interaction_id": agent["interaction_id"],
                "agent_id": agent["id"], "number": number, "purpose": purpose, "profile": profile.name, "model": profile.model,
                "prompt_digest": question.prompt.digest, "prompt_version": question.prompt.version,
                "added": write_conversation(added), "reserved_tokens": question.reserved_tokens, "started_at": turn.at, **more,
            }
        ),
    )  # fmt: skip
    return row, call_for(row, question, attempt or agent["id"])


def call_for(row: ModelCallRow, question: Question, attempt: int) -> Call:
    """The body of a row's call: for the first time, or once more after its runner was lost."""
    return Call(
        attempt=attempt, session=row["session_id"], tool="ask_model", arguments={"question": question}, device={},
        timeout=None, key=row["id"], body=ask_model,
    )  # fmt: skip


def ended_fields(row: ModelCallRow, outcome: Outcome, at: str, **more: Any) -> Fields:
    """The fields with which a call's end completes its row; `more` is what was read in the answer, and comes last."""
    found = outcome.result if isinstance(outcome.result, dict) else {}
    fields: Fields = {name: found[name] for name in TOLD if found.get(name) is not None}
    fields |= {
        "outcome": OUTCOME.get(outcome.outcome, "failed"), "error": outcome.error[:ERROR], "error_kind": outcome.error_kind,
        "ended_at": at, **more,
    }  # fmt: skip
    row.update(fields)  # type: ignore[typeddict-item]  # columns of the table
    return fields


def conversation_of(rows: Iterable[ModelCallRow]) -> list[Message]:
    """What an agent and its model have said to each other, from the rows of its calls, oldest first."""
    messages: list[Message] = []
    for row in rows:
        messages += read_conversation(row["added"]) if row["added"] else []
        messages += read_conversation(row["reply"]) if row["reply"] else []
    return messages
