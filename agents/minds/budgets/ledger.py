"""The books of what models were asked: one short transaction in which tries reserve, settle, and are let in or not.

Everybody first locks the row of the whole installation, which every try counts for anyway; so nobody decides on numbers that
another one is changing, and no two wait for each other. SQLite has one lock for all. What is decided here is in `places`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from agents.clock import from_iso, to_iso
from agents.minds.budgets.places import (
    MICROS,
    MINUTE_S,
    Account,
    BudgetRule,
    Counted,
    Limits,
    Need,
    Place,
    Ruling,
    Traffic,
    add_up,
    judge_need,
)
from agents.streams.statements import Columns, RawCursor, current_store, raw_cursor, write_transaction

ACCOUNTS_KNOWN = 10_000
"""Sessions whose account a process remembers; it never changes."""
DEPTH = 8
"""Sessions above one, at most, that what it uses counts for (agents.access.ancestry allows fewer)."""
KEYS_A_READ = 500
"""Rows that one statement asks for."""
RELEASED = 1_000
"""Reservations that one transaction releases, and old ones that it deletes, at most."""
KEPT_S = 86_400.0
"""What was settled is kept so long: a runner that was taken for dead may still settle it."""
WHOLE_ROOM = Place("installation", 0, "")
RESERVATION: Columns = (
    ("id", "int"), ("call", "int"), ("profile", "text"), ("session", "int"), ("task", "int"), ("owner", "int"),
    ("runner", "int"), ("tokens", "int"), ("micros", "int"), ("state", "text"), ("at", "time"), ("until", "time"),
)  # fmt: skip
NAMES = [name for name, _ in RESERVATION]
COUNTERS = (
    "calls", "input_tokens", "cached_tokens", "output_tokens", "micros", "unpriced_tokens", "open_calls", "open_tokens",
    "open_micros", "unknown_calls", "unknown_tokens", "unknown_micros", "raised_tokens", "raised_micros",
)  # fmt: skip
USED = (
    "input_tokens + output_tokens + open_tokens + unknown_tokens, micros + open_micros + unknown_micros,"
    " raised_tokens, raised_micros, warned_tokens, warned_micros"
)
"""In the order of `Counted`."""

Row = dict[str, Any]
Accounts = dict[int, tuple[tuple[int, ...], int]]
"""By session: it with those above it, nearest first, and its owner."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A try that wants to begin: of which call, whose, by which profile, what it may use and for how many seconds."""

    call: int
    session: int
    task: int
    profile: str
    limits: Limits
    need: Need
    seconds: float


@dataclass(frozen=True, slots=True)
class Used:
    """What a try has used; `micros` is None where prices are not known."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    micros: int | None = 0


@dataclass(frozen=True, slots=True)
class Settlement:
    """A try has ended; `used` is None where nobody told what it used."""

    reservation: int
    used: Used | None


@dataclass(frozen=True, slots=True)
class Granted:
    """The try may begin, under this reservation; `warnings` are facts of budgets that are nearly used up."""

    reservation: int
    warnings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A limit of the profile has no room, for about so many seconds; None: until some call ends."""

    wait_s: float | None


@dataclass(frozen=True, slots=True)
class Short:
    """A budget has no room; `facts` as `places.judge_need` says them."""

    facts: Mapping[str, Any]


Answer = Granted | NoRoom | Short


def keep_books(
    demands: Sequence[Demand], settlements: Sequence[Settlement], runner: int | None, known: Accounts, *, release: bool = False
) -> list[Answer]:
    """Settle, then let in what has room, in this order: an answer for each demand. One transaction, durable at its end.

    `known` are accounts that were read before, and more are added. `release`: look for what dead runners have reserved, too.
    """
    books = _Books(runner, time.time(), known)
    with write_transaction(), connection.wrap_database_errors:
        books.lock()
        if release:
            books.release()
        books.settle(settlements)
        answers = books.let_in(demands)
        books.write()
    return answers


def raise_place(place: Place, unit: str, amount: int) -> None:
    """A person lets more be used there than its budgets say. Call it inside a transaction or outside one."""
    books = _Books(None, time.time(), {})
    with write_transaction(), connection.wrap_database_errors:
        books.lock()
        books.changes.append((place, {f"raised_{unit}": amount}))
        books.write()


