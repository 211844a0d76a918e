"""Reading streams: events from a place on, rows as records hold them, and the fold that must give the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from django.apps import apps
from django.db import connection
from psycopg.pq import TransactionStatus

from agents import ids
from agents.errors import AgentsError, NoSuchSession
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import CHANGE_COLUMNS, EVENT_COLUMNS, TABLES, WIRE_COLUMNS, Fields

EVENTS_READ = 1000
"""Events one read returns at most."""
BETWEEN = "id >= %s AND id < %s"


def events_since(stream: int, seq: int, limit: int = EVENTS_READ, *, to_be_sent: bool = False) -> list[Fields]:
    """Up to `limit` events after `seq`, oldest first, as clients get them. `to_be_sent`: nobody looks at their data."""
    names = [name for name, _ in EVENT_COLUMNS]
    columns = WIRE_COLUMNS if to_be_sent else EVENT_COLUMNS
    found = current_store().select(raw_cursor(), "agents_event", columns, BETWEEN, _places_after(stream, seq, limit), limit)
    events = [dict(zip(names, row, strict=True)) for row in found]
    for event in events:
        del event["id"], event["stream_id"]  # who asks knows the stream, and `seq` counts in it
    return events


def changes_after(stream: int, seq: int, limit: int) -> list[Fields]:
    """What up to `limit` events after `seq` did, oldest first: their data and nothing else."""
    places = _places_after(stream, seq, limit)
    found = current_store().select(raw_cursor(), "agents_event", CHANGE_COLUMNS, BETWEEN, places, limit)
    return [data for (data,) in found]


def _places_after(stream: int, seq: int, limit: int) -> tuple[int, int]:
    """The keys among which the next `limit` events are, as they follow each other without a gap; where one is missing, those
    behind it are found.

    Without an end close by, PostgreSQL reads and sorts all the rest of a stream each time until it has statistics of it.
    """
    low, high = ids.row_range(stream)
    return low + seq + 1, min(high, low + seq + 1 + max(limit, EVENTS_READ))


def changes_between(stream: int, after: int, until: int, tables: Collection[str]) -> Iterator[Fields]:
    """What the events after seq `after`, up to `until`, did to `tables`, as few changes as that can be said in."""
    place = (ids.row_id(stream, after + 1), ids.row_id(stream, until + 1))
    read = _changes_sqlite if connection.vendor == "sqlite" else _changes_postgres
    return condense_changes(orjson.loads(f"[{','.join(read(place, list(tables)))}]"), tables)


def _changes_sqlite(place: tuple[int, int], tables: list[str]) -> list[str]:
    """JSON of the events that name one of `tables`: to look for a name costs less than to read them."""
    names = [f'"{table}":' for table in tables]
    found = raw_cursor().execute("SELECT data FROM agents_event WHERE id >= ? AND id < ? ORDER BY id", place)
    return [text for (text,) in found if any(name in text for name in names)]


def _changes_postgres(place: tuple[int, int], tables: list[str]) -> list[str]:
    """The same, without what is not needed: most events add rows of other tables, and to write them as text takes longest."""
    rows = "(data->'add' ?| %s OR data->'del' ?| %s)"
    found = raw_cursor().execute(
        f"SELECT (data->'set')::text, CASE WHEN {rows} THEN data::text END FROM agents_event"
        f" WHERE {BETWEEN} AND (data->'set' ?| %s OR {rows}) ORDER BY id",
        (tables, tables, *place, tables, tables, tables),
    )
    return [whole or f'{{"set":{fields}}}' for fields, whole in found]


def condense_changes(changes: Iterable[Fields], tables: Collection[str]) -> Iterator[Fields]:
    """The same changes to `tables` in fewer: the last value of each field that is set, until rows are added or deleted."""
    fields: dict[str, dict[str, Fields]] = {}
    for data in changes:
        if any(table in data.get(kind, ()) for kind in ("add", "del") for table in tables):
            if fields:
                yield {"set": fields}
                fields = {}
            yield data
            continue
        for table, rows in data.get("set", {}).items():
            if table in tables:
                into = fields.setdefault(table, {})
                for key, new in rows.items():
                    into[key] = into[key] | new if key in into else new
    if fields:
        yield {"set": fields}


def read_rows(stream: int, tables: tuple[str, ...] | None = None) -> dict[str, dict[str, Fields]]:
    """All rows of a stream as records hold them: {table: {"id": row}}."""
    cursor, statements = raw_cursor(), current_store()
    found: dict[str, dict[str, Fields]] = {}
    for name in tables or TABLES:
        table = TABLES[name]
        names = [column for column, _ in table.columns]
        rows = statements.select(cursor, table.db_table, table.columns, BETWEEN, table.range(stream))
        found[name] = {str(row[0]): dict(zip(names, row, strict=True)) for row in rows}
    return found


def read_columns(stream: int) -> dict[str, dict[str, Sequence[Any]]]:
    """The same by columns: {table: {column: values}}, in the order of the rows' ids; a table without rows has no columns."""
    cursor, statements = raw_cursor(), current_store()
    found: dict[str, dict[str, Sequence[Any]]] = {}
    for name, table in TABLES.items():
        values = statements.select_columns(cursor, table.db_table, table.columns, BETWEEN, table.range(stream))
        found[name] = dict(zip(table.kinds, values, strict=False))
    return found


