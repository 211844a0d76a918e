"""The Command Dispatcher: every editor's way to the Constellation Editor's tools.

Whoever edits - the planner in a runner's turn, a program over MCP - learns the tools from `list_tools` and has commands
carried out by `execute_commands`: all of them, as one change set, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agents.streams.fold import consistent_read
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from agents.tools.catalogue import tool_names
from constellations.editor import editor
from constellations.errors import EditRefused
from constellations.live.live import LiveGraph
from constellations.models import Constellation, Edit
from constellations.plan.operations import split_operation, write_in_present_words
from constellations.plan.schemas import TOOLS, EditorTool, naming_tools, unknown_editor_tool_text
from constellations.plan.values import SHOWN, key_text, value_kind
from constellations.reads.excerpts.overview import read_overview
from constellations.reads.watching import GateWatch
from constellations.services import edits, standing
from constellations.services.gates.keeping import weigh_gates

DEEDS = frozenset(["tool", "arguments", "phases", "device_type", "capabilities", "wanted_device", "not_device"])
"""Columns of a task that say what is done, and where."""
EXAMPLE = '{"op": "add_task", "parameters": {"task_id": "report", "command": ["make", "report"]}}'
"""What is told to somebody whose operation names no tool."""


@dataclass(frozen=True, slots=True)
class InTurn:
    """A live graph that its owner edits in a turn of its own, and what watches over it. `by_model`: a model chose the edit."""

    live: LiveGraph
    turn: Turn
    watched: GateWatch
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What came of commands.

    `edit` is the id of the edit's row, None where there was nothing to do; `diff` is as `editor.Changes` has it;
    `constellation`, where it was asked for, is an `overview`. `version` is the one to build on, and it, `newest`, `between` and
    `between_total` are as `standing.Standing` has them.
    """

    edit: int | None
    edit_id: str
    changed: bool
    version: int
    newest: int
    diff: list[Fields] = field(default_factory=list)
    constellation: Fields | None = None
    between: list[Fields] = field(default_factory=list)
    between_total: int = 0


def list_tools() -> list[EditorTool]:
    """Every tool there is, with the names of what tasks may call."""
    return [naming_tools(tool, tool_names()) for tool in TOOLS.values()]


def execute_commands(
    commands: Sequence[Any], target: int | InTurn, *, author: str, reason: str = "", edit_id: str = "",
    based_on: int | None = None, request_id: str = "", full: bool = False, watch: edits.EditWatch | None = None,
) -> ExecutionResult:  # fmt: skip
    """Carry out commands, each {"tool": name, "parameters": {...}}, on a constellation's id or on a live graph.

    Raises EditRefused, which names an unknown tool and the nearest one there is, LimitReached or GateKept, and for an id what
    `edits.edit_apply` raises.
    `based_on`, `request_id`, `full` and `watch` are for constellations by id: a live graph is the newest there is.
    """
    operations = operations_of(commands)
    if isinstance(target, InTurn):
        operations = write_in_present_words(operations)  # a rule may have been written long ago
        return _in_turn(operations, target, edits.EditRequest(lambda live: operations, author, reason, edit_id))
    before = standing.newest_version(target)
    made, changed = edits.edit_apply(
        target, operations, author=author, reason=reason, edit_id=edit_id, based_on=based_on, request_id=request_id,
        watch=watch,
    )  # fmt: skip
    return describe_edit(target, made, changed, edit_id=edit_id, based_on=based_on, before=before, full=full)


def describe_edit(
    constellation_id: int, made: Edit | None, changed: bool, *, edit_id: str = "", based_on: int | None = None, before: int,
    full: bool = False,
) -> ExecutionResult:  # fmt: skip
    """What came of an edit that was made: its row, or None where there was nothing to do.

    `edit_id` and `based_on` are what its author gave, `before` is the newest version when the request came.
    """
    with consistent_read():
        stands = standing.standing_of(constellation_id, made, changed, edit_id=edit_id, based_on=based_on, before=before)
        shown = read_overview(Constellation.objects.get(pk=constellation_id)) if full else None
    key, name, diff = (None, "", []) if made is None else (made.pk, made.edit_id, made.diff)
    return ExecutionResult(edit=key, edit_id=name, changed=changed, diff=diff, constellation=shown, **asdict(stands))


def operations_of(commands: Sequence[Any]) -> list[Fields]:
    """Commands as the editor's operations; raises EditRefused with every command that is none."""
    if not isinstance(commands, list | tuple):
        raise EditRefused([_problem(None, "", "", f"commands are a list, not {value_kind(commands)}")])
    problems = [problem for number, command in enumerate(commands) for problem in _flaws(number, command)]
    if problems:
        raise EditRefused(problems[: editor.MAX_PROBLEMS])
    return [{"op": command["tool"], "parameters": command.get("parameters", {})} for command in commands]


def commands_of(operations: Sequence[Any]) -> list[Any]:
    """Operations, in whichever form they are written, as commands; raises EditRefused with every one that has none."""
    found = [split_operation(each) for each in operations]
    problems = [
        _problem(number, each.name, key_text(path), message)
        for number, each in enumerate(found)
        for path, message in each.findings
    ]
    if problems:
        raise EditRefused(problems[: editor.MAX_PROBLEMS])
    return [{"tool": each.op, "parameters": each.parameters} for each in found]


def _flaws(number: int, command: Any) -> list[Fields]:
    if not isinstance(command, Mapping):
        return [_problem(number, "", "", f"a command is an object (tool, parameters), not {value_kind(command)}")]
    name = command.get("tool")
    if not isinstance(name, str) or name not in TOOLS:
        said = (
            unknown_editor_tool_text(name[:SHOWN])
            if isinstance(name, str)
            else f"which tool? It is {value_kind(name)}; an operation is like {EXAMPLE}"
        )
        return [_problem(number, name[:SHOWN] if isinstance(name, str) else "", "", said)]
    strange = [str(key)[:SHOWN] for key in command if key not in ("tool", "parameters")]
    return [_problem(number, name, key, f"there is no key {key} beside the tool and its parameters") for key in strange]


def _problem(number: int | None, op: str, field_name: str, message: str) -> Fields:
    """`number` counts from 0, what people read from 1."""
    return {"operation": None if number is None else number + 1, "op": op, "field": field_name, "message": message}


def mark_chosen(changes: editor.Changes) -> None:
    """Every task that a model adds, or gives something else to do, is marked: its calls are asked about."""
    changes.added_tasks = [{**row, "chosen": True} for row in changes.added_tasks]
    changes.updated_tasks = {
        key: {**fields, "chosen": True} if fields.keys() & DEEDS else fields for key, fields in changes.updated_tasks.items()
    }


def _in_turn(operations: list[Fields], target: InTurn, wanted: edits.EditRequest) -> ExecutionResult:
    """On a live graph, recorded in its owner's turn."""
    live, turn = target.live, target.turn
    changes = editor.apply_operations(live.snapshot(), operations, target.watched.devices)
    if not changes:
        return ExecutionResult(None, "", False, live.constellation["version"], live.constellation["version"])
    if target.by_model:
        mark_chosen(changes)
    live.check_room(changes)
    weigh_gates(live, changes, wanted.author, target.watched)
    row = edits.edit_row(live, wanted, operations, changes, {"id": turn.take(), "at": turn.at})
    live.apply(turn, changes, row)
    return ExecutionResult(row["id"], row["edit_id"], True, row["version"], row["version"], changes.diff)
