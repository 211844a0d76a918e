"""Runners of a cluster that has fallen. They are well, so they work on until a new cluster does, and nothing stands still."""

import signal
from collections import deque
from collections.abc import Set

from django.db import connection

from agents.devices.host import boot_identity
from agents.models import Runner
from project.up.hindrances import DATABASE_ERRORS
from project.up.processes import Identity, is_alive, send_signal

SUCCESSORS_S = 15.0
"""They wait so long for the new cluster; agents.engine.runner.ORPHAN_S is theirs."""
TOLD_S = 5.0
"""Seconds that their running steps get to end by themselves,"""
INTERRUPTED_S = 3.0
"""and then to record that they have been interrupted."""
STEPS = ((signal.SIGTERM, TOLD_S), (signal.SIGTERM, INTERRUPTED_S), (signal.SIGKILL, 0.0))


class RetiredRunners:
    """`runners` are told to stop, told again to interrupt what they run, and killed. Times are of one monotonic clock."""

    def __init__(self, runners: Set[Identity], now: float):
        self.runners = set(runners)
        self._due = now + SUCCESSORS_S
        self._steps = deque(STEPS)

    def look(self, now: float, successors_work: bool) -> bool:
        """Do what is due; False when none of them is left."""
        self.runners = {one for one in self.runners if is_alive(one)}
        self._end_those_at_rest()
        if now >= self._due or (successors_work and len(self._steps) == len(STEPS)):
            signum, patience_s = self._steps[0] if len(self._steps) == 1 else self._steps.popleft()
            self._due = now + patience_s
            for runner in self.runners:
                send_signal(runner, signum)
        return bool(self.runners)

    def _end_those_at_rest(self) -> None:
        """A worker whose runner has ended waits for a job that never comes."""
        pids = [one.pid for one in self.runners]
        try:
            working = set(
                Runner.objects.filter(host=boot_identity(), pid__in=pids).exclude(state="ENDED").values_list("pid", flat=True)
            )
        except DATABASE_ERRORS:
            connection.close()  # they end when their time is over
            return
        for runner in self.runners:
            if runner.pid not in working:
                send_signal(runner, signal.SIGKILL)
