"""What models, and programs that ask models, say while they say it, on its way to `ModelDelta` rows.

Outside the fold, for live views only. The first words are written at once, what follows at most every FLUSH_S. A whole message
is an event when it has ended; so what a live view misses here it gets there, and the rows are deleted with the call.
"""

from __future__ import annotations

import math

from agents.engine.journal import Journal
from agents.models import Evidence, ModelCall, ModelDelta
from agents.streams import nudges
from agents.streams.statements import current_store

FLUSH_S = 0.02
COLUMNS = (("call_id", "int"), ("offset", "int"), ("kind", "text"), ("text", "text"))
TAIL_CHARACTERS = 4_000
"""The last that an agent's call under way has said: its partial answer where it is cut off."""
SHOWN_CHARACTERS = 200_000
"""Of one kind and call that live views get on the way; the rest comes with the end."""
FORGET_S = 1.0
"""Between two deletions of what ended calls have said."""
CALLS_A_STATEMENT = 200
LEFT_CALLS = 500
"""Calls that one look for what is left behind takes up."""
FORGET = "DELETE FROM agents_modeldelta WHERE call_id IN ({})"


def forget_left_deltas() -> None:
    """Delete what calls have said that have ended with their runners."""
    saying = list(ModelDelta.objects.values_list("call_id", flat=True).distinct()[:LEFT_CALLS])
    ended = {*ModelCall.objects.filter(pk__in=saying).exclude(outcome="").values_list("pk", flat=True)}
    ended |= {*Evidence.objects.filter(pk__in=saying, ended_at__isnull=False).values_list("pk", flat=True)}
    ModelDelta.objects.filter(call_id__in=ended).delete()


class Deltas:
    """Collects what is said by call and kind; one transaction writes it all. `flush_at`: when, by the loop's clock."""

    def __init__(self, journal: Journal):
        self._journal, self._store = journal, current_store()
        self._waiting: dict[tuple[int, str], list[str]] = {}
        self._said: dict[tuple[int, str], int] = {}
        self._tails: dict[int, str] = {}
        self._agents: dict[int, int] = {}
        self._ended: list[int] = []
        self._flushed_at = self._forget_at = 0.0
        self.flush_at = math.inf

    # `_said`: characters that are written, by call and kind; `_tails`: by agent or attempt; `_agents`: which, by call.
    # `_ended`: calls whose rows are to be deleted.

    def add(self, call: int, agent: int, kind: str, text: str, now: float) -> None:
        """A call has said more."""
        key = call, kind
        self._agents[call] = agent
        if kind == "text":
            self._tails[agent] = (self._tails.get(agent, "") + text)[-TAIL_CHARACTERS:]
        if self._said.get(key, 0) < SHOWN_CHARACTERS:
            self._waiting.setdefault(key, []).append(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))
            self.flush_at = min(self.flush_at, max(now, self._flushed_at + FLUSH_S))

    def adopt(self, call: int, said: int) -> None:
        """Go on with a call that an earlier runner has begun, of whose words so many characters are known."""
        self._said[call, "text"] = said

    def tail(self, agent: int) -> str:
        """The last that the call under way of an agent, or of an attempt's, has said."""
        return self._tails.get(agent, "")

    def end(self, call: int) -> None:
        """The call has ended: what was not written needs no writing."""
        self._tails.pop(self._agents.pop(call, 0), None)
        said = [key for key in (*self._waiting, *self._said) if key[0] == call]
        if any(key in self._said for key in said):
            self._ended.append(call)
            self.flush_at = min(self.flush_at, self._forget_at)
        for key in said:
            self._waiting.pop(key, None)
            self._said.pop(key, None)

    async def flush(self, now: float) -> None:
        """Write what waits, and delete what ended calls have said."""
        waiting, self._waiting = self._waiting, {}
        rows = []
        for (call, kind), texts in waiting.items():
            text, offset = "".join(texts), self._said.get((call, kind), 0)
            rows.append((call, offset, kind, text))
            self._said[call, kind] = offset + len(text)
        ended: list[int] = []
        if now >= self._forget_at:
            ended, self._ended = self._ended, []
            self._forget_at = now + FORGET_S
        self._flushed_at, self.flush_at = now, self._forget_at if self._ended else math.inf
        if not rows and not ended:
            return
        calls = sorted({row[0] for row in rows})
        async with self._journal.transaction() as own_cursor:
            if rows:
                self._store.insert(own_cursor, "agents_modeldelta", COLUMNS, rows)
            for at in range(0, len(ended), CALLS_A_STATEMENT):
                some = ended[at : at + CALLS_A_STATEMENT]
                self._store.execute(own_cursor, FORGET.format(", ".join(["%s"] * len(some))), some)
            nudges.announce_marks(own_cursor, nudges.DELTAS, calls)
        nudges.send_marks(nudges.DELTAS, calls)
