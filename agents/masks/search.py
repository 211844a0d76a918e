"""Search finds what it shows: rows that only something hidden fits are not found, or a search would spell secrets out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import QuerySet

from agents.masks.values import get_masker

SEARCHED = 20_000
"""Rows, the newest, among which a text is looked for."""

Fits = Callable[[list[str]], bool]


def filter_visible(rows: QuerySet[Any], columns: Sequence[str], fits: Fits) -> QuerySet[Any]:
    """Those of `rows`, which were found by text in `columns`, whose masked texts fit as well."""
    if not columns:
        return rows
    looked_at = list(rows.order_by("-pk").values_list("pk", *columns)[:SEARCHED])
    if len(looked_at) == SEARCHED:
        rows = rows.filter(pk__gte=looked_at[-1][0])
    texts = [[str(text) if text is not None else "" for text in row[1:]] for row in looked_at]
    if get_masker().is_clean("\n".join(text for row in texts for text in row).encode()):
        return rows
    hidden = [row[0] for row, given in zip(looked_at, texts, strict=True) if not _fits_when_masked(given, fits)]
    return rows.exclude(pk__in=hidden)


def _fits_when_masked(texts: list[str], fits: Fits) -> bool:
    masked = [get_masker().text(text) for text in texts]
    return masked == texts or fits(masked)
