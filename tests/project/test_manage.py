"""manage.py as whoever installs the project meets it: with settings that make no sense."""

import os
import subprocess
import sys

import pytest
from django.conf import settings


@pytest.mark.parametrize("command", ["check", "up", "qcluster"])
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("ORRERY_IDLE_S", "soon", "ORRERY_IDLE_S must be a number of seconds above 0, such as 600, not 'soon'\n"),
        (
            "ORRERY_PROGRESS",
            '{"stuck_threshold": "3"}',
            'ORRERY_PROGRESS must be JSON such as {"stuck_threshold": 5}: stuck_threshold must be a whole number from 0\n',
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_said_in_one_sentence(tmp_path, command, name, text, says):
    env = {**os.environ, "ORRERY_STATE_DIR": str(tmp_path), name: text}
    done = subprocess.run(
        [sys.executable, "manage.py", command], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", says)
