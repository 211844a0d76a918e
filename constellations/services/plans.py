"""What an interaction asks for: a plan, read once by the service that takes the request, for the runner that begins it; or
words, which a model makes a plan of.

What was read is written down beside the request, under a seal. Where there is none, or it does not fit, the payload is read
again: a release before has taken the request, or somebody has changed a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any

import orjson
from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from agents.errors import PayloadRejected
from agents.gates.unasked import Unasked
from agents.llm.choices import PURPOSES, REVIEW
from agents.llm.profiles import NoModelProfile, Profile, choose_profiles, read_profiles
from agents.models import Device, Session
from agents.streams.fold import canonical_bytes
from agents.streams.garbage import nothing_collected
from agents.streams.statements import json_text
from agents.streams.tables import Fields
from constellations import plan as room
from constellations.errors import PlanRejected
from constellations.limits import IMPORTED_WORDS, MODELS
from constellations.models import NormalForm
from constellations.plan.condensed import condense_plan, expand_plan
from constellations.plan.fitting import KnownDevices
from constellations.plan.keys.calls import COMMAND
from constellations.plan.plain_text import text
from constellations.plan.plan import Plan, parse_plan
from constellations.reads.devices import barred_devices, known_devices

SALT = "orrery.normal_form"
BARRED_SHOWN = 100
"""Tasks of a plan that are told to name a device which is not for their owner."""

NAMED_BY = 60
"""Characters of a request in words that name its session."""


def _digest_reader() -> bytes:
    """Tells the code apart that reads plans. The answer is looked for once: the files may change while a process runs."""
    sources = sorted(Path(room.__path__[0]).rglob("*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).digest()


READER = _digest_reader()


def read_plan(payload: Fields) -> Plan:
    """Read a payload as far as the database's devices; raises AgentsError with the places of what is wrong."""
    plan, request = payload.get("plan"), payload.get("request")
    if isinstance(plan, str):
        with nothing_collected():
            return parse_plan(plan, devices=_devices_for(payload), in_words=IMPORTED_WORDS in payload, profiles=read_profiles)
    if isinstance(request, str):
        return text.parse_text(request, dict(Device.objects.values_list("name", "recipes")))
    raise PayloadRejected("give a plan or a request", [{"key": "request", "message": "must be text, and so must a plan"}])


def _devices_for(payload: Fields) -> KnownDevices:
    """The devices, and the models for tasks in words: a request may name the one for all of them."""
    devices = known_devices()
    if payload.get(MODELS, {}).get("device_agent") in devices.minds:
        devices.minds |= {""}
    return devices


@dataclass(frozen=True)
class CheckedPlan:
    """A payload that can begin, and the plan that it was read into; `form` is that plan as it is written down."""

    payload: Fields
    plan: Plan
    form: str
    digest: bytes

    def name(self) -> str:
        """The plan's own, else the words that it was read from."""
        return self.plan.name or first_words(self.payload)

    def runs_commands(self) -> bool:
        """What a rule may add counts, too."""
        return any(COMMAND in _tools_of(part) for part in (self.plan.tasks, self.plan.rules))

    def refuse_for(self, owner: int) -> None:
        """Raise PlanRejected where a task names a device that the session's owner may not use."""
        named = {task["wanted_device"] for task in self.plan.tasks} - {""}
        barred = barred_devices(owner, named) if named else set()
        places = (number for number, task in enumerate(self.plan.tasks) if barred and task["wanted_device"] in barred)
        problems = [
            {"line": None, "key": f"tasks[{number}].device", "message": barred_text(self.plan.tasks[number]["wanted_device"])}
            for number in islice(places, BARRED_SHOWN)
        ]
        if problems:
            raise PlanRejected(problems)

    def lets_unasked(self) -> str:
        """What one of its tasks would let, in words. A rule is not looked at: a planner may let nothing more."""
        return next((f"{task_id}: unasked {widening}" for task_id, widening in unasked_widenings(self.plan)), "")

    def keep(self, interaction: int) -> None:
        """Write the plan down for whoever begins the interaction, in the transaction that makes it."""
        NormalForm.objects.create(interaction_id=interaction, form=self.form, seal=_seal(interaction, self.digest))


def check_plan(payload: Fields) -> CheckedPlan | CheckedWords:
    """Read a payload; raises what `read_plan` does, and NoModelProfile where it names one that is not there.

    All that takes time with its size is done here, before any lock.
    """
    try:
        plan = read_plan(payload)
    except PlanRejected as refused:
        _refuse_words(payload, refused)
        return CheckedWords(payload)
    form = json_text(condense_plan(plan))
    return CheckedPlan(payload, plan, form, _digest_reading(payload, form))


def barred_text(device: str) -> str:
    """What is said of a device that is not for the session's owner."""
    return f"the session's owner may not use {device}: its owner, or who makes devices, lets them (used_by)"