class _Books:
    """One transaction: what it has read, and what it is going to write."""

    def __init__(self, runner: int | None, now: float, known: Accounts):
        self.runner, self.now, self.at, self.known = runner, now, to_iso(now), known
        self.day = self.at[:10]
        self.cursor: RawCursor
        self.store = current_store()
        self.changes: list[tuple[Place, Mapping[str, int]]] = []
        self.reserved: list[list[Any]] = []
        self.warned: dict[tuple[Place, str], int] = {}

    def lock(self) -> None:
        self.cursor = raw_cursor()
        self._add({WHOLE_ROOM: {}})

    # --- what ends

    def settle(self, settlements: Sequence[Settlement]) -> None:
        used = {each.reservation: each.used for each in settlements}
        self._close(self._reservations(list(used)), used)

    def release(self) -> None:
        """What dead runners had reserved, and what is open for too long, is unknown from now on; what is old goes."""
        ended = "state = 'open' AND (until < %s OR runner IN (SELECT id FROM agents_runner WHERE state = 'ENDED'))"
        found = self.store.select(self.cursor, "agents_reservation", RESERVATION, ended, (self.store.time(self.at),), RELEASED)
        rows = [dict(zip(NAMES, values, strict=True)) for values in found]
        self._close(rows, dict.fromkeys((row["id"] for row in rows), None))
        old = self.store.time(to_iso(self.now - KEPT_S))
        select = f"SELECT id FROM agents_reservation WHERE at < %s AND state <> 'open' LIMIT {RELEASED}"
        gone = [row for (row,) in self._run(select, (old,)).fetchall()]
        if gone:
            self.store.delete(self.cursor, "agents_reservation", gone)

    def _close(self, rows: Sequence[Row], used: Mapping[int, Used | None]) -> None:
        """Take what was reserved off, and put what was used in its place. What was unknown may become known, once."""
        closed = []
        accounts = self._accounts(row["session"] for row in rows)
        for row in rows:
            told = used[row["id"]]
            if row["state"] == "settled" or (row["state"] == "unknown" and told is None):
                continue
            columns = _taken_off(row) | ({} if told is None else _put_down(told))
            if told is None:
                columns |= {"unknown_calls": 1, "unknown_tokens": row["tokens"], "unknown_micros": row["micros"] or 0}
            sessions, owner = accounts.get(row["session"], ((row["session"],), row["owner"]))
            places = Account(sessions, owner, row["task"]).places(row["at"][:10])
            self.changes += [(place, columns) for place in places]
            tokens = row["tokens"] if told is None else told.input_tokens + told.output_tokens
            micros = row["micros"] if told is None else told.micros
            closed.append([tokens, micros, "unknown" if told is None else "settled", row["id"]])
        if closed:
            columns_closed: Columns = (("tokens", "int"), ("micros", "int"), ("state", "text"))
            self.store.update(self.cursor, "agents_reservation", columns_closed, closed)

    def _reservations(self, wanted: list[int]) -> list[Row]:
        found: list[Row] = []
        for part in _parts(wanted):
            rows = self.store.select(self.cursor, "agents_reservation", RESERVATION, f"id IN ({_marks(part)})", part)
            found += [dict(zip(NAMES, values, strict=True)) for values in rows]
        return found

    # --- what begins

    def let_in(self, demands: Sequence[Demand]) -> list[Answer]:
        """Each in its turn. Where a profile has no room for one, those behind it wait too, so that none is passed by."""
        if not demands:
            return []
        self.write()  # what was settled counts
        accounts = self._accounts(demand.session for demand in demands)
        lines = [accounts.get(demand.session, ((demand.session,), 0)) for demand in demands]
        owed = [Account(*line, demand.task) for line, demand in zip(lines, demands, strict=True)]
        budgets = self._budgets(owed)
        counted = self._counted({place for budget in budgets for account in owed for place in budget.places(account, self.day)})
        traffic: dict[str, Traffic] = {}
        full: dict[str, float | None] = {}
        answers: list[Answer] = []
        for demand, account in zip(demands, owed, strict=True):
            answers.append(self._answer(demand, account, budgets, counted, traffic, full))
        return answers

    def _answer(
        self, demand: Demand, account: Account, budgets: Sequence[BudgetRule], counted: dict[Place, Counted],
        traffic: dict[str, Traffic], full: dict[str, float | None],
    ) -> Answer:  # fmt: skip
        ruling = judge_need(demand.need, account, self.day, budgets, counted)
        if ruling.short is not None:
            return Short(ruling.short)
        if demand.limits.any:
            if demand.profile in full:
                return NoRoom(full[demand.profile])
            if demand.profile not in traffic:
                traffic[demand.profile] = self._traffic(demand.profile, demand.limits)
            wait_s = traffic[demand.profile].wait_s(demand.limits, demand.need.tokens, self.now)
            if wait_s is None or wait_s > 0:
                full[demand.profile] = wait_s
                return NoRoom(wait_s)
            traffic[demand.profile].note(demand.need.tokens, self.now)
        return self._grant(demand, account, ruling, counted)

    def _grant(self, demand: Demand, account: Account, ruling: Ruling, counted: dict[Place, Counted]) -> Granted:
        row, need = secrets.randbits(52), demand.need
        self.reserved.append(
            [
                row, demand.call, demand.profile, demand.session, demand.task, account.owner, self.runner, need.tokens,
                need.micros, "open", self.at, to_iso(self.now + demand.seconds),
            ]
        )  # fmt: skip
        columns = {"open_calls": 1, "open_tokens": need.tokens, "open_micros": need.micros or 0}
        for place in account.places(self.day):
            self.changes.append((place, columns))
            if (found := counted.get(place)) is not None:
                found.used_tokens += need.tokens
                found.used_micros += need.micros or 0
        for place, unit, bound, _ in ruling.warnings:
            self.warned[place, unit] = bound
            setattr(counted.setdefault(place, Counted()), f"warned_{unit}", bound)
        return Granted(row, tuple(facts for *_, facts in ruling.warnings))

    # --- what is read

    def _accounts(self, sessions: Iterable[int]) -> Accounts:
        """Those of `sessions` that are there."""
        wanted = set(sessions)
        if unknown := wanted - self.known.keys():
            if len(self.known) + len(unknown) > ACCOUNTS_KNOWN:
                self.known.clear()
                unknown = wanted
            self.known.update(self._read_accounts(unknown))
        return {session: self.known[session] for session in wanted if session in self.known}

    def _read_accounts(self, sessions: Iterable[int]) -> Accounts:
        parents: dict[int, tuple[int | None, int]] = {}
        ask = list(sessions)
        for _ in range(DEPTH):
            for part in _parts(ask):
                select = f"SELECT id, parent_id, owner_id FROM agents_session WHERE id IN ({_marks(part)})"
                parents.update({row: (parent, owner) for row, parent, owner in self._run(select, part).fetchall()})
            ask = sorted({parent for parent, _ in parents.values() if parent is not None and parent not in parents})
        return {session: (_line(session, parents), parents[session][1]) for session in sessions if session in parents}

    def _budgets(self, owed: Sequence[Account]) -> list[BudgetRule]:
        """Those that may apply to these accounts."""
        found: list[tuple[Any, ...]] = []
        select = 'SELECT id, scope, subject, tokens, money, per, "then" FROM agents_budget WHERE '
        found += self._run(select + "subject IS NULL").fetchall()
        subjects = {account.owner for account in owed} | {session for account in owed for session in account.sessions}
        for part in _parts(sorted(subjects)):
            found += self._run(select + f"subject IN ({_marks(part)})", part).fetchall()
        return [
            BudgetRule(row, scope, subject, tokens, None if money is None else round(money * MICROS), per, then)
            for row, scope, subject, tokens, money, per, then in sorted(found)
        ]

    def _counted(self, places: set[Place]) -> dict[Place, Counted]:
        """The counters of these places; one that nothing was counted for has none yet."""
        found = {place: Counted() for place in places}
        groups: dict[tuple[str, str], list[int]] = {}
        for place in places:
            groups.setdefault((place.scope, place.period), []).append(place.key)
        for (scope, period), keys in groups.items():
            for part in _parts(keys):
                select = f"SELECT key, {USED} FROM agents_spending WHERE scope = %s AND period = %s AND key IN ({_marks(part)})"
                for key, *values in self._run(select, [scope, period, *part]).fetchall():
                    found[Place(scope, key, period)] = Counted(*values)
        return found

    def _traffic(self, profile: str, limits: Limits) -> Traffic:
        columns: Columns = (("tokens", "int"), ("at", "time"))
        asked: list[tuple[float, int]] = []
        if limits.requests is not None or limits.tokens is not None:
            since = self.store.time(to_iso(self.now - MINUTE_S))
            rows = self.store.select(self.cursor, "agents_reservation", columns, "profile = %s AND at > %s", (profile, since))
            asked = sorted((from_iso(at), tokens) for tokens, at in rows)
        count = "SELECT count(*) FROM agents_reservation WHERE state = 'open' AND profile = %s"
        return Traffic(asked, self._run(count, (profile,)).fetchone()[0])

    # --- what is written

    def write(self) -> None:
        if self.reserved:
            self.store.insert(self.cursor, "agents_reservation", RESERVATION, self.reserved)
            self.reserved = []
        if self.changes:
            self._add(add_up(self.changes))
            self.changes = []
        for (place, unit), bound in self.warned.items():
            warn = f"UPDATE agents_spending SET warned_{unit} = %s WHERE scope = %s AND key = %s AND period = %s"
            self._run(warn, (bound, *place))
        self.warned = {}

    def _add(self, sums: Mapping[Place, Mapping[str, int]]) -> None:
        """Add to the counters of places, in their order; a place that is not there begins at nothing."""
        rows = [(*place, *(sums[place].get(name, 0) for name in COUNTERS)) for place in sorted(sums)]
        names = ", ".join(("scope", "key", "period", *COUNTERS))
        adds = ", ".join(f"{name} = agents_spending.{name} + excluded.{name}" for name in COUNTERS)
        then = f"ON CONFLICT (scope, key, period) DO UPDATE SET {adds}"
        if connection.vendor == "sqlite":
            marks = ", ".join("?" * (3 + len(COUNTERS)))
            self.cursor.executemany(f"INSERT INTO agents_spending ({names}) VALUES ({marks}) {then}", rows)
            return
        kinds = ["text", "bigint", "text", *["bigint"] * len(COUNTERS)]
        unnested = ", ".join(f"%s::{kind}[]" for kind in kinds)
        columns = [list(column) for column in zip(*rows, strict=True)]
        self.cursor.execute(f"INSERT INTO agents_spending ({names}) SELECT * FROM unnest({unnested}) {then}", columns)

    def _run(self, statement: str, parameters: Sequence[Any] = ()) -> RawCursor:
        return self.store.execute(self.cursor, statement, parameters)


def _line(session: int, parents: Mapping[int, tuple[int | None, int]]) -> tuple[int, ...]:
    line: list[int] = []
    at: int | None = session
    while at is not None and at in parents and len(line) <= DEPTH:
        line.append(at)
        at = parents[at][0]
    return tuple(line)


def _taken_off(row: Row) -> dict[str, int]:
    kind = row["state"]  # open or unknown
    return {f"{kind}_calls": -1, f"{kind}_tokens": -row["tokens"], f"{kind}_micros": -(row["micros"] or 0)}


def _put_down(used: Used) -> dict[str, int]:
    return {
        "calls": 1, "input_tokens": used.input_tokens, "cached_tokens": used.cached_tokens, "output_tokens": used.output_tokens,
        "micros": used.micros or 0, "unpriced_tokens": used.input_tokens + used.output_tokens if used.micros is None else 0,
    }  # fmt: skip


def _marks(values: Sequence[Any]) -> str:
    return ", ".join(["%s"] * len(values))


def _parts(values: list[int]) -> Iterable[list[int]]:
    return (values[at : at + KEYS_A_READ] for at in range(0, len(values), KEYS_A_READ))
