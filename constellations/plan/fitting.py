"""Which devices a task may run on: the one place that says so. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agents.tools import catalogue
from agents.tools.namespaces import find_tool, has_own_tools_only, is_namespaced, no_such_tool
from constellations.plan.keys.calls import (
    INSTRUCTION,
    NEEDS_DOING,
    delegated_elsewhere,
    delegated_wish,
    server_calls,
    tool_calls,
)
from constellations.plan.tasks import IN_WORDS
from constellations.plan.values import Finding, Row

Device = Mapping[str, Any]
Devices = Mapping[str, Device]


class KnownDevices(dict[str, dict[str, Any]]):
    """Devices by name, and the minds that tasks in words may have there: `minds` are the names of model profiles, and the empty
    name where one of them is for all such tasks that name none.
    """

    minds: frozenset[str] = frozenset()


MAX_LISTED = 20
"""Types or capabilities of devices that a message names."""
CODING_AGENTS = "acp"
"""The kind of devices that carry out tasks in words by themselves, and nothing else."""
DEVICE_FIELDS = ("wanted_device", "device_type", "capabilities", "not_device")
"""Fields of a task that say where it may run..."""
CALL_FIELDS = ("tool", "arguments", "phases")
"""...and what it calls, which says that too."""
ANYWHERE = ("noop", INSTRUCTION)
"""Tools that every device has."""


def device_fits(name: str, device: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Whether a device is the one that a task names, or has what the task asks for and is none that it avoids."""
    return fits_wish(name, device, task, server_tools(task), task["tool"] == INSTRUCTION)


def fits_wish(
    name: str, device: Mapping[str, Any], task: Mapping[str, Any], tools: Collection[str], in_words: bool
) -> bool:  # fmt: skip
    """As `device_fits`, where it is known already which tools of servers a task names, and whether it is in words."""
    if task["wanted_device"]:
        return bool(name == task["wanted_device"])
    if device.get("kind") == CODING_AGENTS and not in_words:
        return False
    if any(find_tool(device, tool) is None for tool in tools):
        return False
    if has_own_tools_only(device) and not tools and not (in_words and _asks_for_something(task)):
        return False
    if name in task["not_device"] or (task["device_type"] and device["type"] != task["device_type"]):
        return False
    asked = task["capabilities"]
    return not asked or set(asked) <= set(device["capabilities"])


def _asks_for_something(task: Mapping[str, Any]) -> bool:
    return bool(task["device_type"] or task["capabilities"])


def server_tools(task: Mapping[str, Any]) -> set[str]:
    """The tools of tool servers that a task names; the manager takes it to a device that offers them all."""
    return {tool for _, tool, _ in server_calls(task)}


def why_none_fits(task: Mapping[str, Any]) -> str:
    """That there is no device such as a task asks for which names none."""
    asked = [f"the type {task['device_type']}"] if task["device_type"] else []
    asked += [f"the capabilities {', '.join(task['capabilities'])}"] if task["capabilities"] else []
    asked += [f"the tools {', '.join(sorted(tools))}"] if (tools := server_tools(task)) else []
    left_out = ", ".join(task["not_device"])
    if not asked:
        return f"not_device leaves no device: it names {left_out}" if left_out else "no device is there"
    return (f"leaving out {left_out} (not_device), " if left_out else "") + f"no device has {' and '.join(asked)}"


NO_MIND = "none is configured for device_agent: make a model profile (docs/models.md), or set LLM_BASE_URL and LLM_MODEL"


def missing_mind(row: Row, devices: Devices | None) -> tuple[str, str] | None:
    """(key, message) for a task in words that no model is there for."""
    minds = devices.minds if isinstance(devices, KnownDevices) else frozenset()
    if row["tool"] != INSTRUCTION or row["model"] in minds or (not row["model"] and _has_coding_agent(row, devices or {})):
        return None
    if row["model"]:
        there = ", ".join(sorted(filter(None, minds))) or "none"
        return "model", f"there is no model profile {row['model']}; there is {there}"
    return "tool", f"{NEEDS_DOING}, and {NO_MIND}"


def _has_coding_agent(row: Row, devices: Devices) -> bool:
    """Whether only coding agents fit what a task asks for, which have models of their own."""
    if not any(row.get(key) for key in DEVICE_FIELDS[:-1]):
        return False
    fitting = [device for name, device in devices.items() if device_fits(name, device, row)]
    return bool(fitting) and all(device.get("kind") == CODING_AGENTS for device in fitting)


def missing_minds(tasks: Iterable[Row], devices: Devices | None, usual: str = "") -> list[Finding]:
    """As `unknown_devices`, of the models that tasks in words need; `usual` is the one for those that name none."""
    found = ((number, missing_mind({**row, "model": row["model"] or usual}, devices)) for number, row in enumerate(tasks))
    return [(("tasks", number, *({wrong[0]} - {"tool"})), wrong[1]) for number, wrong in found if wrong]


def unknown_devices(tasks: Iterable[Row], devices: Devices) -> list[Finding]:
    """Every task, in normal form, that asks for a device which is not there: its place in a plan, and what there is instead."""
    findings: list[Finding] = []
    for number, row in enumerate(tasks):
        if wrong := unknown_device(row, devices):
            findings.append((("tasks", number, wrong[0]), wrong[1]))
        else:
            findings += [(("tasks", number, *path), message) for path, message in server_call_flaws(row, devices)]
            findings += [(("tasks", number, *path), message) for path, message in _flaws_elsewhere(row, devices)]
    return findings


