"""A short request beside large ones: it waits for none of them (docs/engine.md, "Who decides")."""

import pytest

from agents.engine.sessions import Sessions
from agents.streams.turn import Batch
from tests.conftest import TestRunner
from tests.constellations.planting import noop

CROWD, LARGE = 4, 3_000
"""Requests, tasks of each: making one takes several times as long as a turn of all sessions may, on a fast machine too."""

pytestmark = pytest.mark.attack


class Gathered(Sessions):
    """The real sessions of a runner, which decide nothing before all requests have been read. They note who is committed."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.commits: list[list[int]] = []
        self._open = False

    def _turns(self) -> list[Batch]:
        if not self._open:
            for drive in self.drives.values():
                if not drive.known.stale and drive not in self.readings.under_way:
                    self._prepared(drive)
            self._open = len(self.drives) == CROWD + 1 and all(drive.hand.prepared for drive in self.drives.values())
        return super()._turns() if self._open else []

    async def _commit(self, batches: list[Batch]) -> None:
        self.commits.append([batch.stream for batch in batches])
        await super()._commit(batches)


class GatheredRunner(TestRunner):
    __test__ = False
    sessions_type = Gathered


def test_a_short_request_is_not_committed_with_a_crowd_of_large_ones(engine, device, verified):
    for _ in range(CROWD):
        engine.submit({"tasks": [noop(f"t{number}") for number in range(LARGE)]})
    neighbour, _ = engine.submit({"tasks": [noop("t")]})
    runner = GatheredRunner(lambda: bool(runner.sessions.commits))
    runner.run()
    assert not runner.gave_up
    first = runner.sessions.commits[0]
    assert neighbour.pk in first, "it came last and is first, as it has had the least time"
    assert len(first) <= 2, "at most one large beginning is recorded with it"
