"""What five agents really said, told again: one recording each in `data`, a frame a line, `<` where it is the agent's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.coding.frames import MINE, read_frame
from agents.coding.permits import CANCELLED, Ask, read_options
from agents.coding.profiles.known import PROFILES
from agents.coding.tool_calls import ToolCall
from agents.coding.turns import Conversation
from agents.tools.calls import Call

DATA = Path(__file__).with_name("data")


class Sent:
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any]) -> None:
        self.frames.append(message)


async def told_again(name: str, profile: str) -> tuple[list[tuple[str, dict[str, Any]]], Sent, Conversation]:
    """A recording as a conversation takes it up; leave is given or refused as it was then."""
    frames = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    told: list[tuple[str, dict[str, Any]]] = []
    call = Call(1, 1, "instruction", {}, {}, None, on_update=lambda kind, data: told.append((kind, dict(data))))
    opened = next(one["m"]["params"] for one in frames if one["m"].get("method") in ("session/new", "session/load"))
    talk, sent = Conversation(PROFILES[profile], call, Path(opened["cwd"])), Sent()
    talk.pipe = sent  # type: ignore[assignment]  # as far as it is used here
    answers = {
        one["m"]["id"]: one["m"]["result"] for one in frames if one["d"] == ">" and "outcome" in str(one["m"].get("result"))
    }
    for one in frames:
        message = read_frame(json.dumps(one["m"]).encode())
        if one["d"] == "<" and message.get("method") in MINE:
            talk.session = message["params"]["sessionId"]
            talk.tap(message)
            if message["method"] == "session/request_permission":
                chosen = answers[message["id"]]["outcome"].get("optionId")
                kinds = {option["optionId"]: option["kind"] for option in message["params"]["options"]}
                await talk._answer(told[-1][1]["n"], kinds.get(chosen, "").startswith("allow"))
    talk._end_words()
    return told, sent, talk


def of(told: list[tuple[str, dict[str, Any]]], kind: str) -> list[dict[str, Any]]:
    return [data for each, data in told if each == kind]


@pytest.mark.parametrize(
    ("profile", "commands"),
    [
        ("opencode", [("echo hello; exit 3", 3), ("touch denied", None)]),
        ("claude", [("touch made; echo hello; exit 3", 3)]),
        ("qwen", [("touch made; echo hello; exit 3", 3)]),
        ("codex", [("touch made2; echo hello; exit 3", 3)]),
    ],
)
async def test_a_command_that_failed_is_told_as_failed_whatever_its_agent_calls_it(profile, commands):
    told, _, talk = await told_again(f"{profile}-turn", profile)
    ran = [done for done in of(told, "tool") if done["kind"] == "execute"]
    assert [done["exit_code"] for done in ran] == [code for _, code in commands]
    assert all(done["error"] for done in ran)
    assert not talk.broken.done()  # nothing was done without leave


async def test_one_that_says_no_exit_code_is_believed():
    told, _, _ = await told_again("gemini-turn", "gemini")
    assert [(done["kind"], done["exit_code"]) for done in of(told, "tool")] == [
        ("read", None),
        ("edit", None),
        ("execute", None),
    ]


async def test_a_turn_that_an_agent_cancels_because_it_was_refused_is_one_that_was_refused():
    talk = Conversation(PROFILES["codex"], Call(1, 1, "instruction", {}, {}, None), Path("/nowhere"))
    alone = talk._end("cancelled")
    talk.denied = 1
    refused = talk._end("cancelled")
    assert [(each.outcome, each.error_kind) for each in (alone, refused)] == [("failed", ""), ("failed", "denied")]


@pytest.mark.parametrize("profile", ["opencode", "claude", "qwen", "gemini", "codex"])
async def test_its_words_come_whole_and_in_order_and_it_is_answered_once_each_time(profile):
    told, sent, _ = await told_again(f"{profile}-turn", profile)
    assert any(data["text"].strip().endswith("All done now.") for data in of(told, "said"))
    asked = [frame["id"] for frame in sent.frames]
    assert len(asked) == len(set(asked)) == len(of(told, "leave"))
    assert all(frame["result"] != CANCELLED for frame in sent.frames)
    assert [data["n"] for _, data in told] == list(range(1, len(told) + 1))


async def test_a_list_of_things_to_do_is_a_plan_where_there_is_no_other():
    told, _, _ = await told_again("opencode-turn", "opencode")
    assert of(told, "plan")[0]["entries"] == [
        {"content": "one", "status": "in_progress"}, {"content": "two", "status": "pending"},
    ]  # fmt: skip


def test_of_options_only_one_that_does_not_stay_is_chosen():
    said = [("a", "allow_always"), ("b", "allow_once"), ("c", "reject_once"), ("d", "allow_once")]
    options = [{"optionId": key, "kind": kind} for key, kind in said]
    kinds = read_options([*options, {"kind": "reject_once"}, "no option"])
    ask = Ask(1, ToolCall("x"), kinds)
    assert ask.answer(True)["outcome"]["optionId"] == "b"
    assert ask.answer(False)["outcome"]["optionId"] == "c"
    assert Ask(1, ToolCall("x"), {"allow_always": "a"}).answer(True) == CANCELLED
