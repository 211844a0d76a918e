"""What the prompters of all modes do alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import AgentsError
from agents.llm.conversation import Message, Text
from agents.masks.values import mask_text
from agents.minds.untrusted import cut_text
from constellations.prompts.device_profiles import render_devices
from constellations.prompts.files import template
from constellations.prompts.graph_view import render_constellation
from constellations.prompts.happenings import render_events, render_memory
from constellations.prompts.quoting import words
from constellations.prompts.scene import Scene

REQUEST = 20_000
"""Characters of the request."""
USER_PROMPT = 200_000
"""Characters of a whole user part: more than its parts may have together, so that nothing is ever cut by it."""
PROBLEMS = 30
"""Problems that a correction names."""
PROBLEM = 500
"""Characters of each."""


def render_user(scene: Scene) -> Message:
    """Devices, memory, the constellation, the events, the request: in this order, so that what changes least comes first."""
    text = template("user").render(
        {
            "devices": render_devices(scene.devices),
            "memory": render_memory(scene.memory),
            "constellation": render_constellation(scene),
            "events": render_events(scene.events),
            "request": words(scene.request, REQUEST),
        }
    )
    return Message("user", (Text(cut_text(text, USER_PROMPT)),))


def render_correction(error: AgentsError, scene: Scene | None) -> Message:
    """What was wrong, by place; with a scene the graph as it is now, because the answer was made on an older one."""
    problems = error.problems or [{"message": str(error)}]
    lines = [f"- {_line_of(each)[:PROBLEM]}" for each in problems[:PROBLEMS]]
    if len(problems) > PROBLEMS:
        lines.append(f"- and {len(problems) - PROBLEMS:,} more")
    newest = "" if scene is None else f"The constellation as it is now:\n{render_constellation(scene)}\n"
    text = template("correction").render({"problems": "\n".join(lines), "newest": newest})
    return Message("user", (Text(mask_text(text)),))


def _line_of(told: Mapping[str, Any]) -> str:
    """A problem of an answer, a plan or an edit: its place and its message."""
    number = f"action {told['operation']}" if told.get("operation") else ""
    place = str(told.get("field") or told.get("key") or "")
    where = ", ".join(filter(None, (number, str(told.get("op") or ""), place)))
    return f"{where}: {told['message']}" if where else str(told["message"])
