"""What the MCP tools answer, as types; docs/mcp.md, "Answers", has their keys. All lists are bounded."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class Result(BaseModel):
    """Rows of the database and plain objects are read alike."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)


class TaskView(Result):
    task_id: str
    name: str
    state: str
    reason: str
    priority: str
    wanted_device: str
    device: str | None = Field(description="Where it runs or ran.")
    tool: str
    arguments: Any = Field(description="null where they are too long to be shown here.")
    attempt: int
    result: Any = Field(description="null where there is none, or it is too long to be shown here.")
    error: str


class DependencyView(Result):
    dependency_id: str
    upstream: str = Field(alias="from")
    downstream: str = Field(alias="to")
    type: str
    condition: str


class Written(Result):
    """All that can be edited of some tasks, as build_constellation takes it; what is left out has its default."""

    tasks: list[Json]
    dependencies: list[Json] = Field(description="Those into them.")
    truncated: bool = Field(description="There is more than is shown here.")


class ConstellationView(Result):
    id: int
    session: int
    name: str
    state: str
    reason: str
    version: int
    counts: dict[str, int] = Field(description="Tasks by state.")
    tasks: list[TaskView]
    dependencies: list[DependencyView]
    truncated: bool = Field(description="There are more tasks or dependencies than these.")
    written: Written | None = Field(default=None, description="Where tasks were asked for.")


class ConstellationLine(Result):
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


class Standing(Result):
    """What an author has seen, and what not."""

    version: int = Field(description="The one to give as `based_on` next: that which this edit made.")
    newest: int = Field(description="The constellation's now.")
    between: list[EditBetween] = Field(description="The first of the edits of others that its author has not seen.")
    between_total: int = Field(description="How many these are.")


class EditResult(Standing):
    message: str = Field(description="What came of it, in one sentence.")
    changed: bool = Field(description="Whether this call changed the constellation.")
    edit: int | None = Field(description="Id of the edit; null where there was nothing to do, and while it waits.")
    edit_id: str
    diff: list[Json]
    truncated: bool = Field(description="The diff is longer.")
    proposal: ProposalView | None = None
    constellation: ConstellationView | None = Field(default=None, description="Where it was asked for.")


class Preview(Standing):
    diff: list[Json]
    consequences: Json = Field(
        description="task_ids that become ready, blocked, skipped, revived; critical paths; approvals needed."
    )
    truncated: bool


class EditLine(Result):
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
    truncated: bool = Field(description="It has more operations, or a longer diff.")


class EditList(Result):
    edits: list[EditLine] = Field(description="The newest version first.")
    next: int | None = Field(description="Give it as `before` for the next page.")


class DeviceView(Result):
    name: str
    state: str = Field(description="ONLINE takes new tasks.")
    type: str = Field(description="What device_type of a task asks for.")
    capabilities: list[Any]
    max_concurrent: int = Field(description="Attempts that it runs at once.")
    used: int = Field(description="Of those, now.")


class DeviceList(Result):
    devices: list[DeviceView] = Field(description="By name.")
    truncated: bool


class Explanation(Result):
    task_id: str
    state: str
    kind: str
    text: str
    fields_: Json = Field(alias="fields", description="What it is about.")


class ApprovalView(Result):
    id: int
    session: int = Field(validation_alias="session_id")
    kind: str
    title: str
    action: Any = Field(description="Exactly what is to be done; null where it is too long to be shown here.")
    digest: str
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
