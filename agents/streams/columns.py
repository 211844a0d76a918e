"""Rows of a stream by columns, as they are sent where there are many: a name is written once, not once a row. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from agents.streams.tables import TABLES, Fields


def rows_by_columns(rows: Mapping[str, Mapping[str, Fields]]) -> dict[str, Fields]:
    """{table: {"id": row}} as `tell_columns` tells it; rows are in the order of their ids."""
    return tell_columns({name: _by_columns(list(TABLES[name].kinds), table) for name, table in rows.items()})


def _by_columns(columns: list[str], rows: Mapping[str, Fields]) -> dict[str, Sequence[Any]]:
    ordered = sorted(rows.values(), key=itemgetter("id"))
    return dict(zip(columns, zip(*map(itemgetter(*columns), ordered), strict=True), strict=False))


def tell_columns(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, Fields]:
    """{table: {"columns": [name], "rows": [[value]]}}; a column in which every row has the default is left out.

    `columns`: {table: {name: values}}. Whoever reads it fills in the table's defaults.
    """
    return {name: _told(name, found) for name, found in columns.items()}


def _told(name: str, columns: Mapping[str, Sequence[Any]]) -> Fields:
    defaults = TABLES[name].defaults
    kept = {
        column: values
        for column, values in columns.items()
        if column not in defaults or values.count(defaults[column]) < len(values)
    }
    return {"columns": list(kept), "rows": list(zip(*kept.values(), strict=True))}
