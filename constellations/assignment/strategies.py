"""The strategies of assignment, by the names that plans and the setting ORRERY_ASSIGNMENT have for them. Pure."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from constellations.assignment.candidates import Candidate, SessionFacts, Strategy
from constellations.plan.assigning import LEAST_LOADED, PACK, SPREAD

log = logging.getLogger(__name__)


def least_loaded(candidates: Sequence[Candidate], task: Mapping[str, Any], session: SessionFacts) -> Candidate:
    """The device with the most room for its size; of equals the first by name."""
    return min(candidates, key=lambda each: (each.load, each.name))


def spread(candidates: Sequence[Candidate], task: Mapping[str, Any], session: SessionFacts) -> Candidate:
    """Where the session itself has the least, so that one lost device takes little of it along; then the least loaded."""
    return min(candidates, key=lambda each: (each.mine, each.load, each.name))


def pack(candidates: Sequence[Candidate], task: Mapping[str, Any], session: SessionFacts) -> Candidate:
    """The fullest that has room, so that others stay empty: they may be drained, or have room for what is large."""
    return min(candidates, key=lambda each: (-each.load, each.name))


STRATEGIES: dict[str, Strategy] = {LEAST_LOADED: least_loaded, SPREAD: spread, PACK: pack}


class StrategyUnknown(ValueError):
    """Neither a name of STRATEGIES nor the dotted path of a function."""


def find_strategy(name: str) -> Strategy:
    """The strategy of a name, or an installation's own by the dotted path of a function. Raises StrategyUnknown."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    module, _, function = name.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        names = ", ".join(STRATEGIES)
        raise StrategyUnknown(f"{name!r} is neither one of {names} nor the dotted path of a function: {error}") from error
    if not callable(found):
        raise StrategyUnknown(f"{name} is no function")
    return found


def choose_device(
    strategy: Strategy, candidates: Sequence[Candidate], task: Mapping[str, Any], session: SessionFacts
) -> Candidate:  # fmt: skip
    """What the strategy chooses. One that breaks, or names what was not to be chosen, is logged, and the least loaded taken."""
    if len(candidates) == 1:
        return candidates[0]
    try:
        chosen = strategy(candidates, task, session)
        if any(chosen is each for each in candidates):
            return chosen
        log.error("the strategy %s chose %r, which is none of its candidates", strategy, chosen)
    except Exception:  # an installation's own: its mistakes stop no work
        log.exception("the strategy %s broke", strategy)
    return least_loaded(candidates, task, session)
