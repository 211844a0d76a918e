"""What a drive has read of its session: the rows that decisions are made on, and how far into the stream they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.streams.row_types import InboxRow
from agents.streams.tables import TABLES, Fields, fold_rows

Rows = dict[str, dict[str, Any]]
"""By table and id; the type of a row is that of its table."""


class Known:
    """Rows of one session by table and id. `stale`: they are to be read again; `lost`: the session is somebody else's."""

    __slots__ = ("head", "lost", "rows", "stale", "stream")

    def __init__(self, stream: int):
        self.stream = stream
        self.head = -1
        self.rows: Rows = {}
        self.stale = True
        self.lost = False

    def read_open(self) -> None:
        """Forget every row, and read the session, its latest actor and the requests that have not ended."""
        self.rows = {name: {} for name in TABLES}
        self.read("session", "id = %s", self.stream)
        self.read("actor", "session_id = %s AND epoch = (SELECT max(epoch) FROM agents_actor WHERE session_id = %s)",
                  self.stream, self.stream)  # fmt: skip
        self.read("inbox", "session_id = %s AND state IN ('queued', 'running')", self.stream)

    def read(self, table: str, where: str, *parameters: Any) -> list[Any]:
        """Read rows of the fold into `rows`; returns them. Whoever reads says which type of row they are."""
        fresh = fold_rows(table, where, *parameters)
        self.rows[table].update((str(row["id"]), row) for row in fresh)
        return fresh

    def inbox(self, state: str) -> list[InboxRow]:
        """The requests in `state`, oldest first."""
        rows: Iterable[InboxRow] = self.rows["inbox"].values()
        return [row for row in rows if row["state"] == state]

    def interaction(self) -> InboxRow | None:
        """The interaction being worked on."""
        return next((row for row in self.inbox("running") if row["kind"] == "interaction"), None)

    def apply_foreign(self, data: Fields) -> None:
        """Take over what an event of somebody else says of the session, its actor and its requests."""
        for name in ("session", "actor", "inbox"):
            for row in data.get("add", {}).get(name, ()):
                self.rows[name][str(row["id"])] = TABLES[name].whole(row)
            for key, fields in data.get("set", {}).get(name, {}).items():
                if key in self.rows[name]:
                    self.rows[name][key].update(fields)
