"""Is the database what its streams say? Folds every stream, compares it with the rows, checks the invariants.

The invariants: streams gapless, fold equals rows, history tells of every transition, no
attempt without an end that nobody owns, no two running attempts of a task, slots as many as attempts that hold them.
Other apps add their own with `@register_invariant`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db.models import Count, F, Q

from agents import ids
from agents.machines import MACHINES
from agents.models import Event, Lease, Stream, Transition
from agents.streams.fold import (
    EVENTS_READ,
    FoldError,
    Rows,
    apply_event,
    canonical_bytes,
    consistent_read,
    events_since,
    read_rows,
)
from agents.streams.tables import TABLES, Fields

Finding = str
INVARIANTS: list[Callable[[], Iterator[Finding]]] = []


def register_invariant(function: Callable[[], Iterator[Finding]]) -> Callable[[], Iterator[Finding]]:
    """Register a check of the whole database; it yields what is wrong, a line each."""
    INVARIANTS.append(function)
    return function


def verify_database() -> Iterator[Finding]:
    """Everything that is wrong, a line each; nothing when all is well."""
    for stream in Stream.objects.order_by("pk").values_list("pk", flat=True).iterator():
        with consistent_read():
            yield from verify_stream(stream)
    for check in INVARIANTS:
        yield from check()


def verify_stream(stream: int) -> Iterator[Finding]:
    """One stream: gapless, its fold equal to its rows."""
    head = Stream.objects.values_list("head", flat=True).get(pk=stream)
    rows: Rows = {}
    seq = 0
    while events := events_since(stream, seq, EVENTS_READ):
        for event in events:
            seq += 1
            if event["seq"] != seq:
                yield f"stream {stream}: event {seq} is missing, {event['seq']} follows"
                seq = event["seq"]
            try:
                apply_event(event["data"], rows)
            except FoldError as error:
                yield f"stream {stream}: event {seq}: {error}"
    if seq != head:
        yield f"stream {stream}: its head is {head}, its last event {seq}"
    yield from compare_rows(stream, rows, read_rows(stream))


def compare_rows(stream: int, folded: Rows, stored: Rows) -> Iterator[Finding]:
    """Differences between what the events say and what the tables hold."""
    for name in TABLES:
        said, held = folded.get(name, {}), stored.get(name, {})
        for key in sorted(said.keys() | held.keys(), key=int):
            if key not in held:
                yield f"stream {stream}: {name} {key} is in the events and not in the table"
            elif key not in said:
                yield f"stream {stream}: {name} {key} is in the table and not in the events"
            else:
                yield from _fields(f"stream {stream}: {name} {key}", TABLES[name].kinds, said[key], held[key])


def _fields(place: str, kinds: dict[str, str], said: Fields, held: Fields) -> Iterator[Finding]:
    for field, value in held.items():
        told = said.get(field)
        same = told == value if kinds[field] == "float" else canonical_bytes(told) == canonical_bytes(value)
        if not same:
            yield f"{place}: {field} is {value!r} in the table and {said.get(field)!r} in the events"


@register_invariant
def history_follows_the_tables() -> Iterator[Finding]:
    """Every transition has a row in its machine's table, and begins where the one before it ended."""
    where: dict[tuple[str, int], str] = {}
    for row in Transition.objects.order_by("pk").iterator():
        machine = MACHINES[row.machine]
        moves = {move.target for move in machine.rows if move.event == row.event}
        if row.to_state not in moves or machine.is_terminal(row.from_state):
            yield f"transition {row.pk}: {row.machine} has no row {row.from_state} > {row.event} > {row.to_state}"
        before = where.get((row.machine, row.subject_id), row.from_state)
        if before != row.from_state:
            yield f"transition {row.pk}: {row.machine} {row.subject_id} was in {before}, not in {row.from_state}"
        where[row.machine, row.subject_id] = row.to_state


@register_invariant
def every_state_change_has_one_history_row() -> Iterator[Finding]:
    changes = Event.objects.filter(type="state_changed").values_list("stream_id").annotate(n=Count("pk"))
    history = dict(
        Transition.objects.annotate(part=F("pk") % (1 << ids.PART_BITS))
        .filter(Q(part=0))
        .values_list("stream_id")
        .annotate(n=Count("pk"))
    )
    passes = dict(Event.objects.filter(data__has_key="transitions").values_list("stream_id").annotate(n=Count("pk")))
    for stream, count in changes:
        if history.get(stream, 0) != count + passes.get(stream, 0):
            yield f"stream {stream}: {count} changes of state and {history.get(stream, 0)} rows of history"


@register_invariant
def leases_are_on_sessions() -> Iterator[Finding]:
    for lease in Lease.objects.exclude(stream__kind="session"):
        yield f"lease on stream {lease.pk}, which is no session"