def unasked_widenings(plan: Plan) -> Iterator[tuple[str, str]]:
    """The tasks of a plan that would let models do something without asking, and what, in words."""
    for task in plan.tasks:
        if task["unasked"] and (widening := Unasked.of(task["unasked"]).widening_of(Unasked())):
            yield task["task_id"], widening


def _tools_of(written: Any) -> Iterator[str]:
    """Names of tools, wherever they stand in tasks, steps and rules."""
    if isinstance(written, Mapping):
        yield from (COMMAND for key in written if key == COMMAND)  # as plans write it
        if isinstance(name := written.get("tool"), str):
            yield name
        written = list(written.values())
    if isinstance(written, list | tuple):
        for part in written:
            yield from _tools_of(part)


def kept_plan(interaction: int, payload: Fields) -> Plan | None:
    """The plan that was written down for an interaction, if this code has read it from this very payload."""
    row = NormalForm.objects.filter(pk=interaction).values_list("form", "seal").first()
    if row is None or not constant_time_compare(row[1], _seal(interaction, _digest_reading(payload, row[0]))):
        return None
    with nothing_collected():
        return expand_plan(orjson.loads(row[0]))


def requested_plan(interaction: int, payload: Fields) -> Plan:
    """What an interaction is begun with; raises what `read_plan` does, where the plan has to be read again."""
    return kept_plan(interaction, payload) or read_plan(payload)


# Words


@dataclass(frozen=True)
class Words:
    """A request that a model makes a plan of.

    `profiles` are the model profiles that are asked, in their order; `model_profiles` names those that the constellation keeps,
    by purpose. `memory` is what the session did before (`Scene.memory`). `waits`: a person starts what is planned.
    """

    request: str
    profiles: tuple[Profile, ...]
    model_profiles: Mapping[str, str]
    memory: Sequence[Fields] = ()
    waits: bool = False


def first_words(payload: Fields) -> str:
    """What a request in words begins with, on one line; empty where there are none."""
    return shorten(payload.get("request", ""), NAMED_BY, placeholder="…")


@dataclass(frozen=True)
class CheckedWords:
    """A payload in words, which a model can be asked about."""

    payload: Fields

    def name(self) -> str:
        """Its first words."""
        return first_words(self.payload)

    def runs_commands(self) -> bool:
        """A model may plan some."""
        return True

    def refuse_for(self, owner: int) -> None:
        """No device is named yet."""

    def lets_unasked(self) -> str:
        """Nothing: a model's plan may only narrow it."""
        return ""

    def keep(self, interaction: int) -> None:
        """Nothing is written down: nothing is planned yet."""


def read_words(session: int, payload: Fields, refused: PlanRejected) -> Words:
    """A payload that the plain text's reader has `refused`, for a model; raises that refusal where it is none for one.

    Raises NoModelProfile where the profile that payload or session names is not there.
    """
    _refuse_words(payload, refused)
    known, (wanted, start) = read_profiles(), Session.objects.values_list("model_profiles", "start").get(pk=session)
    wanted = {**wanted, **payload.get(MODELS, {})}
    profiles = choose_profiles(known, "creation", wanted.get("creation", ""))
    kept = {purpose: name for purpose, name in wanted.items() if purpose in PURPOSES and name in known}
    named = {"editing": _editing_profile(known, kept, profiles), **kept}
    waits = REVIEW in (payload.get("start"), start, settings.START)
    return Words(payload["request"], profiles, named, waits=waits)


def _editing_profile(known: Mapping[str, Profile], wanted: Mapping[str, str], creation: Sequence[Profile]) -> str:
    """What edits a constellation that a model has made: where nothing else is said, that model."""
    try:
        return choose_profiles(known, "editing", wanted.get("editing", ""))[0].name
    except NoModelProfile:
        return creation[0].name


def _refuse_words(payload: Fields, refused: PlanRejected) -> None:
    """Raise `refused` where the payload is no request in words, or no model is there for any; NoModelProfile for a strange one.

    Which profile the session names is not known when a request comes; that is looked at when it begins.
    """
    request, named = payload.get("request"), payload.get(MODELS, {}).get("creation", "")
    known = read_profiles()
    if isinstance(payload.get("plan"), str) or not isinstance(request, str):
        raise refused
    if not known and not any(text.HINT in problem["message"] for problem in refused.problems):
        raise PlanRejected([*refused.problems, {"line": None, "key": "", "message": text.HINT}], "request") from refused
    if not known:
        raise refused
    text.refuse_unfit(request)
    if named:
        choose_profiles(known, "creation", named)


# The form that is kept


def _digest_reading(payload: Fields, form: str) -> bytes:
    """Of what was read, of what it was read into, and of the code that did."""
    parts = (READER, canonical_bytes(payload), form.encode())
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def _seal(interaction: int, digest: bytes) -> str:
    """What only a process with the installation's key says of a reading that belongs to this request."""
    return salted_hmac(SALT, b"%d " % interaction + digest, algorithm="sha256").hexdigest()
