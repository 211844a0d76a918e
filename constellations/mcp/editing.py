"""The MCP tools that change a constellation: made at once, or proposed to a person where the token may only operate."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from agents.streams.tables import Fields
from constellations.errors import GateKept
from constellations.mcp import results
from constellations.mcp.access import Caller, constellation_of
from constellations.mcp.parameters import ToolParameters
from constellations.mcp.pieces import CHARACTERS, json_of, piece_of
from constellations.plan.plain_text import sentences
from constellations.reads.devices import known_devices
from constellations.reads.excerpts.addresses import describe_cut, of_edit, with_cuts
from constellations.reads.excerpts.overview import take_within
from constellations.services import dispatcher
from constellations.services.gates.keeping import known_rules
from constellations.services.preview import PreviewWatch, edit_preview
from constellations.services.proposals import ProposalResult, edit_propose
from constellations.services.undo import edit_undo

DIFF = 200
"""Entries of a diff that an answer shows,"""
DIFF_BYTES = 50_000
"""and their bytes as JSON."""
TASKS = 200
"""Of each list of task_ids in the consequences of an edit."""
SHOWN_BEFORE = "preview_edit with part: {key} shows all of it before an edit is made"
WHERE = {
    "ready": "get_constellation with state: PENDING",
    "blocked": "get_constellation with state: WAITING_DEPENDENCY",
    "skipped": "get_constellation with state: CANCELLED",
    "revived": "get_constellation with state: WAITING_DEPENDENCY, and PENDING",
    "critical_path_before": SHOWN_BEFORE.format(key="critical_path_before"),
    "critical_path_after": "orrery://constellations/{constellation}/critical_path",
    "approvals_needed": SHOWN_BEFORE.format(key="approvals_needed"),
}  # fmt: skip
"""Where the rest is of what follows from an edit that was made."""

ABOUT = ("constellation_id", "reason", "edit_id", "based_on", "full")
"""What every editing tool takes beside its own parameters."""
EDIT = ToolParameters(*ABOUT, needed=("constellation_id",))
APPLY = ToolParameters(*ABOUT, "operations", needed=("constellation_id", "operations"))
PREVIEW = ToolParameters(
    "constellation_id", "based_on", "part", "offset", operations="as_in_apply", limit="characters",
    needed=("constellation_id", "operations"),
)  # fmt: skip
UNDO = ToolParameters(
    "constellation_id", "reason", "based_on", "full", edit_id="undone", undo_id="edit_id",
    needed=("constellation_id", "edit_id"),
)  # fmt: skip


def run_tool(name: str, caller: Caller, arguments: Fields) -> results.EditResult:
    """One editing tool by itself: what is not about the edit are its parameters."""
    about = EDIT.read({key: value for key, value in arguments.items() if key in ABOUT})
    parameters = {key: value for key, value in arguments.items() if key not in ABOUT}
    return edit_constellation(caller, [{"tool": name, "parameters": parameters}], **about)


def apply_edit(caller: Caller, arguments: Fields) -> results.EditResult:
    given = APPLY.read(arguments)
    return edit_constellation(caller, dispatcher.commands_of(given.pop("operations")), **given)


def edit_constellation(
    caller: Caller, commands: Sequence[Any], *, constellation_id: int, full: bool = False, **said: Any
) -> results.EditResult:
    """Carry out commands as one change set, or propose them; `said` is what the edit says of itself.

    They are proposed where the token may only operate, or where they take a gate away that it may not open.
    """
    caller.demand("edit", "operate", "propose")
    if full:
        caller.demand("own")
    row = constellation_of(caller, constellation_id)
    said |= {"author": caller.by, "request_id": secrets.token_hex(8)}
    if not caller.refusal("edit"):
        watch = PreviewWatch(known_devices(), known_rules())
        with suppress(GateKept):
            done = dispatcher.execute_commands(commands, row.pk, full=full, watch=watch, **said)
            return edit_result(done, row.pk, watch)
    proposed = edit_propose(row.pk, dispatcher.operations_of(commands), who=caller.who, **said)
    # A proposal keeps the version that its author has seen.
    seen = said.get("based_on") if proposed.approval is None else proposed.approval.action["based_on"]
    given = said.get("edit_id", "")
    done = dispatcher.describe_edit(row.pk, proposed.edit, False, edit_id=given, based_on=seen, before=row.version, full=full)
    if proposed.approval is None:
        return edit_result(done, row.pk)
    return results.EditResult.model_validate(edit_result(done, row.pk).model_dump(by_alias=True) | _waiting(proposed, done))


def _waiting(proposed: ProposalResult, done: dispatcher.ExecutionResult) -> Fields:
    row = proposed.approval
    assert row is not None
    observed = row.observed or {}
    message = f"the edit is approval {row.pk}, which is {row.state}" + (f" ({row.reason})" if row.reason else "")
    if row.state == "waiting":
        message = f"the edit waits for a person: it is approval {row.pk}, and is made when somebody approves it"
    proposal = results.ProposalView.model_validate(row)
    again = "preview_edit of the same operations, part: "
    unseen = unseen_edits(done.version, len(done.between), done.between_total)
    kept, total = observed.get("diff", []), observed.get("diff_total", 0)
    diff, cuts = _listed("diff", kept, max(total, len(kept)), f"{again}diff")
    consequences, more = _consequences(
        observed.get("consequences") or {}, observed.get("consequences_total", {}), lambda key: f"{again}{key}"
    )
    told = {"message": message, "proposal": proposal, "edit_id": row.action["edit_id"], "diff": diff}
    return with_cuts({**told, "consequences": consequences}, cuts, more, unseen)


def edit_result(done: dispatcher.ExecutionResult, constellation: int, watch: PreviewWatch | None = None) -> results.EditResult:
    address = of_edit(constellation, done.edit_id, "diff") if done.edit else ""
    diff, cuts = _listed("diff", done.diff, len(done.diff), address)
    found = watch.consequences if watch is not None else None
    consequences, more = (
        _consequences(found, {}, lambda key: WHERE[key].format(constellation=constellation)) if found else (None, [])
    )
    below, since = _unseen_in_words(done)
    made = (
        f"edit {done.edit_id} was made: version {done.version}{below}"
        if done.changed
        else f"edit {done.edit_id} had been made before{below}; nothing was changed now"
    )
    said = [made if done.edit else "there was nothing to change", *sentences.left_behind(done.diff), *since]
    said[-1] += "; see between" if done.between_total else ""
    between = [results.EditBetween(**each) for each in done.between]
    return results.EditResult(
        message=". ".join(said), changed=done.changed, **(standing_fields(done) | {"between": between}),
        edit=done.edit, edit_id=done.edit_id, diff=diff, consequences=consequences,
        constellation=None if done.constellation is None else results.ConstellationView.model_validate(done.constellation),
        **with_cuts({}, cuts, more, unseen_edits(done.version, len(done.between), done.between_total)),
    )  # fmt: skip


def _unseen_in_words(done: dispatcher.ExecutionResult) -> tuple[str, list[str]]:
    """What an edit is on top of that its author has not seen, and what came after it: who reads no further knows that much."""
    later = done.newest - done.version
    before = [each for each in done.between if each["version"] < done.version]
    after = [each for each in done.between if each["version"] > done.version]
    below, since = sentences.versions_sentence(before, done.between_total - later), sentences.versions_sentence(after, later)
    return f", on top of {below}" if below else "", [f"After version {done.version} came {since}"] if since else []


def standing_fields(found: Any) -> Fields:
    """What its author has seen, and what not."""
    return {key: getattr(found, key) for key in ("version", "newest", "between", "between_total")}


def unseen_edits(version: int, shown: int, total: int) -> list[Fields]:
    """What is said of the unseen edits that an answer does not show."""
    return [describe_cut("between", shown, total, "items", f"list_edits with since: {version}")] if shown < total else []


def _listed(key: str, rows: list[Fields], total: int, more: str) -> tuple[list[Fields], list[Fields]]:
    """The first of `rows` of which there are `total` in all, and what is said of the others."""
    shown, _, _ = take_within(rows, DIFF, DIFF_BYTES)
    return shown, [describe_cut(key, len(shown), total, "items", more)] if len(shown) < total else []


def _consequences(found: Fields, totals: Fields, more: Callable[[str], str]) -> tuple[Fields, list[Fields]]:
    """The first of each list, and what is said of the others; `totals` counts lists that were cut before."""
    shown = {key: value[:TASKS] for key, value in found.items()}
    counts = {key: max(totals.get(key, 0), len(value)) for key, value in found.items()}
    cuts = [
        describe_cut(f"consequences.{key}", len(shown[key]), counts[key], "items", more(key))
        for key in found
        if len(shown[key]) < counts[key]
    ]
    return shown, cuts


def preview_edit(caller: Caller, arguments: Fields) -> results.Preview:
    given = PREVIEW.read(arguments)
    caller.demand("edit", "operate", "propose")
    row = constellation_of(caller, given["constellation_id"])
    operations = dispatcher.operations_of(dispatcher.commands_of(given["operations"]))
    found = edit_preview(row.pk, operations, given.get("based_on"))
    stands = {key: found[key] for key in ("version", "newest", "between", "between_total")}
    unseen = unseen_edits(found["version"], len(found["between"]), found["between_total"])
    parts = {"diff": found["diff"], **found["consequences"]}
    if (part := given.get("part")) is not None:
        piece = piece_of(json_of(parts[part]), part, given.get("offset", 0), given.get("limit", CHARACTERS))
        shown = with_cuts({**stands, "diff": None, "consequences": None, "piece": piece}, unseen)
        return results.Preview.model_validate(shown | {"truncated": piece.truncated or shown["truncated"]})
    again = "preview_edit of the same operations, part: "
    diff, cuts = _listed("diff", found["diff"], len(found["diff"]), f"{again}diff")
    consequences, more = _consequences(found["consequences"], {}, lambda key: f"{again}{key}")
    view = with_cuts({**stands, "diff": diff, "consequences": consequences}, cuts, more, unseen)
    return results.Preview.model_validate(view)


def undo_edit(caller: Caller, arguments: Fields) -> results.EditResult:
    given = UNDO.read(arguments)
    caller.demand("edit")
    if given.get("full"):
        caller.demand("own")
    row = constellation_of(caller, given["constellation_id"])
    said = {key: given[key] for key in ("reason", "undo_id", "based_on") if key in given}
    watch = PreviewWatch(known_devices(), known_rules())
    made, changed = edit_undo(
        row.pk, given["edit_id"], caller.by, **said, request_id=secrets.token_hex(8), watch=watch
    )  # fmt: skip
    asked = {"edit_id": said.get("undo_id", ""), "based_on": said.get("based_on"), "full": given.get("full", False)}
    return edit_result(dispatcher.describe_edit(row.pk, made, changed, **asked, before=row.version), row.pk, watch)
