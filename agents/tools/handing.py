"""Calls that are handed files: their inputs are placed in the workspace before them, their outputs are kept after them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.artifacts.keeping import in_own_thread
from agents.artifacts.store import StoreUnusable
from agents.artifacts.workspace import keep_outputs, place_inputs
from agents.errors import AgentsError
from agents.faults import pause_seconds
from agents.tools.calls import Call, Outcome, Tool
from agents.tools.catalogue import TOOLS
from agents.tools.workspaces import device_workspace

INPUT = "input"
"""Kind of error of a call that was not made, because something it is to be given is not there. It is no fault of the call."""
FILE_KINDS = {"local", "remote"}
"""Kinds of devices whose calls can be handed files; whoever carries out those of another kind adds it here."""
TRIES = 3
"""Of a store that does not answer."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0


def tool_with_files(call: Call) -> Tool | None:
    """Who carries out a call in a workspace of this host that is handed files; None where its tool alone does."""
    if not (call.inputs or call.outputs) or (tool := TOOLS.get(call.tool)) is None:
        return None
    return with_files(tool, device_workspace(call.device["name"]))


async def refuse_files(call: Call) -> Outcome:
    """The end of a call that is to be handed files on a device that has no workspace."""
    kind = call.device.get("kind", "local")
    return Outcome("failed", error=f"a device of the kind {kind} takes no inputs and keeps no outputs", error_kind=INPUT)


def takes_files(call: Call) -> bool:
    """Whether the call's device can be handed what it is to be handed."""
    return not (call.inputs or call.outputs) or call.device.get("kind", "local") in FILE_KINDS


def with_files(tool: Tool, workspace: Path) -> Tool:
    """`tool` in a workspace, with the inputs and outputs of its call."""

    async def carry_out(call: Call) -> Outcome:
        try:
            await _patiently(place_inputs, workspace, call.inputs)
        except (AgentsError, OSError) as error:
            return Outcome("failed", error=f"its inputs could not be placed: {error}", error_kind=INPUT)
        outcome: Any = tool(call)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if call.outputs and isinstance(outcome, Outcome) and outcome.outcome == "completed":
            await keep_files(outcome, workspace, call.outputs)
        return outcome  # type: ignore[no-any-return]  # whoever asked looks at it

    return carry_out


async def keep_files(outcome: Outcome, workspace: Path, patterns: Any) -> None:
    """Keep what a call that went well has left in a workspace; where that cannot be done, it has failed after all."""
    try:
        outcome.artifacts = [*outcome.artifacts, *await _patiently(keep_outputs, workspace, patterns)]
    except (AgentsError, OSError) as error:
        outcome.outcome, outcome.error = "failed", f"its outputs could not be kept: {error}"


async def _patiently(work: Callable[..., Any], workspace: Path, what: Any) -> Any:
    """Do it in a thread, and once more where the store does not answer."""
    for made in range(1, TRIES):
        try:
            return await in_own_thread(work, workspace, what)
        except StoreUnusable:
            await asyncio.sleep(pause_seconds(made, 0, FIRST_PAUSE_S, LONGEST_PAUSE_S))
    return await in_own_thread(work, workspace, what)
