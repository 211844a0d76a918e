"""The tool `command`: an argument list, run on a device of this host in its workspace (see agents.devices.local)."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from agents.devices import host
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH, CommandOutcome, run_command
from agents.devices.profiles.names import name_fault
from agents.devices.workspace import files
from agents.errors import AgentsError
from agents.masks.values import resolve_environment
from agents.progress.digests import text_digest
from agents.tools import confining
from agents.tools.calls import Call, Outcome, check_arguments, register_tool

BLACKBOARD = "ORRERY_BLACKBOARD"
BLACKBOARD_CHARACTERS = 64_000
"""A process can be given no text beyond 128 KiB."""


class NoWorkspace(AgentsError):
    """The name of a device, or of what constellations share, is no name of a folder."""

    code = "no_workspace"
    error_kind = ""


def device_workspace(device: str) -> Path:
    """Where commands of a local device run. Raises NoWorkspace for a name that leads elsewhere."""
    if fault := name_fault(device):
        raise NoWorkspace(f"the device {device!r} has no workspace, because its name {fault}; make one with another name")
    return settings.STATE_DIR / "workspaces" / device


def artifacts_folder(scope: str, inherits: str = "") -> Path:
    """What the tasks of one constellation hand to each other on this host: ORRERY_ARTIFACTS.

    A fork's folder begins as a copy of that of the constellation it `inherits` from, as it is when it is first needed.
    """
    if not scope.isdecimal() or not (inherits or "0").isdecimal():
        raise NoWorkspace(f"constellations have numbers, and {scope!r} with {inherits!r} is none")
    path = settings.STATE_DIR / "artifacts" / scope
    if not path.exists():
        if inherits and (source := path.with_name(inherits)).exists():
            # Whole or not at all: of several that copy at once one wins.
            fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            shutil.copytree(source, fresh, symlinks=True)
            try:
                fresh.rename(path)
            except OSError:  # it is there, and not empty
                shutil.rmtree(fresh)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


ARGV = {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The program and its arguments; no shell."}


TAKES = {"type": "object", "properties": {"argv": ARGV}, "required": ["argv"], "additionalProperties": False}


@register_tool("command", TAKES, keeps_time=True)
async def carry_out_command(call: Call) -> Outcome:
    """Argument `argv`: a list of texts. The JSON value on the last line of its output is its result.

    Its digest is that of its exit code and output; with `writes`, that of the file's content after it. It sees the
    blackboard as JSON in ORRERY_BLACKBOARD, unless that is empty or has more than BLACKBOARD_CHARACTERS.
    Raises FileRefused, before anything runs, where `writes` leads out of the workspace.
    """
    argv = call.arguments.get("argv")
    if not isinstance(argv, list | tuple) or not argv:
        await asyncio.to_thread(check_arguments, call.tool, dict(call.arguments))
    if not call.writes:
        return _outcome(await _run(call), None, None)
    place = device_workspace(call.device["name"])
    before = await asyncio.to_thread(files.content_state, place, call.writes)
    ended = await _run(call)
    return _outcome(ended, before, await asyncio.to_thread(_state_after, place, call.writes))


async def _run(call: Call) -> CommandOutcome:
    limits = call.device["limits"]
    if not confining.is_open_to_all():
        await asyncio.to_thread(_refuse_unconfined, call.session)
    shared = (
        await asyncio.to_thread(artifacts_folder, call.scope, call.inherits) if call.inherits else artifacts_folder(call.scope)
    )
    return await run_command(
        list(call.arguments["argv"]),
        workspace=device_workspace(call.device["name"]),
        attempt_id=call.attempt,
        instance=host.instance_name(),
        limits=CommandLimits.of(limits),
        timeout=call.timeout,
        env={
            "ORRERY_ARTIFACTS": str(shared),
            "ORRERY_HOME": str(settings.BASE_DIR),
            **blackboard_environment(call.blackboard),
            **resolve_environment(limits.get("env", {})),
        },
        on_output=call.on_output,
        path=limits.get("path", DEFAULT_PATH),
        walls=confining.command_walls(limits, shared),
    )


def _refuse_unconfined(session: int) -> None:
    """In a thread, which has a connection of its own."""
    try:
        confining.refuse_unconfined(session)
    finally:
        connection.close()


def _state_after(place: Path, path: str) -> str | None:
    """None when it cannot be told, as where the command has put something else in the file's place. Raises nothing: a command
    that has run must not be run again.
    """
    try:
        return files.content_state(place, path) or None
    except (files.FileRefused, OSError):
        return None


def _outcome(ended: CommandOutcome, before: str | None, after: str | None) -> Outcome:
    """Its digest is that of the file where that was looked at, else that of what it printed, where it ran."""
    digested = after
    if before is None and ended.fingerprint is not None:
        digested = text_digest(f"{ended.exit_code} {ended.fingerprint}")
    return Outcome(
        "failed" if ended.outcome == "limit" else ended.outcome, result=ended.result, error=ended.error,
        exit_code=ended.exit_code, error_kind=ended.error_kind, digest=digested, before=before, text=ended.text,
    )  # fmt: skip


def blackboard_environment(shared: Mapping[str, Any]) -> dict[str, str]:
    """The environment's entry that tells a command what its task's agents share; none when there is nothing, or too much."""
    text = json.dumps(shared, separators=(",", ":")) if shared else ""
    return {BLACKBOARD: text} if 0 < len(text) <= BLACKBOARD_CHARACTERS else {}
