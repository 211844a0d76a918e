"""The few statements of the hot path, written by hand for both databases (the ORM costs five times as much).

Everything here works on a raw cursor inside a transaction that the caller began. Values are what records hold: integers,
floats, text, JSON values, times as `agents.clock` writes them. See docs/decisions.md, "Hand-written statements".
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, Protocol

import orjson
import psycopg
from django.db import OperationalError, connection, transaction

from agents.streams.garbage import nothing_collected

Row = Sequence[Any]
Columns = tuple[tuple[str, str], ...]
ALL = 1 << 62
BUSY_S = 20.0
"""A service waits so long for SQLite's one lock..."""
RETRY_S = 0.001
"""...asking at this pace: the database's own back-off lets a busy runner pass again and again."""

POSTGRES_TYPES = {
    "int": "bigint", "float": "double precision", "bool": "boolean", "text": "text", "time": "timestamptz", "json": "jsonb",
}  # fmt: skip


def json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def sqlite_time(text: str) -> str:
    """As Django writes it there, so that text compares as time."""
    return f"{text[:10]} {text[11:26]}"


class RawCursor(Protocol):
    """What we use of a cursor of either driver; they have no type in common."""

    @property
    def connection(self) -> Any: ...

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: Any, parameters: Any = ..., /) -> RawCursor: ...

    def executemany(self, statement: Any, parameters: Any, /) -> object: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqliteStore:
    """SQLite: one `executemany` a statement on the raw connection."""

    time = staticmethod(sqlite_time)
    for_update = ""
    now = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
    """An expression: the time by the database's clock, as Django writes it."""

    def seconds_since(self, column: str) -> str:
        """An expression: seconds from a time in `column` until now by the database's clock."""
        return f"(julianday('now') - julianday({column})) * 86400"

    def any_of(self, column: str) -> str:
        """A condition: the column is one of `numbers`, which are one parameter, however many."""
        return f"{column} IN (SELECT value FROM json_each(%s))"

    def numbers(self, numbers: Iterable[int]) -> Any:
        return json_text(list(numbers))

    def records(self, columns: Columns) -> str:
        """A table r of these columns, to select from; its rows are one parameter, the JSON of a list of objects."""
        names = ", ".join(f"json_extract(value, '$.{name}') AS \"{name}\"" for name, _ in columns)
        return f"(SELECT {names} FROM json_each(%s)) AS r"

    def lock(self, cursor: RawCursor, streams: Sequence[int], *, wait: bool) -> dict[int, tuple[int, int, int]]:
        """(head, rows, token) of those of `streams` that are there. BEGIN IMMEDIATE has the only lock there is."""
        return {
            stream: row
            for stream in streams
            if (row := cursor.execute("SELECT head, rows, token FROM agents_stream WHERE id = ?", (stream,)).fetchone())
        }

    def move(self, cursor: RawCursor, heads: Sequence[tuple[int, int, int]]) -> None:
        """Set (head, rows) of streams: triples end with the stream's id."""
        cursor.executemany("UPDATE agents_stream SET head = ?, rows = ? WHERE id = ?", heads)

    def execute(self, cursor: RawCursor, statement: str, parameters: Sequence[Any] = ()) -> RawCursor:
        """A statement of ours, written with %s, on a raw cursor."""
        return cursor.execute(statement.replace("%s", "?").replace("%%", "%"), parameters)

    def insert(self, cursor: RawCursor, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        cursor.executemany(_sqlite_insert(table, columns), self._encoded(columns, rows))

    def update(self, cursor: RawCursor, table: str, columns: Columns, rows: Sequence[Row]) -> None:
        """Rows hold the columns' values and, last, the id."""
        cursor.executemany(_sqlite_update(table, columns), self._encoded((*columns, ("id", "int")), rows))

    def delete(self, cursor: RawCursor, table: str, ids: Iterable[int]) -> None:
        cursor.executemany(f"DELETE FROM {table} WHERE id = ?", [(row,) for row in ids])

    def select(
        self, cursor: RawCursor, table: str, columns: Columns, where: str, parameters: Row, limit: int = ALL
    ) -> list[list[Any]]:
        """Rows in the order of their ids, values as records hold them; `where` is written with %s."""
        # An expression has no declared type, so that the driver leaves times and truth values to us.
        names = ", ".join(f'+"{name}"' if kind in ("time", "bool") else f'"{name}"' for name, kind in columns)
        self.execute(cursor, f"SELECT {names} FROM {table} WHERE {where} ORDER BY id LIMIT {limit}", parameters)
        rows = [list(row) for row in cursor.fetchall()]
        for place, (_, kind) in enumerate(columns):
            decode = _SQLITE_DECODE.get(kind)
            if decode is not None:
                for row in rows:
                    if row[place] is not None:
                        row[place] = decode(row[place])
        return rows

    def select_columns(self, cursor: RawCursor, table: str, columns: Columns, where: str, parameters: Row) -> list[Row]:
        """The same values by column, none at all where there is no row. Equal ones may be one object: nobody changes them."""
        names = ", ".join(f'+"{name}"' if kind in ("time", "bool") else f'"{name}"' for name, kind in columns)
        self.execute(cursor, f"SELECT {names} FROM {table} WHERE {where} ORDER BY id", parameters)
        return _decoded_columns(columns, cursor.fetchall(), _SQLITE_DECODE)

    def _encoded(self, columns: Columns, rows: Iterable[Row]) -> list[Row]:
        special = [(place, _SQLITE_ENCODE[kind]) for place, (_, kind) in enumerate(columns) if kind in _SQLITE_ENCODE]
        if not special:
            return list(rows)
        encoded: list[Row] = []
        for row in rows:
            values = list(row)
            for place, encode in special:
                if values[place] is not None:
                    values[place] = encode(values[place])
            encoded.append(values)
        return encoded


def _decoded_columns(columns: Columns, rows: list[Row], decoders: dict[str, Callable[[Any], Any]]) -> list[Row]:
    """Each text is decoded once: most values of a column are like others of it."""
    found: list[Row] = []
    for (_, kind), values in zip(columns, zip(*rows, strict=True), strict=False):
        if (decode := decoders.get(kind)) is not None:
            decoded = {text: None if text is None else decode(text) for text in set(values)}
            found.append(list(map(decoded.__getitem__, values)))
        else:
            found.append(values)
    return found


def _sqlite_time_out(text: str) -> str:
    return f"{text[:10]}T{text[11:]}Z" if len(text) == 26 else f"{text[:10]}T{text[11:19]}.000000Z"


_SQLITE_ENCODE = {"json": json_text, "time": sqlite_time}
_SQLITE_DECODE = {"json": orjson.loads, "time": _sqlite_time_out, "bool": bool, "encoded": orjson.Fragment}
"""Of the kind `encoded` is JSON that is read only to be written again. PostgreSQL keeps no text of it, so there it is read."""


@lru_cache(maxsize=1000)
def _sqlite_insert(table: str, columns: Columns) -> str:
    names = ", ".join(f'"{name}"' for name, _ in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"


@lru_cache(maxsize=1000)
def _sqlite_update(table: str, columns: Columns) -> str:
    return f"UPDATE {table} SET {', '.join(f'{chr(34)}{name}{chr(34)} = ?' for name, _ in columns)} WHERE id = ?"


class PostgresStore:
    """PostgreSQL: one statement a table, its rows as one JSON parameter."""

    time = staticmethod(str)
    for_update = " FOR UPDATE"
    now = "statement_timestamp()"

    def seconds_since(self, column: str) -> str:
        return f"extract(epoch FROM clock_timestamp() - {column})"

    def any_of(self, column: str) -> str:
        return f"{column} = ANY(%s)"

    def numbers(self, numbers: Iterable[int]) -> Any:
        return list(numbers)

    def records(self, columns: Columns) -> str:
        return f"jsonb_to_recordset(%s::jsonb) AS r({_postgres_shape(columns)})"

    def lock(self, cursor: RawCursor, streams: Sequence[int], *, wait: bool) -> dict[int, tuple[int, int, int]]:
        """(head, rows, token) of streams, locked in order; without `wait` only of those that nobody else holds."""
        cursor.execute(
            "SELECT id, head, rows, token FROM agents_stream WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
            + ("" if wait else " SKIP LOCKED"),
            (sorted(streams),),
        )
        return {row[0]: row[1:] for row in cursor.fetchall()}

    def move(self, cursor: RawCursor, heads: Sequence[tuple[int, int, int]]) -> None:
        cursor.execute(
            "UPDATE agents_stream AS s SET head = r.head, rows = r.rows"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS r(head, rows, id) WHERE s.id = r.id",
            [list(column) for column in zip(*heads, strict=True)],
        )

    def execute(self, cursor: RawCursor, statement: str, parameters: Sequence[Any] = ()) -> RawCursor:
        return cursor.execute(statement, parameters)

    def insert(self, cursor: RawCursor, table: str, columns: Columns, rows: Iterable[Row]) -> None:
        cursor.execute(_postgres_insert(table, columns), (self._records(columns, rows),))

    def update(self, cursor: RawCursor, table: str, columns: Columns, rows: Sequence[Row]) -> None:
        # The ids a second time: a join with JSON alone is planned as a scan of the whole table.
        records = self._records((*columns, ("id", "int")), rows)
        cursor.execute(_postgres_update(table, columns), (records, [row[-1] for row in rows]))

    def delete(self, cursor: RawCursor, table: str, ids: Iterable[int]) -> None:
        cursor.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", (list(ids),))

    def select(
        self, cursor: RawCursor, table: str, columns: Columns, where: str, parameters: Row, limit: int = ALL
    ) -> list[list[Any]]:
        names = ", ".join(_postgres_out(name, kind) for name, kind in columns)
        cursor.execute(f"SELECT {names} FROM {table} WHERE {where} ORDER BY id LIMIT {limit}", parameters)
        rows = [list(row) for row in cursor.fetchall()]
        for place, (_, kind) in enumerate(columns):
            if kind in ("json", "encoded"):
                for row in rows:
                    if row[place] is not None:
                        row[place] = orjson.loads(row[place])
        return rows

    def select_columns(self, cursor: RawCursor, table: str, columns: Columns, where: str, parameters: Row) -> list[Row]:
        names = ", ".join(_postgres_out(name, kind) for name, kind in columns)
        cursor.execute(f"SELECT {names} FROM {table} WHERE {where} ORDER BY id", parameters)
        return _decoded_columns(columns, cursor.fetchall(), _POSTGRES_DECODE)

    def _records(self, columns: Columns, rows: Iterable[Row]) -> str:
        names = [name for name, _ in columns]
        return json_text([dict(zip(names, row, strict=True)) for row in rows])


_POSTGRES_DECODE = {"json": orjson.loads, "encoded": orjson.loads}


def _postgres_out(name: str, kind: str) -> str:
    if kind == "time":
        return f"""to_char("{name}" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
    return f'"{name}"::text' if kind in ("json", "encoded") else f'"{name}"'


@lru_cache(maxsize=1000)
def _postgres_shape(columns: Columns) -> str:
    return ", ".join(f'"{name}" {POSTGRES_TYPES[kind]}' for name, kind in columns)


def _json_null(name: str, kind: str, prefix: str = "") -> str:
    """A JSON null inside the parameter means SQL's NULL, as Django writes None."""
    return f"NULLIF({prefix}\"{name}\", 'null'::jsonb)" if kind == "json" else f'{prefix}"{name}"'


@lru_cache(maxsize=1000)
def _postgres_insert(table: str, columns: Columns) -> str:
    names = ", ".join(f'"{name}"' for name, _ in columns)
    values = ", ".join(_json_null(name, kind) for name, kind in columns)
    return f"INSERT INTO {table} ({names}) SELECT {values} FROM {POSTGRES.records(columns)}"


@lru_cache(maxsize=1000)
def _postgres_update(table: str, columns: Columns) -> str:
    values = ", ".join(f'"{name}" = {_json_null(name, kind, "r.")}' for name, kind in columns)
    source = POSTGRES.records((*columns, ("id", "int")))
    return f"UPDATE {table} AS t SET {values} FROM {source} WHERE t.id = r.id AND t.id = ANY(%s)"


_OWN = threading.local()


def use_connection(raw: Any) -> None:
    """Let `raw` be this thread's connection here: inside an event loop Django's is another one for each task."""
    _OWN.raw = raw


def raw_cursor() -> RawCursor:
    """A raw cursor of this thread's connection; on PostgreSQL one that binds parameters on the server."""
    raw = getattr(_OWN, "raw", None)
    if raw is None:
        connection.ensure_connection()
        raw = connection.connection
    return raw.cursor() if connection.vendor == "sqlite" else psycopg.Cursor(raw)


@contextmanager
def write_transaction() -> Iterator[None]:
    """A Django transaction that is about to write. On SQLite its lock is asked for at an even pace.

    Nobody searches for garbage from before the lock is there until it is gone. A search closes what it finds, and to close a
    cursor whose connection waits for this very lock, in another thread, takes as long as that one waits.
    """
    if connection.in_atomic_block:
        with nothing_collected(), transaction.atomic():
            yield
        return
    with ExitStack() as stack:
        _enter_patiently(stack)
        yield


def _enter_patiently(stack: ExitStack) -> None:
    until = time.monotonic() + BUSY_S
    with not_waiting():
        while True:
            try:
                stack.enter_context(nothing_collected())
                stack.enter_context(transaction.atomic())
                return
            except OperationalError as error:
                stack.close()
                if connection.vendor != "sqlite" or "locked" not in str(error) or time.monotonic() > until:
                    raise
                traceback.clear_frames(error.__traceback__)  # it is in a circle with its frames, and they have a cursor
            time.sleep(RETRY_S)


@contextmanager
def not_waiting() -> Iterator[None]:
    """While somebody else has SQLite's one lock, what is to be written inside fails at once. PostgreSQL has locks of rows."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    raw = connection.connection
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")


SQLITE, POSTGRES = SqliteStore(), PostgresStore()
Store = SqliteStore | PostgresStore


def current_store() -> Store:
    """The statements of the default database."""
    return SQLITE if connection.vendor == "sqlite" else POSTGRES


def select_any(table: str, names: str, column: str, numbers: Iterable[int], where: str) -> list[Row]:
    """Columns of the rows whose `column` is one of `numbers`, and for which `where` holds, however many numbers there are."""
    store = current_store()
    statement = f"SELECT {names} FROM {table} WHERE {store.any_of(column)} AND ({where})"
    return store.execute(raw_cursor(), statement, (store.numbers(numbers),)).fetchall()


def insert_missing(table: str, names: str, select: str, parameters: Row) -> None:
    """Insert what `select` gives into the columns `names`, but rows that are there already. It ends with a condition."""
    store = current_store()
    store.execute(raw_cursor(), f"INSERT INTO {table} ({names}) SELECT {select} ON CONFLICT DO NOTHING", parameters)


def update_each(
    table: str, values: str, columns: Columns, records: Sequence[dict[str, Any]], where: str, parameters: Row, key: str
) -> set[int]:  # fmt: skip
    """Set `values` in the rows t of `table`, joined `where` it says with the table r of `records`.

    Returns the `key` of each row that was set; r has no column of that name.
    """
    store = current_store()
    statement = f"UPDATE {table} AS t SET {values} FROM {store.records(columns)} WHERE {where} RETURNING {key}"
    rows = store.execute(raw_cursor(), statement, (json_text(records), *parameters)).fetchall()
    return {found for (found,) in rows}
