"""What calls on a workspace answer: fields of an outcome (agents.tools.calls.Outcome), wherever the workspace is. No Django."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.devices import observation
from agents.devices.local import CommandOutcome
from agents.devices.output import TEXT_CHARACTERS
from agents.devices.workspace import files
from agents.progress.digests import text_digest

Answer = dict[str, Any]


def command_answer(ended: CommandOutcome, before: str | None, after: str | None) -> Answer:
    """Its digest is that of the file where that was looked at, else that of what it printed, where it ran."""
    digested = after
    if before is None and ended.fingerprint is not None:
        digested = text_digest(f"{ended.exit_code} {ended.fingerprint}")
    return {
        "outcome": "failed" if ended.outcome == "limit" else ended.outcome, "result": ended.result, "error": ended.error,
        "exit_code": ended.exit_code, "error_kind": ended.error_kind, "digest": digested, "before": before, "text": ended.text,
    }  # fmt: skip


def state_after(workspace: Path, path: str) -> str | None:
    """None when it cannot be told, as where a command has put something else in the file's place. Raises nothing: a command
    that has run must not be run again.
    """
    try:
        return files.content_state(workspace, path) or None
    except (files.FileRefused, OSError):
        return None


def read_answer(workspace: Path, said: Mapping[str, Any], judged: str | None = None) -> Answer:
    """What a text file holds. Raises FileRefused, as those below."""
    path = said["path"]
    part = {name: int(said[name]) for name in ("offset", "limit") if name in said}
    found = files.read_text(workspace, path, **part, judged=judged)
    result = {"path": path, "content": found.text, "offset": found.offset, "size": found.size}
    return _completed(result, digest=text_digest(found.text), text=found.text[-TEXT_CHARACTERS:])


def write_answer(workspace: Path, said: Mapping[str, Any], leave: files.ChangeLeave, judged: str | None = None) -> Answer:
    change = files.write_text(workspace, said["path"], said["content"], leave, judged=judged)
    return _completed({"path": said["path"], "size": change.size}, digest=change.after, before=change.before)


def edit_answer(workspace: Path, said: Mapping[str, Any], leave: files.ChangeLeave, judged: str | None = None) -> Answer:
    path, old, new, count = said["path"], said["old"], said["new"], int(said.get("count", 1))
    change = files.replace_text(workspace, path, old, new, count, leave, judged=judged)
    result = {"path": path, "size": change.size, "replaced": change.replaced}
    return _completed(result, digest=change.after, before=change.before)


def observe_answer(workspace: Path) -> Answer:
    seen = observation.observe_workspace(workspace)
    return _completed(seen, digest=observation.files_digest(seen))


def _completed(result: Any, **more: Any) -> Answer:
    return {"outcome": "completed", "result": result, **more}
