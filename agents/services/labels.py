"""What people say of recorded runs: whether an agent was stuck, and since when (docs/stuck.md, "Labels")."""

from __future__ import annotations

from typing import Any

from agents import ids
from agents.errors import AgentsError
from agents.masks.masking import is_hidden
from agents.models import Evidence, Loop
from agents.streams.door import door

REASON_LENGTH = 500
"""Characters."""


class NoSuchLoop(AgentsError):
    """There is no tool loop {id}."""

    code = "no_such_loop"
    status = 404


class LabelRejected(AgentsError):
    """The label cannot be as it is described."""

    code = "label_rejected"


def loop_label(
    loop_id: int, *, stuck: bool, since: int | None = None, reason: str = "", by: str, request_id: str = ""
) -> Loop:  # fmt: skip
    """Say that a recorded run was stuck since the row of its evidence with the number `since`, or that it was not.

    It takes the place of what was said before. Raises NoSuchLoop, LabelRejected.
    """
    check_label(loop_id, stuck=stuck, since=since, reason=reason)
    with door(ids.stream_of(loop_id), by, request_id) as opened:
        label: dict[str, Any] = {"stuck": stuck, "since": since, "reason": reason, "by": by, "at": opened.turn.at}
        opened.turn.record("loop_labelled", loop_id=loop_id, set={"loop": {str(loop_id): {"label": label}}})
    return Loop.objects.get(pk=loop_id)


def check_label(loop_id: int, *, stuck: bool, since: int | None, reason: str) -> None:
    """Raises NoSuchLoop, LabelRejected."""
    if not Loop.objects.filter(pk=loop_id).exists():
        raise NoSuchLoop(f"there is no tool loop {loop_id}")
    if stuck and since is None:
        raise LabelRejected("an agent that was stuck was so since some row of its evidence: name its number")
    if not stuck and since is not None:
        raise LabelRejected("an agent that was not stuck was so since no row")
    rows = Evidence.objects.filter(loop=loop_id, kind__in=Evidence.ACTIONS, ended_at__isnull=False)
    if since is not None and not rows.filter(number=since).exists():
        last = rows.order_by("-number").values_list("number", flat=True).first()
        raise LabelRejected(f"row {since} is no action of this loop that has ended; the last one is {last or 'none'}")
    if len(reason) > REASON_LENGTH:
        raise LabelRejected(f"the reason has {len(reason)} characters, at most {REASON_LENGTH} are allowed")
    if is_hidden(reason):
        raise LabelRejected("the reason holds what is shown in the place of a secret")
