"""How strictly the actions of a task are watched: by its gates, its policies and those of the installation.

An action is a call: its tool and its arguments, wherever in a graph it is made (docs/editing.md, "Gates").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents.crews.script import JUDGED, call_of
from agents.decisions import DECISIONS
from agents.gates.policies import Act, Rule, Site, judge_act
from agents.progress.digests import canonical_json
from constellations.plan.fitting import device_fits
from constellations.plan.keys.calls import INSTRUCTION, STEPS
from constellations.plan.script import calls_of, rule_of, script_of
from constellations.plan.tasks import IN_WORDS
from constellations.plan.values import Row

HARMLESS = ("noop", IN_WORDS)
"""Tools that do nothing: the gate of such a task is about what comes after it."""
ASKED = DECISIONS.index("ask")
KEY_LENGTH = 16
"""Hexadecimal digits by which a constellation remembers an action. Two that are alike cost a question too many."""
SHOWN = 80
"""Characters of an action that a message names."""

BETWEEN = "\x00"
"""Before each word of a command, in its key: no word has one."""

Key = tuple[str, str]
"""The tool, and the words of a command or the arguments as JSON."""
Levels = dict[Key, int]
"""How strictly each action of a task is watched: a place in DECISIONS."""


@dataclass(frozen=True)
class GateWatch:
    """What watches over calls beside the tasks: the installation's policies, and the devices on which tasks may run."""

    devices: Mapping[str, Mapping[str, Any]]
    rules: Sequence[Rule]


NOTHING = GateWatch({}, ())
"""Beside what a task says of itself."""


def levels_of(row: Mapping[str, Any], watched: GateWatch) -> Levels:
    """How strictly each action of a task is watched on the mildest of the devices that it may run on.

    One that comes after a call which a person has to allow, and without which the task fails, is asked about by that one.
    """
    return _Reading(row, watched).levels


def sites_of(row: Mapping[str, Any], devices: Mapping[str, Mapping[str, Any]]) -> list[Site]:
    """The devices that a task may get, as policies see them."""
    return [Site.of(device) for name, device in devices.items() if device_fits(name, device, row)]


def is_gate(row: Mapping[str, Any]) -> bool:
    """Whether a task is completed only if a person has allowed it, or one of its calls."""
    if row["confirm"]:
        return True
    asks = bool(row["policies"]) or (row["tool"] == STEPS and any(step.get("confirm") for step in calls_of(row["phases"])))
    return asks and _Reading(row, NOTHING).guarded


class _Reading:
    """The calls of a task, in their order. `guarded`: somebody has been asked before the next one is made."""

    def __init__(self, row: Mapping[str, Any], watched: GateWatch):
        self.levels: Levels = {}
        self.guarded = bool(row["confirm"])
        self._rules, self._own = watched.rules, [rule_of(each) for each in row["policies"]]
        self._sites = (sites_of(row, watched.devices) if watched.rules else []) or [Site(row["wanted_device"])]
        for phase in script_of(dict(row)):
            self._steps(phase["steps"])

    def _steps(self, steps: Sequence[Row]) -> None:
        for step in steps:
            before = self.guarded
            if step["do"] in JUDGED:
                for call in (step, *step.get("recover", ())):
                    asks = self._note(call)
                    self.guarded |= asks and call is step
            elif step["do"] == "delegate":
                self._steps(step["steps"])
            if step["if"] or step.get("on_failure") == "continue":
                self.guarded = before  # it may be passed over, or refused without an end to the task

    def _note(self, call: Row) -> bool:
        """Take up a call; whether somebody is asked about this one, or denies it."""
        tool, arguments = call_of(call)
        act = Act(tool, arguments, writes=call.get("writes", ""))
        judged = min(DECISIONS.index(judge_act(self._rules, self._own, act, site).decision) for site in self._sites)
        level = max(judged, ASKED) if self.guarded or call.get("confirm") else judged
        key = key_of(tool, arguments)
        self.levels[key] = min(level, self.levels.get(key, level))  # one that is made twice is as free as where it is freer
        return level >= ASKED


# What makes an action the same one


def key_of(tool: str, arguments: Mapping[str, Any]) -> Key:
    """Cheap, and equal for the same action only: it is compared with those of a whole graph."""
    argv = arguments.get("argv")
    if tool == "command" and len(arguments) == 1 and isinstance(argv, list):
        with suppress(TypeError):  # no list of texts
            return tool, BETWEEN + BETWEEN.join(argv)
    return tool, canonical_json(arguments) if arguments else ""


def keys_of(row: Mapping[str, Any]) -> Iterator[Key]:
    """Of all calls of a task."""
    if row["tool"] not in (STEPS, INSTRUCTION):
        yield key_of(row["tool"], row["arguments"])
        return
    for step in calls_of(script_of(row)):
        yield key_of(*call_of(step))


def name_of(key: Key) -> str:
    """By what a constellation remembers an action."""
    return hashlib.sha256(f"{key[0]} {key[1]}".encode("utf-8", "surrogatepass")).hexdigest()[:KEY_LENGTH]


def in_words(key: Key) -> str:
    tool, arguments = key
    text = arguments[1:].replace(BETWEEN, " ") if arguments.startswith(BETWEEN) else f"{tool} {arguments}".strip()
    return f"`{text if len(text) <= SHOWN else text[: SHOWN - 1] + '…'}`"
