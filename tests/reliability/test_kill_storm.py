"""A short kill storm: one kill of each kind against a whole installation at work. The long one is a tool of its own."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

from benchmarks.inside.storm_target import KINDS
from tests.reliability.cluster import database_url

pytestmark = [pytest.mark.django_db, pytest.mark.kill]

TASKS = 200


def test_after_one_kill_of_each_kind_nothing_is_lost_doubled_or_incomplete(tmp_path):
    database, report = "sqlite" if connection.vendor == "sqlite" else "postgres", tmp_path / "report.json"
    argv = [sys.executable, "-m", "benchmarks.kill_storm", "--kills", str(len(KINDS)), "--tasks", str(TASKS)]
    done = subprocess.run(
        [*argv, "--database", database, "--json", str(report)], cwd=settings.BASE_DIR, capture_output=True, text=True,
        check=False, env={**os.environ, "POSTGRES_URL": database_url()},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())[database]
    assert found["wrong"] == {"lost": 0, "doubled": 0, "overlap": 0, "output": 0, "verify": 0}
    assert {kind: of_kind["strikes"] for kind, of_kind in found["kinds"].items() if kind != "none"} == dict.fromkeys(KINDS, 1)
    assert found["completed"] + found["failed by on_lost"] == TASKS
