"""What a rule finds: a loop with a name that stays the same as long as it is the same loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agents.progress.digests import text_digest
from agents.progress.evidence import Evidence
from agents.progress.remember import since_change
from agents.progress.settings import Settings
from agents.progress.state import Action, State

ROWS_SHOWN = 32
"""Evidence rows a verdict names at most, the latest."""
TEXT_SHOWN = 160
"""Characters of an error or a target in a sentence."""


@dataclass(frozen=True)
class Hit:
    """A rule's finding: `identity` names the loop, `rows` are indices of observed items from 1, `sentence` is for people.

    `strength` is the share of what the rule asks for that is there: from 1 on it is a verdict, below it is a suspicion.
    """

    rule: str
    identity: str
    rows: tuple[int, ...]
    sentence: str
    strength: float


Rule = Callable[[State, Evidence, Settings], Hit | None]
"""Judges a state just after `item` was remembered, so that the last action is the item's. Says nothing below SUSPECT."""
SUSPECT = 0.5
"""The strength from which a finding is worth saying."""


def identity_of(rule: str, *parts: str) -> str:
    return f"{rule}:{text_digest(chr(0).join(parts))}"


def make_hit(rule: str, identity: str, rows: Iterable[int], strength: float, sentence: str) -> Hit | None:
    """The finding, when it is strong enough to be said."""
    return Hit(rule, identity, tuple(rows)[-ROWS_SHOWN:], sentence, strength) if strength >= SUSPECT else None


def is_fresh(state: State, identity: str, index: int) -> bool:
    """Whether a row is younger than the last steer about this loop: told once, an agent is judged by what it does then."""
    return index > state.steered.get(identity, 0)


def window_of(state: State, settings: Settings) -> tuple[Action, ...]:
    """The latest actions since the last change, as many as are judged together."""
    return since_change(state.actions)[-settings.max_recent_actions :] if settings.max_recent_actions else ()


def last_action(state: State) -> Action | None:
    """The action just remembered; None when it was a poll with nothing new, which stays out of the window."""
    return state.actions[-1] if state.actions and state.actions[-1].index == state.observed else None


def quote_text(text: str) -> str:
    """A text as a sentence quotes it: one line, not too long."""
    line = " ".join(text.split())
    return f"“{line[: TEXT_SHOWN - 1]}…”" if len(line) > TEXT_SHOWN else f"“{line}”"


def name_call(item: Evidence) -> str:
    """A call as a sentence names it."""
    return f"{item.tool} {quote_text(item.target)}" if item.target else item.tool
