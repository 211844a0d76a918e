"""What follows from a fault of a model's call: another try, the next profile, or the end. Pure.

A refusal and a filter are answers about what was asked: to ask another model until one complies would be shopping for the
model that says yes, and would send to one provider more what the first has objected to. So these go to whoever asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agents.faults import pause_seconds
from agents.llm import faults
from agents.llm.faults import ModelFault

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
"""Between tries; doubling, with jitter."""
LONGEST_RETRY_AFTER_S = 60.0
"""A provider that wants to be left alone for longer is given up for this call."""
FAILED_CALLS = 3
"""Calls in a row that a provider failed; after them..."""
LEFT_ALONE_S = 30.0
"""...it is passed by for so long where another profile can be asked."""


class Way(NamedTuple):
    """How often a fault is tried again by the same profile, and whether the next one is asked after that."""

    retries: int
    falls_back: bool


WAYS: dict[type[ModelFault], Way] = {
    faults.ModelUnreachable: Way(3, True),
    faults.FirstTokenLate: Way(1, True),
    faults.AnswerBroken: Way(2, True),
    faults.ProviderFailed: Way(3, True),
    faults.RateLimited: Way(4, True),
    faults.AnswerUnreadable: Way(1, True),
    faults.LimitReached: Way(0, True),
    faults.QuotaUsedUp: Way(0, True),
    faults.KeyRejected: Way(0, True),
    faults.ModelUnknown: Way(0, True),
    faults.ProfileUnusable: Way(0, True),
    faults.AddressRefused: Way(0, True),
    faults.AnswerEmpty: Way(0, False),  # who asked tells the model so
    faults.CallTooLong: Way(0, False),
    faults.ContextTooLong: Way(0, False),
    faults.Refused: Way(0, False),
    faults.ContentFiltered: Way(0, False),
    faults.RequestRejected: Way(0, False),
    faults.AnswerTooLarge: Way(0, False),
    faults.BudgetUsedUp: Way(0, False),
}
NEVER_WORKED = (
    faults.ModelUnreachable, faults.RateLimited, faults.QuotaUsedUp, faults.ContextTooLong, faults.KeyRejected,
    faults.ModelUnknown, faults.RequestRejected, faults.ProfileUnusable,
)  # fmt: skip
"""After these the model has read nothing, and nothing is to be paid."""
ENDED_WELL = (faults.Refused, faults.ContentFiltered, faults.AnswerEmpty)
"""Their answers came to an end, so that what is told of their usage is all of it."""
PROVIDERS_OWN = (faults.ModelUnreachable, faults.FirstTokenLate, faults.ProviderFailed)
"""Faults for which a provider is left alone when they go on."""


def pause_before(fault: ModelFault, made: int, key: int) -> float | None:
    """Seconds until the same profile is asked again after `made` tries; None where it is not. `key` makes the jitter."""
    if made > WAYS[type(fault)].retries:
        return None
    pause_s = pause_seconds(made, key, FIRST_PAUSE_S, LONGEST_PAUSE_S)
    if fault.retry_after_s is None:
        return pause_s
    # Those who were told the same moment do not all come at it.
    wanted_s = max(fault.retry_after_s, 0.0) + pause_s / 4
    return wanted_s if fault.retry_after_s <= LONGEST_RETRY_AFTER_S else None


def falls_back(fault: ModelFault) -> bool:
    """Whether the next profile is asked once this one is given up."""
    return WAYS[type(fault)].falls_back


class Failing:
    """Profiles that a process leaves alone for a while, as their providers failed call after call."""

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._failed: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def is_left_alone(self, profile: str) -> bool:
        return self._until.get(profile, 0.0) > self._clock()

    def note_given_up(self, profile: str, fault: ModelFault) -> None:
        """A call was given up with this profile."""
        if not isinstance(fault, PROVIDERS_OWN):
            return
        self._failed[profile] = self._failed.get(profile, 0) + 1
        if self._failed[profile] >= FAILED_CALLS:
            self._until[profile] = self._clock() + LEFT_ALONE_S

    def note_answered(self, profile: str) -> None:
        self._failed.pop(profile, None)
        self._until.pop(profile, None)
