"""What the bodies of a runner's sessions print and how they end, until it is recorded.

Everything here happens on the runner's loop. The end of a body is in the outcome file before anything is decided about it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from agents.engine.bodies.deltas import Deltas
from agents.engine.bodies.outcomes import OutcomeFile
from agents.engine.bodies.outputs import FLUSH_S, WAITING_CHARACTERS, Outputs
from agents.engine.drives.drive import Drive
from agents.engine.journal import Journal
from agents.streams.statements import RawCursor
from agents.streams.turn import Batch
from agents.tools.calls import Bodies, Call, Carrier, Outcome
from agents.tools.catalogue import INSTRUCTION


def says_words(call: Call) -> bool:
    """Whether what a call says on the way are words of a model."""
    return call.body is not None or call.tool == INSTRUCTION


class Reports:
    """Of one runner. `drives` and `ready` are those of its sessions; `wake` lets its loop go round."""

    def __init__(
        self, journal: Journal, folder: Path, runner: int, drives: dict[int, Drive], ready: dict[int, None],
        wake: Callable[[], None], carrier: Carrier = lambda call: None,
    ):  # fmt: skip
        self._drives, self._ready, self._wake = drives, ready, wake
        self.bodies = Bodies(self._body_ended, carrier=carrier)
        self.outputs = Outputs(journal)
        self.deltas = Deltas(journal)
        self._outcomes = OutcomeFile(folder, runner)
        self._flush_at = 0.0
        self._flush_wanted = False

    def close(self) -> None:
        self._outcomes.close()

    def begin(self, call: Call) -> None:
        """Start the body of `call`."""
        call.on_thinking = partial(self._said, call, "thinking")
        if call.body is not None:
            call.on_output = partial(self._said, call, "text")
        else:
            call.on_output = partial(self._spoke if call.tool == INSTRUCTION else self._printed, call)
        call.note = partial(self._noted, call.session)
        call.on_update = partial(self._updated, call)
        if not call.fence and call.session in self._drives:
            call.fence = self._drives[call.session].token
        self.bodies.start(call)

    def adopt(self, call: Call, durable: int) -> None:
        """Go on waiting for a call on a device elsewhere that an earlier owner began; the database has `durable` characters."""
        call.adopted, call.printed = max(0, durable - call.printed), max(durable, call.printed)
        if call.tool == INSTRUCTION:
            self.deltas.adopt(call.key, call.adopted)
        self.begin(call)

    def _body_ended(self, call: Call, outcome: Outcome) -> None:
        """Told for every body, on the loop. The outcome is in the file before anything is decided about it."""
        outcome.attempt = call.attempt
        if says_words(call):
            self.deltas.end(call.key)
        outcome.printed, outcome.unwritten = self.outputs.end(call.attempt)
        drive = self._drives.get(call.session)
        if drive is None or drive.hand.work is None or (drive.is_new and outcome.outcome == "cancelled"):
            return  # cancelled, or begun under a lease that was lost: the end of its body changes nothing any more
        if outcome.printed > call.printed:
            drive.pending.note("output_ended", attempt_id=call.attempt, characters=outcome.printed)
        if outcome.outcome != "cancelled":  # an interrupted body's end is decided already, or it is lost
            outcome = self._outcomes.add(call.key, outcome)
        outcome.unwritten = None
        drive.outcomes[call.key] = outcome
        self._ready[call.session] = None
        if not self._flush_wanted:
            self._flush_wanted = True
            asyncio.get_running_loop().call_soon(self.flush_outcomes)
        self._wake()

    def flush_outcomes(self) -> None:
        self._flush_wanted = False
        self._outcomes.flush()

    def _printed(self, call: Call, text: str) -> None:
        if not self.outputs:
            self._flush_at = asyncio.get_running_loop().time() + FLUSH_S
            self._wake()
        if self.outputs.add(call.attempt, text, call.printed) and call.session in self._drives:
            self._drives[call.session].pending.note("output_started", attempt_id=call.attempt)
            self._ready[call.session] = None
        if self.outputs.waiting > WAITING_CHARACTERS:
            self._flush_at = 0.0
            self._wake()

    def _spoke(self, call: Call, text: str) -> None:
        """A program that carries out an instruction has said more: output of its attempt, and words for live views."""
        self._printed(call, text)
        self._said(call, "text", text)

    def _noted(self, session: int, event: str, **data: Any) -> None:
        """What a body tells before it has ended: an event of the session's next turn, which comes at once."""
        if session in self._drives:
            self._drives[session].pending.note(event, **data)
            self._ready[session] = None
            self._wake()

    def _updated(self, call: Call, kind: str, data: Mapping[str, Any]) -> None:
        """What a call tells the work that it is part of, which decides about it in the session's next turn."""
        drive = self._drives.get(call.session)
        if drive is not None and drive.hand.work is not None:
            drive.hand.work.hear(call.key, kind, data)
            self._ready[call.session] = None
            self._wake()

    def _said(self, call: Call, kind: str, text: str) -> None:
        """A model, or a program that asks one, has said more."""
        self.deltas.add(call.key, call.attempt, kind, text, asyncio.get_running_loop().time())
        self._wake()

    def printed(self, attempt: int) -> str:
        """The last that the call under way of an attempt, or of an agent that asks a model, has printed or said."""
        return self.outputs.tail(attempt) or self.deltas.tail(attempt)

    def next_flush(self) -> float:
        """When what is printed or said is to be written, by the loop's clock; infinity when nothing is."""
        return min(self._flush_at if self.outputs else math.inf, self.deltas.flush_at)

    def last_words(self, own_cursor: RawCursor, written: list[Batch]) -> None:
        """What was printed until a call's end is durable with what is recorded of that end."""
        drives = [self._drives[batch.stream] for batch in written]
        ended = {outcome.attempt for drive in drives for outcome in drive.outcomes.values()}
        cut_off = self.bodies.attempts(key for drive in drives for key in drive.pending.interrupts)
        self.outputs.write(own_cursor, ended | cut_off)

    def recorded(self) -> None:
        """A commit has ended: an outcome file without anything that is still to be recorded is begun anew when it is long."""
        if not self._unrecorded():
            self._outcomes.settled()

    def _unrecorded(self) -> bool:
        return any(drive.outcomes for drive in self._drives.values())

    def forget_outcomes(self) -> None:
        """The file is needed no more, unless something in it was never recorded."""
        if not self._unrecorded():
            self._outcomes.remove()

    async def flush_outputs(self, now: float) -> None:
        """Write what bodies have printed and models have said, when it is time."""
        if now >= self.deltas.flush_at:
            await self.deltas.flush(now)
        if self.outputs and now >= self._flush_at:
            self._flush_at = now + FLUSH_S
            await self.outputs.flush(self._ending)

    def _ending(self) -> set[int]:
        """Attempts with calls that have ended, whose ends are not yet recorded."""
        return {outcome.attempt for drive in self._drives.values() for outcome in drive.outcomes.values()}
