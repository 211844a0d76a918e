"""The tool `command`: an argument list, run on a device of this host in its workspace (see agents.devices.local)."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from agents import runtime
from agents.devices.limits import Limits
from agents.devices.local import DEFAULT_PATH, run_command
from agents.engine.tools import Call, Outcome, tool


def workspace(device: str) -> Path:
    """Where commands of a local device run."""
    return settings.STATE_DIR / "workspaces" / device


def artifacts(scope: str) -> Path:
    """What the tasks of one constellation hand to each other on this host: ORRERY_ARTIFACTS."""
    path = settings.STATE_DIR / "artifacts" / scope
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@tool("command")
async def command(call: Call) -> Outcome:
    """Argument `argv`: a list of texts. The JSON value on the last line of its output is its result."""
    limits = call.device["limits"]
    ended = await run_command(
        list(call.arguments.get("argv", ())),
        workspace=workspace(call.device["name"]),
        attempt_id=call.attempt,
        instance=runtime.instance(),
        limits=Limits.of(limits),
        timeout=call.timeout,
        env={
            "ORRERY_ARTIFACTS": str(artifacts(call.scope)),
            "ORRERY_HOME": str(settings.BASE_DIR),
            **limits.get("env", {}),
        },
        on_output=call.on_output,
        path=limits.get("path", DEFAULT_PATH),
    )
    outcome = "failed" if ended.outcome == "limit" else ended.outcome
    return Outcome(outcome, result=ended.result, error=ended.error, exit_code=ended.exit_code)
