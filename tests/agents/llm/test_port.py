"""The port against a scripted model over HTTP, in both protocols: what comes when all goes well."""

import json

import pytest

from agents.llm.conversation import Message, Text, Thinking, ToolCall, ToolResult, read_conversation, write_conversation
from agents.llm.exchange import CallPiece, ModelRequest, OfferedTool, ReplySchema, TextPiece, ThinkingPiece
from agents.llm.profiles import Profile
from tests.agents.llm.conftest import asking, events_of, reply_to

ADD = OfferedTool("add_task", "Adds a task.", {"type": "object", "properties": {"id": {"type": "string"}}})
VERDICT = ReplySchema("verdict", "What you found.", {
    "type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"], "additionalProperties": False,
})  # fmt: skip


async def test_words_come_in_pieces_and_whole_at_the_end(provider):
    asked = provider({"say": ["It ", "is ", "ready."], "tokens": {"input": 12, "output": 3}})
    *pieces, ended = await events_of(asked.profile, asking("Is it?"))
    assert pieces == [TextPiece("It "), TextPiece("is "), TextPiece("ready.")]
    reply = ended.reply
    assert (reply.text, reply.finish, reply.model) == ("It is ready.", "stop", "test-model")
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.measured) == (12, 3, True)
    assert 0 < reply.first_token_s <= reply.call_s


async def test_thinking_comes_before_the_answer_and_apart_from_it(provider):
    asked = provider({"think": ["Two ", "tasks."], "say": "Done."})
    *pieces, ended = await events_of(asked.profile, asking("Plan it."))
    assert pieces == [ThinkingPiece("Two "), ThinkingPiece("tasks."), TextPiece("Done.")]
    assert ended.reply.text == "Done."
    assert [part.text for part in ended.reply.message.parts if isinstance(part, Thinking)] == ["Two tasks."]


async def test_parallel_calls_keep_their_order_and_their_arguments(provider):
    calls = [{"tool": "add_task", "arguments": {"id": f"task-{number}", "note": "x" * 60}} for number in range(3)]
    asked = provider({"say": "Three.", "call": calls, "when": {"tools": ["add_task"]}})
    *pieces, ended = await events_of(asked.profile, asking("Add three.", tools=(ADD,)))
    assert [call.read_arguments() for call in ended.reply.calls] == [each["arguments"] for each in calls]
    assert len({call.id for call in ended.reply.calls}) == 3
    assert ended.reply.finish == "tool_call"
    streamed = {}
    for piece in pieces:
        if isinstance(piece, CallPiece):
            streamed[piece.number] = streamed.get(piece.number, "") + piece.arguments
    assert [json.loads(text) for text in streamed.values()] == [each["arguments"] for each in calls]


async def test_the_model_is_told_system_prompt_history_results_and_bounds(provider):
    asked = provider({"when": {"last": "accuracy 0.92"}, "say": "Good."})
    conversation = (
        Message("user", (Text("Train it."),)),
        Message("assistant", (Text("I begin."), ToolCall("call_1", "add_task", '{"id": "train"}'))),
        Message("user", (ToolResult("call_1", "add_task", "accuracy 0.92"), Text("And now?"))),
    )
    reply = await reply_to(asked.profile, ModelRequest(conversation, system="Be brief.", tools=(ADD,), max_tokens=77))
    assert reply.text == "Good."
    told = asked.model.asked[0]
    assert told.system == "Be brief."
    assert told.tools == ("add_task",)
    assert 77 in (told.body.get("max_tokens"), told.body.get("max_completion_tokens"))
    assert "I begin." in json.dumps(told.body["messages"])


async def test_a_stored_conversation_goes_back_as_it_came(provider):
    asked = provider(
        {"when": {"last": "Plan"}, "think": "Hm.", "say": "A call.", "call": [{"tool": "add_task", "arguments": {"id": "a"}}]},
        {"when": {"last": "added"}, "say": "Finished."},
    )
    question = Message("user", (Text("Plan it."),))
    first = await reply_to(asked.profile, ModelRequest((question,), tools=(ADD,)))
    result = Message("user", (ToolResult(first.calls[0].id, "add_task", "added"),))
    stored = json.loads(json.dumps(write_conversation([question, first.message, result])))
    conversation = read_conversation(stored)
    assert conversation == [question, first.message, result]
    assert (await reply_to(asked.profile, ModelRequest(tuple(conversation), tools=(ADD,)))).text == "Finished."
    sent = json.dumps(asked.model.asked[1].body["messages"])
    assert first.calls[0].id in sent
    if asked.profile.provider == "anthropic":
        assert "c2NyaXB0ZWQ=" in sent, "the provider's signature goes back with its thinking"


