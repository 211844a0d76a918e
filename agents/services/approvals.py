"""Deciding what an agent waits for. The decision is written under the session's lock: exactly one wins.

Who may decide: agents.access.permissions has the role and the scope, `visible_to` what is seen. `check_author` keeps out who
proposed it, and a token with a part in it (agents.access.ancestry).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

from agents import ids
from agents.access import ancestry
from agents.clock import to_datetime
from agents.engine.summon import wake_a_runner
from agents.errors import AgentsError, NoSuchSession
from agents.gates.policies import action_digest
from agents.masks.masking import is_hidden
from agents.models import Approval, Session
from agents.progress.digests import canonical_json
from agents.streams.door import Door, door
from agents.streams.tables import Fields
from agents.tools.catalogue import flaws_by_schema

REASON_LENGTH = 500
ANSWER_LENGTH = 10_000
"""Characters."""
DATA_BYTES = 64_000
"""Of what a call-back brings, as JSON."""
ARGUMENTS_BYTES = 1_000_000
"""Of edited arguments, as JSON."""
SHOWN = 5
"""Flaws of an answer that one message tells."""
STATES = {"approve": "approved", "reject": "rejected"}
"""What a decision makes of the row."""
FORM = "elicitation"
"""A question of a tool server: its answer is an object that follows the schema it gave."""
ANSWERED = ("question", "callback", FORM)
EDITABLE = ("task", "tool")
"""Kinds."""


class NoSuchApproval(AgentsError):
    """There is no approval {id}."""

    code = "no_such_approval"
    status = 404


class ApprovalDecided(AgentsError):
    """Somebody has decided it before."""

    code = "approval_decided"
    status = 409


class ApprovalExpired(AgentsError):
    """Its time is over."""

    code = "approval_expired"
    status = 409


class DigestDiffers(AgentsError):
    """What was seen is not what would be done."""

    code = "digest_differs"
    status = 409


class DecisionRejected(AgentsError):
    """A decision that nobody can take."""

    code = "decision_rejected"


class EditNotPossible(AgentsError):
    """There are no arguments to change, or not in this way."""

    code = "edit_not_possible"


class OwnProposal(AgentsError):
    """Who proposes something is not who approves it."""

    code = "own_proposal"
    status = 403


class AnswerNeeded(AgentsError):
    """A question is approved by answering it."""

    code = "answer_needed"


class AnswerUnknown(AgentsError):
    """The answer is none that was asked for."""

    code = "answer_unknown"


Effect = Callable[[Door], None]
"""Done under the session's lock, in the commit of the decision; what it raises refuses the decision."""
_EFFECTS: dict[str, Callable[[Approval], Effect]] = {}


def register_effect(kind: str, prepare: Callable[[Approval], Effect]) -> None:
    """Let approving an approval of `kind` do something itself: `prepare` reads what it needs before the lock is taken.

    Agents know nothing of graphs: `constellations` registers the edits that outside agents propose.
    """
    _EFFECTS[kind] = prepare


def visible_to(user: Any) -> QuerySet[Approval]:
    """Approvals of the sessions that `user` may see."""
    return Approval.objects.filter(session__in=Session.objects.visible_to(user))


def approval_decide(
    approval_id: int, decision: str, *, by: str, request_id: str = "", digest: str = "",
    arguments: dict[str, Any] | None = None, answer: Any = None, reason: str = "",
) -> tuple[Approval, bool]:  # fmt: skip
    """Decide: (the row, whether this changed it). `decision` is approve or reject, `by` is user:ID or token:KEY.

    `digest` is that of the action as it was seen, `arguments` put others in the place of its own, `answer` goes with the
    approval of a question (text) or a call-back (any JSON). The same decision by the same author again changes nothing.
    Where approving does something itself (`register_effect`), that is in the same commit. Raises the errors above, and what
    such an effect raises.
    """
    asked = {"digest": digest, "arguments": arguments, "answer": answer, "reason": reason}
    asked_for = _row(approval_id)
    if asked_for.kind == FORM and isinstance(answer, str):
        asked["answer"] = answer = _read_form(answer)
    check_author(asked_for, by)
    prepare = _EFFECTS.get(asked_for.kind) if decision == "approve" and asked_for.state == "waiting" else None
    effect = None if prepare is None else prepare(asked_for)  # before the lock is taken, so that nobody waits meanwhile
    try:
        with door(ids.stream_of(approval_id), by, request_id) as opened:
            row = _row(approval_id)
            ancestry.refuse_ended(by)
            changed = not (  # who has decided exactly so before changes nothing by saying it again
                (row.state, row.decided_by) == (STATES.get(decision), by)
                and (decision == "reject" or _same(row.answer, answer))
                and (arguments is None or _same(row.action.get("arguments"), arguments))
            )
            if changed:
                _decide(opened, row, decision, asked)
                if effect is not None:
                    effect(opened)
    except NoSuchSession as error:
        raise NoSuchApproval(f"there is no approval {approval_id}") from error
    if changed:
        wake_a_runner()
    return _row(approval_id), changed


def check_author(row: Approval, by: str) -> None:
    """Raise OwnProposal where `by` is who proposed it, OwnApproval where a token has another part in what was asked for."""
    if row.action.get("author") == by:
        raise OwnProposal(f"approval {row.pk} is a proposal of {by}, and somebody else decides it")
    ancestry.refuse_own_approval(row, by)


