"""The engine's own records, written again by one raw writer that reads and decides nothing: the other raw limit.

It runs on a copy of a database in which a graph was carried out: takes the records of that run, removes them, and
writes the same rows in groups as large as the engine's: a commit for the starts, one for the ends.
"""

import time

from django.db import connection

from agents.models import Agent, Event, Transition
from agents.streams.tables import EVENT_COLUMNS, TABLES, TRANSITION_COLUMNS
from benchmarks.inside.raw import Columns, Part, Writer
from constellations.models import Attempt, Task

GROUP = 64
"""Tasks whose records go into a commit."""
AGENT, ATTEMPT = TABLES["agent"], TABLES["attempt"]
TASK_MOVED: Columns = (
    ("state", "text"), ("entered_at", "time"), ("started_at", "time"), ("ended_at", "time"),
    ("attempt", "int"), ("device_id", "int"),
)  # fmt: skip
AGENT_MOVED: Columns = (("state", "text"), ("entered_at", "time"))
ATTEMPT_MOVED: Columns = (("outcome", "text"), ("ended_at", "time"))
OF_TASKS = "parent_id IS NOT NULL"
"""Agents of tasks; the graph's own stays."""


def tasks() -> dict:
    """Records of tasks a second."""
    groups = -(-Task.objects.count() // GROUP)
    plan = _plan(groups)
    _remove()
    writer, begun = Writer(), time.perf_counter()
    for group in range(groups):
        for parts in plan:
            writer.commit(*(Part(verb, table, columns, pieces[group]) for verb, table, columns, pieces in parts))
    return {"rate": Task.objects.count() / (time.perf_counter() - begun)}


def _plan(groups: int) -> tuple[list[tuple], list[tuple]]:
    """What each group's two commits write: (verb, table, columns, the rows of each group)."""
    starts, ends = [], []
    for model, columns in ((Event, EVENT_COLUMNS), (Transition, TRANSITION_COLUMNS)):
        pieces = _pieces(_rows(model, columns), 2 * groups)
        starts.append(("insert", model._meta.db_table, columns, pieces[::2]))
        ends.append(("insert", model._meta.db_table, columns, pieces[1::2]))
    moved = ("update", Task._meta.db_table, TASK_MOVED, _pieces(_rows(Task, (*TASK_MOVED, ("id", "int"))), groups))
    agents, attempts = AGENT.columns, ATTEMPT.columns
    starts.append(("insert", AGENT.db_table, agents, _pieces(_rows(Agent, agents, OF_TASKS), groups)))
    starts.append(("insert", ATTEMPT.db_table, attempts, _pieces(_rows(Attempt, attempts), groups)))
    ended_agents = _rows(Agent, (*AGENT_MOVED, ("id", "int")), OF_TASKS)
    ended_attempts = _rows(Attempt, (*ATTEMPT_MOVED, ("id", "int")))
    ends.append(("update", AGENT.db_table, AGENT_MOVED, _pieces(ended_agents, groups)))
    ends.append(("update", ATTEMPT.db_table, ATTEMPT_MOVED, _pieces(ended_attempts, groups)))
    return [*starts, moved], [*ends, moved]


def _rows(model, columns: Columns, where: str = "true") -> list[tuple]:
    names = ", ".join(_as_held(name) for name, _ in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM {model._meta.db_table} WHERE {where} ORDER BY id")
        return cursor.fetchall()


def _as_held(name: str) -> str:
    """A column whose values the driver leaves alone: on SQLite an expression, which has no declared type."""
    return f'+"{name}"' if connection.vendor == "sqlite" else f'"{name}"'


def _remove() -> None:
    """What refers to a row goes before it, and leaves nothing behind that its removal would have to look through."""
    with connection.cursor() as cursor:
        for model in (Attempt, Transition, Event):
            cursor.execute(f"DELETE FROM {model._meta.db_table}")
        cursor.execute("VACUUM" if connection.vendor == "sqlite" else "VACUUM ANALYZE")
        cursor.execute(f"DELETE FROM {AGENT.db_table} WHERE {OF_TASKS}")
        cursor.execute("VACUUM" if connection.vendor == "sqlite" else "VACUUM ANALYZE")


def _pieces(rows: list, count: int) -> list[list]:
    """`rows` in `count` pieces of about the same length."""
    return [rows[piece * len(rows) // count : (piece + 1) * len(rows) // count] for piece in range(count)]
