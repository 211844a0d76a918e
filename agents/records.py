"""The one write path: rows and the events that tell of them, in one transaction, through `write`.

An event's `data` carries the new values of what changed: `add` (whole rows), `set` (fields of rows) and `del` (row ids),
each by table. Rows are written *from* the events, so folding a stream gives exactly its rows (architecture, "The one
write path"). Services use `door`, the runner's journal uses `write` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson
from django.apps import apps
from django.db import connection, models, transaction

from agents import ids, nudges, slots, storage
from agents.clock import from_iso, now_iso
from agents.errors import AgentsError, NoSuchSession
from agents.machines import Machine, step
from agents.storage import Store, store

EVENT_VERSION = 1
PIECE = 1000
"""Rows, or transitions, that one event may carry."""
EVENTS_READ = 1000
"""Events one read returns at most."""

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

    def whole(self, fields: Fields) -> Fields:
        """A row as the database has it: `fields` and the defaults of the others."""
        return {**self.defaults, **fields}

    def told(self, row: Fields) -> Fields:
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
TRANSITION_COLUMNS = (
    ("id", "int"), ("stream_id", "int"), ("seq", "int"), ("at", "time"), ("by", "text"),
    ("machine", "text"), ("subject_id", "int"), ("from_state", "text"), ("to_state", "text"),
    ("event", "text"), ("reason", "text"), ("spent", "float"),
)  # fmt: skip


@dataclass(slots=True)
class Draft:
    """An event before it has its place in the stream."""

    type: str
    data: Fields
    by: str
    at: str


@dataclass(slots=True)
class Want:
    """What a session wants of one device: slots beside those it starts on now, and how it ranks in the queue."""

    waiting: int = 0
    priority: int = 0
    held: int = 0


@dataclass(slots=True)
class Batch:
    """What one writer wants recorded in one stream.

    `head` is the head the decisions were made on, `token` the lease's fence (None: a service under the stream's lock),
    `rows` the row numbers to give out. `drafts` are written all or none. `starts` are drafts that need a slot of their
    device each, `frees` the slots that `drafts` give back; `write` says in `admitted` how many of a device's starts,
    from the first, were written, in `free` how many slots are left there, in `queued` the devices
    it now queues for, and in `woken` which sessions got slots.
    """

    stream: int
    head: int
    token: int | None = None
    rows: int = 0
    drafts: list[Draft] = field(default_factory=list)
    frees: dict[int, int] = field(default_factory=dict)
    starts: dict[int, list[Draft]] = field(default_factory=dict)
    wants: dict[int, Want] = field(default_factory=dict)
    request_id: str = ""
    admitted: dict[int, int] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)
    woken: set[int] = field(default_factory=set)
    queued: set[int] = field(default_factory=set)
    rows_after: int = 0

    def written(self) -> list[Draft]:
        """The drafts that `write` wrote, in their order."""
        if not self.starts:
            return self.drafts
        return self.drafts + [draft for device, drafts in self.starts.items() for draft in drafts[: self.admitted[device]]]


class Turn:
    """Collects the events of one decision. `row` arguments are rows as records hold them, and are changed in place."""

    __slots__ = ("at", "by", "drafts", "frees", "starts", "take", "ts", "wants")

    def __init__(self, at: str, by: str, take: Callable[[], int]):
        self.at, self.by, self.take = at, by, take
        self.ts = from_iso(at)
        self.drafts: list[Draft] = []
        self.starts: dict[int, list[Draft]] = {}
        self.frees: dict[int, int] = {}
        self.wants: dict[int, Want] = {}

    def record(self, event_type: str, /, by: str = "", **data: Any) -> None:
        """An event; `add`, `set` and `delete` change rows, whatever else is for the reader."""
        if "delete" in data:
            data["del"] = data.pop("delete")
        self.drafts.append(Draft(event_type, data, by or self.by, self.at))

    def step(
        self, machine: Machine, row: Fields, event: str, facts: Fields | None = None, reason: str = "", **fields: Any
    ) -> tuple[Fields, Fields]:
        """One transition, not yet recorded: what the reader is told, and the fields that change."""
        source = row["state"]
        target, _ = step(machine, source, event, facts or {})
        changes: Fields = {"state": target, "entered_at": self.at}
        if reason or row.get("reason"):
            changes["reason"] = reason
        if fields:
            changes.update(fields)
        told = {
            "machine": machine.name, "id": row["id"], "from_state": source, "to_state": target, "event": event,
            "reason": reason, "spent": round(self.ts - from_iso(row["entered_at"]), 6),
        }  # fmt: skip
        row.update(changes)
        return told, changes

    def transition(
        self,
        machine: Machine,
        table: str,
        row: Fields,
        event: str,
        facts: Fields | None = None,
        reason: str = "",
        *,
        add: dict[str, list[Fields]] | None = None,
        also: dict[str, Fields] | None = None,
        by: str = "",
        **fields: Any,
    ) -> str:
        """Drive `row`'s machine by `event`: one `state_changed` event, one history row, the new state.

        `fields` change with it in the same row, `also` sets fields of rows of other tables, `add` adds rows.
        """
        data, changes = self.step(machine, row, event, facts, reason, **fields)
        data["set"] = {table: {str(row["id"]): changes}}
        if also:
            data["set"].update(also)
        if add:
            data["add"] = add
        self.drafts.append(Draft("state_changed", data, by or self.by, self.at))
        return changes["state"]

    def record_steps(self, event_type: str, table: str, steps: list[tuple[Fields, Fields]]) -> None:
        """Many transitions decided by `step` in one pass: one event, in pieces."""
        for at in range(0, len(steps), PIECE):
            piece = steps[at : at + PIECE]
            changes = {table: {str(told["id"]): fields for told, fields in piece}}
            self.record(event_type, transitions=[told for told, _ in piece], set=changes)


def write(store: Store, cursor, batches: list[Batch], *, wait: bool = True) -> tuple[list[Batch], list[Batch]]:
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
        slots.settle(store, cursor, written)
        _write_records(store, cursor, written)
    return written, refused


def _write_records(store: Store, cursor, batches: list[Batch]) -> None:
    events: list[tuple] = []
    history: list[tuple] = []
    heads: list[tuple[int, int, int]] = []
    added: dict[str, dict[int, Fields]] = {}
    changed: dict[str, dict[int, Fields]] = {}
    removed: dict[str, list[int]] = {}
    for batch in batches:
        stream, seq = batch.stream, batch.head
        for draft in batch.written():
            seq += 1
            key = ids.row_id(stream, seq)
            data = draft.data
            events.append((key, stream, seq, draft.type, EVENT_VERSION, draft.at, draft.by, batch.request_id, data))
            if draft.type == "state_changed":
                history.append(_history(key, stream, seq, draft, data, 0))
            elif "transitions" in data:
                history.extend(_history(key, stream, seq, draft, told, part) for part, told in enumerate(data["transitions"]))
            _merge(data, added, changed, removed)
        heads.append((seq, batch.rows_after, stream))
    store.move(cursor, heads)
    store.insert(cursor, "agents_event", EVENT_COLUMNS, events)
    if history:
        store.insert(cursor, "agents_transition", TRANSITION_COLUMNS, history)
    _write_rows(store, cursor, added, changed, removed)


def _history(key: int, stream: int, seq: int, draft: Draft, told: Fields, part: int) -> tuple:
    return (
        ids.transition_id(key, part), stream, seq, draft.at, draft.by, told["machine"], told["id"],
        told["from_state"], told["to_state"], told["event"], told["reason"], told["spent"],
    )  # fmt: skip


def _merge(data: Fields, added: dict, changed: dict, removed: dict) -> None:
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


def _write_rows(store: Store, cursor, added: dict, changed: dict, removed: dict) -> None:
    for name in reversed(TABLES):
        if name in removed:
            store.delete(cursor, TABLES[name].db_table, removed[name])
    for name, table in TABLES.items():
        for columns, rows in _by_columns(table, added.get(name, {})):
            store.insert(cursor, table.db_table, columns, rows)
        for columns, rows in _by_columns(table, changed.get(name, {}), keyed=True):
            store.update(cursor, table.db_table, columns, rows)


def _by_columns(table: Table, rows: dict[int, Fields], keyed: bool = False) -> Iterator[tuple[tuple, list[list[Any]]]]:
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
        return Batch(self.stream, self.head, None, rows, self.turn.drafts, request_id=self.request_id)


@contextmanager
def door(stream: int, by: str, request_id: str = "") -> Iterator[Door]:
    """Open `stream` for one change: locks it, hands out a Door, writes what its turn holds, nudges after the commit.

    Raises NoSuchSession where there is no such stream. An exception inside writes nothing.
    """
    with transaction.atomic(), connection.wrap_database_errors:
        cursor, statements = storage.cursor(), store()
        found = statements.lock(cursor, [stream], wait=True).get(stream)
        if found is None:
            raise NoSuchSession(f"there is no session {stream}")
        opened = Door(stream, found[0], found[1], by, request_id)
        yield opened
        batch = opened.batch()
        if batch.drafts:
            write(statements, cursor, [batch])
            statements.execute(cursor, WAKE, (_now_for(statements), stream))
            heads = {stream: batch.head + len(batch.drafts)}
            nudges.announce(cursor, heads)
            transaction.on_commit(lambda: nudges.send(heads))


WAKE = "UPDATE agents_lease SET wake_at = %s WHERE stream_id = %s"
"""Somebody should look at the session: its owner, or a runner that takes it up. The guarantee behind the nudge."""


def _now_for(statements: Store) -> str:
    return statements.time(now_iso())


def system_stream() -> int:
    """The stream of what concerns no session and no device: users, tokens, policies."""
    return apps.get_model("agents", "Stream").objects.get_or_create(kind="system")[0].pk


def new_stream(kind: str) -> int:
    """A fresh stream's id; call it inside the transaction that opens its door."""
    return apps.get_model("agents", "Stream").objects.create(kind=kind).pk


