"""kill -9 of a runner whose browser has pages open: another one goes on with them, and nothing of the first is left over."""

import json
from pathlib import Path

import pytest

from agents.devices.host import instance_name
from agents.devices.processes import end_attempts, is_same_process, list_pids, process_start, read_mark
from agents.models import Device, Event, Evidence
from agents.services.devices import device_create
from agents.services.sessions import request_submit, session_create
from agents.streams.verify import verify_database
from constellations.models import Attempt, Task
from tests.agents.browsing.conftest import web  # noqa: F401  a fixture
from tests.reliability.cluster import OneRunner, until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.kill]


def chromium_of(window: Device) -> set[int]:
    return {pid for pid in list_pids() if read_mark(pid) == (f"{instance_name()}-browser", window.pk)}


def profile_of(folder: Path, window: Device) -> Path:
    """The folder that a living browser of the device has its profile in."""
    return Path((folder / "browsers" / str(window.pk) / "profile.path").read_text())


def test_another_runner_opens_the_pages_again_and_removes_what_the_killed_one_left(state_dir, operator, web):  # noqa: F811
    shop = web.show("/", "<!doctype html><title>Shop</title><h1>Shop</h1>")
    other = web.show("/other", "<!doctype html><title>Other</title><p>aside</p>")
    window = device_create("window", kind="browser", connection={"allow": [web.address]}, by="system")
    steps = [
        {"tool": "browser.open", "arguments": {"url": other, "page": "side"}},
        {"tool": "browser.open", "arguments": {"url": shop}},
        {"tool": "browser.wait", "arguments": {"text": "sold", "seconds": 60}, "timeout": 60},
        {"tool": "browser.read", "arguments": {"page": "side"}, "save": "said"},
    ]  # fmt: skip
    plan = {"tasks": [{"task_id": "work", "device": "window", "steps": steps, "on_lost": "retry"}]}
    session = session_create(operator, by=f"user:{operator.pk}")
    request_submit(session.pk, "interaction", "", {"plan": json.dumps(plan)}, by=f"user:{operator.pk}")

    first = OneRunner(state_dir)
    try:
        until(Evidence.objects.filter(tool="browser.wait").exists, f"a page that is waited for, see {first.log}")
        left = {pid: start for pid in chromium_of(window) if (start := process_start(pid)) is not None}
        profile = profile_of(state_dir, window)
        assert left
        assert profile.is_dir()
    finally:
        first.kill()
    web.show("/", "<!doctype html><title>Shop</title><h1>sold</h1>")
    second = OneRunner(state_dir)
    try:
        until(Task.objects.filter(state__in=("COMPLETED", "FAILED")).exists, f"the end of the task, see {second.log}")
        assert (Task.objects.get().state, Task.objects.get().result["said"]["content"]) == ("COMPLETED", "aside")
        assert list(Attempt.objects.order_by("number").values_list("outcome", flat=True)) == ["lost", "completed"]
        told = Event.objects.filter(type="page_reopened").values_list("data", flat=True)
        assert [each["address"] for each in told] == [f"main: {shop}"]
        assert not any(is_same_process(pid, start) for pid, start in left.items())
        assert not profile.exists()
        assert profile_of(state_dir, window) != profile
    finally:
        second.kill()
        end_attempts(f"{instance_name()}-browser", [window.pk])
    assert list(verify_database()) == []
