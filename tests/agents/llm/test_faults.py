"""The port against a scripted model over HTTP, in both protocols: each fault is of its own kind, with its facts."""

import asyncio
import socket
import sys
import threading
import time
from contextlib import aclosing, contextmanager

import pytest

from agents.faults import error_kind_of, is_transient
from agents.llm import faults
from agents.llm.exchange import Patience, TextPiece
from agents.llm.library import calling
from agents.llm.port import stream_answer
from agents.llm.profiles import Profile
from tests.agents.llm.conftest import PATIENCE_S, asking, events_of

SHORT = Patience(first_token_s=0.3, silence_s=0.3, call_s=30)


async def fault_of(profile: Profile, **more) -> faults.ModelFault:
    with pytest.raises(faults.ModelFault) as caught:
        await events_of(profile, asking("Say something.", **more))
    return caught.value


STATUSES = [
    ({"status": 429, "retry_after": 7, "code": "rate_limit_exceeded"}, faults.RateLimited, "rate_limit"),
    ({"status": 500}, faults.ProviderFailed, "server_error"),
    ({"status": 503, "retry_after": 2}, faults.ProviderFailed, "server_error"),
    ({"status": 529}, faults.ProviderFailed, "server_error"),
    ({"status": 401, "code": "invalid_api_key"}, faults.KeyRejected, ""),
    ({"status": 403}, faults.KeyRejected, ""),
    ({"status": 404, "code": "model_not_found"}, faults.ModelUnknown, ""),
    ({"status": 402}, faults.QuotaUsedUp, ""),
    ({"status": 400}, faults.RequestRejected, ""),
    ({"status": 409}, faults.RequestRejected, ""),
]


@pytest.mark.parametrize(("fail", "kind", "error_kind"), STATUSES, ids=lambda value: str(value)[:24])
async def test_a_status_is_a_fault_of_its_own_with_its_facts(provider, fail, kind, error_kind):
    asked = provider({"fail": fail})
    fault = await fault_of(asked.profile)
    assert type(fault) is kind
    assert (fault.http_status, fault.retry_after_s) == (fail["status"], fail.get("retry_after"))
    assert error_kind_of(fault) == error_kind
    assert len(asked.model.asked) == 1, "the port tries nothing again"


async def test_a_conversation_that_does_not_fit_is_told_apart(provider):
    message = "prompt is too long: 250000 tokens > 200000 maximum"
    asked = provider({"fail": {"status": 400, "code": "context_length_exceeded", "message": message}})
    assert type(await fault_of(asked.profile)) is faults.ContextTooLong


async def test_a_question_that_the_filter_stops_is_told_by_its_code(openai_provider):
    fault = await fault_of(openai_provider({"fail": {"status": 400, "code": "content_filter"}}).profile)
    assert (type(fault), fault.provider_code) == (faults.ContentFiltered, "content_filter")


async def test_a_refusal_has_the_models_words(provider):
    fault = await fault_of(provider({"refuse": "I will not."}).profile)
    assert (type(fault), str(fault)) == (faults.Refused, "I will not.")
    assert not is_transient(fault)


async def test_an_answer_that_the_filter_cut_keeps_what_had_come(provider, protocol):
    fault = await fault_of(provider({"say": "Half of", "finish": "filter"}).profile)
    assert type(fault) is (faults.Refused if protocol == "anthropic" else faults.ContentFiltered)
    assert fault.partial.text == "Half of"


async def test_nobody_there_is_not_reachable(loopback):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    fault = await fault_of(Profile("gone", "anthropic", "m", address))
    assert (type(fault), is_transient(fault)) == (faults.ModelUnreachable, True)


async def test_a_name_that_nobody_knows_is_not_reachable():
    assert (
        type(await fault_of(Profile("gone", "openai_compatible", "m", "https://nowhere.invalid/v1"))) is faults.ModelUnreachable
    )


async def test_a_first_token_that_does_not_come_is_late(provider):
    asked = provider({"say": "At last.", "first_after": PATIENCE_S})
    fault = await fault_of(asked.profile, patience=SHORT)
    assert (type(fault), is_transient(fault)) == (faults.FirstTokenLate, True)
    assert fault.partial.message.parts == ()


async def test_a_stream_that_falls_silent_is_broken_and_keeps_what_had_come(provider):
    asked = provider({"say": ["Some ", "words"], "pause": 1.0})
    patience = Patience(first_token_s=PATIENCE_S, silence_s=0.3, call_s=60)
    fault = await fault_of(asked.profile, patience=patience)
    assert type(fault) is faults.AnswerBroken
    assert fault.partial.text == "Some "
    assert not is_behind_itself(fault)


async def test_a_call_that_goes_on_and_on_ends_at_its_deadline(provider):
    asked = provider({"say": ["x"] * 10_000, "pause": 0.02})
    fault = await fault_of(asked.profile, patience=Patience(call_s=0.6))
    assert type(fault) is faults.CallTooLong
    assert not is_transient(fault)


async def test_a_stream_that_stops_in_the_middle_is_broken_and_keeps_what_had_come(provider, protocol):
    asked = provider({"say": ["Some ", "words ", "more"], "stop_after": 3 if protocol == "openai_compatible" else 4})
    fault = await fault_of(asked.profile)
    assert type(fault) is faults.AnswerBroken
    assert fault.partial.text == "Some words "
    assert fault.partial.finish == ""


async def test_a_stream_that_ends_without_saying_why_is_broken(provider):
    fault = await fault_of(provider({"say": "It seems done.", "finish": "none"}).profile)
    assert type(fault) is faults.AnswerBroken
    assert fault.partial.text == "It seems done."


