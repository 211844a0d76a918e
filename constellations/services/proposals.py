"""Edits that an agent from outside proposes: they wait for a person, whose approval makes them in the same commit.

A proposal is an approval of kind `edit`. Its action is exactly what would be done: {tool: "edit", constellation_id, operations,
based_on, reason, edit_id, author}; `observed` is what the preview showed: {version, diff, consequences}.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson
from django.db.models import QuerySet

from agents import ids
from agents.errors import NoSuchSession
from agents.gates.approvals import open_approval
from agents.models import Approval
from agents.services import approvals
from agents.services.same_request import is_same_request
from agents.streams.door import Door, door
from agents.streams.tables import Fields
from constellations.errors import ConstellationsError, EditIdTaken, EditRejected, NoSuchConstellation
from constellations.live.kept import GraphReadAhead, newest_graph, read_ahead
from constellations.live.live import LiveGraph
from constellations.models import Edit
from constellations.plan.operations import write_in_full, write_in_present_words
from constellations.reads.excerpts.overview import take_within
from constellations.reads.progress import same_stream
from constellations.services.edits import (
    EditRequest,
    check_open,
    check_request,
    decide_edit,
    find_edit,
    make_edit,
    refuse_another_edit,
)
from constellations.services.gates.keeping import gates_taken_away, watched_now
from constellations.services.preview import edit_preview

KIND = "edit"
"""Of the approval."""
PROPOSAL_S = 24 * 3600.0
"""Seconds after which a proposal that nobody has decided expires."""
WAITING = 100
"""Proposals of one constellation that may wait."""
ACTION_BYTES = 256_000
"""Of a proposal's action, as JSON: people have to read it."""
DIFF_SHOWN = 200
"""Entries of the diff that a proposal keeps,"""
DIFF_BYTES = 100_000
"""and their bytes as JSON."""
TASKS_SHOWN = 50
"""Of each list of task_ids that follows from it."""
GATES_SHOWN = 20
"""Of what it would let be done unasked."""
NAMED = 3
"""Operations that a title names."""
REBASED_OVER = 2_000
"""Edits since it was made that an approval compares a proposal with: its author is not there to read a newer version."""
TOO_OLD = "reject it, and have it proposed anew on the newest version"


class TooManyProposals(ConstellationsError):
    """As many proposals wait as one constellation may have."""

    code = "too_many_proposals"
    status = 409


@dataclass(frozen=True)
class ProposalResult:
    """`approval` is the proposal; `edit` in its place the edit of that id, where it has been made."""

    approval: Approval | None
    edit: Edit | None
    changed: bool


def edit_propose(
    constellation_id: int, operations: Sequence[Fields], *, author: str, who: str, reason: str = "", edit_id: str = "",
    based_on: int | None = None, request_id: str = "",
) -> ProposalResult:  # fmt: skip
    """Propose an edit, which is judged at once: raises what `edit_apply` raises, and TooManyProposals.

    Operations are written in full, {"op", "parameters"}, as `dispatcher.operations_of` gives them; `who` names the author in
    words. The same `edit_id` again is the same proposal, whatever has become of it, another one under it raises EditIdTaken.
    It is made on `based_on`, else on the version that was judged; operations that change nothing are no proposal.
    """
    wanted = EditRequest(lambda live: operations, author, reason, edit_id, based_on)
    check_request(wanted)
    if edit_id and (known := find_same_proposal(constellation_id, wanted, operations)) is not None:
        return known
    ahead = _read(constellation_id)
    observed = _judged(ahead.live, wanted)
    if not observed:
        return ProposalResult(None, None, False)
    edit_id = edit_id or secrets.token_hex(8)
    action = {
        "tool": KIND, "constellation_id": constellation_id, "operations": list(operations),
        "based_on": observed["version"] if based_on is None else based_on, "reason": reason, "edit_id": edit_id,
        "author": author,
    }  # fmt: skip
    if (size := len(orjson.dumps(action))) > ACTION_BYTES:
        raise EditRejected(f"the edit has {size:,} bytes; a proposal has at most {ACTION_BYTES:,}")
    title = title_of(who, observed.pop("name"), operations, reason, observed["gates"])
    with door(ids.stream_of(constellation_id), author, request_id) as opened:
        known, asked = find_same_proposal(constellation_id, replace(wanted, edit_id=edit_id), operations), 0
        if known is None:
            check_open(newest_graph(opened, ahead))
            if proposals_of(constellation_id).filter(state="waiting").count() >= WAITING:
                raise TooManyProposals(f"{WAITING} proposals wait for constellation {constellation_id} already")
            row = open_approval(
                opened.turn, opened.stream, constellation_id, KIND, title, PROPOSAL_S, action=action, observed=observed
            )  # fmt: skip
            asked = row["id"]
    return known or ProposalResult(Approval.objects.get(pk=asked), None, True)


