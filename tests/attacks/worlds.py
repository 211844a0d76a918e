"""Everybody who may come, each with a world of their own: what the matrix of access asks with, and for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from agents.engine.hosted import set_device
from agents.links.moves import move_device_through
from agents.models import Agent, Budget, Device, Event, ModelProfile, Output, Policy, Token
from agents.models.access import SCOPES
from agents.services import sessions
from agents.services.budgets import budget_create
from agents.services.devices import device_create
from agents.services.model_profiles import model_profile_create
from agents.services.policies import policy_create
from agents.streams.door import door
from constellations.machines import CONSTELLATION, TASK
from constellations.models import Constellation, Task
from constellations.services.edits import edit_apply
from tests.agents.conftest import (
    NOW,
    add_actor,
    add_agents,
    add_approvals,
    add_artifacts,
    add_evidence,
    add_interaction,
    add_loop,
    add_model_calls,
    add_rows,
    make_token,
)
from tests.attacks.access_tables import OFFERED
from tests.conftest import person
from tests.constellations.planting import noop, plant

ROLES = ("nobody", "viewer", "operator", "admin")
"""`nobody` has an account and no role."""
RANKS = {"login": 0, "viewer": 1, "operator": 2, "admin": 3}
"""What an address asks of a role: any login, or at least this role. Others may stand in ROLES beside this ladder."""
TOP = max(RANKS.values())
ACTION = {"tool": "command", "arguments": {"argv": ["ls"]}}


@dataclass(frozen=True)
class Identity:
    """Who asks: nobody that we know, a login, or a token with these scopes."""

    role: str = ""
    user: Any = None
    token: str = ""
    scopes: tuple[str, ...] = ()
    client: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        if not self.role:
            return "anonymous"
        return f"{self.role} by token[{','.join(self.scopes)}]" if self.token else f"{self.role} by login"

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    def has_scope(self, scopes: str) -> bool:
        """Whether it may do what needs one of `scopes` (read|edit), and `none` no token has; a login has them all."""
        return scopes == "-" or not self.token or bool(set(scopes.split("|")) & set(self.scopes))

    def has_role(self, role: str) -> bool:
        """Whether it has one of `role` (viewer, devices|admin), or one above it; roles beside the ladder have nothing below."""
        rank = RANKS.get(self.role, 0)
        return bool(self.role) and any(part == self.role or rank >= RANKS.get(part, TOP + 1) for part in role.split("|"))


@dataclass(frozen=True)
class World:
    """Ids of what belongs to one user; all texts in it that people read have `marker`."""

    marker: str
    session: int
    agent: int
    approval: int
    callback: int
    token: str
    policy: int
    model_profile: int
    budget: int
    model_call: int
    devices: dict[str, int]
    """By the address that is asked for one in a certain state; else the empty address."""
    artifact: int
    constellation: int
    ended: int
    interaction: int
    edit: str
    rows: dict[str, int]
    """Ids by the model's label, for the admin."""

    def task(self, task_id: str) -> int:
        return self.rows[f"task:{task_id}"]


def people(*roles: str) -> dict[str, User]:
    return {role: person(f"zq-{role}", "" if role == "nobody" else role) for role in roles}


def identities(users: dict[str, User]) -> list[Identity]:
    """Everybody who may come: without a login, with one, with tokens of each scope alone, of none and of all."""
    found = [Identity(client=Client())]
    for role, user in users.items():
        client = Client()
        client.force_login(user)
        found.append(Identity(role, user, client=client))
        for scopes in ((), *((scope,) for scope in SCOPES), SCOPES):
            found.append(Identity(role, user, make_token(user, *scopes)[1], scopes, Client()))
    return found


def make_world(user: User) -> World:
    """A session of the user with an actor, work of every kind, and what waits for a decision."""
    marker = f"marker-of-{user.username}"
    session = sessions.session_create(user, f"{marker} title", by="system")
    actor = add_actor(session, "idle")
    devices = _devices()
    graph = plant(
        session, noop("done"), noop("failed"), noop("waits", after=["done"], name=f"{marker} task"), noop("more"), noop("last"),
        dependencies=[{"from": "done", "to": "more"}],
    )  # fmt: skip
    _advance(graph, done=("start", "succeed"), failed=("start", "fail"))
    edit_apply(
        graph.pk, [{"op": "add_task", "parameters": noop("added")}], author=f"user:{user.pk}", reason=marker, edit_id="mine"
    )  # fmt: skip
    ended = plant(session, noop("only"))
    _advance(ended, only=("start", "fail"))
    _close(ended)
    agent = add_agents(session, name=f"{marker} agent")[0]
    loop = add_loop(agent, session)
    evidence = add_evidence(loop, session, {"target": marker})[0]
    model_call = add_model_calls(Agent.objects.get(pk=agent), session, {"thought": marker})[0]
    attempt = _attempt(graph, agent, devices[""], marker)
    approval = add_approvals(session, agent_id=agent, title=f"{marker} asks", action=ACTION)[0]
    callback = add_approvals(session, agent_id=agent, kind="callback", title=f"{marker} awaits")[0]
    artifact = add_artifacts(session, f"{marker} kept".encode(), attempt=attempt)[0]
    interaction = add_interaction(session)
    policy = Policy.objects.order_by("pk").values_list("pk", flat=True).first()
    model_profile = ModelProfile.objects.order_by("pk").values_list("pk", flat=True).first()
    budget = Budget.objects.order_by("pk").values_list("pk", flat=True).first()
    token = Token.objects.filter(pk=make_token(user, "read", name=f"{marker} token")[0].pk).get()
    rows = {f"task:{task.task_id}": task.pk for task in graph.tasks.all()}
    rows |= {
        "session": session.pk, "actor": actor, "agent": agent, "loop": loop, "evidence": evidence, "approval": approval,
        "attempt": attempt, "modelcall": model_call, "artifact": artifact,
        "inboxitem": interaction, "constellation": graph.pk, "task": rows["task:waits"],
        "dependency": graph.dependencies.order_by("pk").values_list("pk", flat=True).last(),
        "edit": graph.edits.values_list("pk", flat=True).last(),
        "event": Event.objects.filter(stream_id=session.pk).values_list("pk", flat=True).last(), "stream": session.pk,
    }  # fmt: skip
    return World(
        marker, session.pk, agent, approval, callback, token.token_key, policy, model_profile, budget,
        model_call, devices, artifact, graph.pk,
        ended.pk, interaction, "mine", rows,
    )  # fmt: skip


