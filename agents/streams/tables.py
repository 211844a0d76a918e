"""The tables that take part in the fold: their columns by kind, and what a row has where an event says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db import models

from agents import ids
from agents.streams.statements import current_store, raw_cursor

Fields = dict[str, Any]
KINDS: tuple[tuple[type, str], ...] = (
    (models.JSONField, "json"),
    (models.DateTimeField, "time"),
    (models.BooleanField, "bool"),
    (models.FloatField, "float"),
    (models.IntegerField, "int"),
    (models.AutoField, "int"),
    (models.CharField, "text"),
    (models.TextField, "text"),
)


@dataclass(frozen=True)
class Table:
    """A table that takes part in the fold: its columns by kind, and what a row has where an event says nothing."""

    name: str
    db_table: str
    columns: tuple[tuple[str, str], ...]
    defaults: dict[str, Any]
    own: bool

    @cached_property
    def kinds(self) -> dict[str, str]:
        return dict(self.columns)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column stands in a row that is a tuple."""
        return {name: place for place, name in enumerate(self.kinds)}

    @cached_property
    def blank(self) -> tuple[Any, ...]:
        """A row of which nothing is said, as a tuple."""
        return tuple(map(self.defaults.get, self.kinds))

    def whole(self, fields: Mapping[str, Any]) -> Any:
        """A row as the database has it: `fields` and the defaults of the others. Whoever asks says which type of row it is.

        Values of rows are replaced, never changed in place: defaults are shared by all rows.
        """
        return {**self.defaults, **fields}

    def told(self, row: Mapping[str, Any]) -> Fields:
        """What an event that adds `row` says: the fields that differ from the defaults."""
        defaults, columns = self.defaults, self.kinds
        return {n: v for n, v in row.items() if n in columns and (n not in defaults or v != defaults[n])}

    def range(self, stream: int) -> tuple[int, int]:
        """Lowest key of the stream's rows here, and the first beyond."""
        return (stream, stream + 1) if self.own else ids.row_range(stream)


TABLES: dict[str, Table] = {}


def register_table(name: str, model: type[models.Model], *, own: bool = False, outside: tuple[str, ...] = ()) -> None:
    """Let `model` take part in the fold as `name`. `own`: its id is the stream's; `outside`: columns the fold leaves out."""
    columns, defaults = [], {}
    for column in model._meta.concrete_fields:
        if column.attname in outside:
            continue
        target = column.target_field if isinstance(column, models.ForeignKey) else column
        columns.append((column.attname, next(kind for cls, kind in KINDS if isinstance(target, cls))))
        if column.has_default() or column.null:
            defaults[column.attname] = column.get_default()
        elif isinstance(column, models.CharField | models.TextField):
            defaults[column.attname] = ""
    TABLES[name] = Table(name, model._meta.db_table, tuple(columns), defaults, own)


EVENT_COLUMNS = (
    ("id", "int"), ("stream_id", "int"), ("seq", "int"), ("type", "text"), ("v", "int"),
    ("at", "time"), ("by", "text"), ("request_id", "text"), ("data", "json"),
)  # fmt: skip
WIRE_COLUMNS = (*EVENT_COLUMNS[:-1], ("data", "encoded"))
"""Of events that are read only to be sent."""
CHANGE_COLUMNS = (("data", "json"),)
"""Of events of which only what they did is looked at."""
TRANSITION_COLUMNS = (
    ("id", "int"), ("stream_id", "int"), ("seq", "int"), ("at", "time"), ("by", "text"),
    ("machine", "text"), ("subject_id", "int"), ("from_state", "text"), ("to_state", "text"),
    ("event", "text"), ("reason", "text"), ("spent", "float"),
)  # fmt: skip


def fold_rows(table: str, where: str, *parameters: Any) -> list[Any]:
    """Rows of a table that takes part in the fold, oldest first. Whoever reads them says which type of row they are."""
    known = TABLES[table]
    names = [name for name, _ in known.columns]
    found = current_store().select(raw_cursor(), known.db_table, known.columns, where, parameters)
    return [dict(zip(names, row, strict=True)) for row in found]