def proposals_of(constellation_id: int) -> QuerySet[Approval]:
    """All of a constellation, whatever has become of them."""
    return same_stream(Approval.objects.filter(kind=KIND, subject_id=constellation_id), constellation_id)


def find_same_proposal(constellation_id: int, wanted: EditRequest, operations: Sequence[Fields]) -> ProposalResult | None:
    """What there is under the edit_id already: the edit, else the proposal. Raises EditIdTaken where it is another one."""
    edit_id = wanted.edit_id
    edit = find_edit(constellation_id, edit_id)
    if edit is not None:
        refuse_another_edit(edit, wanted, operations)
        return ProposalResult(None, edit, False)
    row = proposals_of(constellation_id).filter(action__edit_id=edit_id).order_by("id").last()
    if row is None:
        return None
    proposer = row.action["author"]
    if not is_same_request(
        proposer, {"operations": row.action["operations"]}, wanted.author, {"operations": write_in_full(operations)}
    ):
        raise EditIdTaken(edit_id, f"proposed by {proposer}, approval {row.pk}")
    return ProposalResult(row, None, False)


def _read(constellation_id: int) -> GraphReadAhead:
    try:
        return read_ahead(constellation_id)
    except NoSuchSession as error:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}") from error


def _judged(live: LiveGraph, wanted: EditRequest) -> Fields:
    """What the edit would do, in as many words as a proposal keeps, nothing for nothing; raises as `edit_apply` does."""
    watched = watched_now()
    operations, changes = decide_edit(live, wanted, watched.devices)
    if not changes:
        return {}
    name = live.constellation["name"] or f"constellation {live.constellation['id']}"
    found = edit_preview(live.constellation["id"], operations)
    consequences = {key: value[:TASKS_SHOWN] for key, value in found["consequences"].items()}
    shown, _, _ = take_within(found["diff"], DIFF_SHOWN, DIFF_BYTES)
    return {
        "name": name, "version": found["version"], "diff": shown, "diff_total": len(found["diff"]),
        "gates": gates_taken_away(live, changes, watched)[:GATES_SHOWN],
        "consequences": consequences,
        "consequences_total": {key: len(value) for key, value in found["consequences"].items()},
    }  # fmt: skip


def title_of(who: str, name: str, operations: Sequence[Fields], reason: str, taken: Sequence[str] = ()) -> str:
    """One sentence: who wants what, which gate that takes away, and why."""
    deeds = []
    for each in operations[:NAMED]:
        op, parameters = str(each["op"]).replace("_", " "), each["parameters"]
        about = parameters.get("task_id") or parameters.get("dependency_id")
        if about is None and "from" in parameters:
            about = f"{parameters['from']}>{parameters['to']}"
        deeds.append(f"{op} {about}" if about else op)
    more = f" and {len(operations) - NAMED} more" if len(operations) > NAMED else ""
    gate = f", which {taken[0]}" if taken else ""
    return f"{who} wants to change {name}: {', '.join(deeds)}{more}{gate}" + (f". {reason}" if reason else "")


# What approving does


def prepare_proposed_edit(row: Approval) -> approvals.Effect:
    """The proposed edit, to be made under the lock as its author's."""
    action = row.action
    operations = write_in_present_words(action["operations"])
    wanted = EditRequest(
        lambda live: operations, action["author"], action["reason"], action["edit_id"], action["based_on"],
        rebased_over=REBASED_OVER, too_old=TOO_OLD, approved=True,
    )  # fmt: skip
    ahead = _read(action["constellation_id"])

    def carry_out(opened: Door) -> None:
        made_before = find_edit(action["constellation_id"], action["edit_id"])
        if made_before is not None:  # by whomever
            refuse_another_edit(made_before, replace(wanted, author=made_before.author), action["operations"])
            return
        decider, opened.turn.by = opened.turn.by, action["author"]
        make_edit(opened, newest_graph(opened, ahead), wanted, watched_now())
        opened.turn.by = decider

    return carry_out


approvals.register_effect(KIND, prepare_proposed_edit)
