"""Pictures for models that see: by digest in a conversation, as content on the wire, as a sentence for all others."""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
import zlib
from dataclasses import replace

import pytest

from agents.artifacts.keeping import keep_artifact
from agents.artifacts.opening import open_store
from agents.clock import to_iso
from agents.crews.minds.talk import shorten_results, tokens_of, without_pictures
from agents.llm.conversation import MOST_TOKENS, NOT_SHOWN, Message, Picture, Text, ToolCall, ToolResult, write_conversation
from agents.llm.exchange import OfferedTool
from agents.minds.asking import PICTURE_BYTES, ask_model, read_pictures
from agents.minds.calls import begin_call
from agents.minds.question import Question, SystemPrompt
from agents.streams.turn import Turn
from tests.agents.llm.conftest import loopback, protocol, provider  # noqa: F401  fixtures

AGENT = {"id": 7, "session_id": 5, "interaction_id": 6}
LOOK = OfferedTool("observe", "Look.", {"type": "object", "properties": {}})
pytestmark = pytest.mark.django_db(transaction=True)


def png(width: int = 4, height: int = 2) -> bytes:
    """A picture that is black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + bytes(3 * width) for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def kept(state_dir) -> Picture:
    content = png()
    told = keep_artifact(content, name="main.png", kind="picture", media_type="image/png")
    return Picture(told["sha256"], "image/png", len(content), 4, 2)


def talk(*pictures: Picture) -> tuple[Message, ...]:
    """A conversation with a result of a look, and what it saw."""
    return (
        Message("user", (Text("Look at it."),)),
        Message("assistant", (ToolCall("1", "observe", "{}"),)),
        Message("user", (ToolResult("1", "observe", "the tree"), Text("The picture:"), *pictures)),
    )


def ask(messages: tuple[Message, ...], *profiles):
    question = Question(profiles, SystemPrompt("You look.", "system/1"), messages, (LOOK,))
    turn = Turn(to_iso(0.0), "system", iter(range(100, 200)).__next__)
    row, call = begin_call(turn, AGENT, 1, "device_agent", question, messages[-1:])
    return row, asyncio.run(ask_model(call))


def test_a_model_that_sees_is_shown_the_picture_and_the_row_has_its_digest_only(provider, kept):  # noqa: F811
    served = provider({"when": {"pictures": 1, "last": "the tree"}, "say": "A black page."})
    row, outcome = ask(talk(kept), replace(served.profile, sees=True))
    assert outcome.result["text"] == "A black page."
    assert served.model.asked[-1].pictures == (kept.sha256,)
    told = row["added"]["messages"][0]["parts"][-1]
    assert told == {
        "kind": "picture",
        "sha256": kept.sha256,
        "media_type": "image/png",
        "size": kept.size,
        "width": 4,
        "height": 2,
    }
    assert len(json.dumps(row["added"])) < 1_000


def test_a_model_that_does_not_see_reads_that_it_is_left_out(provider, kept):  # noqa: F811
    served = provider({"when": {"pictures": 0, "last": NOT_SHOWN}, "say": "I read the tree."})
    _, outcome = ask(talk(kept), served.profile)
    assert (outcome.outcome, outcome.result["text"]) == ("completed", "I read the tree.")
    assert served.model.asked[-1].pictures == ()


def test_a_fallback_is_shown_what_it_can_see(provider, kept):  # noqa: F811
    blind = {"when": {"pictures": 0}, "fail": {"status": 401}}
    served = provider(blind, {"when": {"pictures": 1}, "say": "I see."})
    first = replace(served.profile, name="blind")
    _, outcome = ask(talk(kept), first, replace(served.profile, name="seeing", sees=True))
    assert (outcome.result["text"], outcome.result["profile"]) == ("I see.", "seeing")


@pytest.mark.parametrize("change", [
    {"size": PICTURE_BYTES + 1}, {"height": 8_001}, {"sha256": hashlib.sha256(b"gone").hexdigest()},
])  # fmt: skip
def test_what_is_too_large_or_no_longer_kept_is_left_out_with_a_sentence(provider, kept, change):  # noqa: F811
    served = provider({"when": {"pictures": 0, "last": NOT_SHOWN}, "say": "Then by the tree."})
    _, outcome = ask(talk(replace(kept, **change)), replace(served.profile, sees=True))
    assert outcome.result["text"] == "Then by the tree."


def test_the_contents_are_read_once_for_each_digest(kept):
    assert read_pictures([*talk(kept, kept), *talk(kept)]) == {kept.sha256: b"".join(open_store().read(kept.sha256))}


def test_pictures_count_in_the_window_and_old_ones_are_left_out_first():
    page = Picture("0" * 64, "image/png", 100_000, 1_280, 800)
    assert page.tokens == 1_366
    assert replace(page, width=8_000, height=8_000).tokens == MOST_TOKENS
    words, shown = tokens_of(talk()), tokens_of(talk(page))
    assert 1_366 <= shown - words <= 1_367
    long = [message for _ in range(8) for message in talk(page)]
    asked = Question((), SystemPrompt("", "system/1"), tuple(long))
    assert asked.input_tokens >= 8 * 1_366
    shorter = shorten_results(long, tokens_of(long) - 1_366)
    assert [NOT_SHOWN in str(write_conversation([message])) for message in shorter].count(True) == 2
    assert NOT_SHOWN in str(shorter[2])


def test_only_the_latest_pictures_are_kept():
    pages = [Picture(str(number) * 64, "image/png", 10, 4, 2) for number in range(4)]
    left = without_pictures([message for page in pages for message in talk(page)], 2)
    shown = [part.sha256[0] for message in left for part in message.parts if isinstance(part, Picture)]
    assert shown == ["2", "3"]
    assert str(left).count(NOT_SHOWN) == 2
