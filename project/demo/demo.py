"""The example, from an empty database to its outcome, as `manage.py demo` shows it."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User

from agents.models import Device
from agents.services.devices import device_change, device_create
from agents.services.sessions import request_submit, session_create
from frontend.logins.links import make_login_link
from project.demo.following import Following, Row
from project.demo.progress import Progress

USER = "demo"
GROUPS = ("operator", "admin")
MODEL = {"model": {"description": "Name given to the training."}}
RECIPES: dict[str, dict[str, Any]] = {
    "fetch": {
        "command": ["python", "-m", "examples.digits.fetch"],
        "description": "Check the digit images by checksum and part them for training and test.",
    },
    "train": {
        "command": [
            "python", "-m", "examples.digits.train", "--out", "{model}", "--epochs", "{epochs}", "--hidden", "{hidden}",
            "--learning-rate", "{rate}", "--decay", "{decay}", "--batch", "{batch}",
        ],
        "parameters": {
            "model": {"default": "model-1", "description": "Name of the model."},
            "epochs": {"type": "integer", "default": 30},
            "hidden": {"type": "integer", "default": 0, "description": "Hidden units; 0 is softmax regression."},
            "rate": {"type": "number", "default": 0.01, "description": "Learning rate of the first epoch."},
            "decay": {"type": "number", "default": 1, "description": "What is left of the rate after the last epoch."},
            "batch": {"type": "integer", "default": 32, "description": "Images a step."},
        },
        "description": "Train a classifier on the training images.",
    },
    "evaluate": {
        "command": ["python", "-m", "examples.digits.evaluate", "--model", "{model}"],
        "parameters": MODEL,
        "description": "Measure a model on the test images.",
    },
    "deploy": {
        "command": ["python", "-m", "examples.digits.deploy", "--model", "{model}"],
        "parameters": MODEL,
        "description": "Put a model and its measured accuracy into this device's workspace.",
    },
}  # fmt: skip
DEVICES: dict[str, dict[str, Any]] = {
    "laptop": {"type": "laptop", "capabilities": ["fetch"]},
    "gpu_server": {"type": "gpu", "capabilities": ["train"]},
    "test_server": {"type": "server", "capabilities": ["evaluate"]},
    "prod_server": {"type": "server", "capabilities": ["deploy"]},
}
"""Each has the recipes that its capabilities name."""
TRAIN = ["python", "-m", "examples.digits.train", "--out", "model-*", "--epochs", "*"]
UNASKED: dict[str, list[list[str]]] = {
    "fetch": [["python", "-m", "examples.digits.fetch"]],
    "train": [
        [*TRAIN, "--batch", "*", "--learning-rate", "*"],
        [*TRAIN, "--hidden", "*", "--batch", "*", "--learning-rate", "*", "--decay", "*", "--shift"],
    ],
    "evaluate": [["python", "-m", "examples.digits.evaluate", "--model", "model-*"]],
    "deploy": [["python", "-m", "examples.digits.deploy", "--model", "model-*"]],
}
"""The commands of the example, by recipe: a demonstration's model runs them, and nothing else, without asking."""
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


def demo_devices(*, for_model: bool = False) -> None:
    """The four local devices of the examples, each with a workspace of its own; their commands find the examples' modules.

    `for_model`: a model may run the commands of the example on them without asking.
    """
    limits = {"env": {"PYTHONPATH": str(settings.BASE_DIR)}}
    known = {device.name: device for device in Device.objects.filter(name__in=DEVICES)}
    for name, profile in DEVICES.items():
        wanted: dict[str, Any] = {"limits": limits, "recipes": {key: RECIPES[key] for key in profile["capabilities"]}}
        if for_model:
            wanted["unasked"] = {"commands": [line for key in profile["capabilities"] for line in UNASKED[key]]}
        if name not in known:
            device_create(name, by="system", **wanted, **profile)
        elif any(getattr(known[name], key) != value for key, value in wanted.items()):  # moved, or of an earlier version
            device_change(known[name].pk, by="system", **wanted)


def furnish_installation() -> User | None:
    """What a new installation needs to be of use: devices on this host, where there are none at all, and somebody to log in.

    Returns that person as long as nobody has ever logged in.
    """
    if not Device.objects.exists():
        demo_devices()
    return None if User.objects.filter(last_login__isnull=False).exists() else demo_user()


@dataclass(frozen=True)
class Asked:
    """What a demonstration asks for: the interaction's payload, and a title for its session."""

    title: str
    payload: Mapping[str, Any]


class Demo:
    """Submits what is `asked` once everything is ready and follows it; `step` is called again and again.

    `step` returns an exit code when there is nothing more to do. With `stays` there is always the serving to do.
    """

    def __init__(self, asked: Asked, address: str, progress: Progress, is_ready: Callable[[], bool], stays: bool):
        self._asked, self._address, self._progress = asked, address, progress
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
        session = session_create(user, self._asked.title, by=by)
        item, _ = request_submit(session.pk, "interaction", secrets.token_hex(8), dict(self._asked.payload), by=by)
        self._run, self._inbox_id = Following(session.pk), item.pk
        self._deadline = time.monotonic() + RUN_S
        self._progress.say(f"{self._asked.title} runs as session {session.pk}.")
        self._progress.say(f"Watch it: {self._link(session.pk)}  (works once)")

    def _link(self, session: int) -> str:
        """Logs in once and opens the run."""
        return make_login_link(demo_user(), self._address, f"/sessions/{session}/")

    def _follow(self, run: Following) -> None:
        for event in run.news():
            for line in run.lines(event):
                self._progress.say(line)
        self._progress.show(run)
        request = run.request(self._inbox_id)
        if request is not None and request["state"] in ("done", "refused"):
            self._progress.close()
            for line in result_lines(run, request):
                self._progress.say(line)
            self._progress.say(f"Dashboard: {self._address}")
            self._progress.say(f"One-time login: {self._link(run.session_id)}")
            if self._stays:
                self._progress.say("Orrery goes on serving. Ctrl-C stops it.")
            self.code = EXIT_CODES.get(request["outcome"], FAILED)
        elif time.monotonic() > self._deadline:
            self._progress.close()
            self._progress.say(f"The run has not ended within {RUN_S:g} s.")
            self.code = FAILED


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
