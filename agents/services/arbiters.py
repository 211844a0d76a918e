"""The arbiter of an installation: asked whether an agent that the rules suspect is stuck (docs/stuck.md, "The arbiter").

It is a function, such as a call of a language model. It is asked beside the runner's loop, in a thread of its own, and the
agent goes on meanwhile. Its ruling is a request to the session, as a person's word would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from threading import BoundedSemaphore, Thread
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from agents.errors import AgentsError
from agents.masks.values import mask_text
from agents.minds.untrusted import RULE, quote_untrusted
from agents.models import Agent, Evidence
from agents.reads.verdicts import describe_rule
from agents.services.sessions import ActorEnded, request_submit
from agents.streams.door import door

Arbiter = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Takes (prompt, suspicion), returns {"stuck": bool, "why": text}."""

PROMPT = Template(Path(__file__).with_name("arbiter_prompt.txt").read_text())
RULING_S = 60.0
"""An answer that takes longer is not taken."""
ASKED_AT_ONCE = 4
"""Suspicions of one process that an arbiter looks at; one that never answers keeps its place."""
ACTIONS_SHOWN = 40
"""Latest rows of evidence in a prompt."""
ACTIONS_CHARACTERS = 20_000
"""Of all these rows together."""
TEXT_SHOWN = 300
"""Characters of a target or an error in it, and of the reason in the answer."""

_places = BoundedSemaphore(ASKED_AT_ONCE)


class ArbiterBusy(AgentsError):
    """The arbiter looks at as many suspicions as it may."""

    code = "arbiter_busy"


def on_suspicion(session: int, suspicion: Mapping[str, Any]) -> None:
    """The hook of that name: ask the arbiter, and do not wait for it. Raises ArbiterBusy."""
    if not _places.acquire(blocking=False):
        raise ArbiterBusy(f"the arbiter looks at {ASKED_AT_ONCE} suspicions already")
    Thread(target=_ask, args=(session, dict(suspicion)), name="arbiter", daemon=True).start()


def _ask(session: int, suspicion: dict[str, Any]) -> None:
    try:
        ruling = rule_on(suspicion)
        with suppress(ActorEnded):  # nobody is left to be told
            client_id = f"ruling:{suspicion['agent_id']}:{suspicion['rows'][-1]}:{suspicion['identity']}"
            request_submit(session, "ruling", client_id, {"suspicion": suspicion, **ruling}, by="system")
    except Exception as error:  # whatever it is, the arbiter is the installation's own code
        with door(session, "system") as opened:
            opened.turn.record("hook_failed", hook="arbiter", message=f"{type(error).__name__}: {error}"[:TEXT_SHOWN])
    finally:
        connections.close_all()
        _places.release()


def rule_on(suspicion: Mapping[str, Any]) -> dict[str, Any]:
    """{"stuck", "why", "by"} as the arbiter says. Raises TimeoutError for a late answer, ValueError for one of another form."""
    path = settings.STUCK_ARBITER
    arbiter: Arbiter = import_string(path)
    began = monotonic()
    said = arbiter(write_prompt(suspicion), suspicion)
    if monotonic() - began > RULING_S:
        raise TimeoutError(f"the arbiter took longer than {RULING_S:g} s")
    if not isinstance(said, Mapping) or not isinstance(said.get("stuck"), bool):
        raise ValueError('the arbiter must answer {"stuck": true or false, "why": "..."}')
    return {"stuck": said["stuck"], "why": str(said.get("why", ""))[:TEXT_SHOWN], "by": path}


def write_prompt(suspicion: Mapping[str, Any]) -> str:
    """What the arbiter is asked, with secrets hidden."""
    agent = Agent.objects.get(pk=suspicion["agent_id"])
    rows = Evidence.objects.filter(loop__agent=agent, ended_at__isnull=False).order_by("-id")[:ACTIONS_SHOWN]
    told = {
        "untrusted": RULE,
        "about": describe_rule(suspicion["rule"]), "rows": ", ".join(map(str, suspicion["rows"])), "task": agent.name,
        "actions": quote_untrusted("the agent's actions", "\n".join(map(_line_of, reversed(rows))), ACTIONS_CHARACTERS),
    }  # fmt: skip
    return mask_text(PROMPT.substitute(suspicion, **told))


def _line_of(row: Evidence) -> str:
    target = row.target or str(row.arguments.get("text", ""))
    went = "went well" if row.success else f"failed: {row.raw_error or row.error_kind}"
    return " ".join(f"{row.number} {row.kind} {row.tool} {target[:TEXT_SHOWN]}: {went[:TEXT_SHOWN]}".split())
