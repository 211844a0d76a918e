"""A replay in an installation of its own: a process with a database and a folder that are thrown away with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings

from agents.errors import AgentsError
from project.replay.recording import Fields

PROGRAM = "project.replay.inside"
PROCESS_S = 1_200.0
"""Of the whole replay, with the making of its database."""
ERROR_SHOWN = 2_000
"""Characters of what a replay that broke has said last."""
NOT_PASSED_ON = (
    "REDIS_URL", "LLM_MODEL", "LLM_BASE_URL", "ORRERY_STUCK_ARBITER", "ORRERY_ON_STATE_CHANGE", "ORRERY_ON_STUCK",
    "ORRERY_ON_PROGRESS", "Q_CLUSTER_NAME",
)  # fmt: skip
"""Variables by which a replay would reach something outside."""


class ReplayBroken(AgentsError):
    """The process of a replay ended without an answer; the message is what it said last."""

    code = "replay_broken"


def replay_decisions(file: Path, profile: Fields | None) -> list[Fields]:
    """The decisions of a replay of the file; `profile` as for `play_recording`. Raises ReplayBroken."""
    with tempfile.TemporaryDirectory(prefix="orrery-replay-") as folder:
        environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        environment |= {"ORRERY_STATE_DIR": folder, "DATABASE_URL": f"sqlite:///{folder}/replay.sqlite3"}
        ended = subprocess.run(
            [sys.executable, "-m", PROGRAM, str(file.absolute())],
            input=json.dumps(profile), capture_output=True, text=True, check=False, timeout=PROCESS_S, env=environment,
            cwd=settings.BASE_DIR,
        )  # fmt: skip
    if ended.returncode != 0:
        raise ReplayBroken(f"the replay ended with {ended.returncode}: {ended.stderr.strip()[-ERROR_SHOWN:]}")
    decisions: list[Fields] = json.loads(ended.stdout)
    return decisions
