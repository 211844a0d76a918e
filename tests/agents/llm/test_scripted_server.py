"""The server of a script over HTTP: what breaks on purpose, what waits until it is told, and what its log says."""

from __future__ import annotations

import asyncio
import json
import urllib.request

import pytest

from agents.llm.exchange import OfferedTool
from agents.llm.faults import AnswerUnreadable, ProviderFailed, RequestRejected
from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel
from tests.agents.llm.conftest import PATIENCE_S, Provider, asking, reply_to, served

ADD = OfferedTool("add_task", "Adds a task.", {"type": "object", "properties": {}})


async def test_an_error_comes_once_and_then_the_answer(provider):
    asked = provider({"fail": {"status": 500}, "then": [{"say": "well"}]})
    with pytest.raises(ProviderFailed):
        await reply_to(asked.profile, asking("Go."))
    assert (await reply_to(asked.profile, asking("Go."))).text == "well"


async def test_an_answer_waits_until_the_server_is_told_to_go_on(provider):
    asked = provider({"wait_for": "the person", "say": "gone on"})
    answer = asyncio.create_task(reply_to(asked.profile, asking("Go.")))
    async with asyncio.timeout(PATIENCE_S):  # the server is in a thread of its own
        while not asked.model.open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not answer.done()
    told = urllib.request.Request(f"{asked.address}/go_on/the%20person", method="POST")
    await asyncio.to_thread(urllib.request.urlopen, told, timeout=PATIENCE_S)
    assert (await answer).text == "gone on"


async def test_a_long_answer_is_said_over_and_over(provider):
    asked = provider({"say": "x" * 100, "repeat": 2_000})
    assert (await reply_to(asked.profile, asking("Go."))).text == "x" * 200_000


async def test_bytes_that_are_no_text_are_sent_as_they_are(provider):
    asked = provider({"say": [b"a\xff\xfeb"]})
    with pytest.raises(AnswerUnreadable):
        await reply_to(asked.profile, asking("Go."))


async def test_a_conversation_is_told_by_its_turns(provider):
    asked = provider({"when": {"turn": 0}, "say": "first"}, {"when": {"turn": 1}, "say": "second"})
    first = await reply_to(asked.profile, asking("Go."))
    begun = asking("Go.").messages
    more = asking("On.").messages
    request = asking("Go.")
    request = type(request)((*begun, first.message, *more))
    assert (await reply_to(asked.profile, request)).text == "second"
    assert asked.model.asked[1].last == "On."
    assert asked.model.asked[1].said.startswith("Go.\n")


async def test_what_is_not_expected_is_refused_with_what_was_asked_and_what_is_used_up(provider):
    asked = provider({"when": {"last": "other"}}, {"times": 1, "say": "once"})
    await reply_to(asked.profile, asking("Go."))
    with pytest.raises(RequestRejected, match=r"turn 0, tools add_task; used up: answers\[1\]; it ends: 'Go.'"):
        await reply_to(asked.profile, asking("Go.", tools=(ADD,)))


async def test_the_log_has_each_request_without_its_key(protocol, loopback, tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_KEY_TRIED", "not-a-real-key-81")
    log = tmp_path / "log.jsonl"
    model = ScriptedModel(read_script("answers: [{when: {last: Go}, say: gone, call: [{tool: add_task}]}]"), log)
    with served(model) as address:
        asked = Provider(model, address, protocol)
        profile = type(asked.profile)(**{**vars(asked.profile), "key": "TRIED"})
        await reply_to(profile, asking("Go.", tools=(ADD,)))
        with pytest.raises(RequestRejected):
            await reply_to(profile, asking("Stop."))
    first, second = map(json.loads, log.read_text().splitlines())
    assert model.asked[0].key == "not-a-real-key-81"
    assert "not-a-real-key-81" not in log.read_text()
    assert (first["tools"], first["answer"]["say"], first["answer"]["calls"][0]["tool"]) == (["add_task"], "gone", "add_task")
    assert "expects no such request" in second["answer"]["refused"]
    assert log.stat().st_mode & 0o077 == 0
