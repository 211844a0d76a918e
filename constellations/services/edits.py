"""Editing a constellation from any process: under its session's lock, on its newest version, all or nothing.

The session's owner notices that the head has moved, reads what it missed and decides again (docs/engine.md, "Edits").
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents import ids
from agents.access import ancestry
from agents.engine.summon import wake_a_runner
from agents.services.same_request import is_same_request
from agents.streams.door import Door
from agents.streams.tables import Fields
from constellations.editor import commuting, editor
from constellations.errors import EditIdTaken, EditRefused, EditRejected, StaleEdit
from constellations.live.kept import graph_opened
from constellations.live.live import LiveGraph
from constellations.machines.constellation import CLOSED
from constellations.models import Edit
from constellations.plan.fitting import Devices
from constellations.plan.hidden_texts import refuse_hidden
from constellations.plan.operations import write_in_full
from constellations.reads.watching import GateWatch
from constellations.services.gates.keeping import watched_now, weigh_gates
from constellations.services.standing import edits_between

REASON_LENGTH = 2_000
AUTHOR_LENGTH = 80
"""Characters."""
EDIT_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
PLANNERS = "rule:"
"""What the ids of edits begin with that replan rules make."""
MODELS = "model:"
"""What those begin with that a model makes in an editing session."""
REBASED_OVER = 100
"""Edits that a stale one is compared with; one that missed more is refused."""
SHOWN_LINES = 5
"""Lines of another edit's diff that a refusal repeats."""


class EditWatch(Protocol):
    """Sees the graph before and after a change set is applied to it, under the lock: see `preview.PreviewWatch`."""

    def before(self, live: LiveGraph, changes: editor.Changes) -> None: ...

    def after(self, live: LiveGraph) -> None: ...


@dataclass(frozen=True)
class EditRequest:
    """An edit before it is made. `compose` makes its operations on the newest graph; `watch` sees what follows from it.

    `rebased_over`: edits since `based_on` that it is compared with, REBASED_OVER where it is None; `too_old` says what its
    author, or whoever decides about it, can do where there were more. `in_words`: an import, which may bring tasks in words
    alone. `approved`: a person has decided about it, gates that it takes away included.
    """

    compose: Callable[[LiveGraph], Sequence[Any]]
    author: str
    reason: str
    edit_id: str
    based_on: int | None = None
    undoes: int | None = None
    rebased_over: int | None = None
    too_old: str = "read the newest version"
    in_words: bool = False
    approved: bool = False
    watch: EditWatch | None = None


def edit_apply(
    constellation_id: int, operations: Sequence[Any], *, author: str, reason: str = "", edit_id: str = "",
    based_on: int | None = None, request_id: str = "", watch: EditWatch | None = None,
) -> tuple[Edit | None, bool]:  # fmt: skip
    """Apply `operations` as a whole: (the edit's row, whether this changed anything); no row where there was nothing to do.

    The same `edit_id` again is the same edit, another one under it is refused. With `based_on`, the version they were made on,
    they are rebased on newer ones where they commute with what was done since. Raises EditRefused, EditRejected, EditIdTaken,
    StaleEdit, NoSuchConstellation, NotYourSession, GateKept.
    """
    wanted = EditRequest(lambda live: operations, author, reason, edit_id, based_on, watch=watch)
    return carry_out_edit(constellation_id, wanted, request_id)


def carry_out_edit(constellation_id: int, wanted: EditRequest, request_id: str = "") -> tuple[Edit | None, bool]:
    """Make an edit under the lock of its session; see `edit_apply`."""
    check_request(wanted)
    ancestry.refuse_outside(ids.stream_of(constellation_id), wanted.author)
    watched = watched_now()  # they have streams of their own: under this one's lock they could change as well
    with graph_opened(constellation_id, wanted.author, request_id) as (opened, live):
        known = find_edit(constellation_id, wanted.edit_id) if wanted.edit_id else None
        if known is not None:
            refuse_another_edit(known, wanted, () if wanted.undoes else wanted.compose(live))
        made = None if known else make_edit(opened, live, wanted, watched)
    if made is None:
        return known, False
    wake_a_runner()
    return Edit.objects.get(pk=made), True


def find_edit(constellation_id: int, edit_id: str) -> Edit | None:
    """The edit of that id."""
    return Edit.objects.filter(constellation_id=constellation_id, edit_id=edit_id).first()


def refuse_another_edit(known: Edit, wanted: EditRequest, operations: Sequence[Any]) -> None:
    """Raise EditIdTaken unless `known`, which has the id of what is wanted, is the same edit, whatever its reason."""
    before = {"undoes": known.undoes_id, "operations": write_in_full(known.operations)}
    if not is_same_request(
        known.author, before, wanted.author, {"undoes": wanted.undoes, "operations": write_in_full(operations)}
    ):
        raise EditIdTaken(known.edit_id, f"by {known.author}, version {known.version}")


def check_request(wanted: EditRequest) -> None:
    """Raise EditRejected where what an edit says of itself makes no sense."""
    edit_id, reason = wanted.edit_id, wanted.reason
    if edit_id and not EDIT_ID.fullmatch(edit_id):
        raise EditRejected("edit_id: up to 64 letters, digits and . _ : -")
    for prefix, maker in ((PLANNERS, "replan rules"), (MODELS, "a model")):
        if edit_id.startswith(prefix):
            raise EditRejected(f"edit_id: those that begin with {prefix} are made by {maker}; choose another")
    if len(reason) > REASON_LENGTH:
        raise EditRejected(f"reason: at most {REASON_LENGTH:,} characters, not {len(reason):,}")
    if not 0 < len(wanted.author) <= AUTHOR_LENGTH:
        raise EditRejected(f"author: 1 to {AUTHOR_LENGTH} characters")


