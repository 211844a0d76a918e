"""Lists by cursor: never a count, never an offset, always a bound."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

LARGEST = (1 << 63) - 1
"""The largest key a database holds."""
PAGE = 100
"""Rows of a page, unless asked otherwise."""
PAGE_LIMIT = 500
"""Rows of a page at most."""
COUNTED = ("id", "version")
"""Keys that are numbers. Ids of one table are in order of time where one kind of writer makes its rows, runners or services."""


def whole_number(text: str, key: str, low: int, high: int) -> int:
    """`text` as a number within low..high; raises ValidationError that names `key`."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
        raise ValidationError({key: f"must be a whole number from {low} to {high}"})
    return int(text)


def read_parameter(request: Request, key: str, default: int, low: int, high: int) -> int:
    """A number of the query string, or `default` where it is not there."""
    found = optional_parameter(request, key, low, high)
    return default if found is None else found


def optional_parameter(request: Request, key: str, low: int, high: int) -> int | None:
    """A number of the query string, or None where it is not there."""
    text = request.query_params.get(key)
    return None if text is None else whole_number(text, key, low, high)


class ById(BasePagination):
    """`?limit=N&cursor=KEY`: the rows beyond `cursor` in the view's order; `next` is the cursor of the page after, or null.

    A view says `newest_first = True` to count downwards, and `cursor_field` where its rows go by another key than `id`:
    one of COUNTED is a number, any other one is text.
    """

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request, view: Any = None) -> list[Any]:
        self.field = getattr(view, "cursor_field", "id")
        newest_first = getattr(view, "newest_first", False)
        limit = read_parameter(request, "limit", PAGE, 1, PAGE_LIMIT)
        cursor: Any = request.query_params.get("cursor")
        if self.field in COUNTED:
            cursor = optional_parameter(request, "cursor", 0, LARGEST)
        elif cursor is not None and not (cursor.isascii() and cursor.isprintable()):
            raise ValidationError({"cursor": "must be the `next` of an earlier page"})
        if cursor is not None:
            queryset = queryset.filter(**{f"{self.field}__{'lt' if newest_first else 'gt'}": cursor})
        rows = list(queryset.order_by(f"{'-' if newest_first else ''}{self.field}")[: limit + 1])
        self.next = getattr(rows[limit - 1], self.field) if len(rows) > limit else None
        return rows[:limit]

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self.next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        cursor = {"oneOf": [{"type": "integer"}, {"type": "string"}], "nullable": True}
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {"results": schema, "next": {**cursor, "description": "Cursor of the next page."}},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        kind = "integer" if getattr(view, "cursor_field", "id") in COUNTED else "string"
        number = {"type": "integer", "minimum": 1, "maximum": PAGE_LIMIT, "default": PAGE}
        beyond = (
            {"type": kind, "minimum": 0, "maximum": LARGEST} if kind == "integer" else {"type": kind, "pattern": "^[ -~]*$"}
        )
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": beyond, "description": "`next` of the page before."},
            {"name": "limit", "in": "query", "required": False, "schema": number, "description": "Rows of the page."},
        ]