BETWEEN = "id >= %s AND id < %s"


def events_since(stream: int, seq: int, limit: int = EVENTS_READ) -> list[Fields]:
    """Up to `limit` events after `seq`, oldest first, as clients get them."""
    low, high = ids.row_range(stream)
    cursor = storage.cursor()
    names = [name for name, _ in EVENT_COLUMNS]
    found = store().select(cursor, "agents_event", EVENT_COLUMNS, BETWEEN, (low + seq + 1, high), limit)
    return [_wire(dict(zip(names, row, strict=True))) for row in found]


def _wire(event: Fields) -> Fields:
    del event["id"], event["stream_id"]
    return event


def read_rows(stream: int, tables: tuple[str, ...] | None = None) -> dict[str, dict[str, Fields]]:
    """All rows of a stream as records hold them: {table: {"id": row}}."""
    cursor, statements = storage.cursor(), store()
    found: dict[str, dict[str, Fields]] = {}
    for name in tables or TABLES:
        table = TABLES[name]
        names = [column for column, _ in table.columns]
        rows = statements.select(cursor, table.db_table, table.columns, BETWEEN, table.range(stream))
        found[name] = {str(row[0]): dict(zip(names, row, strict=True)) for row in rows}
    return found


def snapshot(stream: int) -> Fields:
    """Rows and the head they belong to, in one consistent read: {"seq": N, "rows": {table: {"id": row}}}."""
    with consistent_read():
        seq = head(stream)
        return {"seq": seq, "rows": read_rows(stream)}


@contextmanager
def consistent_read() -> Iterator[None]:
    """Everything read inside comes from one moment; it takes no lock that a writer waits for."""
    connection.ensure_connection()
    raw = connection.connection
    if connection.in_atomic_block:
        yield
        return
    cursor = raw.cursor()
    cursor.execute("BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        cursor.execute("COMMIT")


def head(stream: int) -> int:
    """The stream's last seq; raises NoSuchSession."""
    found = apps.get_model("agents", "Stream").objects.filter(pk=stream).values_list("head", flat=True).first()
    if found is None:
        raise NoSuchSession(f"there is no session {stream}")
    return found


class FoldError(AgentsError):
    """An event does not follow from those before it."""

    code = "fold_error"


Rows = dict[str, dict[str, Fields]]


def fold(events: Iterable[Fields], rows: Rows | None = None) -> Rows:
    """Apply `events` (as clients get them) to `rows`; the result is what the database must hold."""
    rows = {} if rows is None else rows
    for event in events:
        apply(event["data"], rows)
    return rows


def apply(data: Fields, rows: dict[str, dict[str, Fields]]) -> None:
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


def canonical(value: Any) -> bytes:
    """A row's value in a form in which equal values are equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
