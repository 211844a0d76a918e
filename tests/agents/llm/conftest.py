"""A scripted model on a port of its own, and profiles of both protocols that lead to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network

import pytest
import yaml

from agents.llm.conversation import Message, Text
from agents.llm.exchange import Ended, Event, ModelRequest, Reply
from agents.llm.port import stream_answer
from agents.llm.profiles import Profile
from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel, make_server
from project.environment import Hosts

PATIENCE_S = 20.0
PROTOCOLS = ("openai_compatible", "anthropic")
LOOPBACK = Hosts(frozenset(), (ip_network("127.0.0.0/8"),))


@contextmanager
def served(model: ScriptedModel) -> Iterator[str]:
    """The server's address while it serves, in a thread of its own. It ends at once; a server's own end takes 0.2 s."""
    server, loop, stopped = make_server(model, 0), asyncio.new_event_loop(), asyncio.Event()
    started = threading.Event()

    async def serve() -> None:
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup()
        started.set()
        await stopped.wait()
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(PATIENCE_S), "the scripted model did not start"
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the scripted model did not stop"


class Provider:
    """A scripted model and the profile by which it is asked."""

    def __init__(self, model: ScriptedModel, address: str, protocol: str):
        self.model, self.address = model, address
        base_url = f"{address}/v1" if protocol != "anthropic" else address
        self.profile = Profile("scripted", protocol, "test-model", base_url)


@pytest.fixture
def loopback(settings):
    settings.MODEL_HOSTS = LOOPBACK


@pytest.fixture(params=PROTOCOLS)
def protocol(request) -> str:
    return request.param


@pytest.fixture
def provider(protocol, loopback) -> Iterator[Callable[..., Provider]]:
    """A function that serves answers, in the protocol of the test."""
    with _providers(protocol) as start:
        yield start


@pytest.fixture
def openai_provider(loopback) -> Iterator[Callable[..., Provider]]:
    """The same in OpenAI's protocol only."""
    with _providers("openai_compatible") as start:
        yield start


@contextmanager
def _providers(protocol: str) -> Iterator[Callable[..., Provider]]:
    open_servers = []

    def start(*answers: dict) -> Provider:
        model = ScriptedModel(read_script(yaml.safe_dump({"answers": list(answers)})))
        server = served(model)
        address = server.__enter__()
        open_servers.append(server)
        return Provider(model, address, protocol)

    yield start
    for server in open_servers:
        server.__exit__(None, None, None)


def asking(text: str, **more) -> ModelRequest:
    return ModelRequest((Message("user", (Text(text),)),), **more)


async def events_of(profile: Profile, request: ModelRequest) -> list[Event]:
    return [event async for event in stream_answer(profile, request)]


async def reply_to(profile: Profile, request: ModelRequest) -> Reply:
    last = (await events_of(profile, request))[-1]
    assert isinstance(last, Ended)
    return last.reply
