"""The kinds a run can be of, and the variants of each: functions that act in a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tests.agents.progress.generated.session import Session

Acts = Iterator[None]
"""What a variant is: it acts in its session, and yields where something else may come between."""
Act = Callable[[Session], Acts]
Noise = Literal["any", "words", "nudges", "none"]


@dataclass(frozen=True)
class Variant:
    """One way to be of a kind. Of a loop: `clear_after` are the rounds after which a good detector has fired, and `noise`
    is what may come between rounds without ending it: any look or other work, words only, nudges only, or nothing.
    """

    kind: str
    act: Act
    clear_after: int = 0
    noise: Noise = "any"


class Variants(list[Variant]):
    def of(
        self, kind: str, clear_after: int = 0, noise: Noise = "any"
    ) -> Callable[[Callable[[Session], Acts]], Callable[[Session], Acts]]:
        """Decorates a function that acts: it is a variant of this kind."""

        def add(act: Callable[[Session], Acts]) -> Callable[[Session], Acts]:
            self.append(Variant(kind, act, clear_after, noise))
            return act

        return add