async def test_a_schema_is_followed_in_words_or_by_a_call_as_the_model_can(provider):
    asked = provider(
        {"when": {"tools": ["verdict"]}, "call": [{"tool": "verdict", "arguments": {"good": True}}]},
        {"say": '{"good": true}'},
    )
    reply = await reply_to(asked.profile, asking("Is it good?", reply_schema=VERDICT))
    assert json.loads(reply.schema_text) == {"good": True}
    assert reply.calls == [], "the schema is no call that anybody carries out"
    assert "additionalProperties" in json.dumps(asked.model.asked[0].body), "the schema was told"


async def test_temperature_thinking_and_tool_choice_are_told(provider):
    asked = provider({"call": [{"tool": "add_task", "arguments": {}}]})
    profile = Profile(**{**vars(asked.profile), "temperature": 0.25})
    await reply_to(profile, asking("Call.", tools=(ADD,), tool_choice="required", parallel_calls=False))
    body = asked.model.asked[0].body
    assert body["temperature"] == 0.25
    choice = body["tool_choice"]
    assert choice == "required" or choice["type"] == "any"
    assert body.get("parallel_tool_calls") is False or choice["disable_parallel_tool_use"] is True


async def test_the_key_is_read_at_the_call_and_sent_to_the_provider(provider, monkeypatch):
    asked = provider({"say": "Yes."})
    monkeypatch.setenv("ORRERY_KEY_PROVIDER_ONE", "not-a-real-key-17")
    await reply_to(Profile(**{**vars(asked.profile), "key": "PROVIDER_ONE"}), asking("Hello"))
    assert asked.model.asked[0].key == "not-a-real-key-17"


async def test_without_a_key_none_of_the_environment_is_taken(provider, monkeypatch):
    asked = provider({"say": "Yes."})
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "somebody-elses-key-1")
    await reply_to(asked.profile, asking("Hello"))
    assert asked.model.asked[0].key == "none"


async def test_two_hundred_kilobytes_come_whole(provider):
    text = "0123456789" * 20_000
    asked = provider({"say": text})
    assert (await reply_to(asked.profile, asking("All of it."))).text == text


async def test_what_no_database_stores_is_replaced(provider):
    asked = provider({"say": ["a\ud800b", "c\0d", "\ud83d\ude00"]})
    reply = await reply_to(asked.profile, asking("Odd."))
    assert reply.text.encode() == "a\ufffdbc\ufffdd\U0001f600".encode()


@pytest.mark.parametrize("finish", ["length", "stop"])
async def test_why_an_answer_ended_is_told(provider, finish):
    asked = provider({"say": "Cut", "finish": finish})
    assert (await reply_to(asked.profile, asking("Long."))).finish == finish


async def test_ollama_is_asked_in_openais_words(openai_provider):
    asked = openai_provider({"say": "Hello."})
    assert (await reply_to(Profile("local", "ollama", "llama3", f"{asked.address}/v1"), asking("Hi"))).text == "Hello."


async def test_openais_responses_are_asked_at_their_own_place(openai_provider):
    asked = openai_provider({"say": "Hello."})
    reply = await reply_to(Profile("new", "openai_responses", "gpt-5", f"{asked.address}/v1"), asking("Hi"))
    assert reply.text == "Hello."
    assert {"input", "messages"} & set(asked.model.asked[0].body) == {"input"}


async def test_a_provider_that_caches_where_it_is_told_is_told_where(provider):
    asked = provider({"say": "Good."})
    await reply_to(asked.profile, asking("Plan it.", system="Be brief.", tools=(ADD,)))
    body = asked.model.asked[0].body
    marked = {"system", "tools"} if asked.profile.provider == "anthropic" else set()
    assert {place for place in ("system", "tools") if "cache_control" in json.dumps(body.get(place))} == marked
    assert ("cache_control" in json.dumps(body)) == bool(marked)
