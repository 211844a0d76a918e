"""Where the author of an edit stands: the version that they have seen, the newest, and what others did that they have not seen.

An author builds the next edit on the version of the last answer. It is the newest only where nobody else has edited: otherwise
that next edit would count as made by somebody who knows what others did, and would overwrite it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.reads.authors import names_of
from agents.streams.tables import Fields
from constellations.errors import NoSuchConstellation
from constellations.models import Constellation, Edit
from constellations.plan.plain_text import sentences

BETWEEN = 50
"""Edits that one answer names; more are counted."""
REASON = 500
"""Characters of each reason."""
READ_AT_ONCE = 10
"""Edits; the diff of one may have megabytes."""


@dataclass(frozen=True, slots=True)
class Standing:
    """`version` is the one to build on, and `newest` the constellation's.

    `between` has the first of the edits that the author has not seen, as `edits_between` gives them, and `between_total` counts
    all of these.
    """

    version: int
    newest: int
    between: list[Fields] = field(default_factory=list)
    between_total: int = 0


def standing_of(
    constellation_id: int, edit: Edit | None, changed: bool, *, edit_id: str, based_on: int | None, before: int
) -> Standing:  # fmt: skip
    """Where the author stands after `edit_apply` or `edit_undo` gave (edit, changed).

    The version is that which the edit made, now or when it was sent before. Where there was nothing to do it is the one that
    the author had seen: `based_on`, else the newest, which was `before` when the request came. `edit_id` is the id that they
    gave. Raises NoSuchConstellation.
    """
    newest = newest_version(constellation_id)
    seen = before if based_on is None else based_on
    if edit is not None and (changed or edit.edit_id == edit_id):
        return _standing(constellation_id, edit.version, min(seen, edit.based_on), newest)
    if edit is not None and based_on is None:  # somebody had taken it back before
        seen = min(seen, edit.version)
    return _standing(constellation_id, seen, seen, newest)


def standing_on(constellation_id: int, seen: int, newest: int) -> Standing:
    """Where somebody stands who has made nothing, and has seen a version."""
    return _standing(constellation_id, seen, seen, newest)


def newest_version(constellation_id: int) -> int:
    """The newest version of a constellation; raises NoSuchConstellation."""
    found = Constellation.objects.filter(pk=constellation_id).values_list("version", flat=True).first()
    if found is None:
        raise NoSuchConstellation(f"there is no constellation {constellation_id}")
    return found


def _standing(constellation_id: int, version: int, seen: int, newest: int) -> Standing:
    total = newest - seen - (version > seen)
    if total <= 0:
        return Standing(version, newest)
    return Standing(version, newest, edits_between(constellation_id, seen, newest, version), total)


def edits_between(constellation_id: int, seen: int, newest: int, own: int | None = None) -> list[Fields]:
    """The first of the edits after version `seen`, up to `newest`, less the one that made version `own`.

    Each is {"version", "edit_id", "author", "author_name", "reason", "changes"}, with the changes in words.
    """
    found = Edit.objects.filter(constellation_id=constellation_id, version__gt=seen, version__lte=newest).order_by("version")
    others = found if own is None else found.exclude(version=own)
    rows = others.defer("operations", "before", "after")[:BETWEEN]
    told: list[Fields] = [
        {
            "version": row.version, "edit_id": row.edit_id, "author": row.author, "reason": row.reason[:REASON],
            "changes": sentences.changes_summary(row.diff),
        }
        for row in rows.iterator(READ_AT_ONCE)
    ]  # fmt: skip
    names = names_of(each["author"] for each in told)
    return [{**each, "author_name": names[each["author"]]} for each in told]
