"""The tools of the MCP server: the editor's seven, as `dispatcher.list_tools` has them, and those around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.tables import Fields
from constellations import dispatcher
from constellations.editor_tools import EditorTool, Schema, bare
from constellations.mcp import editing, reading, results
from constellations.mcp.access import Caller

REMOVING = frozenset({"build_constellation", "remove_task", "remove_dependency", "apply_edit", "undo_edit"})
"""Tools that may take something away."""


@dataclass(frozen=True)
class McpTool:
    """`run` gets what the caller gave, reads it, and answers; it reads the database and blocks."""

    name: str
    description: str
    parameters: Schema
    run: Callable[[Caller, Fields], results.Result]
    reads: bool = True


def _editing(tool: EditorTool) -> McpTool:
    """One of the editor's tools, with what an edit says of itself, which apply_edit explains."""
    about, own = editing.EDIT.schema, tool.parameters
    parameters = {
        **own, "properties": {**bare(about["properties"]), **own["properties"]},
        "required": [*about["required"], *own.get("required", ())],
    }  # fmt: skip
    return McpTool(tool.name, tool.description, parameters, partial(editing.run_tool, tool.name), False)


TOOLS: dict[str, McpTool] = {
    tool.name: tool
    for tool in (
        *map(_editing, dispatcher.list_tools()),
        McpTool(
            "apply_edit", "Several operations as one change set: all of them are made, or none.",
            editing.APPLY.schema, editing.apply_edit, False,
        ),
        McpTool(
            "preview_edit", "What operations would change, and what would follow. Nothing is changed.",
            editing.PREVIEW.schema, editing.preview_edit,
        ),
        McpTool(
            "undo_edit", "Take an edit back, by an edit of its own; undoing that one is the redo.",
            editing.UNDO.schema, editing.undo_edit, False,
        ),
        McpTool(
            "get_constellation", "A constellation: its tasks, their states and results, and its dependencies.",
            reading.GET.schema, reading.get_constellation,
        ),
        McpTool(
            "list_constellations", "Constellations, the newest first.",
            reading.LIST.schema, reading.list_constellations,
        ),
        McpTool(
            "list_edits", "The history of a constellation's edits, the newest first.",
            reading.EDITS.schema, reading.list_edits,
        ),
        McpTool(
            "list_devices", "The devices that tasks run on: their names, types, capabilities, and whether they are taken.",
            reading.DEVICES.schema, reading.list_devices,
        ),
        McpTool("why", "Why a task is not running.", reading.WHY.schema, reading.explain),
        McpTool(
            "list_approvals", "What waits for somebody to decide; proposed edits among it.",
            reading.APPROVALS.schema, reading.list_approvals,
        ),
        McpTool(
            "decide_approval", "Approve or reject what waits. A proposed edit is made then; nobody decides their own.",
            reading.DECIDE.schema, reading.decide_approval, False,
        ),
    )
}  # fmt: skip
"""By name, in the order in which they are listed."""
