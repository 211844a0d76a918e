"""Apps: what an agent is held to that a host has delegated a part to. A page of a browser, a program of a shell.

The seed's AppAgent has an app, a process, a visual flag and prompts of its own. The device says of each app what its agents
are given (`Device.apps`); the agent's row keeps what held when it began: {name, visual, process: {name, pid}, tools, prompts}.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.errors import AgentsError
from agents.minds.templates import PromptTemplate, load_template
from agents.minds.untrusted import quote_untrusted

HERE = Path(__file__).parent / "minds"
PARTS = ("main", "example")
"""Prompts of an app: what its agents are told, and an example of the work, which is data."""
KNOWN = ("app", "device", "process", "tools")
"""Names that a prompt of an app may use."""
EXAMPLE = 8_000
"""Characters of an example."""
PROGRAMS = "shell"
"""The platform whose apps are programs."""
WITHOUT = ("acp",)
"""Platforms whose agents cannot be held to an app."""
ROOTS = {"browser": "chromium"}
"""By platform, the name of the process that an app lives in where its device does not say."""

Row = Mapping[str, Any]


class AppRefused(AgentsError):
    """An agent that is held to an app would have another one work on another app."""

    code = "app_refused"


def app_row(step: Mapping[str, Any], device: Mapping[str, Any], above: Row) -> dict[str, Any]:
    """The app of an agent that does what `step` delegates on a device; that of its host, `above`, where the step names none.

    Empty for an agent that is held to nothing. Raises AppRefused where its host is held to another app, or nothing there is
    held to any.
    """
    name = step.get("app")
    if device["platform"] in WITHOUT and (name or above):
        raise AppRefused(f"a program that works by itself is held to no app, and this part is about {name or above['name']}")
    if not name:
        return dict(above)
    if above and name != above["name"] and not name.startswith(f"{above['name']}/"):
        raise AppRefused(f"this agent is held to the app {above['name']}, and delegates nothing about {name}")
    profile = _profile(device, name)
    process = profile.get("process") or ROOTS.get(device["platform"], name)
    prompts = [f"{part}/{template.number}" for part, template in _templates(profile).items()]
    return {
        "name": name, "visual": step.get("visual", True) and profile.get("visual", True),
        "process": {"name": process, "pid": None}, "tools": list(profile.get("tools", ())), "prompts": prompts,
    }  # fmt: skip


def call_app(app: Row) -> dict[str, Any]:
    """What a call is told of the app: its page, and whether it sees pictures."""
    return {"page": app["name"], "visual": app["visual"]} if app else {}


def why_not_of_app(app: Row, platform: str, tool: str, argv: Sequence[str] | None) -> str:
    """Why an agent that is held to `app` may not make a call; empty where it may."""
    if not app:
        return ""
    if app["tools"] and tool not in app["tools"]:
        return f"the app {app['name']} does not offer {tool}; it offers {', '.join(app['tools'])}"
    root = app["process"]["name"]
    if platform == PROGRAMS and argv is not None and os.path.basename(argv[0] if argv else "") != root:
        return f"the app {app['name']} is the program {root}; {(argv[0] if argv else 'nothing')[:80]} is another one"
    return ""


def app_sentence(app: Row, platform: str) -> str:
    """What an agent with a model is told beside its instruction; empty where its app says nothing of its calls."""
    if not app:
        return ""
    if platform == "browser":
        page = f"Your app is the page {app['name']} of the browser, and those that it opens"
        return f"{page}; calls about other pages are refused."
    if platform == PROGRAMS:
        return f"Your app is the program {app['process']['name']}; commands of other programs are refused."
    return f"Your app is {app['name']}."


def app_prompt(app: Row, device: Mapping[str, Any]) -> tuple[str, str]:
    """What the device has its app's agents told with their system prompt, and the versions of it; empty where it says nothing.

    What its keeper wrote is told as it stands, an example between marks: it shows what others have said.
    """
    found = _templates(_profile(device, app.get("name", "")))
    if not found:
        return "", ""
    values = {
        "app": app["name"], "device": device["name"], "process": app["process"]["name"], "tools": ", ".join(app["tools"]),
    }  # fmt: skip
    told = {part: found[part].render(values).strip() if part in found else "" for part in PARTS}
    if told["example"]:
        told["example"] = quote_untrusted(f"example of {app['name']}", told["example"], EXAMPLE)
    frame = load_template(HERE / "app.txt")
    version = "+".join([frame.version, *(template.number for template in found.values())])
    return frame.render({"app": app["name"], **told}).strip(), version


def _profile(device: Mapping[str, Any], name: str) -> Row:
    """What the device says of an app; of a page that another one has opened, what it says of that one."""
    profile: Row = (device.get("apps") or {}).get(name.partition("/")[0], {})
    return profile


def _templates(profile: Row) -> dict[str, PromptTemplate]:
    prompts: Row = profile.get("prompts", {})
    return {part: PromptTemplate(Path(part), prompts[part]) for part in PARTS if part in prompts}
