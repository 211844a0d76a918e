"""What people choose about models: which profile for which purpose, and whether what a model plans waits for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

CHOSEN = ("creation", "editing", "device_agent")
"""What plans, requests and sessions choose a model for: to make a constellation, to edit one, to work on a task."""
PURPOSES = (*CHOSEN, "judging")
"""What models are asked for; the last, to judge whether an agent is stuck, is the installation's to choose."""
REVIEW = "review"
"""The word of `start` with which a constellation waits for a person to start it."""
STARTS = ("", REVIEW)
NAME_LENGTH = 80
"""Characters of a profile's name."""


def models_problems(said: Any) -> Iterator[tuple[str, str]]:
    """(purpose, message) of everything that keeps `said` from being {purpose: name of a profile}; the purpose may be empty."""
    if not isinstance(said, Mapping):
        yield "", f"must be an object with names of model profiles by purpose ({', '.join(CHOSEN)})"
        return
    for purpose, name in said.items():
        if purpose not in CHOSEN:
            yield str(purpose)[:NAME_LENGTH], f"there is no such purpose; there are {', '.join(CHOSEN)}"
        elif not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
            yield purpose, f"must be the name of a model profile, a text of at most {NAME_LENGTH} characters"


def unknown_profiles(models: Mapping[str, str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """(purpose, message) of each name that no profile has; `known` are the names of all."""
    there = f"there are {', '.join(sorted(known))}" if known else "there are none"
    for purpose, name in models.items():
        if name not in known:
            yield purpose, f"there is no model profile {name}; {there}"


def start_problem(said: Any) -> str:
    """What is wrong with a `start`; empty where nothing is."""
    return "" if said in STARTS and isinstance(said, str) else f"must be {REVIEW}, or be left out"
