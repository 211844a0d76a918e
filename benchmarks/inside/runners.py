"""A runner as it is in production, in a process of its own."""

import json

from agents.engine.runner import Runner
from benchmarks.inside import tools  # noqa: F401 (registers the bodies)


def serve() -> None:
    """Until the process is told to end."""
    runner = Runner()
    print(json.dumps("ready"), flush=True)
    runner.run()
