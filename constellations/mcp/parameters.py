"""What the MCP tools take beside an operation's parameters: each with its JSON Schema and the reader that agrees with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agents.api.pagination import LARGEST
from agents.api.serializers.sessions import PLAN_LENGTH, REQUEST_LENGTH
from agents.api.serializers.sessions import REASON_LENGTH as COMMAND_REASON_LENGTH
from agents.errors import AgentsError
from agents.models import Approval
from agents.services.approvals import ANSWER_LENGTH, STATES
from agents.services.approvals import REASON_LENGTH as DECISION_REASON_LENGTH
from agents.streams.tables import Fields
from constellations.editor.editor import MAX_OPERATIONS
from constellations.machines import CONSTELLATION, TASK
from constellations.mcp.pieces import CHARACTERS, SEAL_LENGTH
from constellations.mcp.pieces import LARGEST as LARGEST_PIECE
from constellations.plan import values
from constellations.plan.keys.calls import MAX_WORD
from constellations.plan.keys.fields import MAX_DEPENDENCY_ID
from constellations.plan.keys.json_schema import FLAG, OBJECT, TEXT, TEXTS, Schema, a_part, an_object, many, one_of, said
from constellations.plan.operations import MAX_TASKS
from constellations.plan.schemas import TOOLS
from constellations.plan.values import MAX_ID, Misfit, Reader, key_text
from constellations.reads.excerpts.narrowing import FILTERS, help_of
from constellations.reads.excerpts.overview import TASKS
from constellations.services.edits import AUTHOR_LENGTH, EDIT_ID, REASON_LENGTH
from constellations.services.lifecycle import TITLE_LENGTH

PAGE = 20
LARGEST_PAGE = 100
"""Rows of one answer."""
DIGEST_LENGTH = 64
"""Hexadecimal digits."""
ADDRESS_LENGTH = 1_000
NAME_LENGTH = 200
"""Characters."""
PARTS = (
    "diff", "ready", "blocked", "skipped", "revived", "critical_path_before", "critical_path_after", "approvals_needed",
)  # fmt: skip
"""Of what a preview says."""


class ArgumentsRejected(AgentsError):
    """What a tool was given is not what it takes; problems are {"key", "message"}."""

    code = "arguments_rejected"


class Parameter(NamedTuple):
    schema: Schema
    read: Reader


def edit_name(value: Any) -> str:
    name = values.text_reader(64)(value)
    if not EDIT_ID.fullmatch(name):
        raise Misfit("up to 64 letters, digits and . _ : - make one")
    return name


def _whole(description: str, low: int = 1, high: int = LARGEST) -> Parameter:
    schema: Schema = {"type": "integer"}
    return Parameter(said(description, schema) if description else schema, values.whole_reader(low, high))


def _text(description: str, limit: int) -> Parameter:
    return Parameter(said(description, TEXT) if description else TEXT, values.text_reader(limit))


def _choice(description: str, choices: tuple[str, ...]) -> Parameter:
    return Parameter(said(description, one_of(choices)), values.choice_reader(choices))


OPERATION = said(
    "An editing tool by its name, and its parameters as that tool takes them.",
    a_part({"op": one_of(tuple(TOOLS)), "parameters": OBJECT}, "op", "parameters"),
)
PARAMETERS: dict[str, Parameter] = {
    "constellation_id": _whole(""),
    "reason": _text("Why, for those who read the history.", REASON_LENGTH),
    "edit_id": Parameter(
        said("An id of your own for the edit: the same again is the same edit.", {**TEXT, "pattern": f"^{EDIT_ID.pattern}$"}),
        edit_name,
    ),
    "based_on": _whole("The version it was made on; it is refused where others have changed the same since."),
    "full": Parameter(said("Also answer with the whole constellation.", FLAG), values.read_flag),
    "part": _choice("Only this part, whole, as JSON text from `offset` on.", PARTS),
    "operations": Parameter(many(OPERATION), values.list_reader(lambda item: item, MAX_OPERATIONS)),
    "undone": _text("edit_id, or id, of the edit to take back.", MAX_DEPENDENCY_ID),
    "as_in_apply": Parameter(said("As in apply_edit.", many(OBJECT)), values.list_reader(lambda item: item, MAX_OPERATIONS)),
    "task_id": _text("", MAX_ID),
    "retry": Parameter(
        said("Tasks that begin again, by task_id, with what is downstream of them.", TEXTS),
        values.list_reader(values.text_reader(MAX_ID), MAX_TASKS),
    ),
    "failed": Parameter(
        said("By task_id; left out: every FAILED task.", TEXTS), values.list_reader(values.text_reader(MAX_ID), MAX_TASKS)
    ),
    "task_state": _choice("Only tasks in this state.", tuple(sorted(TASK.states))),
    "task_name": _text("Only tasks with this text in task_id or name, in any case.", NAME_LENGTH),
    **{f"task_{key}": _text(help_of(field), field.takes.limit) for key, field in FILTERS.items()},
    "after": _whole("`next` of the page before."),
    "tasks_limit": _whole(f"Tasks, at most {TASKS}.", 1, TASKS),
    "device_name": _text("`next` of the page before.", MAX_WORD),
    "address": _text("An address that an answer gave.", ADDRESS_LENGTH),
    "offset": _whole("From this character on; negative: the last so many.", -LARGEST, LARGEST),
    "characters": _whole(f"{CHARACTERS:,} when left out, at most {LARGEST_PIECE:,}.", 1, LARGEST_PIECE),
    "seen": _text("Of the piece before, for an approval's action.", SEAL_LENGTH),
    "attempt": _whole("Its number; the last when left out."),
    "plan": _text("YAML or JSON: {name, tasks, dependencies, replan}, in the words of build_constellation.", PLAN_LENGTH),
    "request": _text("Words, where a recipe of a device answers them: `check disk on laptop`.", REQUEST_LENGTH),
    "title": _text("Of a new session.", TITLE_LENGTH),
    "client_id": Parameter(
        said("An id of your own: the same again is the same request.", {**TEXT, "pattern": f"^{EDIT_ID.pattern}$"}), edit_name
    ),
    "same_id": Parameter(TEXT, edit_name),
    "constellation": _whole("Which; or give a session."),
    "session_or": _whole("Which; or give a constellation_id."),
    "parent": _whole("A session that this token started: the new one ends with it."),
    "in_session": _whole("Of yours, to go on in; left out: a new one."),
    "why": _text("", COMMAND_REASON_LENGTH),
    "seq": _whole("The event of its session after which; left out: as it is now."),
    "task_ids": Parameter(
        said("Only these, by task_id, and as `written` all that can be edited of them.", TEXTS),
        values.list_reader(values.text_reader(MAX_ID)),
    ),
    "author": _text("Edits by this author, for example user:1.", AUTHOR_LENGTH),
    "since": _whole("Edits after this version.", 0),
    "session": _whole("Of this session."),
    "session_id": _whole(""),
    "state": _choice("In this state.", tuple(sorted(CONSTELLATION.states))),
    "approval_state": _choice("In this state; waiting, when left out.", Approval.STATES),
    "before": _whole("`next` of the page before."),
    "limit": _whole(f"Rows, at most {LARGEST_PAGE}; {PAGE} when left out.", 1, LARGEST_PAGE),
    "approval_id": _whole(""),
    "decision": _choice("What is decided.", tuple(STATES)),
    "decision_reason": _text("Why.", DECISION_REASON_LENGTH),
    "answer": _text("To a question, which is approved by answering it.", ANSWER_LENGTH),
    "digest": _text("Needed to approve: of the action, read whole.", DIGEST_LENGTH),
    "arguments": Parameter(said("For a call: to be used in the place of its own.", OBJECT), values.read_mapping),
}  # fmt: skip
"""By name; `named` says where a tool calls one otherwise."""


class ToolParameters:
    """The parameters of one tool. `named` maps its own names to those of PARAMETERS; `needed` have to be there."""

    def __init__(self, *names: str, needed: tuple[str, ...] = (), **named: str):
        self._parameters = {own: PARAMETERS[known] for own, known in {**{name: name for name in names}, **named}.items()}
        self._needed = needed

    @property
    def schema(self) -> Schema:
        return an_object({name: each.schema for name, each in self._parameters.items()}, *self._needed)

    def read(self, arguments: Mapping[str, Any]) -> Fields:
        """The fields that were given; raises ArgumentsRejected with all that is wrong with them."""
        fields, findings = values.read_fields(arguments, {name: each.read for name, each in self._parameters.items()})
        findings += [((name,), "is missing") for name in self._needed if arguments.get(name) is None]
        if findings:
            raise reject_arguments([{"key": key_text(path), "message": message} for path, message in findings])
        return fields


def reject_arguments(problems: list[Fields]) -> ArgumentsRejected:
    told = "; ".join(f"{each['key']}: {each['message']}" for each in problems[:3])
    return ArgumentsRejected(told, problems)