def _flaws_elsewhere(row: Row, devices: Devices) -> list[Finding]:
    """What is wrong with where the app agents of a task are to work, as `unknown_devices`."""
    findings: list[Finding] = []
    for path, step in delegated_elsewhere(row):
        wanted, _ = delegated_wish(step)
        there = {name: each for name, each in devices.items() if step.get("platform") in ("", None, each.get("platform"))}
        if wrong := _why_no_coding_agent(step, devices) or unknown_device(wanted, there):
            findings.append(((*path, "delegate", wrong[0]), wrong[1]))
        elif not there:
            findings.append(((*path, "delegate", "platform"), f"no device has the platform {step['platform']}"))
        else:
            flaws = server_call_flaws(wanted, there)
            findings += [((*path, "delegate", *where), message) for where, message in flaws]
    return findings


def _why_no_coding_agent(step: Row, devices: Devices) -> tuple[str, str] | None:
    """(key, message) where an instruction would go nowhere, or to a device that is none; an unknown name is another flaw."""
    if not step.get("instruction"):
        return None
    if name := step.get("device", ""):
        is_other = name in devices and devices[name].get("kind") != CODING_AGENTS
        return ("instruction", f"{name} is no coding agent: it is given steps, and no instruction") if is_other else None
    coding = {key: each for key, each in devices.items() if each.get("kind") == CODING_AGENTS}
    wanted, _ = delegated_wish(step)
    if any(device_fits(key, each, wanted) for key, each in coding.items()):
        return None
    return "instruction", f"no coding agent has what is asked for; there are {', '.join(sorted(coding)) or 'none'}"


def server_call_flaws(row: Row, devices: Devices) -> list[Finding]:
    """What is wrong with a task's calls of tool servers: a tool is not offered, not by its device, or the arguments misfit."""
    named, calls = devices.get(row["wanted_device"]), server_calls(row)
    if not calls and (named is None or not has_own_tools_only(named)):
        return []
    findings: list[Finding] = []
    for path, tool, arguments in calls:
        offered = {name: found for name, device in devices.items() if (found := find_tool(device, tool)) is not None}
        if not offered:
            findings.append(((*path, "tool"), no_such_tool(tool, devices.values())))
        elif named is not None and row["wanted_device"] not in offered:
            there = ", ".join(sorted(offered))
            findings.append(((*path, "tool"), f"{row['wanted_device']} does not offer {tool}; {there} does"))
        else:
            schemas = [offered[row["wanted_device"]]] if named is not None else offered.values()
            flaws = [catalogue.flaws_by_schema(tool, each["arguments"], arguments) for each in schemas]
            findings += [((*path, "arguments", *where), said) for where, said in flaws[0]] if all(flaws) else []
    return findings or _calls_of_several_devices(row, devices)


def _calls_of_several_devices(row: Row, devices: Devices) -> list[Finding]:
    """A task works on one device, and a tool server has no tools but its own."""
    tools = server_tools(row)
    names = [row["wanted_device"]] if row["wanted_device"] in devices else list(devices)
    fitting = [name for name in names if all(find_tool(devices[name], tool) for tool in tools)]
    if not fitting:
        offered = f"no device offers {', '.join(sorted(tools))} together"
        return [(("steps",), f"a task works on one device, and {offered}; make several tasks of it")]
    if not all(has_own_tools_only(devices[name]) for name in fitting):
        return []
    return [
        ((*path, "tool"), f"{fitting[0]} is a tool server, which has no tool {tool}; give it to a task on another device")
        for path, tool, _ in tool_calls(row)
        if tool not in ANYWHERE and not is_namespaced(tool)
    ]


def unknown_device(row: Row, devices: Devices) -> tuple[str, str] | None:
    """(key, message) unless the devices named exist, and some device fits what is asked for."""
    named = [("device", row["wanted_device"])] if row["wanted_device"] else []
    for key, name in [*named, *(("not_device", name) for name in row["not_device"])]:
        if name not in devices:
            return key, f"there is no device {name}; {_devices_there(devices)}"
    if why := _why_not_for_coding_agent(row, devices):
        return "device", why
    anywhere = {**row, "wanted_device": ""}
    keys = [key for key in ("device_type", "capabilities", "not_device") if row[key]]
    if keys and not any(device_fits(name, device, anywhere) for name, device in devices.items()):
        return _wanted_in_vain(row, devices) or (keys[0], f"{why_none_fits(anywhere)}; {_devices_there(devices)}")
    return None


def _why_not_for_coding_agent(row: Row, devices: Devices) -> str:
    """That a task names a coding agent and gives it something else than words; empty where it does not."""
    name, tool = row["wanted_device"], row.get("tool", INSTRUCTION)
    if not name or devices[name].get("kind") != CODING_AGENTS or tool in (INSTRUCTION, IN_WORDS):
        return ""
    return f"{name} is a coding agent: it carries out tasks in words, and no {tool}"


def _wanted_in_vain(row: Row, devices: Devices) -> tuple[str, str] | None:
    """(key, message) where no device has that type, or one of the capabilities, whatever else is asked for."""
    types = {device["type"] for device in devices.values() if device["type"]}
    capabilities = {each for device in devices.values() for each in device["capabilities"]}
    if row["device_type"] and row["device_type"] not in types:
        return "device_type", f"no device has the type {row['device_type']}{_listed('types', 'type', types)}"
    if missing := [each for each in row["capabilities"] if each not in capabilities]:
        word = "capability" if len(missing) == 1 else "capabilities"
        return (
            "capabilities",
            f"no device has the {word} {', '.join(missing)}{_listed('capabilities', 'capability', capabilities)}",
        )
    return None


def _listed(words: str, word: str, known: set[str]) -> str:
    """What there is of a kind, as far as a message lists it."""
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f"; the {words} there are: {', '.join(sorted(known)[:MAX_LISTED])}{more}" if known else f", or any {word}"


def _devices_there(devices: Devices) -> str:
    return f"there are {', '.join(sorted(devices))}" if devices else "there are no devices"
