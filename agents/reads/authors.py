"""Who an author is. Records name one by what never changes (user:ID, token:KEY, agent:ID); people read names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, F, QuerySet, Value
from django.db.models.functions import Cast

from agents.models import Agent, Token

DIGITS = 18
"""Of an id, at most."""


def names_of(authors: Iterable[str]) -> dict[str, str]:
    """A name for each author, by two queries at most: one for all users and tokens, one for all agents.

    user:ID is the user's name, token:KEY is "token NAME of USER", an agent is called as it is, one that works for a whole
    session "NAME of SESSION". `system`, `planner` and whoever is no longer there keep what records call them.
    """
    found = {author: author for author in authors}
    people, keys = dict(_people(found)), _numbers(found, "agent")
    rows = Agent.objects.filter(pk__in=keys).select_related("session").only("name", "device_id", "session__title")
    for agent in rows if keys else ():  # those of a device have a name that says what they work at
        found[f"agent:{agent.pk}"] = agent.name if agent.device_id else f"{agent.name} of {agent.session}"
    return found | people


def _people(authors: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Users and tokens: (author, name), by one query."""
    users, tokens = _numbers(authors, "user"), _keys(authors, "token")
    asked: list[QuerySet[Any, Any]] = []  # rows of (kind, key, name, owner)
    if users:
        rows = User.objects.filter(pk__in=users)
        asked.append(rows.values_list(Value("user"), Cast("pk", CharField()), F("username"), Value("")))
    if tokens:
        made = Token.objects.filter(token_key__in=tokens).order_by()
        asked.append(made.values_list(Value("token"), F("token_key"), F("name"), F("user__username")))
    for kind, key, name, owner in asked[0].union(*asked[1:]) if asked else ():
        yield f"{kind}:{key}", f"{kind} {name}{' ' * bool(name)}of {owner}" if kind == "token" else name


def _keys(authors: Iterable[str], kind: str) -> list[str]:
    found = (author.partition(":") for author in authors)
    return [key for before, _, key in found if before == kind]


def _numbers(authors: Iterable[str], kind: str) -> list[int]:
    keys = _keys(authors, kind)
    return [int(key) for key in keys if key.isascii() and key.isdecimal() and len(key) <= DIGITS]
