"""What the MCP tools answer, as types; docs/mcp.md, "Answers", has their keys. Lists are bounded, and say so."""

from __future__ import annotations

from datetime import datetime
from keyword import iskeyword
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from constellations.plan.keys import fields
from constellations.plan.keys.kinds import Field as PlanField
from constellations.plan.keys.kinds import Lists, Shape

Json = dict[str, Any]


class Result(BaseModel):
    """Rows of the database and plain objects are read alike."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)


class Cut(Result):
    """Something that is not whole in an answer."""

    key: str = Field(description="Which of the answer's keys.")
    shown: int
    total: int
    unit: str = Field(description="characters or items")
    more: str = Field(description="Where or how the rest is read: mostly an address for read_value.")


class MayBeCut(Result):
    truncated: bool = Field(description="There is more than is shown here; `cut` says of what, how much and where.")
    cut: list[Cut] = []


class Piece(Result):
    """Characters of a value from `offset` on."""

    address: str
    offset: int
    text: str
    total: int = Field(description="Characters of the whole value, which is JSON unless it is plain text.")
    next: int | None = Field(description="`offset` of the piece after this; null: this is the last.")
    truncated: bool = Field(description="The value is longer than this piece.")
    seen: str | None = Field(default=None, description="Of an approval's action: to be given with the piece after this.")
    digest: str | None = Field(default=None, description="Of an approval's action, with its last piece.")


def with_keys(model: type[BaseModel], keys: tuple[PlanField, ...]) -> Any:
    """`model` with the keys of a plan that answers show."""
    shown: Any = {
        f"{each.key}_" if iskeyword(each.key) else each.key: (TYPES.get(each.takes.shape, str), Field(alias=each.key))
        for each in keys
        if Lists.MCP in each.lists
    }
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **shown)


TYPES: dict[Shape, Any] = {
    Shape.FLAG: bool, Shape.NUMBER: float | None, Shape.COUNT: int, Shape.NAMES: list[str], Shape.TEXTS: list[str],
    Shape.LIST: list[Any], Shape.OBJECT: Any,
}  # fmt: skip
"""Of the values of keys; all others are text. What is an object may be left out of an answer."""


class TaskView(with_keys(MayBeCut, fields.TASK)):  # type: ignore[misc]  # its keys are those of the table
    state: str
    reason: str
    runs_on: str | None = Field(description="Where it runs or ran.")
    attempt: int
    result: Any
    error: str


class DependencyView(with_keys(Result, fields.DEPENDENCY)):  # type: ignore[misc]  # as above
    """What a task waits for, and how."""


class WrittenTasks(MayBeCut):
    """All that can be edited of some tasks, as build_constellation takes it; what is left out has its default."""

    tasks: list[Json]
    dependencies: list[Json] = Field(description="Those into them.")


class ConstellationView(MayBeCut):
    id: int
    session: int
    name: str
    state: str
    reason: str
    version: int
    counts: dict[str, int] = Field(description="All its tasks by state.")
    matching: int = Field(description="Tasks that fit what was asked for.")
    tasks: list[TaskView]
    dependencies: list[DependencyView] = Field(description="Those into the tasks shown.")
    next: int | None = Field(description="Give it as `after` for the next page.")
    written: WrittenTasks | None = Field(default=None, description="Where tasks were asked for.")


class ConstellationLine(MayBeCut):
    id: int
    session: int = Field(validation_alias="session_id")
    name: str
    state: str
    reason: str
    version: int
    created_at: datetime
    ended_at: datetime | None


class ConstellationList(Result):
    constellations: list[ConstellationLine] = Field(description="The newest first.")
    next: int | None = Field(description="Give it as `before` for the next page.")


class ProposalView(Result):
    """An edit that waits for a person, or was decided by one."""

    approval: int = Field(validation_alias="pk")
    state: str
    expires_at: datetime | None
    decided_by: str
    reason: str


class EditBetween(Result):
    """Somebody else's edit, in a few words."""

    version: int
    edit_id: str
    author: str
    author_name: str
    reason: str
    changes: str


class Standing(MayBeCut):
    """What an author has seen, and what not."""

    version: int = Field(description="The one to give as `based_on` next: that which this edit made.")
    newest: int = Field(description="The constellation's now.")
    between: list[EditBetween] = Field(description="The first of the edits that its author has not seen.")
    between_total: int = Field(description="How many these are.")


