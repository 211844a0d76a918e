"""The one write path: rows and the events that tell of them, in one transaction, through `write_batches`.

Rows are written *from* the events, so folding a stream gives exactly its rows (docs/engine.md, "From decision to row").
Services use `door`, the runner's journal uses `write_batches` itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from django.apps import apps
from django.db import connection, transaction

from agents import ids
from agents.clock import now_iso
from agents.errors import NoSuchSession
from agents.streams import nudges, slots
from agents.streams.statements import Columns, RawCursor, Store, current_store, raw_cursor, write_transaction
from agents.streams.tables import EVENT_COLUMNS, TABLES, TRANSITION_COLUMNS, Fields, Table
from agents.streams.turn import Batch, PendingEvent, Turn

EVENT_VERSION = 1
Record = tuple[Any, ...]
"""A row's values, in the order of its table's columns."""
ByTable = dict[str, dict[int, Fields]]
Removed = dict[str, list[int]]


def write_batches(
    store: Store, cursor: RawCursor, batches: list[Batch], *, wait: bool = True
) -> tuple[list[Batch], list[Batch]]:  # fmt: skip
    """Write those of `batches` whose streams stand where they expect: (written, refused). The caller commits.

    Locks are taken in order: streams by id, then devices by id. Without `wait` a stream that somebody else has locked
    counts as refused (PostgreSQL).
    """
    found = store.lock(cursor, [batch.stream for batch in batches], wait=wait)
    written: list[Batch] = []
    refused: list[Batch] = []
    for batch in batches:
        head_now, rows, token = found.get(batch.stream, (-1, 0, 0))
        fits = head_now == batch.head and batch.token in (None, token)
        (written if fits else refused).append(batch)
        batch.rows_after = rows + batch.rows
    if written:
        _write(store, cursor, written)
    return written, refused


def _write(store: Store, cursor: RawCursor, batches: list[Batch]) -> None:
    """Write batches that fit, under the locks of their streams: slots, heads, events and history, then the rows."""
    slots.settle_slots(store, cursor, batches)
    records: list[Record] = []
    history: list[Record] = []
    heads: list[tuple[int, int, int]] = []
    added: ByTable = {}
    changed: ByTable = {}
    removed: Removed = {}
    for batch in batches:
        stream, seq = batch.stream, batch.head
        for event in batch.written():
            seq += 1
            key = ids.row_id(stream, seq)
            data = event.data
            records.append((key, stream, seq, event.type, EVENT_VERSION, event.at, event.by, batch.request_id, data))
            if event.type == "state_changed":
                history.append(_history(key, stream, seq, event, data, 0))
            elif "transitions" in data:
                history.extend(_history(key, stream, seq, event, told, part) for part, told in enumerate(data["transitions"]))
            _merge(data, added, changed, removed)
        heads.append((seq, batch.rows_after, stream))
    store.move(cursor, heads)
    store.insert(cursor, "agents_event", EVENT_COLUMNS, records)
    if history:
        store.insert(cursor, "agents_transition", TRANSITION_COLUMNS, history)
    _write_rows(store, cursor, added, changed, removed)


def one_trip(raw: Any) -> AbstractContextManager[Any]:
    """On PostgreSQL statements whose results nobody reads go to the server together; what fails is raised at the end."""
    return nullcontext() if connection.vendor == "sqlite" else raw.pipeline()


def _history(key: int, stream: int, seq: int, event: PendingEvent, told: Fields, part: int) -> Record:
    return (
        ids.transition_id(key, part), stream, seq, event.at, event.by, told["machine"], told["id"],
        told["from_state"], told["to_state"], told["event"], told["reason"], told["spent"],
    )  # fmt: skip


def _merge(data: Fields, added: ByTable, changed: ByTable, removed: Removed) -> None:
    """Take up what one event does to the rows, so that each row is written once a commit."""
    for table, rows in data.get("add", {}).items():
        into = added.setdefault(table, {})
        for row in rows:
            into[row["id"]] = dict(row)
    for table, rows in data.get("set", {}).items():
        fresh, into = added.get(table, {}), changed.setdefault(table, {})
        for key, fields in rows.items():
            row = int(key)
            if row in fresh:
                fresh[row].update(fields)
            elif row in into:
                into[row].update(fields)
            else:
                into[row] = dict(fields)
    for table, gone in data.get("del", {}).items():
        for row in gone:
            changed.get(table, {}).pop(row, None)
            if added.get(table, {}).pop(row, None) is None:
                removed.setdefault(table, []).append(row)


def _write_rows(store: Store, cursor: RawCursor, added: ByTable, changed: ByTable, removed: Removed) -> None:
    for name in reversed(TABLES):
        if name in removed:
            store.delete(cursor, TABLES[name].db_table, removed[name])
    for name, table in TABLES.items():
        # What ends makes room for what begins: one actor of a session lives, and both may be in one commit.
        for columns, rows in _by_columns(table, changed.get(name, {}), keyed=True):
            store.update(cursor, table.db_table, columns, rows)
        for columns, rows in _by_columns(table, added.get(name, {})):
            store.insert(cursor, table.db_table, columns, rows)


def _by_columns(table: Table, rows: dict[int, Fields], keyed: bool = False) -> Iterator[tuple[Columns, list[list[Any]]]]:
    """Rows grouped by the columns they write; new rows are whole, changed ones end with their id."""
    if not rows:
        return
    if not keyed:
        names = [name for name, _ in table.columns]
        defaults = table.defaults
        yield table.columns, [[row[n] if n in row else defaults[n] for n in names] for row in rows.values()]
        return
    groups: dict[tuple[str, ...], list[list[Any]]] = {}
    for key, fields in rows.items():
        groups.setdefault(tuple(fields), []).append([*fields.values(), key])
    kinds = table.kinds
    for names_changed, values in groups.items():
        yield tuple((name, kinds[name]) for name in names_changed), values


class Door:
    """A stream under its lock: what a service reads, decides and records in one transaction."""

    def __init__(self, stream: int, head: int, rows: int, by: str, request_id: str):
        self.stream, self.head, self.request_id = stream, head, request_id
        self._first = self._rows = rows
        self.turn = Turn(now_iso(), by, self.take)

    def take(self) -> int:
        """A fresh row id."""
        self._rows += 1
        return ids.row_id(self.stream, self._rows)

    def batch(self) -> Batch:
        rows = self._rows - self._first
        return Batch(self.stream, self.head, None, rows, self.turn.events, request_id=self.request_id, rows_after=self._rows)


@contextmanager
def door(stream: int, by: str, request_id: str = "") -> Iterator[Door]:
    """Open `stream` for one change: locks it, hands out a Door, writes what its turn holds, nudges after the commit.

    Raises NoSuchSession where there is no such stream. An exception inside writes nothing.
    """
    with write_transaction(), connection.wrap_database_errors:
        cursor, statements = raw_cursor(), current_store()
        found = statements.lock(cursor, [stream], wait=True).get(stream)
        if found is None:
            raise NoSuchSession(f"there is no session {stream}")
        opened = Door(stream, found[0], found[1], by, request_id)
        yield opened
        batch = opened.batch()
        if batch.events:
            heads = {stream: batch.head + len(batch.events)}
            with one_trip(cursor.connection):
                _write(statements, cursor, [batch])
                statements.execute(cursor, WAKE, (statements.time(now_iso()), stream))
                nudges.announce_heads(cursor, heads)
            transaction.on_commit(lambda: nudges.send_nudge(heads))


WAKE = "UPDATE agents_lease SET wake_at = %s WHERE stream_id = %s"
"""Somebody should look at the session: its owner, or a runner that takes it up. The guarantee behind the nudge."""


def system_stream() -> int:
    """The stream of what concerns no session and no device: users, tokens, policies."""
    return apps.get_model("agents", "Stream").objects.get_or_create(kind="system")[0].pk


def new_stream(kind: str) -> int:
    """A fresh stream's id; call it inside the transaction that opens its door."""
    return apps.get_model("agents", "Stream").objects.create(kind=kind).pk
