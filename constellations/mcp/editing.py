"""The MCP tools that change a constellation: made at once, or proposed to a person where the token may only operate."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from agents.tables import Fields
from constellations import dispatcher, telling
from constellations.mcp import results
from constellations.mcp.access import Caller, constellation_of
from constellations.mcp.parameters import Form
from constellations.overview import within
from constellations.previews import edit_preview
from constellations.proposals import Proposed, edit_propose
from constellations.undoing import edit_undo

DIFF = 200
"""Entries of a diff that an answer shows,"""
DIFF_BYTES = 50_000
"""and their bytes as JSON."""
TASKS = 200
"""Of each list of task_ids in a preview's consequences."""

ABOUT = ("constellation_id", "reason", "edit_id", "based_on", "full")
"""What every editing tool takes beside its own parameters."""
EDIT = Form(*ABOUT, needed=("constellation_id",))
APPLY = Form(*ABOUT, "operations", needed=("constellation_id", "operations"))
PREVIEW = Form("constellation_id", "operations", "based_on", needed=("constellation_id", "operations"))
UNDO = Form(
    "constellation_id", "reason", "based_on", "full", edit_id="undone", undo_id="edit_id",
    needed=("constellation_id", "edit_id"),
)  # fmt: skip


def run_tool(name: str, caller: Caller, arguments: Fields) -> results.EditResult:
    """One editing tool by itself: what is not about the edit are its parameters."""
    about = EDIT.read({key: value for key, value in arguments.items() if key in ABOUT})
    parameters = {key: value for key, value in arguments.items() if key not in ABOUT}
    return edit(caller, [{"tool": name, "parameters": parameters}], **about)


def apply_edit(caller: Caller, arguments: Fields) -> results.EditResult:
    given = APPLY.read(arguments)
    return edit(caller, dispatcher.commands_of(given.pop("operations")), **given)


def edit(
    caller: Caller, commands: Sequence[Any], *, constellation_id: int, full: bool = False, **said: Any
) -> results.EditResult:
    """Carry out commands as one change set, or propose them; `said` is what the edit says of itself."""
    caller.demand("edit", "operate")
    if full:
        caller.demand("own")
    row = constellation_of(caller, constellation_id)
    said |= {"author": caller.by, "request_id": secrets.token_hex(8)}
    if not caller.refusal("edit"):
        return told_of(dispatcher.execute_commands(commands, row.pk, full=full, **said))
    proposed = edit_propose(row.pk, dispatcher.operations_of(commands), who=caller.who, **said)
    seen, given = _seen(proposed, said.get("based_on")), said.get("edit_id", "")
    done = dispatcher.executed(row.pk, proposed.edit, False, edit_id=given, based_on=seen, before=row.version, full=full)
    if proposed.approval is None:
        return told_of(done)
    return told_of(done).model_copy(update=_waiting(proposed))


def _seen(proposed: Proposed, based_on: int | None) -> int | None:
    """The version that the author of a proposal has seen: it keeps which one that was."""
    return based_on if proposed.approval is None else proposed.approval.action["based_on"]


def _waiting(proposed: Proposed) -> Fields:
    row = proposed.approval
    assert row is not None
    diff, cut = _diff((row.observed or {}).get("diff", []))
    message = f"the edit is approval {row.pk}, which is {row.state}" + (f" ({row.reason})" if row.reason else "")
    if row.state == "waiting":
        message = f"the edit waits for a person: it is approval {row.pk}, and is made when somebody approves it"
    proposal = results.ProposalView.model_validate(row)
    return {"message": message, "proposal": proposal, "edit_id": row.action["edit_id"], "diff": diff, "truncated": cut}


def told_of(done: dispatcher.Executed) -> results.EditResult:
    diff, cut = _diff(done.diff)
    made = (
        f"edit {done.edit_id} was made: version {done.version}"
        if done.changed
        else f"edit {done.edit_id} had been made before; nothing was changed now"
    )
    said = [made if done.edit else "there was nothing to change", *telling.left_behind(done.diff), *_others(done)]
    between = [results.EditBetween(**each) for each in done.between]
    return results.EditResult(
        message=". ".join(said),
        changed=done.changed,
        version=done.version, newest=done.newest, between=between, between_total=done.between_total,
        edit=done.edit, edit_id=done.edit_id, diff=diff, truncated=cut,
        constellation=None if done.constellation is None else results.ConstellationView.model_validate(done.constellation),
    )  # fmt: skip


def _others(done: dispatcher.Executed) -> list[str]:
    """That others have edited, where they have: who reads no further knows at least that."""
    return [f"Others have edited too: version {done.newest} is the newest; see between"] if done.between_total else []


def _diff(diff: list[Fields]) -> tuple[list[Fields], bool]:
    shown, _, cut = within(diff, DIFF, DIFF_BYTES)
    return shown, cut


def preview_edit(caller: Caller, arguments: Fields) -> results.Preview:
    given = PREVIEW.read(arguments)
    caller.demand("edit", "operate")
    row = constellation_of(caller, given["constellation_id"])
    operations = dispatcher.operations_of(dispatcher.commands_of(given["operations"]))
    found = edit_preview(row.pk, operations, given.get("based_on"))
    consequences = found["consequences"]
    diff, cut = _diff(found["diff"])
    long = any(len(each) > TASKS for each in consequences.values())
    shown = {key: value[:TASKS] for key, value in consequences.items()}
    stands = {key: found[key] for key in ("version", "newest", "between", "between_total")}
    return results.Preview(**stands, diff=diff, consequences=shown, truncated=cut or long)


def undo_edit(caller: Caller, arguments: Fields) -> results.EditResult:
    given = UNDO.read(arguments)
    caller.demand("edit")
    if given.get("full"):
        caller.demand("own")
    row = constellation_of(caller, given["constellation_id"])
    said = {key: given[key] for key in ("reason", "undo_id", "based_on") if key in given}
    made, changed = edit_undo(row.pk, given["edit_id"], caller.by, **said, request_id=secrets.token_hex(8))
    asked = {"edit_id": said.get("undo_id", ""), "based_on": said.get("based_on"), "full": given.get("full", False)}
    return told_of(dispatcher.executed(row.pk, made, changed, **asked, before=row.version))