class EditResult(Standing):
    message: str = Field(description="What came of it, in one sentence.")
    changed: bool = Field(description="Whether this call changed the constellation.")
    edit: int | None = Field(description="Id of the edit; null where there was nothing to do, and while it waits.")
    edit_id: str
    diff: list[Json]
    consequences: Json | None = Field(description="As in a preview; null where this call changed nothing.")
    proposal: ProposalView | None = None
    constellation: ConstellationView | None = Field(default=None, description="Where it was asked for.")


class Preview(Standing):
    diff: list[Json] | None
    consequences: Json | None = Field(
        description="task_ids that become ready, blocked, skipped, revived; critical paths; approvals needed."
    )
    piece: Piece | None = Field(default=None, description="Of the one `part` that was asked for.")


class EditLine(MayBeCut):
    id: int
    edit_id: str
    author: str
    author_name: str = Field(description="As people call the author.")
    reason: str
    undoes: int | None = Field(description="Id of the edit that it takes back.")
    based_on: int
    version: int = Field(description="The constellation's after it.")
    at: datetime
    operations: list[Any]
    diff: list[Json]


class EditList(Result):
    edits: list[EditLine] = Field(description="The newest version first.")
    next: int | None = Field(description="Give it as `before` for the next page.")


class DeviceView(MayBeCut):
    name: str
    state: str = Field(description="connected takes new tasks.")
    type: str = Field(description="What device_type of a task asks for.")
    capabilities: list[Any]
    labels: list[Any] = Field(description="What policies know it by.")
    max_concurrent: int = Field(description="Attempts that it runs at once.")
    used: int = Field(description="Of those, now.")
    recipes: Json | None = Field(description="Named commands with parameters, for requests in words.")
    limits: Json = Field(description="Of one command, and when its work pauses.")
    confinement: str = Field(description="What its commands are behind.")


class DeviceList(Result):
    devices: list[DeviceView] = Field(description="By name.")
    next: str | None = Field(description="Give it as `after` for the next page.")
    tools: Json = Field(description="What tasks may call on them: JSON Schemas of arguments by name.")
    runners: int = Field(description="That live; without one nothing starts.")


class Explanation(Result):
    task_id: str
    state: str
    kind: str
    text: str
    fields_: Json = Field(alias="fields", description="What it is about.")


class ApprovalView(MayBeCut):
    id: int
    session: int = Field(validation_alias="session_id")
    kind: str
    title: str
    action: Any = Field(description="Exactly what is to be done.")
    digest: str | None = Field(description="To approve it with; null where the action is cut: the last piece of it has it.")
    options: list[Any] = Field(description="Answers to choose from.")
    state: str
    asked_at: datetime
    expires_at: datetime | None
    decided_at: datetime | None
    decided_by: str
    decided_by_name: str = Field(description="As people call who decided; empty while it waits.")
    reason: str


class ApprovalList(Result):
    approvals: list[ApprovalView] = Field(description="Those of the newest session first.")
    next: int | None = Field(description="Give it as `before` for the next page.")


class Decision(Result):
    changed: bool = Field(description="False: the same author had decided so before.")
    approval: ApprovalView


class SubmitResult(Result):
    session: int
    interaction: int
    client_id: str
    created: bool = Field(description="False: this client_id has asked before.")


class InteractionView(MayBeCut):
    id: int
    state: str = Field(description="queued, running, done or refused.")
    outcome: str = Field(description="Of one that is done: completed, partially_failed, failed or cancelled.")
    by: str
    asked: str = Field(description="The plan, or the words.")
    constellations: list[int] = Field(description="Ids of its graphs, oldest first: a restart makes another.")
    result: Any
    created_at: datetime
    ended_at: datetime | None


class SessionView(MayBeCut):
    session: int
    title: str
    state: str | None = Field(description="Of its actor; null before the first runner came to it.")
    reason: str
    standing: dict[str, Any] = Field(description="How it stands for you; the same word as on every page.")
    interactions: list[InteractionView] = Field(description="The newest first.")
    next: int | None = Field(description="Give it as `before` for those before them.")


class LifecycleResult(Result):
    state: str = Field(description="Now; what a runner has to do first is not in it yet.")
    changed: bool = Field(description="False: it is so already.")
    command: int | None = Field(description="Its place in the inbox, where it waits for a runner.")


class TaskCancelResult(Result):
    task_id: str
    state: str = Field(description="Now; a task that runs is stopped by its runner.")
    reason: str
    changed: bool = Field(description="False: it was asked for, or is so, already.")
    command: int | None = Field(description="Its place in the inbox, where it waits for a runner.")


class RetryResult(Standing):
    tasks: list[str] = Field(description="All that begin again.")
    changed: bool
    interaction: int | None = Field(description="That reopens a constellation which had ended.")
    edit: int | None = Field(description="Id of the edit that operations made at once.")
