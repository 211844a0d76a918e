"""What follows from a fault, by its kind (docs/machines.md, "4. Tool loop"). Pure.

A fault is a call that could not do its work, in contrast to one that did it and failed.
"""

from __future__ import annotations

from typing import Literal

Way = Literal["retry", "wait", "longer", "steer", "ask", "check", "give_up"]

KINDS = (
    "rate_limit", "server_error", "connection_lost", "timeout", "bad_arguments", "missing", "permission", "lost", "interrupted",
    "denied", "broken",
)  # fmt: skip
"""Kinds of error. Those of the infrastructure, what was lost and what was interrupted are no evidence of being stuck."""
ENDINGS = {"lost": "lost", "interrupted": "cancelled", "timeout": "timeout"}
"""How a call ended (Outcome.outcome) that ended neither well nor badly, by the kind of its error."""
FAULTS = frozenset(KINDS) - {"denied"}
"""Kinds after which the loop recovers; any other error is an answer, and goes back to whoever asked."""
WAITS = ("rate_limit", "server_error", "connection_lost")
RECOVERIES = 3
"""Faults of one step that are recovered from; the next one is given up."""
STRETCH = 2.0
"""Factor on the time-out of a call that ran out of time."""
FIRST_S, LONGEST_S = 2.0, 60.0
"""Of the waits between two recoveries from faults of the infrastructure, beyond those of the call itself."""


def way_out(kind: str, made: int, *, on_lost: str = "retry", detour: bool = False, own: bool = False) -> Way:
    """What to do about the `made`-th fault of a step.

    wait: again after a pause. longer: again with more time. steer: whoever asked is told what the arguments must be, or takes
    the `detour` that the step names. ask: a person says what now. check: the step has an answer of its `own` to a failure.
    """
    if kind == "interrupted":
        return "retry"
    if kind == "lost":
        again: Way = {"retry": "retry", "ask": "ask"}.get(on_lost, "give_up")  # type: ignore[assignment]
        return again if made <= RECOVERIES else "give_up"
    if kind in WAITS and made <= RECOVERIES:
        return "wait"
    if own:
        return "check"
    if made > RECOVERIES:
        return "give_up"
    if detour:
        return "steer"
    return {"timeout": "longer", "bad_arguments": "steer", "missing": "ask", "permission": "ask"}.get(kind, "give_up")  # type: ignore[return-value]


ModelWay = Literal["wait", "steer", "shorten", "ask", "more", "give_up"]
MODEL_WAYS: dict[str, ModelWay] = {
    **dict.fromkeys(
        (
            "model_unreachable", "model_first_token_late", "model_answer_broken", "model_call_too_long", "model_rate_limited",
            "model_provider_failed", "model_limit_reached",
        ),
        "wait",
    ),
    **dict.fromkeys(("model_answer_empty", "model_answer_unreadable", "model_answer_too_large", "bad_answer"), "steer"),
    "model_context_too_long": "shorten",
    "model_budget_used_up": "more",
    **dict.fromkeys(
        (
            "model_key_rejected", "model_unknown", "model_quota_used_up", "model_profile_unusable", "model_address_refused",
            "no_model_profile",
        ),
        "ask",
    ),
}  # fmt: skip
"""What to do about a fault of a model's call, by its code: where a person can mend it, one is asked; else it is given up."""


def model_way(code: str, made: int) -> ModelWay:
    """What to do about the `made`-th fault in a row of an agent's calls of its model, beyond what the call itself has tried.

    wait: asked again after a pause. steer: asked again at once. shorten: asked again with less. ask: a person says what now.
    more: a person may raise its budget, where that says so.
    """
    way = MODEL_WAYS.get(code, "give_up")
    return way if way in ("ask", "more") or made <= RECOVERIES else "give_up"
