"""The tools of the MCP server: the editor's seven, as `dispatcher.list_tools` has them, and those around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.streams.tables import Fields
from constellations.mcp import editing, reading, results, runs
from constellations.mcp.access import Caller
from constellations.plan.keys.json_schema import Schema
from constellations.plan.schemas import EditorTool, bare_keys
from constellations.services import dispatcher

FOR_AGENTS = frozenset(
    {
        *(tool.name for tool in dispatcher.list_tools()), "apply_edit", "preview_edit", "get_session", "get_constellation",
        "list_constellations", "why", "get_output", "read_value", "list_edits",
    }
)  # fmt: skip
"""Tools that a coding agent is offered: it looks, and what it edits is proposed. It starts, ends and decides nothing."""
REMOVING = frozenset(
    {
        "build_constellation", "remove_task", "remove_dependency", "apply_edit", "undo_edit", "cancel", "cancel_task",
        "restart", "reopen",
    }
)  # fmt: skip
"""Tools that may take something away, or end it."""


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
        **own, "properties": {**bare_keys(about["properties"]), **own["properties"]},
        "required": [*about["required"], *own.get("required", ())],
    }  # fmt: skip
    return McpTool(tool.name, tool.description, parameters, partial(editing.run_tool, tool.name), False)


TOOLS: dict[str, McpTool] = {
    tool.name: tool
    for tool in (
        *map(_editing, dispatcher.list_tools()),
        McpTool(
            "apply_edit",
            "Make several operations as one change set: all of them, or none. Use it for changes that belong together; "
            "for a single one its own tool is shorter. Not for what has ended: reopen, retry or fork.",
            editing.APPLY.schema, editing.apply_edit, False,
        ),
        McpTool(
            "preview_edit",
            "See what operations would change and what would follow, and change nothing. Use it before a large or risky edit; "
            "not needed before a small one, whose answer says the same.",
            editing.PREVIEW.schema, editing.preview_edit,
        ),
        McpTool(
            "undo_edit",
            "Take an edit back, by an edit of its own; undoing that one is the redo. list_edits has the edit_ids. "
            "Refused where others have changed the same since, or it has started.",
            editing.UNDO.schema, editing.undo_edit, False,
        ),
        McpTool(
            "start_request",
            "Start work: a plan, or a request in words that recipes answer. Without session it gets a session of its own. "
            "Follow it with get_session. Not for changing what runs: that is an edit. (client_id means the same everywhere.)",
            runs.START.schema, runs.start_request, False,
        ),
        McpTool(
            "get_session",
            "How a session is and what it was asked: the state and outcome of each request, and the ids of its "
            "constellations. Use it to follow start_request, reopen and fork.",
            runs.SESSION.schema, runs.get_session,
        ),
        McpTool(
            "get_constellation",
            "Tasks with their states and results, and the dependencies into them, in pages. In a large graph ask for a state "
            "or a name (the failed one: state FAILED) rather than read every page. For what can be edited, name tasks.",
            reading.GET.schema, reading.get_constellation,
        ),
        McpTool(
            "list_constellations", "Constellations that you may see, the newest first: to find one whose id you do not have.",
            reading.LIST.schema, reading.list_constellations,
        ),
        McpTool(
            "why",
            "Why one task is not running, was skipped or failed; also says when no runner lives. Use it rather than guess "
            "from states.",
            reading.WHY.schema, reading.explain_named_task,
        ),
        McpTool(
            "get_output",
            "What a task printed, in pieces; offset -4000 is its end. Its result is in get_constellation.",
            reading.OUTPUT.schema, reading.get_output,
        ),
        McpTool(
            "read_value",
            "Read in pieces what an answer cut: `more` beside it is the address. Go on with `next` as offset. "
            "Of an approval's action give `seen` along; its last piece has the digest.",
            reading.VALUE.schema, reading.read_value,
        ),
        McpTool(
            "list_edits", "The history of a constellation's edits, the newest first: who changed what, when and why.",
            reading.EDITS.schema, reading.list_edits,
        ),
        McpTool(
            "list_devices",
            "Where tasks run: devices with types, capabilities, recipes, limits and slots, the tools that tasks may call with "
            "their arguments, and how many runners live. Look here before writing a plan.",
            reading.DEVICES.schema, reading.list_devices,
        ),
        McpTool(
            "pause",
            "Let nothing new start, in one constellation or in a session with all it works on; what runs ends. "
            "To look or edit in peace; not needed for an edit.",
            runs.AT_ONCE.schema, runs.pause_constellation, False,
        ),
        McpTool(
            "resume", "Go on after a pause, in the same way as it was paused.",
            runs.AT_ONCE.schema, runs.resume_constellation, False,
        ),
        McpTool(
            "cancel",
            "End a constellation, or a session with all it works on, for good: what runs is stopped. Needs a reason. "
            "For one task there is cancel_task; to interrupt, pause.",
            runs.EITHER.schema, runs.cancel_constellation, False,
        ),
        McpTool(
            "restart",
            "Cancel what is open and plan the same request anew. To repeat only what failed, retry.",
            runs.RESTART.schema, runs.restart_constellation, False,
        ),
        McpTool(
            "cancel_task",
            "Stop one running task, or skip one that waits, with what depends on its success. Needs a reason. "
            "A task that should not be in the graph at all is removed: remove_task.",
            runs.CANCEL_TASK.schema, runs.cancel_task, False,
        ),
        McpTool(
            "retry",
            "Let failed or cancelled tasks begin again, with what is downstream; a constellation that has ended is "
            "reopened. `operations` mend them in the same step, for example an update_task with another command.",
            runs.RETRY.schema, runs.retry_tasks, False,
        ),
        McpTool(
            "reopen",
            "Go on with a constellation that has ended: by operations, by tasks to retry (which operations may mend), or both. "
            "While it is open, edit or retry instead.",
            runs.REOPEN.schema, runs.reopen_constellation, False,
        ),
        McpTool(
            "fork",
            "Go on in a session of its own from a constellation as it is, or was at an event; the original stays as it is. "
            "What was COMPLETED or FAILED stays so, everything else begins again.",
            runs.FORK.schema, runs.fork_constellation, False,
        ),
        McpTool(
            "list_approvals",
            "What waits for somebody to decide, proposed edits among it, each with exactly what would be done.",
            reading.APPROVALS.schema, reading.list_approvals,
        ),
        McpTool(
            "decide_approval",
            "Approve or reject what waits, or answer a question. Approving needs the digest of the action, which comes with "
            "the whole of it. Nobody decides their own. Only where you were told to decide.",
            reading.DECIDE.schema, reading.decide_approval, False,
        ),
    )
}  # fmt: skip
"""By name, in the order in which they are listed."""


def tools_for(caller: Caller) -> dict[str, McpTool]:
    """Those that a caller is offered, by name."""
    return {name: tool for name, tool in TOOLS.items() if name in FOR_AGENTS} if caller.is_agent else TOOLS
