"""The example, from an empty database to its outcome, as `manage.py demo` shows it."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User

from agents.models import Device
from agents.services import command_submit, device_change, device_create, session_create
from frontend.login_links import login_link
from project.following import Following, Row
from project.progress import Progress

USER = "demo"
GROUPS = ("operator", "admin")
DEVICES: dict[str, dict[str, Any]] = {
    "laptop": {"type": "laptop", "capabilities": ["fetch"]},
    "gpu_server": {"type": "gpu", "capabilities": ["train"]},
    "test_server": {"type": "server", "capabilities": ["evaluate"]},
    "prod_server": {"type": "server", "capabilities": ["deploy"]},
}
EXIT_CODES = {"completed": 0, "partially_failed": 3}
FAILED = 1
INTERRUPTED = 130
RUN_S = 900.0
"""Seconds after which a run that has not ended is given up."""


def demo_user() -> User:
    """The person of the demonstration: an operator without a password, who enters by one-time links."""
    user, is_new = User.objects.get_or_create(username=USER, defaults={"is_staff": True})
    if is_new:
        user.set_unusable_password()
        user.save()
    user.groups.add(*Group.objects.filter(name__in=GROUPS))
    return user


def demo_devices() -> None:
    """The four local devices of the examples, each with a workspace of its own; their commands find the examples' modules."""
    limits = {"env": {"PYTHONPATH": str(settings.BASE_DIR)}}
    known = {device.name: device for device in Device.objects.filter(name__in=DEVICES)}
    for name, profile in DEVICES.items():
        if name not in known:
            device_create(name, by="system", limits=limits, **profile)
        elif known[name].limits != limits:  # the project was moved
            device_change(known[name].pk, by="system", limits=limits)


class Demo:
    """Submits a plan once everything is ready and follows it; `step` is called again and again.

    `step` returns an exit code when there is nothing more to do. With `stays` there is always the serving to do.
    """

    def __init__(self, plan: Path, address: str, progress: Progress, is_ready: Callable[[], bool], stays: bool):
        self._plan, self._address, self._progress = plan, address, progress
        self._is_ready, self._stays = is_ready, stays
        self._run: Following | None = None
        self._inbox_id = 0
        self._deadline = 0.0
        self.code: int | None = None

    def step(self) -> int | None:
        if self.code is not None:
            return None if self._stays else self.code
        if self._run is None:
            if self._is_ready():
                self._submit()
            return None
        self._follow(self._run)
        return None

    def _submit(self) -> None:
        user = demo_user()
        by = f"user:{user.pk}"
        session = session_create(user, self._plan.stem, by=by)
        payload = {"plan": self._plan.read_text()}
        item, _ = command_submit(session.pk, "interaction", secrets.token_hex(8), payload, by=by)
        self._run, self._inbox_id = Following(session.pk), item.pk
        self._deadline = time.monotonic() + RUN_S
        self._progress.say(f"{self._plan.name} runs as session {session.pk}.")
        self._progress.say(f"Watch it: {login_link(user, self._address)}  (works once)")

    def _follow(self, run: Following) -> None:
        for event in run.news():
            for line in run.lines(event):
                self._progress.say(line)
        self._progress.show(run)
        request = run.request(self._inbox_id)
        if request is not None and request["state"] in ("done", "refused"):
            self._finish(run, request)
        elif time.monotonic() > self._deadline:
            self._progress.close()
            self._progress.say(f"The run has not ended within {RUN_S:g} s.")
            self.code = FAILED

    def _finish(self, run: Following, request: Row) -> None:
        self._progress.close()
        for line in result_lines(run, request):
            self._progress.say(line)
        self._progress.say(f"Dashboard: {self._address}")
        self._progress.say(f"One-time login: {login_link(demo_user(), self._address)}")
        if self._stays:
            self._progress.say("Orrery goes on serving. Ctrl-C stops it.")
        self.code = EXIT_CODES.get(request["outcome"], FAILED)


def result_lines(run: Following, request: Row) -> list[str]:
    """The outcome, what each task returned, and who changed the plan on the way."""
    lines = ["", f"Outcome: {request['outcome'] or request['state']}", *_pairs("", request["result"])]
    for task in run.tasks():
        lines += _pairs(f"{task['name'] or task['task_id']}: ", task["result"])
    lines += [f"Edit by {edit['author']}: {edit['reason']}" for edit in run.edits()]
    return [*lines, ""]


def _pairs(before: str, result: Any) -> list[str]:
    """A result in one line; what is nested in it is for the dashboard."""
    if not isinstance(result, dict):
        return [f"  {before}{result}"] if result is not None else []
    return [f"  {before}" + ", ".join(f"{key} {value}" for key, value in result.items() if not isinstance(value, dict | list))]