GARBAGE = {
    "no JSON": b"event: message_start\ndata: {not json\n\n",
    "invalid UTF-8": b"event: message_start\ndata: \"\xff\xfe\"\n\n",
    "JSON of another kind": b"event: message_start\ndata: 42\n\nevent: message_start\ndata: [1]\n\n",
    "an object of other parts": b'event: message_start\ndata: {"type": "message_start", "choices": 7}\n\n',
    "a page": b"<html><body>Log in</body></html>",
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
async def test_what_is_no_answer_is_unreadable(provider, garbage):
    fault = await fault_of(provider({"garbage": garbage}).profile)
    assert type(fault) in (faults.AnswerUnreadable, faults.AnswerBroken)
    assert not fault.partial.message.parts


@pytest.mark.parametrize("answer", [{"say": ""}, {"say": "  \n "}, {"think": "Only thoughts."}])
async def test_an_answer_of_nothing_is_empty(provider, answer):
    assert type(await fault_of(provider(answer).profile)) is faults.AnswerEmpty


async def test_an_answer_without_end_is_cut(provider, monkeypatch):
    monkeypatch.setattr(calling, "ANSWER_CHARS", 1_000)
    fault = await fault_of(provider({"say": "x" * 5_000}).profile)
    assert type(fault) is faults.AnswerTooLarge
    assert 1_000 <= len(fault.partial.text) < 1_200


async def test_arguments_that_are_no_json_come_as_the_model_wrote_them(provider):
    asked = provider({"call": [{"tool": "add_task", "arguments": '{"id": "a'}]})
    reply = (await events_of(asked.profile, asking("Add.")))[-1].reply
    assert reply.calls[0].arguments == '{"id": "a'


async def test_what_the_script_does_not_expect_is_refused_and_named(provider):
    fault = await fault_of(provider({"when": {"last": "something else"}, "say": "x"}).profile)
    assert type(fault) is faults.RequestRejected
    assert "expects no such request" in str(fault)


# Ends from this side


async def eventually(holds) -> None:
    """Look, until it holds: it is another thread that makes it so."""
    patience = time.monotonic() + PATIENCE_S

    def look() -> None:
        while not holds():
            assert time.monotonic() < patience
            time.sleep(0.01)

    await asyncio.to_thread(look)


async def test_a_cancelled_reader_closes_the_stream(provider):
    asked = provider({"say": ["x"] * 1_000, "pause": 0.02})
    begun, pieces = asyncio.Event(), []

    async def read() -> None:
        async for event in stream_answer(asked.profile, asking("Go on.")):
            pieces.append(event)
            begun.set()

    reading = asyncio.create_task(read())
    await begun.wait()
    assert asked.model.open == 1
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await eventually(lambda: asked.model.open == 0)
    assert pieces[0] == TextPiece("x")
    assert len(pieces) < 1_000


async def test_a_reader_that_has_enough_closes_the_stream(provider):
    asked = provider({"say": ["x"] * 1_000, "pause": 0.02})
    async with aclosing(stream_answer(asked.profile, asking("Go on."))) as events:
        assert await anext(events) == TextPiece("x")
    await eventually(lambda: asked.model.open == 0)


# Where models are asked


async def test_an_address_inside_is_refused_before_anything_is_sent(settings, provider):
    asked = provider({"say": "Yes."})
    settings.MODEL_HOSTS = type(settings.MODEL_HOSTS)(frozenset(), ())
    fault = await fault_of(asked.profile)
    assert type(fault) is faults.ProfileUnusable
    assert asked.model.asked == []


async def test_a_name_that_leads_inside_is_refused_when_it_is_looked_up(settings, monkeypatch):
    settings.MODEL_HOSTS = type(settings.MODEL_HOSTS)(frozenset(), ())

    async def look_up(*arguments, **more):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    fault = await fault_of(Profile("sly", "openai_compatible", "m", "https://models.example/v1"))
    assert type(fault) is faults.AddressRefused
    assert not is_behind_itself(fault)
    assert "ORRERY_MODEL_HOSTS" in str(fault)


def is_behind_itself(error: BaseException | None) -> bool:
    """Whether who follows the causes of an error comes back to one that has been."""
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__
    return error is not None


async def test_a_redirect_is_not_followed(loopback):
    with redirecting("http://127.0.0.1:9/elsewhere") as address:
        fault = await fault_of(Profile("moved", "openai_compatible", "m", f"{address}/v1"))
    assert isinstance(fault, faults.ModelFault)
    assert type(fault) is not faults.ModelUnreachable, "it was not asked elsewhere"


@contextmanager
def redirecting(target: str):
    """A server that sends everybody elsewhere, once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(f"HTTP/1.1 307 Elsewhere\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(("provider_name", "library"), [("google", "google"), ("bedrock", "bedrock")])
async def test_a_library_that_is_not_installed_is_named(provider_name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)  # a bucket's tests have brought it
    urls = {"google": "https://generativelanguage.googleapis.com", "bedrock": "https://bedrock-runtime.eu-west-1.amazonaws.com"}
    fault = await fault_of(Profile("extra", provider_name, "m", urls[provider_name]))
    assert type(fault) is faults.ProfileUnusable
    assert f"pydantic-ai-slim[{library}]" in str(fault)


async def test_a_key_that_is_not_there_is_named():
    fault = await fault_of(Profile("keyless", "anthropic", "m", "https://api.anthropic.com", key="NOWHERE"))
    assert type(fault) is faults.ProfileUnusable
    assert "ORRERY_KEY_NOWHERE is not set" in str(fault)