def _attempt(graph: Constellation, agent: int, device: int, marker: str) -> int:
    """An attempt of the first task, which said something."""
    row = {
        "task_id": graph.tasks.get(task_id="done").pk, "number": 1, "agent_id": agent, "device_id": device, "fence": 1,
        "holds_slot": False, "started_at": NOW, "ended_at": NOW, "outcome": "completed",
    }  # fmt: skip
    attempt = add_rows(graph.session_id, "attempt", [row])[0]
    Output.objects.create(attempt_id=attempt, offset=0, text=f"{marker} said")
    return attempt


def _devices() -> dict[str, int]:
    if not Policy.objects.exists():
        policy_create(decision="ask", tool="write_file", by="system")
        model_profile_create("everyones", provider="anthropic", model="m", by="system")
        budget_create(scope="installation", tokens=1_000_000, by="system")
    if not Device.objects.exists():
        device_create("everyones", by="system")
        for name, events in (
            ("unused", ()), ("connected", ("dial", "accepted")), ("draining", ("dial", "accepted", "drain")),
            ("failed", ("dial", "accepted", "fault")),
        ):  # fmt: skip
            made = device_create(name, kind="remote", by="system").pk
            if events:
                move_device_through(made, events)
        web = {"transport": "http", "url": "https://tools.example/mcp"}
        changed = device_create("changed", kind="mcp", connection=web, by="system").pk
        set_device(changed, "device_changed", facts={"offered": [OFFERED]})
    known = dict(Device.objects.values_list("name", "pk"))
    at = "/api/devices/{pk}"
    tokens = dict.fromkeys([f"POST {at}/enrolment", f"POST {at}/tokens/rotate"], known["unused"])
    return {
        "": known["everyones"], f"DELETE {at}": known["unused"], f"POST {at}/drain": known["connected"],
        f"POST {at}/undrain": known["draining"], f"POST {at}/reset": known["failed"], **tokens,
        f"POST {at}/tools/accept": known["changed"],
    }  # fmt: skip


def _advance(graph: Constellation, **events: tuple[str, ...]) -> None:
    """Send tasks events of their machine, one after the other."""
    facts = {"fail": {"attempts_left": False}}
    with door(graph.session_id, "system") as opened:
        for task_id, names in events.items():
            task = Task.objects.get(constellation=graph, task_id=task_id)
            row = {"id": task.pk, "state": task.state, "reason": "", "entered_at": opened.turn.at}
            for name in names:
                opened.turn.transition(TASK, "task", row, name, facts.get(name, {}))


def _close(graph: Constellation) -> None:
    with door(graph.session_id, "system") as opened:
        row = {"id": graph.pk, "state": "EXECUTING", "reason": "", "entered_at": opened.turn.at}
        opened.turn.transition(CONSTELLATION, "constellation", row, "close", {"verdict": "none_completed"})


# What a request has done


class Writes:
    """Statements that change something, but for when a token or a login was last used, and for what a login is told next."""

    HARMLESS = ('UPDATE "agents_token" SET "last_used"', 'UPDATE "django_session"', "SAVEPOINT", "RELEASE", "ROLLBACK")

    def __init__(self) -> None:
        self.found: list[str] = []

    def __call__(self, execute, sql, params, many, context):
        text = sql.lstrip().upper()
        if text.startswith(("INSERT", "UPDATE", "DELETE", "WITH")) and not text.startswith(
            tuple(each.upper() for each in self.HARMLESS)
        ):
            self.found.append(sql[:120])
        return execute(sql, params, many, context)


@contextmanager
def taken_back() -> Iterator[Writes]:
    """Whatever happens in it is undone; what was written is known. The hand-written statements always bring an event."""
    writes, before = Writes(), Event.objects.count()
    with transaction.atomic():
        with connection.execute_wrapper(writes):
            yield writes
        if not transaction.get_connection().needs_rollback and (events := Event.objects.count() - before):
            writes.found.append(f"{events} events")
        transaction.set_rollback(True)


def pairs(users: dict[str, User], worlds: dict[str, World]) -> list[tuple[Identity, World, bool]]:
    """(who, whose world, whether it is theirs): everybody with their own, and with a stranger's."""
    found = []
    for who, own in product(identities(users), (True, False)):
        if who.role or not own:
            found.append((who, worlds[who.role if own else "stranger"], own))
    return found
