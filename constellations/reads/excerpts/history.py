"""The history of a constellation's edits, the newest first, each as much as a list shows of it.

It goes by version. Ids of rows are in no order of time: a runner gives them out from numbers that it keeps ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from constellations.models import Edit
from constellations.reads.excerpts.overview import take_within

ROWS = 20
ROWS_BYTES = 4_000
"""Operations, and entries of the diff, that a list shows of one edit, and their bytes as JSON."""
READ_AT_ONCE = 20
"""Edits; one may have megabytes."""


class Ties(Func):
    """Whether a dependency in a column as `editor.Changes.before` begins or ends at a task; `ends` says which counts."""

    output_field = BooleanField()

    def __init__(self, column: str, task_id: str, ends: tuple[str, ...] = ("from", "to")):
        super().__init__(F(column), Cast(Value(task_id), TextField()))
        self._ends = ends

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        ends = ", ".join(f"json_extract(line.value, '$.{end}')" for end in self._ends)
        template = f"EXISTS (SELECT 1 FROM json_each(%(expressions)s IN ({ends}))"
        return self.as_sql(compiler, connection, template=template, arg_joiner=", '$.dependencies') AS line WHERE ", **more)

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        either = " || ".join(f'@."{end}" == $task' for end in self._ends)
        line = f"'$.dependencies.* ? ({either})'"
        template, joiner = "jsonb_path_exists(%(expressions)s))", f", {line}, jsonb_build_object('task', "
        return self.as_sql(compiler, connection, template=template, arg_joiner=joiner, **more)


def edits_of(constellation_id: int, author: str | None, since: int | None, task_id: str | None) -> QuerySet[Edit]:
    """By an author, after a version, of a task or a dependency into or from it; no more of them than pages need.

    A page is chosen by these few columns, and `list_edits` reads it: nobody sorts rows of megabytes.
    """
    rows = Edit.objects.filter(constellation=constellation_id).only("id", "version")
    if author is not None:
        rows = rows.filter(author=author)
    if since is not None:
        rows = rows.filter(version__gt=since)
    if task_id is None:
        return rows
    return rows.filter(Q(before__tasks__has_key=task_id) | Q(Ties("before", task_id)) | Q(Ties("after", task_id)))


def list_edits(page: Iterable[Edit]) -> list[Edit]:
    """The edits of a page of `edits_of`, each cut by `cut_edit`."""
    rows = Edit.objects.filter(pk__in=[row.pk for row in page]).defer("before", "after").order_by()
    return sorted(map(cut_edit, rows.iterator(chunk_size=READ_AT_ONCE)), key=lambda row: row.version, reverse=True)


def cut_edit(row: Any) -> Any:
    """The edit with the first of its operations and of its diff, how many there are, and whether that is all (`truncated`)."""
    row.operations_total, row.diff_total = len(row.operations), len(row.diff)
    row.operations, _, fewer = take_within(row.operations, ROWS, ROWS_BYTES)
    row.diff, _, shorter = take_within(row.diff, ROWS, ROWS_BYTES)
    row.truncated = fewer or shorter
    return row
