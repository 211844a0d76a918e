"""What differs between two moments of a stream: each row before and after, and how such differences are put together. Pure.

A row is a tuple here, in the order of its table's columns: it takes a quarter of a dictionary's memory, and there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.streams.fold import FoldError
from agents.streams.tables import TABLES, Fields, Table

RowTuple = tuple[Any, ...]


@dataclass(slots=True)
class TableDifference:
    """Rows of one table by their ids, as they are before and after; None where one is not there. Both have the same ids.

    `places` are those of the columns in which rows that are there before and after may differ.
    """

    before: dict[int, RowTuple | None] = field(default_factory=dict)
    after: dict[int, RowTuple | None] = field(default_factory=dict)
    places: set[int] = field(default_factory=set)

    def turned(self) -> TableDifference:
        """The way back."""
        return TableDifference(self.after, self.before, self.places)


Difference = dict[str, TableDifference]
"""By the names of tables."""


def difference_by_events(changes: Iterable[Fields], row_before: Callable[[str, int], RowTuple | None]) -> Difference:
    """What the data of events that follow each other do. `row_before(table, id)` is how a row was before the first of them.

    Raises FoldError when an event changes a row that is not there.
    """
    found: Difference = {}
    texts: dict[str, str] = {}  # each text once: states and times come again and again

    def touched(name: str, key: int) -> TableDifference:
        into = found.setdefault(name, TableDifference())
        if key not in into.after:
            into.before[key] = into.after[key] = row_before(name, key)
        return into

    for data in changes:
        for name, fresh in data.get("add", {}).items():
            table = TABLES[name]
            for fields in fresh:
                touched(name, fields["id"]).after[fields["id"]] = _changed(table, table.blank, fields, texts)
        for name, rows in data.get("set", {}).items():
            table = TABLES[name]
            for key, fields in zip(map(int, rows), rows.values(), strict=True):
                into = touched(name, key)
                row = into.after[key]
                if row is None:
                    raise FoldError(f"an event sets {sorted(fields)} of {name} {key}, which is not there")
                into.after[key] = _changed(table, row, fields, texts)
                into.places.update(map(table.places.__getitem__, fields.keys() & table.places.keys()))
        for name, gone in data.get("del", {}).items():
            for key in map(int, gone):
                into = touched(name, key)
                into.after[key] = None
                into.places.update(TABLES[name].places.values())  # a row that comes back may differ in any
    return found


def _changed(table: Table, row: RowTuple, fields: Fields, texts: dict[str, str]) -> RowTuple:
    values, places = list(row), table.places
    for name, value in fields.items():
        if name in places:
            values[places[name]] = texts.setdefault(value, value) if type(value) is str else value
    return tuple(values)


def turned(difference: Difference) -> Difference:
    """The way back."""
    return {name: each.turned() for name, each in difference.items()}


def joined(path: Sequence[Difference]) -> Difference:
    """One difference in the place of several, each of which goes on where the one before it ends."""
    found: Difference = {name: TableDifference() for difference in path for name in difference}
    for difference in path:
        for name, each in difference.items():
            found[name].after.update(each.after)
            found[name].places |= each.places
    for difference in reversed(path):  # so that the first word on a row is the last that is written
        for name, each in difference.items():
            found[name].before.update(each.before)
    return found
