"""Lists of tasks, narrowed down by the keys of plans that are marked for it."""

from __future__ import annotations

import json

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import Cast, StrIndex

from constellations.models import Task
from constellations.plan.keys.fields import STORED
from constellations.plan.keys.kinds import Field

FILTERS = {key: field for key, field in STORED.items() if field.filters}
"""The keys by which lists are narrowed down: each is a list of names."""


def help_of(field: Field) -> str:
    """What a filter says of itself."""
    return f"Only tasks with this among their {field.key}."


def having(tasks: QuerySet[Task], field: Field, name: str) -> QuerySet[Task]:
    """Those with `name` in the list that `field` is.

    It is found as JSON writes it, quotes included: SQLite cannot ask what a list contains.
    """
    written = json.dumps(name, ensure_ascii=False)
    found = StrIndex(Cast(F(field.name), TextField()), Value(written))
    return tasks.alias(**{f"{field.name}_place": found}).filter(**{f"{field.name}_place__gt": 0})