def _row(approval_id: int) -> Approval:
    found = Approval.objects.filter(pk=approval_id).first()
    if found is None:
        raise NoSuchApproval(f"there is no approval {approval_id}")
    return found


def _decide(opened: Door, row: Approval, decision: str, asked: Fields) -> None:
    """Record the decision. Raises ApprovalDecided or ApprovalExpired where the row waits no more, and what checks raise."""
    name, expires_at = f"approval {row.pk} ({row.title})", row.expires_at
    if row.state == "expired" or (row.state == "waiting" and expires_at and expires_at <= to_datetime(opened.turn.at)):
        raise ApprovalExpired(f"{name} has expired{_at(expires_at)}")
    if row.state != "waiting":
        who = f" by {row.decided_by}" if row.decided_by else ""
        raise ApprovalDecided(f"{name} was {row.state}{who}{_at(row.decided_at)}")
    _check_decision(row, decision, asked)
    changes = {
        "state": STATES[decision], "decided_at": opened.turn.at, "decided_by": opened.turn.by, "reason": asked["reason"],
        "answer": asked["answer"],
    }  # fmt: skip
    arguments = asked["arguments"]
    if arguments is not None and not _same(arguments, row.action["arguments"]):
        # with other arguments it may lead to another place, so what was looked up for the old ones goes
        action = {key: value for key, value in row.action.items() if key != "leads_to"} | {"arguments": arguments}
        changes |= {"action": action, "digest": action_digest(action), "edited": True}
    told: Fields = {"approval_id": row.pk, "kind": row.kind, "decision": decision, "title": row.title}
    if decision == "approve" and row.kind in _EFFECTS:
        changes["used_at"] = opened.turn.at
    opened.turn.record("approval_decided", set={"approval": {str(row.pk): changes}}, **told)


def _at(time: Any) -> str:
    return f" at {time:%Y-%m-%d %H:%M:%S} UTC" if time else ""


def _check_decision(row: Approval, decision: str, asked: Fields) -> None:
    """Raise where the decision does not fit the row."""
    if decision not in STATES:
        raise DecisionRejected(f"decision must be one of {', '.join(STATES)}, not {decision}")
    if len(asked["reason"]) > REASON_LENGTH:
        raise DecisionRejected(f"reason: at most {REASON_LENGTH} characters, not {len(asked['reason'])}")
    if asked["digest"] and asked["digest"] != row.digest:
        raise DigestDiffers(
            f"what you saw is not what would be done: read the action of approval {row.pk} again, and all of it"
        )
    if asked["arguments"] is not None:
        _check_edit(row, decision, asked["arguments"])
    _check_answer(row, decision, asked["answer"])


def _check_edit(row: Approval, decision: str, arguments: Any) -> None:
    if decision != "approve":
        raise EditNotPossible("arguments: a rejection does nothing, so there are none to change")
    if row.kind not in EDITABLE or not {"tool", "arguments"} <= set(row.action):
        raise EditNotPossible(f"arguments: approval {row.pk} ({row.kind}) is not about one call whose arguments could change")
    if not isinstance(arguments, dict):
        raise EditNotPossible("arguments: must be an object")
    if _size(arguments) > ARGUMENTS_BYTES:
        raise EditNotPossible(f"arguments: at most {ARGUMENTS_BYTES} bytes of JSON")
    if is_hidden(canonical_json(arguments)):
        raise EditNotPossible("arguments: they hold what is shown in the place of a secret; write it anew, or leave them out")


def _check_answer(row: Approval, decision: str, answer: Any) -> None:
    if answer is not None and (row.kind not in ANSWERED or decision != "approve"):
        raise AnswerUnknown(f"answer: to {decision} an approval of kind {row.kind} takes none")
    if decision == "approve" and row.kind == "question":
        if answer is None or (isinstance(answer, str) and not answer.strip()):
            raise AnswerNeeded(f"answer: approval {row.pk} is a question; give an answer")
        if not isinstance(answer, str) or len(answer) > ANSWER_LENGTH:
            raise AnswerUnknown(f"answer: must be text of at most {ANSWER_LENGTH} characters")
        if row.options and answer not in row.options:
            raise AnswerUnknown(f"answer: must be one of {', '.join(map(str, row.options))}")
    if decision == "approve" and row.kind == FORM and (wrong := form_flaw(row, answer)):
        raise AnswerUnknown(f"answer: {wrong}")
    if _size(answer) > DATA_BYTES:
        raise AnswerUnknown(f"answer: at most {DATA_BYTES} bytes of JSON")


def _read_form(text: str) -> Any:
    """An answer that was written as the JSON of its object, as a page's field has it; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def form_flaw(row: Approval, answer: Any) -> str:
    """What keeps an answer from being what a tool server's question asks for; empty where it is."""
    schema = row.action["arguments"]["schema"]
    if not isinstance(answer, dict):
        return f"must be an object with {', '.join(schema.get('properties', {})) or 'nothing in it'}"
    flaws = flaws_by_schema("the answer", {**schema, "additionalProperties": False}, answer)
    return "; ".join(": ".join(filter(None, (".".join(map(str, path)), said))) for path, said in flaws[:SHOWN])


def _same(one: Any, other: Any) -> bool:
    """As JSON, where true is not 1."""
    return canonical_json(one) == canonical_json(other)


def _size(value: Any) -> int:
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))