def stream_snapshot(stream: int) -> Fields:
    """Rows and the head they belong to, in one consistent read: {"seq": N, "rows": {table: {"id": row}}}."""
    with consistent_read():
        seq = stream_head(stream)
        return {"seq": seq, "rows": read_rows(stream)}


@contextmanager
def consistent_read() -> Iterator[None]:
    """Everything read inside comes from one moment; it takes no lock that a writer waits for. Inside another it is that one."""
    connection.ensure_connection()
    raw = connection.connection
    sqlite = connection.vendor == "sqlite"
    if connection.in_atomic_block or (raw.in_transaction if sqlite else raw.info.transaction_status != TransactionStatus.IDLE):
        yield
        return
    cursor = raw.cursor()
    cursor.execute("BEGIN" if sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        cursor.execute("COMMIT")


def stream_head(stream: int) -> int:
    """The stream's last seq; raises NoSuchSession."""
    found = apps.get_model("agents", "Stream").objects.filter(pk=stream).values_list("head", flat=True).first()
    if found is None:
        raise NoSuchSession(f"there is no session {stream}")
    return found


class FoldError(AgentsError):
    """An event does not follow from those before it."""

    code = "fold_error"


Rows = dict[str, dict[str, Fields]]


def fold_events(events: Iterable[Fields], rows: Rows | None = None) -> Rows:
    """Apply `events` (as clients get them) to `rows`; the result is what the database must hold."""
    rows = {} if rows is None else rows
    for event in events:
        apply_event(event["data"], rows)
    return rows


def apply_event(data: Fields, rows: dict[str, dict[str, Fields]]) -> None:
    """One event's changes to `rows`; raises FoldError when it changes a row that is not there."""
    for name, fresh in data.get("add", {}).items():
        table, into = TABLES[name], rows.setdefault(name, {})
        for row in fresh:
            into[str(row["id"])] = table.whole(row)
    for name, changes in data.get("set", {}).items():
        into = rows.setdefault(name, {})
        for key, fields in changes.items():
            if key not in into:
                raise FoldError(f"an event sets {sorted(fields)} of {name} {key}, which is not there")
            into[key].update(fields)
    for name, gone in data.get("del", {}).items():
        for key in gone:
            rows.setdefault(name, {}).pop(str(key), None)


def canonical_bytes(value: Any) -> bytes:
    """A row's value in a form in which equal values are equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
