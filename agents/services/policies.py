"""The installation's policies: what tools may do, ask for or not do. Kept in the system stream."""

from __future__ import annotations

from typing import Any

from agents.decisions import DECISIONS
from agents.errors import AgentsError
from agents.masks.masking import is_hidden
from agents.models import Policy
from agents.patterns import pattern_fault
from agents.streams.door import door, system_stream

POLICIES = 500
"""An installation has at most so many."""
NAME_LENGTH = 80
NOTE_LENGTH = 500
"""Characters."""
ORDER_LIMIT = 1_000_000
"""The furthest from zero that an order may be."""
FIELDS = {
    "order": 100, "tool": "*", "pattern": "", "device": "*", "label": "*", "decision": None, "critical": False, "note": "",
}  # fmt: skip
"""What a policy says, and what it says by default; a decision must be given."""

Problem = dict[str, str]


class NoSuchPolicy(AgentsError):
    """There is no policy {id}."""

    code = "no_such_policy"
    status = 404


class PolicyRejected(AgentsError):
    """The policy cannot be as it is described; `problems` name the fields."""

    code = "policy_rejected"


class TooManyPolicies(AgentsError):
    """The installation has as many policies as it may have."""

    code = "too_many_policies"
    status = 409


def policy_create(*, by: str, request_id: str = "", **fields: Any) -> Policy:
    """A new policy from the keys of FIELDS; raises PolicyRejected, TooManyPolicies."""
    said = {**FIELDS, **fields}
    check_policy(said)
    with door(system_stream(), by, request_id) as opened:
        if is_full():
            raise TooManyPolicies(f"there are {POLICIES} policies already; delete one first")
        row = {"id": opened.take(), "created_at": opened.turn.at, **said}
        opened.turn.record("policy_created", add={"policy": [row]})
    return Policy.objects.get(pk=row["id"])


def is_full() -> bool:
    """Whether the installation has all the policies it may have."""
    return Policy.objects.count() >= POLICIES


def policy_change(policy_id: int, *, by: str, request_id: str = "", **fields: Any) -> Policy:
    """Change what is given; what is so already is not recorded. Raises NoSuchPolicy, PolicyRejected."""
    with door(system_stream(), by, request_id) as opened:
        before = _said(policy_id)
        check_policy({**before, **fields})
        changes = {name: value for name, value in fields.items() if value != before[name]}
        if changes:
            opened.turn.record("policy_changed", set={"policy": {str(policy_id): changes}})
    return Policy.objects.get(pk=policy_id)


def policy_delete(policy_id: int, *, by: str, request_id: str = "") -> None:
    """Calls that begin later than a second from now are judged without it; raises NoSuchPolicy."""
    with door(system_stream(), by, request_id) as opened:
        before = _said(policy_id)
        opened.turn.record("policy_deleted", delete={"policy": [policy_id]}, **before)


def _said(policy_id: int) -> dict[str, Any]:
    """What the policy says now."""
    found = Policy.objects.filter(pk=policy_id).values(*FIELDS).first()
    if found is None:
        raise NoSuchPolicy(f"there is no policy {policy_id}")
    return found


def check_policy(fields: dict[str, Any]) -> None:
    """Raise PolicyRejected with the place of everything that is wrong."""
    problems = problems_of(fields)
    if problems:
        raise PolicyRejected("; ".join(f"{each['key']}: {each['message']}" for each in problems), problems)


def problems_of(fields: dict[str, Any]) -> list[Problem]:
    """What is wrong with a policy that says `fields`, a place each: {"key", "message"}."""
    found = [(name, "there is no such field") for name in fields if name not in FIELDS]
    for name in ("tool", "device", "label"):
        empty = "must not be empty; * stands for any"
        found.append((name, _text_fault(fields[name], NAME_LENGTH) or ("" if fields[name].strip() else empty)))
    pattern, order = fields["pattern"], fields["order"]
    if not isinstance(pattern, str):
        found.append(("pattern", "must be text"))
    else:
        found.append(("pattern", HIDDEN if is_hidden(pattern) else pattern_fault(pattern)))
    found.append(("note", _text_fault(fields["note"], NOTE_LENGTH)))
    if not isinstance(order, int) or isinstance(order, bool) or abs(order) > ORDER_LIMIT:
        found.append(("order", f"must be a whole number from {-ORDER_LIMIT} to {ORDER_LIMIT}"))
    if fields["decision"] not in DECISIONS:
        found.append(("decision", f"must be one of {', '.join(DECISIONS)}"))
    if not isinstance(fields["critical"], bool):
        found.append(("critical", "must be true or false"))
    return [{"key": name, "message": fault} for name, fault in found if fault]


HIDDEN = "holds what is shown in the place of a secret; leave it as it was, or write it anew"


def _text_fault(text: Any, longest: int) -> str:
    if not isinstance(text, str):
        return "must be text"
    if is_hidden(text):
        return HIDDEN
    return "" if len(text) <= longest else f"has {len(text)} characters, at most {longest} are allowed"
