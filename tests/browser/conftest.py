"""The real thing for the browser: `manage.py up` on a database of its own, and chromium."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
START_S = 180.0
STOP_S = 120.0
"""Far above what it takes: what is bounded is that it happens at all, on a busy machine too."""
PEOPLE = """
from django.contrib.auth.models import Group, User
from agents.services.devices import device_create
ann = User.objects.create_user("ann", password="ann-secret")
ann.groups.add(Group.objects.get(name="operator"))
vic = User.objects.create_user("vic", password="vic-secret")
vic.groups.add(Group.objects.get(name="viewer"))
User.objects.create_superuser("root", password="root-secret")
device_create("laptop", max_concurrent=32, by="system")
"""


class Installation:
    """A migrated database with an operator `ann`, a viewer `vic`, a superuser `root` and a device `laptop`, served by `up`."""

    patience_s = START_S

    def __init__(self, folder: Path, **environment: str):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._output = folder / "up.out"
        state = {
            "ORRERY_STATE_DIR": str(folder),
            "DATABASE_URL": f"sqlite:///{folder / 'browser.sqlite3'}",
            "ORRERY_RUNNERS": "1",
            "ORRERY_WRITABLE": str(folder.parent),  # where tests have files for their commands
            **environment,
        }
        self._env = {**os.environ, **state}

    def manage(self, *arguments: str) -> str:
        argv = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            argv, cwd=settings.BASE_DIR, env=self._env, capture_output=True, text=True, timeout=self.patience_s, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        argv = [sys.executable, "manage.py", "up", "--port", str(self.port)]
        with self._output.open("w") as output:
            self._up = subprocess.Popen(argv, cwd=settings.BASE_DIR, env=self._env, stdout=output, stderr=subprocess.STDOUT)
        deadline, pause = time.monotonic() + START_S, threading.Event()
        while "Orrery is up" not in self._output.read_text():
            assert self._up.poll() is None, self._output.read_text()
            assert time.monotonic() < deadline, self._output.read_text()
            pause.wait(0.1)

    def stop(self) -> None:
        self._up.send_signal(signal.SIGINT)
        self._up.wait(STOP_S)

    def login_link(self, user: str = "ann") -> str:
        return self.manage("login_link", user, "--base-url", self.address)


@pytest.fixture(scope="package")
def installation(tmp_path_factory) -> Iterator[Installation]:
    made = Installation(tmp_path_factory.mktemp("dashboard"))
    made.manage("migrate", "--verbosity", "0")
    made.manage("shell", "--verbosity", "0", "--command", PEOPLE)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Gone before other tests begin: while Playwright lives Django takes this thread for an asynchronous one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def anonymous(installation, chromium) -> Iterator[Page]:
    """A page of somebody who is not logged in; the test fails when a script of ours broke, or the policy forbade something."""
    context = chromium.new_context(base_url=installation.address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert errors == []


@pytest.fixture(scope="package")
def cookies(installation, chromium) -> list:
    """Of the operator, who came in by a one-time link."""
    context = chromium.new_context(base_url=installation.address)
    context.new_page().goto(installation.login_link())
    found = context.cookies()
    context.close()
    return found


@pytest.fixture
def page(anonymous, cookies) -> Page:
    """A page of the operator."""
    anonymous.context.add_cookies(cookies)
    anonymous.goto("/")
    return anonymous
