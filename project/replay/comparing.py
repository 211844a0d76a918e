"""Where two runs decided differently: for each agent and task on its own, without times, ids and interleaving. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

Decision = Mapping[str, Any]
Who = tuple[int, str, str]


@dataclass(frozen=True)
class Difference:
    """The `step`-th decision (from 1) of `who`: what was decided in the recording and in the replay; None: nothing more."""

    who: Who
    step: int
    was: Decision | None
    now: Decision | None


def first_difference(before: Iterable[Decision], after: Iterable[Decision]) -> Difference | None:
    """The difference that came first, by the time of the recording, or of the replay where the recording ends there."""
    was, now = _by_who(before), _by_who(after)
    found = [each for who in {**was, **now} if (each := _first_of(who, was.get(who, []), now.get(who, []))) is not None]
    return min(found, key=_time_of, default=None)


def _by_who(decisions: Iterable[Decision]) -> dict[Who, list[Decision]]:
    found = defaultdict[Who, list[Decision]](list)
    for each in decisions:
        of = each["of"]
        found[of["request"], of["task"], of["agent"]].append(each)
    return found


def _first_of(who: Who, before: list[Decision], after: list[Decision]) -> Difference | None:
    for step, (was, now) in enumerate(zip_longest(before, after), 1):
        if was is None or now is None or (was["kind"], was["what"]) != (now["kind"], now["what"]):
            return Difference(who, step, was, now)
    return None


def _time_of(difference: Difference) -> float:
    one = difference.was or difference.now
    assert one is not None
    return float(one["at"])
