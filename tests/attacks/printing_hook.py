"""A hook of an installation that says all it is told, as a careless one would."""

from typing import Any


def print_it(session: int, told: Any) -> None:
    print("hook was told", session, told)
