"""The apps of a device as they are written: looked at before anything of them is kept (agents.crews.apps uses them)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.crews.apps import KNOWN, PARTS
from agents.crews.errand import CODING_AGENTS
from agents.masks.values import mask_text
from agents.minds.templates import PromptTemplate
from agents.tools.catalogue import TOOLS
from agents.tools.namespaces import is_namespaced, tools_of

APPS = 50
"""Of one device."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
PROCESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
TOOLS_OF_APP = 100
PROMPT_CHARACTERS = 8_000
VERSION = re.compile(r"[A-Za-z0-9._-]{1,10}")
KEYS = ("process", "visual", "tools", "prompts")

Found = Iterator[tuple[str, str]]


def app_problems(apps: Any, device: Mapping[str, Any]) -> Found:
    """Everything that is wrong with the apps of a device of this kind that offers these `tools`, by place."""
    if not isinstance(apps, Mapping) or len(apps) > APPS:
        yield "apps", f"must be an object of at most {APPS} apps by their names"
        return
    if apps and device["kind"] == CODING_AGENTS:
        yield "apps", "a coding agent takes whole tasks, and has no apps"
        return
    for name, profile in apps.items():
        place = f"apps.{name[:40]}"
        if not NAME.fullmatch(name):
            yield place, "an app's name has up to 40 letters, digits and . _ -, and begins with a letter or digit"
        elif not isinstance(profile, Mapping):
            yield place, "must be an object"
        else:
            yield from ((f"{place}.{key}", why) for key, why in _profile_problems(profile, device))


def _profile_problems(profile: Mapping[str, Any], device: Mapping[str, Any]) -> Found:
    for key in profile:
        if key not in KEYS:
            yield str(key)[:40], f"there is no such field; there are {', '.join(KEYS)}"
    process = profile.get("process", "a")
    if not isinstance(process, str) or not PROCESS.fullmatch(process):
        yield "process", "must be the name of a program, without its folder"
    if not isinstance(profile.get("visual", True), bool):
        yield "visual", "must be true or false"
    yield from _tool_problems(profile.get("tools", []), device)
    prompts = profile.get("prompts", {})
    if not isinstance(prompts, Mapping) or set(prompts) - set(PARTS):
        yield "prompts", f"must be an object with some of {', '.join(PARTS)}"
        return
    for part, text in prompts.items():
        if flaw := _prompt_flaw(part, text):
            yield f"prompts.{part}", flaw


def _tool_problems(tools: Any, device: Mapping[str, Any]) -> Found:
    if not isinstance(tools, list) or len(tools) > TOOLS_OF_APP or not all(isinstance(tool, str) for tool in tools):
        yield "tools", f"must be a list of at most {TOOLS_OF_APP} names of tools"
        return
    offered = [tool["name"] for tool in tools_of(device)]
    if device["kind"] in ("local", "remote"):
        offered = sorted(TOOLS)
    for place, tool in enumerate(tools):
        if not (tool in offered if offered else is_namespaced(tool)):  # a server that was never reached has told none yet
            known = f"; there are {', '.join(offered)}" if offered else ""
            yield f"tools[{place}]", f"the device offers no tool {tool[:80]}{known}"


def _prompt_flaw(part: str, text: Any) -> str:
    if not isinstance(text, str) or len(text) > PROMPT_CHARACTERS:
        return f"must be text of at most {PROMPT_CHARACTERS:,} characters"
    if mask_text(text) != text:
        return "holds what looks like a secret"
    try:
        template = PromptTemplate(Path(part), text)
    except ValueError as error:
        return str(error)
    if not VERSION.fullmatch(template.number):
        return "its version has 1 to 10 letters, digits and . _ -"
    return template.find_flaw(KNOWN)
