"""The rows of what calls have kept, written in the turn that records how the calls ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents.artifacts.store import DIGEST
from agents.models import Artifact
from agents.streams.turn import Turn

MOST = 1_000
"""Artifacts that one outcome brings; what is more was kept in vain, and is swept."""
KEYS = ("name", "kind", "media_type", "size", "sha256")


def record_artifacts(
    turn: Turn, session: int, references: Iterable[Mapping[str, Any]], *, attempt: int | None, call: int | None
) -> list[dict[str, Any]]:
    """Record what a call of an attempt has kept (`Outcome.artifacts`); the rows. What refers to no content is left out."""
    rows = [
        {"id": turn.take(), "session_id": session, "attempt_id": attempt, "call_id": call, "created_at": turn.at}
        | {key: each[key] for key in KEYS}
        for each in list(references)[:MOST]
        if _is_reference(each)
    ]
    if rows:
        turn.record("artifacts_kept", attempt_id=attempt, add={"artifact": rows})
    return rows


def _is_reference(told: Mapping[str, Any]) -> bool:
    """Whether it is what `keep_artifact` gave: what a device says passes here, too."""
    return (
        all(key in told for key in KEYS)
        and told["kind"] in Artifact.KINDS
        and isinstance(told["sha256"], str)
        and DIGEST.fullmatch(told["sha256"]) is not None
    )
