"""Agents and sessions that wait for a language model: one inside the process that only waits, and one over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from django.db.models import Max, Min
from websockets.sync.client import connect

from agents.llm.conversation import Message, ToolCall
from agents.llm.exchange import Ended, Event, ModelRequest, Reply, Usage
from agents.llm.profiles import Profile
from agents.minds import asking
from agents.models import InboxItem, ModelCall
from agents.services.model_profiles import model_profile_create
from agents.services.sessions import request_submit
from benchmarks.inside import load, runners
from benchmarks.inside.furniture import DEVICE
from benchmarks.inside.tools import clock

PURPOSES = ["creation", "editing", "device_agent"]
LOOK_S = 0.02
PATIENCE_S = 120.0
TOOL = "finish"


def furnish(base_url: str) -> None:
    """The profile that everybody asks; nobody asks where the runner's model is inside."""
    model_profile_create(
        "bench", provider="openai_compatible", model="bench", base_url=base_url, purposes=PURPOSES, by=load.by()
    )


def serve_waiting(seconds: float) -> None:
    """A runner whose model waits, and then has the agent finish."""

    async def answer(profile: Profile, request: ModelRequest) -> AsyncIterator[Event]:
        await asyncio.sleep(seconds)
        message = Message("assistant", (ToolCall("c1", TOOL, '{"result": {"waited": true}}'),))
        yield Ended(Reply(message, "tool_call", Usage(10, 5, measured=True), profile.model, "", seconds, seconds))

    asking.stream_answer = answer
    runners.serve()


def agents(sessions: int, each: int) -> dict:
    """Seconds from the first question to the last end, of `sessions` plans of `each` agents, and what came of them."""
    plan = {"tasks": [{"task_id": f"t{number}", "device": DEVICE, "description": "Wait."} for number in range(each)]}
    made = [load.submit(plan) for _ in range(sessions)]
    _wait_for(made)
    calls = ModelCall.objects.filter(session__in=made)
    times = calls.aggregate(first=Min("started_at"), last=Max("ended_at"))
    ended = InboxItem.objects.filter(session__in=made, kind="interaction", outcome="completed")
    last = ended.aggregate(last=Max("ended_at"))["last"] or times["last"]
    return {
        "seconds": (last - times["first"]).total_seconds(), "completed": ended.count(),
        "answered": calls.filter(outcome="answered").count(),
    }  # fmt: skip


def planned(sessions: int, words: str) -> dict:
    """Seconds from the first post to the last end, of sessions that are asked in words."""
    began = clock()
    made = []
    for _ in range(sessions):
        made.append(load.session())
        request_submit(made[-1], "interaction", "", {"request": words}, by=load.by())
    _wait_for(made)
    done = InboxItem.objects.filter(session__in=made, kind="interaction", outcome="completed").count()
    return {"seconds": clock() - began, "completed": done}


def _wait_for(made: list[int]) -> None:
    """Until every interaction has ended."""
    deadline = clock() + PATIENCE_S
    while InboxItem.objects.filter(session__in=made, kind="interaction").exclude(state="done").exists():
        assert clock() < deadline, "it does not end"
        time.sleep(LOOK_S)


class ClockModel(BaseHTTPRequestHandler):
    """Speaks chat completions; the first piece of its answer says when it was sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(0.05)  # so that the first piece is none that came with the headers
        self._send({"role": "assistant", "content": f"{clock():.6f} "})
        for _ in range(5):
            time.sleep(0.02)
            self._send({"content": "and so on "})
        finish = {"index": 0, "id": "c1", "type": "function", "function": {"name": TOOL, "arguments": '{"result": {}}'}}
        self._send({"tool_calls": [finish]}, "tool_calls")
        self._write(b"data: [DONE]\n\n")
        self._write(b"")

    def _send(self, delta: dict, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        told = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
        self._write(b"data: " + json.dumps(told).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing is said of requests."""


def clock_model() -> None:
    """Serve until told to end; says its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ClockModel)
    print(json.dumps(server.server_address[1]), flush=True)
    server.serve_forever()


def first_tokens(trials: int, port: int, token: str) -> list[float]:
    """Seconds from the provider's first piece to the websocket client's message with it."""
    session = load.session()
    login, times = {"Authorization": f"Bearer {token}"}, []
    place = f"ws://127.0.0.1:{port}/ws/sessions/{session}/?deltas=1"
    with connect(place, additional_headers=login, open_timeout=PATIENCE_S) as client:
        client.recv(PATIENCE_S)
        for _ in range(trials + 1):
            load.submit({"tasks": [{"task_id": "t", "device": DEVICE, "description": "Say when."}]}, session)
            times.append(_first_delta(client))
            _wait_for([session])
    return times[1:]  # the first one imports the libraries


def _first_delta(client) -> float:
    while True:
        message = json.loads(client.recv(PATIENCE_S))
        at = clock()
        if message["type"] == "events":
            client.send(json.dumps({"type": "ack", "seq": message["events"][-1]["seq"]}))
        elif message["type"] == "deltas":
            text = next((each["text"] for each in message["deltas"] if each["kind"] == "text" and each["offset"] == 0), "")
            if text:
                return at - float(text.split()[0])
