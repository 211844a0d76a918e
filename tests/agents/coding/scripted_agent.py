"""A coding agent made with the agent's side of the SDK: it does what the prompt says behind `DO:`, a list of steps in JSON.

Run as a program of its own. A prompt without `DO:` is answered with its own words. Steps:

    {"say": text} {"think": text} {"plan": [entry]} {"update": raw update} {"raw": a line of output}
    {"stderr": characters} {"noise": characters} {"sleep": seconds} {"until": path} {"stop": reason} {"fail": message}
    {"ask": call, "options": [option]} with a call as the protocol has it: toolCallId, title, kind, rawInput, ...
    {"run": argv, "id": id, "unasked": true} {"write": path, "text": text, "id": id}
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
)

OPTIONS = [
    {"optionId": "for-ever", "kind": "allow_always", "name": "Always"},
    {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
HOME = Path(os.environ["HOME"])


class ScriptedAgent:
    """Keeps in its home what it was told, as real ones do."""

    def __init__(self) -> None:
        self._cancelled = asyncio.Event()
        self._cwd = Path(".")

    def on_connect(self, connection: Any) -> None:
        self.client = connection._conn

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        version = int(os.environ.get("AGENT_VERSION", PROTOCOL_VERSION))
        return InitializeResponse(
            protocol_version=version, agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(name="scripted", version="1.0"),
        )  # fmt: skip

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **more: Any) -> NewSessionResponse:
        self._cwd = Path(cwd)
        (HOME / "begun").write_text(json.dumps([server.model_dump(mode="json") for server in mcp_servers or []]))
        return NewSessionResponse(session_id="session-1")

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> LoadSessionResponse:
        self._cwd = Path(cwd)
        told = {"toolCallId": "old", "title": "from before", "kind": "execute", "status": "completed"}
        await self._update({"sessionUpdate": "tool_call", **told})
        (self._cwd / "loaded").write_text(session_id)
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **more: Any) -> None:
        self._cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        self._cancelled.clear()
        text = prompt[0].text
        with (HOME / "prompts").open("a") as file:
            file.write(json.dumps(text) + "\n")
        _, found, steps = text.partition("DO:")
        if not found:
            await self._say("agent_message_chunk", f"I was told: {text[:60]}")
            return PromptResponse(stop_reason="end_turn")
        doing = asyncio.create_task(self._do(json.JSONDecoder().raw_decode(steps.strip())[0]))
        cancelled = asyncio.create_task(self._cancelled.wait())
        await asyncio.wait([doing, cancelled], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            doing.cancel()
            return PromptResponse(stop_reason="cancelled")
        return await doing

    async def _do(self, steps: list[dict[str, Any]]) -> PromptResponse:
        for step in steps:
            if stop := await self._step(step):
                return PromptResponse.model_construct(stop_reason=stop, field_meta=None, usage=None)
        return PromptResponse(stop_reason="end_turn")

    async def _step(self, step: dict[str, Any]) -> str:
        if "say" in step:
            for at in range(0, len(step["say"]), 5):
                await self._say("agent_message_chunk", step["say"][at : at + 5])
        elif "think" in step:
            await self._say("agent_thought_chunk", step["think"])
        elif "plan" in step:
            await self._update({"sessionUpdate": "plan", "entries": step["plan"]})
        elif "update" in step:
            await self._update(step["update"])
        elif "ask" in step:
            await self._ask(step)
        elif "run" in step:
            await self._run(step)
        elif "write" in step:
            await self._write(step)
        else:
            return await self._misbehave(step)
        return ""

    async def _misbehave(self, step: dict[str, Any]) -> str:
        if "stderr" in step:
            sys.stderr.write("e" * step["stderr"])
            sys.stderr.flush()
        elif "raw" in step:
            sys.stdout.buffer.write(step["raw"].encode() + b"\n")
            sys.stdout.buffer.flush()
        elif "noise" in step:
            await self._update({"sessionUpdate": "noise", "text": "x" * step["noise"]})
        elif "sleep" in step:
            await asyncio.sleep(step["sleep"])
        elif "until" in step:
            while not (self._cwd / step["until"]).exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        elif "fail" in step:
            raise RequestError(-32000, step["fail"])
        return str(step.get("stop", ""))

    async def _run(self, step: dict[str, Any]) -> None:
        call = {
            "toolCallId": step.get("id", "run"), "title": " ".join(step["run"]), "kind": "execute",
            "rawInput": {"command": " ".join(step["run"])},
        }  # fmt: skip
        if not step.get("unasked") and not await self._ask({"ask": call}):
            await self._update({"sessionUpdate": "tool_call_update", **call, "status": "failed", "rawOutput": "refused"})
            return
        done = await asyncio.to_thread(subprocess.run, step["run"], cwd=self._cwd, capture_output=True, text=True, check=False)
        brought = {
            "status": "completed", "content": [{"type": "content", "content": {"type": "text", "text": done.stdout}}],
            "rawOutput": {"output": done.stdout, "metadata": {"exit": done.returncode}},
        }  # fmt: skip
        await self._update({"sessionUpdate": "tool_call_update", **call, **brought})

    async def _write(self, step: dict[str, Any]) -> None:
        path = self._cwd / step["write"]
        call = {
            "toolCallId": step.get("id", "write"), "title": f"write {step['write']}", "kind": "edit",
            "rawInput": {"file_path": str(path)}, "locations": [{"path": str(path)}],
            "content": [{"type": "diff", "path": str(path), "newText": step["text"]}],
        }  # fmt: skip
        if not await self._ask({"ask": call}):
            await self._update({"sessionUpdate": "tool_call_update", **call, "status": "failed", "rawOutput": "refused"})
            return
        path.write_text(step["text"])
        await self._update({"sessionUpdate": "tool_call_update", **call, "status": "completed"})

    async def _ask(self, step: dict[str, Any]) -> bool:
        params = {"sessionId": "session-1", "toolCall": step["ask"], "options": step.get("options", OPTIONS)}
        answer = await self.client.send_request("session/request_permission", {**params, **step.get("params", {})})
        with (HOME / "answers").open("a") as file:
            file.write(json.dumps(answer) + "\n")
        return answer["outcome"].get("optionId") == "yes"

    async def _say(self, kind: str, text: str) -> None:
        await self._update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def _update(self, update: dict[str, Any]) -> None:
        await self.client.send_notification("session/update", {"sessionId": "session-1", "update": update})


if __name__ == "__main__":
    asyncio.run(run_agent(ScriptedAgent()))
