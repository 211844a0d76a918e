"""What a try of a call counts for, and whether there is room: places, budgets that apply to them, limits of profiles. Pure.

Money is counted in millionths of the currency (micros), whole ones: sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MICROS = 1_000_000
"""Of one unit of the currency."""
WARN_AT = 0.8
"""The part of a budget after which a warning is given, once."""
MINUTE_S = 60.0
"""What the limits of profiles by the minute look back on."""


class Place(NamedTuple):
    """Where is counted: `period` is empty or a day, `key` 0 for the installation."""

    scope: str
    key: int
    period: str


@dataclass(frozen=True, slots=True)
class Account:
    """Whose a try is: its session with those above it, nearest first, that session's owner, and the task, or 0."""

    sessions: tuple[int, ...]
    owner: int
    task: int

    def places(self, day: str) -> Iterator[Place]:
        """All that it counts for. A task has no days: it is over soon."""
        for period in ("", day):
            yield Place("installation", 0, period)
            yield Place("user", self.owner, period)
            for session in self.sessions:
                yield Place("session", session, period)
        if self.task:
            yield Place("task", self.task, "")


@dataclass(slots=True)
class Counted:
    """The counters of a place (agents.models.Spending), as far as budgets look at them."""

    used_tokens: int = 0
    used_micros: int = 0
    raised_tokens: int = 0
    raised_micros: int = 0
    warned_tokens: int = 0
    warned_micros: int = 0


@dataclass(frozen=True, slots=True)
class BudgetRule:
    """A budget's row. `micros` is its money."""

    id: int
    scope: str
    subject: int | None
    tokens: int | None
    micros: int | None
    per: str
    then: str

    def places(self, account: Account, day: str) -> Iterator[Place]:
        """Where it looks, of what the try counts for."""
        period = day if self.per == "day" else ""
        for place in account.places(day):
            if (place.scope, place.period) == (self.scope, period) and self.subject in (None, place.key):
                yield place


@dataclass(frozen=True, slots=True)
class Need:
    """What a try may use at most; `micros` is None where prices are not known, and then only tokens count."""

    tokens: int
    micros: int | None


@dataclass(slots=True)
class Ruling:
    """What budgets say of a try: `short` is why there is no room, or None; `warnings` are facts to be told once."""

    short: dict[str, Any] | None = None
    warnings: list[tuple[Place, str, int, dict[str, Any]]] = field(default_factory=list)


def judge_need(
    need: Need, account: Account, day: str, budgets: Iterable[BudgetRule], counted: Mapping[Place, Counted]
) -> Ruling:
    """Whether all budgets that apply have room. Warnings are (place, "tokens" or "micros", the budget, facts)."""
    ruling = Ruling()
    for budget in budgets:
        if budget.scope == "call":
            ruling.short = ruling.short or _short(budget, Place("call", 0, ""), need, Counted())
            continue
        for place in budget.places(account, day):
            found = counted.get(place, Counted())
            ruling.short = ruling.short or _short(budget, place, need, found)
            ruling.warnings += _warnings(budget, place, need, found)
    return ruling


def _sides(budget: BudgetRule, need: Need, found: Counted) -> Iterator[tuple[str, int, int, int, int]]:
    """What is bounded: (unit, bound, used, needed, warned of)."""
    if budget.tokens is not None:
        yield "tokens", budget.tokens + found.raised_tokens, found.used_tokens, need.tokens, found.warned_tokens
    if budget.micros is not None and need.micros is not None:
        yield "micros", budget.micros + found.raised_micros, found.used_micros, need.micros, found.warned_micros


def _short(budget: BudgetRule, place: Place, need: Need, found: Counted) -> dict[str, Any] | None:
    """The facts of the first side that has no room: {budget, scope, key, period, then, unit, bound, used, needed, left}."""
    for unit, bound, used, needed, _ in _sides(budget, need, found):
        if used + needed > bound:
            return facts_of(budget, place, unit, bound, used) | {"needed": needed, "left": max(bound - used, 0)}
    return None


def _warnings(budget: BudgetRule, place: Place, need: Need, found: Counted) -> list[tuple[Place, str, int, dict[str, Any]]]:
    return [
        (place, unit, bound, facts_of(budget, place, unit, bound, used + needed))
        for unit, bound, used, needed, warned in _sides(budget, need, found)
        if bound > warned and WARN_AT * bound <= used + needed <= bound
    ]


def facts_of(budget: BudgetRule, place: Place, unit: str, bound: int, used: int) -> dict[str, Any]:
    return {
        "budget": budget.id, "scope": place.scope, "key": place.key, "period": place.period, "then": budget.then,
        "unit": unit, "bound": bound, "used": used,
    }  # fmt: skip


def say_amount(unit: str, amount: int) -> str:
    """In words: tokens, or money with the digits that say something."""
    if unit == "tokens":
        return f"{amount:,} tokens"
    return f"{amount / MICROS:,.6f}".rstrip("0").rstrip(".") + " of money"


def say_place(facts: Mapping[str, Any]) -> str:
    """Whose budget it is, in words."""
    whose = "the installation" if facts["scope"] == "installation" else facts["scope"]
    named = f"{whose} {facts['key']}" if facts["key"] else whose
    return f"{named} on {facts['period']}" if facts["period"] else named


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a profile: requests and tokens in a minute, and calls at one time."""

    requests: int | None
    tokens: int | None
    in_flight: int | None

    @property
    def any(self) -> bool:
        return (self.requests, self.tokens, self.in_flight) != (None, None, None)


@dataclass(slots=True)
class Traffic:
    """What a profile was asked in the last minute, oldest first, as (seconds since 1970, tokens), and what is under way."""

    asked: list[tuple[float, int]]
    open: int

    def wait_s(self, limits: Limits, tokens: int, now: float) -> float | None:
        """How long until there may be room for so many tokens: 0 there is; None: when a call ends, which nobody knows."""
        if limits.in_flight is not None and self.open >= limits.in_flight:
            return None
        waits = [0.0]
        if limits.requests is not None and len(self.asked) >= limits.requests:
            waits.append(self.asked[-limits.requests][0] + MINUTE_S - now)
        if limits.tokens is not None:
            waits.append(self._tokens_wait_s(limits.tokens, tokens, now))
        return max(waits)

    def _tokens_wait_s(self, bound: int, tokens: int, now: float) -> float:
        # What is more than a whole minute's worth goes where nothing else is: else it would wait for ever.
        over = sum(amount for _, amount in self.asked) + min(tokens, bound) - bound
        until = now
        for at, amount in self.asked:
            if over <= 0:
                break
            over, until = over - amount, at + MINUTE_S
        return until - now

    def note(self, tokens: int, now: float) -> None:
        """One more is under way."""
        self.asked.append((now, tokens))
        self.open += 1


def add_up(changes: Sequence[tuple[Place, Mapping[str, int]]]) -> dict[Place, dict[str, int]]:
    """The sum of all changes of each place, by column."""
    found: dict[Place, dict[str, int]] = {}
    for place, columns in changes:
        into = found.setdefault(place, {})
        for name, amount in columns.items():
            into[name] = into.get(name, 0) + amount
    return found
