"""An installation whose web server and runners are started, killed and started again one by one, under open pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from tests.browser.conftest import Installation

PATIENCE_S = 300.0
"""Far above what anything here takes: what is bounded is that it happens at all."""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, bounded."""
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s"
        pause.wait(0.1)


class Halves(Installation):
    """The same installation without `up`, which would start again at once what was killed."""

    patience_s = PATIENCE_S

    def __init__(self, folder: Path, **env: str):
        super().__init__(folder)
        self._env |= env
        self._folder = folder
        self._running: dict[str, subprocess.Popen] = {}

    def _run(self, name: str, *arguments: str, **env: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, *arguments], cwd=settings.BASE_DIR, env={**self._env, **env},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def start_web(self) -> None:
        listen = ("-b", "127.0.0.1", "-p", str(self.port))
        self._run("web", "-m", "project.web_server", "-v", "0", *listen, "project.asgi:application")
        until(self._answers, f"a web server, see {self._folder / 'web.log'}")

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.address}/login/", timeout=5).status == 200
        except (OSError, urllib.error.URLError):
            return False

    def start_runners(self) -> None:
        self._run("runners", "manage.py", "qcluster", "--skip-checks", Q_CLUSTER_NAME="runners")

    def kill(self, name: str) -> None:
        """SIGKILL to every process of that half at once; commands of tasks are in groups of their own."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def start(self) -> None:
        self.start_web()
        self.start_runners()

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)
