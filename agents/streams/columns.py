"""Rows of a stream by columns, as they are sent where there are many: a name is written once, not once a row. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from agents.streams.differences import Difference, RowTuple
from agents.streams.tables import TABLES, Fields


def tell_columns(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, Fields]:
    """{table: {"columns": [name], "rows": [[value]]}}; a column in which every row has the default is left out.

    `columns`: {table: {name: values}}. Whoever reads it fills in the table's defaults.
    """
    told = {}
    for name, found in columns.items():
        kept = {column: values for column, values in found.items() if _says_more(name, column, values)}
        told[name] = {"columns": list(kept), "rows": list(zip(*kept.values(), strict=True))}
    return told


def _says_more(name: str, column: str, values: Sequence[Any]) -> bool:
    defaults = TABLES[name].defaults
    return column not in defaults or values.count(defaults[column]) < len(values)


def tell_difference(difference: Difference) -> dict[str, Any]:
    """{"tables": new rows as `tell_columns` tells them, "changed": rows with another value, "gone": {table: [id]}}.

    Those that changed have the same shape, with their ids and the columns in which they may differ. Rows are in the order of
    their ids.
    """
    told: dict[str, dict[str, Any]] = {"tables": {}, "changed": {}, "gone": {}}
    for name, each in difference.items():
        before, after, places = each.before, each.after, TABLES[name].places
        ids = sorted(after)
        if fresh := [row for key in ids if (row := after[key]) is not None and before[key] is None]:
            columns = zip(places, zip(*fresh, strict=True), strict=True)
            kept = [column for column, values in columns if _says_more(name, column, values)]
            told["tables"][name] = _told(kept, places, fresh)
        if changed := [row for key in ids if (row := after[key]) is not None and before[key] not in (None, row)]:
            kept = [column for column, place in places.items() if place in each.places or column == "id"]
            told["changed"][name] = _told(kept, places, changed)
        if gone := [key for key in ids if after[key] is None and before[key] is not None]:
            told["gone"][name] = gone
    return told


def _told(columns: Collection[str], places: Mapping[str, int], rows: list[RowTuple]) -> Fields:
    if len(columns) == 1:
        return {"columns": columns, "rows": [[row[places[column]]] for row in rows for column in columns]}
    return {"columns": columns, "rows": list(map(itemgetter(*map(places.__getitem__, columns)), rows))}
