"""A process of its own that gates actions, one after the other, while somebody else copies them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from django.conf import settings

from constellations.services.edits import edit_apply
from tests.reliability.cluster import database_url

PROGRAM = "import django, json, sys; django.setup(); from tests.attacks import racing; racing.gate(**json.loads(sys.argv[1]))"


def gate(constellation: int, author: str, count: int) -> None:
    """Give the tasks free0, free1, ... a gate each, by an edit of its own."""
    for number in range(count):
        edit_apply(
            constellation, [{"op": "update_task", "parameters": {"task_id": f"free{number}", "confirm": True}}], author=author
        )


def gating(state_dir, **arguments) -> subprocess.Popen:
    """A process on the test's database that does this."""
    env = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "project.settings", "DATABASE_URL": database_url(),
        "ORRERY_STATE_DIR": str(state_dir),
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(arguments)], cwd=settings.BASE_DIR, env=env)
