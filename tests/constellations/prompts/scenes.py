"""Scenes as tests show them: rows with as much as a prompt reads."""

from __future__ import annotations

from typing import Any

from constellations.plan.schemas import TOOLS
from constellations.plan.tasks import TASK_DEFAULTS
from constellations.prompts.scene import Scene


def device_row(name: str, **more: Any) -> Any:
    usual = {
        "id": 1, "name": name, "kind": "local", "platform": "linux", "type": "", "capabilities": [], "labels": [],
        "recipes": {}, "limits": {}, "unasked": {}, "max_concurrent": 2, "state": "connected", "created_at": "", "used": 0,
        "queued": 0, "low": "",
    }  # fmt: skip
    return {**usual, **more}


def task_row(task_id: str, state: str = "PENDING", **more: Any) -> dict[str, Any]:
    usual = {
        **TASK_DEFAULTS, "task_id": task_id, "name": task_id, "state": state, "reason": "", "attempt": 0, "result": None,
        "error": "", "error_kind": "", "tool": "command", "arguments": {"command": ["echo", task_id]},
    }  # fmt: skip
    return {**usual, **more}


def linked(upstream: str, downstream: str, condition: str = "") -> dict[str, Any]:
    return {"from": upstream, "to": downstream, "type": "CONDITIONAL" if condition else "SUCCESS_ONLY", "condition": condition}


def ended(task_id: str, state: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    usual = {
        "task_id": task_id, "state": state, "reason": "", "condition_failed": False, "result": None, "error": "",
        "error_kind": "", "device": "laptop",
    }  # fmt: skip
    return {**usual, **more}


def scene_of(request: str = "Train and deploy.", **more: Any) -> Scene:
    usual: dict[str, Any] = {"devices": [device_row("laptop")], "tools": list(TOOLS.values())}
    return Scene(request, **{**usual, **more})


def editing_scene(**more: Any) -> Scene:
    usual: dict[str, Any] = {"constellation": {"name": "mnist", "state": "EXECUTING", "version": 3}}
    return scene_of(**{**usual, **more})


def text_of_user(message: Any) -> str:
    return "".join(part.text for part in message.parts)
