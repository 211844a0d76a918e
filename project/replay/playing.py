"""A recording carried out once more by the real engine, in the database of this process, which is to be thrown away."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import connections

from agents.engine.runner import Runner
from agents.errors import AgentsError
from agents.llm.choices import PURPOSES
from agents.llm.profiles import FROM_ENVIRONMENT
from agents.models import Agent, Approval, Device, InboxItem, ModelProfile, Policy
from agents.services.approvals import approval_decide
from agents.services.devices import device_create
from agents.services.model_profiles import model_profile_create
from agents.services.policies import policy_create
from agents.services.sessions import request_submit, session_change, session_create
from constellations.limits import REOPEN
from constellations.models import Constellation
from constellations.services.edits import edit_apply
from constellations.services.lifecycle import RETRY, constellation_reopen, constellation_retry
from project.replay.bodies import RecordedCalls, RecordedSessions, Who, who_is
from project.replay.recorder import record_session
from project.replay.recording import Fields, Recording

RUN_S = 900.0
"""A replay that has not ended by then is given up: what it has decided until then is compared."""
LOOK_S = 0.05
"""Between two looks for what a person does next."""
DECISIONS = {"approved": "approve", "rejected": "reject"}
ALONE = {"provider": "openai_compatible", "model": "recorded", "base_url": "https://replay.invalid/v1"}
"""A profile in name only: nobody asks it."""
REPLAYED = "replayed"
"""The profile with all purposes, in the place of what the installation had."""
NOT_REPEATED = ("ruling",)
"""Requests about rows of the recorded run, which have other ids here."""

log = logging.getLogger(__name__)


def play_recording(recording: Recording, profile: Fields | None = None) -> Fields:
    """What `record_session` says of the run that follows. `profile`: the keys of a model profile that is really asked."""
    content = recording.content
    user, _ = User.objects.get_or_create(username="replay", defaults={"is_superuser": True, "is_staff": True})
    _furnish(content, profile)
    session = session_create(user, content["session"].get("title", ""), by=f"user:{user.pk}")
    people = _People(session.pk, user.pk, content, RecordedCalls(recording, profile is not None))
    people.settle(content["session"])
    ReplayRunner(people).run()
    return record_session(session.pk)


def _furnish(content: Mapping[str, Any], profile: Fields | None) -> None:
    """Devices, policies and profiles as they were, where the installation does not have them."""
    for device in content["devices"]:
        if not Device.objects.filter(name=device["name"]).exists():
            limits = {name: value for name, value in device["limits"].items() if name != "env"}
            said = {name: value for name, value in device.items() if name != "unasked"}
            device_create(by="system", **{**said, "limits": limits})
    if not Policy.objects.exists():
        for policy in content["policies"]:
            policy_create(by="system", **policy)
    names = [*(name for name in content["profiles"] if name != FROM_ENVIRONMENT), REPLAYED]
    for name in names:
        if not ModelProfile.objects.filter(name__iexact=name).exists():
            purposes = list(PURPOSES) if name == names[-1] else []
            model_profile_create(name, by="system", **{**(profile or ALONE), "purposes": purposes, "fallbacks": []})


class _People:
    """Does what people did in the recorded run, when all has come that came before: requests, decisions, edits."""

    def __init__(self, session: int, user: int, content: Mapping[str, Any], calls: RecordedCalls):
        self.session, self.calls, self._by = session, calls, f"user:{user}"
        self._requests = [each for each in content["requests"] if each["kind"] not in NOT_REPEATED]
        self._edits = list(content["edits"])
        self._decided = defaultdict[tuple[Who, str], list[Fields]](list)
        for each in content["approvals"]:
            of = each["of"]
            self._decided[(of["task"], of["agent"]), each["kind"]].append(each)
        self._seen = set[int]()
        self._until = time.monotonic() + RUN_S
        self.is_over = threading.Event()

    def settle(self, told: Mapping[str, Any]) -> None:
        """The session's own settings, and its first request."""
        models = told.get("model_profiles", {}).items()
        chosen = {purpose: REPLAYED if name == FROM_ENVIRONMENT else name for purpose, name in models}
        session_change(self.session, by=self._by, models=chosen, start=told.get("start", ""))
        first = self._requests.pop(0)
        request_submit(self.session, first["kind"], secrets.token_hex(8), first["payload"], by=self._by)

    def work(self) -> None:
        """In a thread of its own, until the run is over."""
        try:
            while not self.is_over.is_set() and time.monotonic() < self._until:
                self._look()
                time.sleep(LOOK_S)
        finally:
            self.is_over.set()
            connections.close_all()

    def _look(self) -> None:
        order = self.calls.order
        for row in Approval.objects.filter(session=self.session, state="waiting").exclude(pk__in=self._seen):
            self._decide(row)
        while self._requests and order.is_due(self._requests[0]["at"]):
            self._ask(self._requests.pop(0))
        while self._edits and order.is_due(self._edits[0]["at"]):
            self._edit(self._edits.pop(0))
        working = InboxItem.objects.filter(session=self.session, state__in=("queued", "running")).exists()
        if not (working or self._requests):
            self.is_over.set()

    def _ask(self, asked: Fields) -> None:
        self._try("request", lambda: self._submit(asked["kind"], self._find_rows(asked["payload"])))

    def _submit(self, kind: str, payload: Fields) -> None:
        retry = payload.get(REOPEN, payload) if kind in ("interaction", RETRY) else {}
        if "retry" not in retry:
            request_submit(self.session, kind, secrets.token_hex(8), payload, by=self._by)
            return
        wanted = {"operations": retry["operations"], "by": self._by, "reason": retry["reason"]}
        if kind == RETRY or "every_failed" in retry:
            constellation_retry(retry["constellation"], retry["retry"], **wanted)
        else:
            constellation_reopen(retry["constellation"], retry=retry["retry"], **wanted)

    def _find_rows(self, payload: Any) -> Any:
        """The opposite of what the recorder does with rows in a payload."""
        if not isinstance(payload, dict):
            return payload
        if set(payload) == {"constellation"} and isinstance(number := payload["constellation"], int):
            found = list(Constellation.objects.filter(session=self.session).order_by("id").values_list("id", flat=True))
            return found[number] if number < len(found) else 0
        if set(payload) == {"request", "task", "agent"}:
            agents = Agent.objects.filter(session=self.session, name=payload["agent"]).order_by("-id")
            return next((agent.pk for agent in agents if who_is(agent)[0] == payload["task"]), 0)
        return {name: self._find_rows(value) for name, value in payload.items()}

    def _decide(self, row: Approval) -> None:
        """As it was decided in the recording; what nobody decided there waits here too."""
        self._seen.add(row.pk)
        known = self._decided[who_is(row.agent), row.kind]
        told = known.pop(0) if known else {}
        if (decision := DECISIONS.get(told.get("state", ""))) is not None:
            more = {name: told[name] for name in ("answer", "arguments") if name in told and decision == "approve"}
            reason = told.get("reason", "")
            self._try(
                "decision", lambda: approval_decide(row.pk, decision, by=self._by, digest=row.digest, reason=reason, **more)
            )

    def _edit(self, edit: Fields) -> None:
        rows = Constellation.objects.filter(session=self.session).order_by("id")
        if (found := list(rows[edit["request"] - 1 : edit["request"]])) != []:
            operations = edit["operations"]
            self._try("edit", lambda: edit_apply(found[0].pk, operations, author=self._by, reason=edit["reason"]))

    def _try(self, what: str, act: Any) -> None:
        """What is refused here was taken there: the runs differ, and the comparison says where."""
        try:
            act()
        except AgentsError as error:
            log.warning("a recorded %s was refused in the replay: %s", what, error)


class ReplayRunner(Runner):
    """A runner of one replay, which ends with it."""

    sessions_type = RecordedSessions

    def __init__(self, people: _People):
        super().__init__()
        self.sessions.reports.calls = people.calls  # type: ignore[attr-defined]  # RecordedReports
        self._people = people

    def run(self) -> None:
        thread = threading.Thread(target=self._people.work, name="replay", daemon=True)
        thread.start()
        try:
            super().run()
        finally:
            self._people.is_over.set()
            thread.join()

    def _done(self) -> bool:
        if self._stop_at is None and self._people.is_over.is_set():
            self.stop()
        return super()._done()