def make_edit(opened: Door, live: LiveGraph, wanted: EditRequest, watched: GateWatch) -> int | None:
    """The edit, recorded; the id of its row, or None where it changes nothing. Raises as `decide_edit` does, and GateKept."""
    operations, changes = decide_edit(live, wanted, watched.devices)
    if not changes:
        return None
    weigh_gates(live, changes, wanted.author, watched, approved=wanted.approved)
    row = edit_row(live, wanted, operations, changes, {"id": opened.take(), "at": opened.turn.at})
    if wanted.watch is not None:
        wanted.watch.before(live, changes)
    live.apply(opened.turn, changes, row)
    if wanted.watch is not None:
        wanted.watch.after(live)
    return int(row["id"])


def decide_edit(live: LiveGraph, wanted: EditRequest, devices: Devices) -> tuple[Sequence[Any], editor.Changes]:
    """The operations of an edit on this graph, and what they change; raises EditRefused, EditRejected, StaleEdit."""
    check_open(live)
    operations = wanted.compose(live)
    if wanted.undoes and not operations:
        return operations, editor.Changes()
    refuse_hidden(operations)
    undoes = bool(wanted.undoes)
    changes = rebase_edit(
        live, wanted, operations,
        lambda: editor.apply_operations(
            live.snapshot(), operations, devices, limited=not undoes, in_words=undoes or wanted.in_words
        ),
    )  # fmt: skip
    if changes and not undoes:
        live.check_room(changes)
    return operations, changes


def rebase_edit(
    live: LiveGraph, wanted: EditRequest, operations: Sequence[Any], apply: Callable[[], editor.Changes]
) -> editor.Changes:  # fmt: skip
    """What `apply` gives on the newest version; raises StaleEdit where edits since `based_on` stand against it."""
    missed = _missed(live, operations, wanted)
    try:
        changes = apply()
    except EditRefused as error:
        # on the version that its author has seen it may have been one that nobody refuses
        is_stale = wanted.based_on is not None and wanted.based_on < live.constellation["version"]
        if missed or (is_stale and commuting.are_readable(operations)):
            raise _stale(live, wanted, missed or error.problems) from error
        raise
    if changes and missed:
        raise _stale(live, wanted, missed)
    return changes


def _stale(live: LiveGraph, wanted: EditRequest, problems: Sequence[Fields]) -> StaleEdit:
    """With all that came since, also what does not clash: the author's next edit may be about just that."""
    key, version, based_on = live.constellation["id"], live.constellation["version"], wanted.based_on or 0
    return StaleEdit(based_on, version, problems, edits_between(key, based_on, version))


def check_open(live: LiveGraph) -> None:
    """Raise EditRefused when the constellation has ended; that of a cancelled one the editor itself refuses."""
    name, state = live.constellation["name"] or f"constellation {live.constellation['id']}", live.constellation["state"]
    if state in CLOSED:
        message = f"{name} has ended ({state}); work is added to it by reopening it"
        raise EditRefused([{"operation": None, "op": "", "field": "", "message": message}], conflict=True)


def edit_row(
    live: LiveGraph, wanted: EditRequest, operations: Sequence[Any], changes: editor.Changes, identity: Fields
) -> Fields:
    """The row of an edit about to be applied to `live`; `identity` has its id and its time."""
    version = live.constellation["version"]
    return {
        **identity, "constellation_id": live.constellation["id"], "edit_id": wanted.edit_id or secrets.token_hex(8),
        "author": wanted.author, "reason": wanted.reason, "undoes_id": wanted.undoes,
        "based_on": version if wanted.based_on is None else wanted.based_on, "version": version + 1,
        "operations": write_in_full(operations), "before": changes.before, "after": changes.after, "diff": changes.diff,
    }  # fmt: skip


# Edits made on an older version


def _missed(live: LiveGraph, operations: Sequence[Any], wanted: EditRequest) -> list[Fields]:
    """The edits since `based_on` with which the operations do not commute, as problems; empty: they may be applied."""
    version, based_on = live.constellation["version"], wanted.based_on
    if based_on is None or based_on == version:
        return []
    if based_on > version:
        raise EditRejected(f"based_on: there is no version {based_on} yet; version {version} is the newest")
    limit = REBASED_OVER if wanted.rebased_over is None else wanted.rebased_over
    if version - based_on > limit:
        return [{"key": "based_on", "message": f"there were more than {limit:,} edits since; {wanted.too_old}"}]
    ours = commuting.of_operations(operations) if isinstance(operations, list | tuple) else commuting.Reach()
    since = Edit.objects.filter(constellation_id=live.constellation["id"], version__gt=based_on).order_by("version")
    pages = since.defer("operations", "diff").iterator(REBASED_OVER)
    missed: list[Fields] = []
    for edit in pages:
        if names := commuting.find_clashes(ours, commuting.of_applied(edit.before, edit.after)):
            over = ", ".join(names[:SHOWN_LINES]) + (", ..." if len(names) > SHOWN_LINES else "")
            missed.append({
                "key": f"version {edit.version}", "message": f"{edit.author} changed {over} (version {edit.version})",
                "version": edit.version, "edit_id": edit.edit_id, "author": edit.author, "reason": edit.reason, "names": names,
            })  # fmt: skip
    return missed
