"""Undo and redo: an edit that takes another one back. Redo is the undo of an undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constellations.editor.inverse import inverse_operations
from constellations.errors import EditRefused, NoSuchEdit, UndoRefused
from constellations.live.live import LiveGraph, reason_that_fits
from constellations.models import Edit
from constellations.services.edits import EditRequest, EditWatch, carry_out_edit, find_edit


def edit_undo(
    constellation_id: int, edit_id: str, author: str, *, reason: str = "", undo_id: str = "", based_on: int | None = None,
    request_id: str = "", watch: EditWatch | None = None,
) -> tuple[Edit | None, bool]:  # fmt: skip
    """Take an edit back by an edit of its own, whose `undoes` names it: (its row, whether this changed anything).

    `undo_id` is the new edit's id: the same again is the same undo. What is back already stays as it is. With `based_on`, the
    version that its author has seen, it is rebased as any edit. Raises NoSuchEdit, UndoRefused ("cannot undo: task_005
    already runs"), and what `edit_apply` raises.
    """
    undone = edit_named(constellation_id, edit_id)

    def compose(live: LiveGraph) -> Sequence[Any]:
        return inverse_operations(undone.before, undone.after, live.snapshot())

    wanted = EditRequest(compose, author, reason or default_reason(undone), undo_id, based_on, undone.pk, watch=watch)
    try:
        made, changed = carry_out_edit(constellation_id, wanted, request_id)
    except EditRefused as error:
        said = "; ".join(dict.fromkeys(problem["message"] for problem in error.problems))
        raise UndoRefused(f"cannot undo: {said}", error.problems) from error
    return (made or undone.undone_by.order_by("version").last()), changed


def edit_named(constellation_id: int, edit_id: str) -> Edit:
    """By its edit_id, else by its row's id in digits; raises NoSuchEdit."""
    found = find_edit(constellation_id, edit_id)
    if found is None and edit_id.isascii() and edit_id.isdigit() and len(edit_id) < 19:
        found = Edit.objects.filter(constellation_id=constellation_id, pk=int(edit_id)).first()
    if found is None:
        raise NoSuchEdit(f"constellation {constellation_id} has no edit {edit_id[:64]}")
    return found


def default_reason(undone: Edit) -> str:
    """What an undo says of itself."""
    word = "redo" if undone.undoes_id else "undo"
    return reason_that_fits(f"{word} of {undone.edit_id}{': ' if undone.reason else ''}{undone.reason}")
