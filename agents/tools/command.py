"""The tool `command`: an argument list, run on a device of this host in its workspace (see agents.devices.local)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from agents.devices import host
from agents.devices.answers import command_answer, state_after
from agents.devices.limits import CommandLimits
from agents.devices.local import DEFAULT_PATH, CommandOutcome, run_command
from agents.devices.workspace import files
from agents.masks.values import resolve_environment
from agents.tools import confining
from agents.tools.calls import Call, Outcome, check_arguments, register_tool
from agents.tools.workspaces import NoWorkspace, device_workspace

BLACKBOARD = "ORRERY_BLACKBOARD"
BLACKBOARD_CHARACTERS = 64_000
"""A process can be given no text beyond 128 KiB."""


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
        ended = await _run(call)
        return Outcome(**command_answer(ended, None, None), process=_process_of(call, ended))
    place = device_workspace(call.device["name"])
    before = await asyncio.to_thread(files.content_state, place, call.writes)
    ended = await _run(call)
    after = await asyncio.to_thread(state_after, place, call.writes)
    return Outcome(**command_answer(ended, before, after), process=_process_of(call, ended))


def _process_of(call: Call, ended: CommandOutcome) -> dict[str, Any]:
    """The program and its process on this host, of a call that an app agent makes."""
    return {"name": os.path.basename(call.arguments["argv"][0]), "pid": ended.pid} if call.app and ended.pid else {}


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


def blackboard_environment(shared: Mapping[str, Any]) -> dict[str, str]:
    """The environment's entry that tells a command what its task's agents share; none when there is nothing, or too much."""
    text = json.dumps(shared, separators=(",", ":")) if shared else ""
    return {BLACKBOARD: text} if 0 < len(text) <= BLACKBOARD_CHARACTERS else {}
