"""Who may use a device: its owner, and whom its `used_by` names (docs/devices.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import User

EVERYBODY = "everybody"
USER, GROUP = "user:", "group:"
ADMIN = "admin"
"""The group that superusers count as being in."""


def users_of(devices: Iterable[Mapping[str, Any]]) -> dict[int, frozenset[int] | None]:
    """By the ids of devices (rows with `id`, `owner_id`, `used_by`) the users who may use each; None is everybody.

    Asks the database only where one of them is not for everybody. Who is named and not there is left out.
    """
    rows = list(devices)
    named = {word for row in rows if EVERYBODY not in row["used_by"] for word in row["used_by"]}
    known = _users_by_word(named) if named else {}
    found: dict[int, frozenset[int] | None] = {}
    for row in rows:
        owner = {row["owner_id"]} - {None}
        words = row["used_by"]
        found[row["id"]] = None if EVERYBODY in words else frozenset(owner.union(*(known.get(word, ()) for word in words)))
    return found


def may_use(users: frozenset[int] | None, user: int) -> bool:
    """Whether a user is one of those who may use a device."""
    return users is None or user in users


def _users_by_word(words: set[str]) -> dict[str, set[int]]:
    """Ids of users by the words of `used_by`: user:NAME, group:NAME."""
    names = [word.removeprefix(USER) for word in words if word.startswith(USER)]
    groups = [word.removeprefix(GROUP) for word in words if word.startswith(GROUP)]
    found: dict[str, set[int]] = {}
    for key, name in User.objects.filter(username__in=names).values_list("id", "username"):
        found.setdefault(f"{USER}{name}", set()).add(key)
    for key, name in User.objects.filter(groups__name__in=groups).values_list("id", "groups__name"):
        found.setdefault(f"{GROUP}{name}", set()).add(key)
    if ADMIN in groups:
        superusers = User.objects.filter(is_superuser=True).values_list("id", flat=True)
        found.setdefault(f"{GROUP}{ADMIN}", set()).update(superusers)
    return found
