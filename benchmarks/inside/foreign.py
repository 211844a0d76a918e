"""Another process that writes into a session while its graph is carried out."""

import json
import time

from agents import services
from benchmarks.inside import load
from constellations.models import Constellation

EVERY_S = 0.05


def pings(session: int) -> list[float]:
    """A command every EVERY_S while the graph executes; returns how long each took, in seconds.

    A ping is what there is to write from outside so far; it takes the same door as an edit: the stream's lock and a new head.
    """
    print(json.dumps("ready"), flush=True)
    took: list[float] = []
    while True:
        begun = time.monotonic()
        state = Constellation.objects.filter(session=session).values_list("state", flat=True).first()
        if state in ("COMPLETED", "FAILED", "PARTIALLY_FAILED", "CANCELLED"):
            return took
        if state == "EXECUTING":
            begun = time.monotonic()
            services.command_submit(session, "ping", "", {}, by=load.by())
            took.append(time.monotonic() - begun)
        time.sleep(max(0.0, begun + EVERY_S - time.monotonic()))
