"""Raw limits: what the database does for two workers that only write, in the settings the engine uses.

A task is two small records here: one inserted when it starts, changed when it ends. Workers are woken: they sleep on a
pipe and take from it what there is to do, a byte a task.
"""

import multiprocessing
import os
import socket
import sqlite3
import statistics
import time
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from django.db import connection

from agents.streams.statements import POSTGRES_TYPES

WORKERS = 2
GROUP = 64
"""Tasks a grouped commit takes together."""
RETRY_S = 0.00005
"""Between two attempts to begin while the other worker writes."""
HOPS = 1000
Columns = tuple[tuple[str, str], ...]
"""Names and kinds, as in agents.streams.statements."""
RECORD: Columns = (("id", "int"), ("state", "text"), ("at", "float"))

forked = multiprocessing.get_context("fork")


def measure(tasks: int) -> dict:
    """Tasks a second of two workers with two commits a task, and grouped; seconds of a hop between them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE raw_record (id bigint PRIMARY KEY, state varchar(32) NOT NULL, at double precision NOT NULL)"
        )
    connection.close()
    return {"single": _rate(0, tasks, 1), "grouped": _rate(tasks, tasks, GROUP), "hop": _hop(2 * tasks)}


class Part(NamedTuple):
    """Rows that one commit inserts or updates; those of an update end with their id. Values are as the database holds them."""

    verb: str
    table: str
    columns: Columns
    rows: list[tuple]


class Writer:
    """One worker's connection."""

    def __init__(self) -> None:
        connection.ensure_connection()
        self._raw, self._on_sqlite = connection.connection, connection.vendor == "sqlite"
        if self._on_sqlite:
            self._raw.execute("PRAGMA busy_timeout = 0")
        self._cursor = self._raw.cursor()

    def commit(self, *parts: Part) -> None:
        """Write everything, durable, in the fastest way there is."""
        if not self._on_sqlite and all(len(part.rows) == 1 for part in parts):
            values = [value for part in parts for value in part.rows[0]]
            self._cursor.execute(_in_one(tuple(part[:3] for part in parts)), values)
            return
        self._begin()
        for part in parts:
            if self._on_sqlite:
                self._cursor.executemany(_statement(*part[:3]).replace("%s", "?"), part.rows)
            elif part.verb == "insert":
                self._copy(part)
            else:
                arrays = [list(column) for column in zip(*part.rows, strict=True)]
                self._cursor.execute(_update_by_arrays(part.table, part.columns), [*arrays, arrays[-1]])
        self._raw.execute("COMMIT")

    def _copy(self, part: Part) -> None:
        names = ", ".join(f'"{name}"' for name, _ in part.columns)
        with self._cursor.copy(f"COPY {part.table} ({names}) FROM STDIN") as copy:
            for row in part.rows:
                copy.write_row(row)

    def _begin(self) -> None:
        if not self._on_sqlite:
            self._raw.execute("BEGIN")
            return
        while True:
            with suppress(sqlite3.OperationalError):
                self._raw.execute("BEGIN IMMEDIATE")
                return
            time.sleep(RETRY_S)


@lru_cache(maxsize=100)
def _statement(verb: str, table: str, columns: Columns, typed: bool = False) -> str:
    values = [f"%s::{POSTGRES_TYPES[kind]}" if typed else "%s" for _, kind in columns]
    if verb == "insert":
        names = ", ".join(f'"{name}"' for name, _ in columns)
        return f"INSERT INTO {table} ({names}) VALUES ({', '.join(values)})"
    changes = ", ".join(f'"{name}" = {value}' for (name, _), value in zip(columns, values, strict=True))
    return f"UPDATE {table} SET {changes} WHERE id = %s"


@lru_cache(maxsize=100)
def _update_by_arrays(table: str, columns: Columns) -> str:
    """The ids are given twice: as a list of their own they are looked up, whatever the planner knows of the table."""
    keyed = (*columns, ("id", "int"))
    arrays = ", ".join(f"%s::{POSTGRES_TYPES[kind]}[]" for _, kind in keyed)
    names = ", ".join(f'"{name}"' for name, _ in keyed)
    changes = ", ".join(f'"{name}" = r."{name}"' for name, _ in columns)
    where = "t.id = r.id AND t.id = ANY(%s::bigint[])"
    return f"UPDATE {table} AS t SET {changes} FROM unnest({arrays}) AS r({names}) WHERE {where}"


@lru_cache(maxsize=100)
def _in_one(parts: tuple[tuple[str, str, Columns], ...]) -> str:
    """All parts, of a row each, as one statement: one round trip."""
    *first, last = (_statement(*part, typed=True) for part in parts)
    return (f"WITH {', '.join(f'part{place} AS ({text})' for place, text in enumerate(first))} " if first else "") + last


def _rate(first: int, tasks: int, group: int) -> float:
    waiting, push = os.pipe()
    numbers = forked.Value("q", first)
    ready = forked.Barrier(WORKERS + 1)
    workers = [forked.Process(target=_work, args=(waiting, push, numbers, ready, group)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    os.close(waiting)
    ready.wait()
    begun = time.perf_counter()
    os.write(push, bytes(tasks))
    os.close(push)
    for worker in workers:
        worker.join()
    return tasks / (time.perf_counter() - begun)


def _work(waiting: int, push: int, numbers, ready, group: int) -> None:
    """A grouped commit holds the starts of its tasks and the ends of those before."""
    os.close(push)
    writer, ended = Writer(), []
    ready.wait()
    while taken := len(os.read(waiting, group)):
        with numbers.get_lock():
            first = numbers.value
            numbers.value += taken
        now, tasks = time.time(), range(first, first + taken)
        start = Part("insert", "raw_record", RECORD, [(task, "RUNNING", now) for task in tasks])
        end = Part("update", "raw_record", RECORD[1:], [("COMPLETED", now, task) for task in tasks])
        if group == 1:
            writer.commit(start)
            writer.commit(end)
        else:
            writer.commit(start, *ended)
            ended = [end]
    if ended:
        writer.commit(*ended)


def _hop(first: int) -> float:
    """Median seconds from one worker's wake-up to the other's, with a commit between."""
    ours, theirs = socket.socketpair()
    answering = forked.Process(target=_answer, args=(ours, theirs, first + HOPS))
    answering.start()
    theirs.close()
    writer, times = Writer(), []
    for number in range(HOPS):
        begun = time.perf_counter()
        writer.commit(_record(first + number))
        ours.send(b".")
        ours.recv(1)
        times.append((time.perf_counter() - begun) / 2)
    ours.close()
    answering.join()
    return statistics.median(times)


def _answer(ours: socket.socket, theirs: socket.socket, first: int) -> None:
    ours.close()
    writer = Writer()
    while theirs.recv(1):
        writer.commit(_record(first))
        first += 1
        theirs.send(b".")


def _record(number: int) -> Part:
    return Part("insert", "raw_record", RECORD, [(number, "RUNNING", time.time())])
