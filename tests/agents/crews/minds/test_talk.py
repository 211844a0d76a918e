"""The conversation of an agent, read from rows of any history: what providers demand of one holds whatever has happened."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random

import pytest

from agents.crews.minds import talk
from agents.crews.minds.talk import cut_talk, join_talk, shorten_results, talk_of, tokens_of
from agents.llm.conversation import Message, Text, ToolCall, ToolResult, write_conversation

HISTORIES = 300
ENDS = ("answered", "answered", "answered", "rejected", "lost", "failed", "cancelled")


def user(*parts) -> Message:
    return Message("user", tuple(parts))


def history(seed: int) -> list[dict]:
    """Rows as an agent writes them: each question with the results of the answer before it, some answered, some not."""
    chance, rows, open_calls = Random(seed), [], []
    for number in range(1, chance.randint(2, 25)):
        parts = [ToolResult(key, "read_file", "x" * chance.randint(1, 3_000)) for key in open_calls]
        parts += [Text(f"the task {seed}")] if number == 1 else [Text("go on")] if not parts or chance.random() < 0.2 else []
        purpose = "summary" if number > 2 and chance.random() < 0.15 else "device_agent"
        if purpose == "summary":
            parts.append(Text("Write a summary."))
        outcome, reply = chance.choice(ENDS), None
        if purpose == "summary" and outcome == "rejected":
            outcome = "answered"
        if outcome in ("answered", "rejected"):
            calls = [] if purpose == "summary" else [f"{number}.{place}" for place in range(chance.randint(0, 3))]
            said = [Text(f"answer {number}"), *(ToolCall(key, "read_file", "{}") for key in calls)]
            reply, open_calls = write_conversation([Message("assistant", tuple(said))]), calls
        else:
            open_calls = []
        rows.append({
            "number": number, "purpose": purpose, "outcome": outcome, "reply": reply,
            "added": write_conversation([user(*parts)]),
        })  # fmt: skip
    return rows


def check(found: list[Message]) -> None:
    """Turns alternate, a user begins, and each result answers a call of the message before it."""
    assert found[0].role == "user"
    assert all(one.role != other.role for one, other in pairwise(found))
    for before, message in pairwise(found):
        called = {part.id for part in before.parts if isinstance(part, ToolCall)}
        answered = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        assert answered <= called


@pytest.mark.parametrize("start", range(0, HISTORIES, 50))
def test_turns_alternate_and_results_answer_calls_whatever_has_happened(start):
    for seed in range(start, start + 50):
        check(talk_of(history(seed)))


def test_it_is_the_same_after_its_rows_were_stored_and_read():
    for seed in range(HISTORIES):
        rows = history(seed)
        assert talk_of(json.loads(json.dumps(rows))) == talk_of(rows)


def test_the_task_is_its_beginning_also_after_a_summary():
    for seed in range(HISTORIES):
        assert f"the task {seed}" in [part.text for part in talk_of(history(seed))[0].parts if isinstance(part, Text)]


def test_old_results_are_shortened_only_as_far_as_is_needed_and_the_latest_stay_whole():
    for seed in range(HISTORIES):
        whole = talk_of(history(seed))
        room = tokens_of(whole) * 2 // 3
        short = shorten_results(whole, room)
        check(short)
        assert short[-talk.KEPT_WHOLE :] == whole[-talk.KEPT_WHOLE :]
        assert shorten_results(whole, tokens_of(whole)) == whole
        changed = [one for one, other in zip(whole, short, strict=True) if one != other]
        assert all(any(isinstance(part, ToolResult) for part in message.parts) for message in changed)


def test_what_a_summary_is_made_of_fits_and_has_no_results_without_their_calls():
    for seed in range(HISTORIES):
        whole = join_talk(talk_of(history(seed)), [user(Text("Write a summary."))])
        room = max(tokens_of(whole) // 2, 1_500)
        cut = cut_talk(whole, room)
        check(cut)
        assert tokens_of(cut) <= room + tokens_of(whole[:1])
