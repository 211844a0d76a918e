"""What an agent did, one row an action, as the rules see it: digests to compare, and the raw error for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agents.progress.calls import kind_of_call
from agents.progress.digests import arguments_digest, canonical_json, error_digest, text_digest
from agents.progress.settings import Settings

Kind = Literal["tool", "test", "message", "poll"]
UNKNOWN = ""
"""The state before a change when nobody looked."""
ABSENT = "absent"
"""The state of a file that is not there."""


@dataclass(frozen=True)
class Evidence:
    """One action. `call` is the digest of its arguments; `error` is empty for none; `outcome` is the digest of what it
    answered or of the file's state after it, None where nothing was observed; `before` is the state a change found
    (UNKNOWN, ABSENT or a digest), None for what is no change; `error_kind` is the type of a fault, see calls.INFRASTRUCTURE.
    The shapes are of what was answered (empty: it was seen to say nothing), of the arguments and of the error (empty: not
    known), see agents.progress.shapes.
    `ordered`: the plan itself ordered this retry, so it is no repetition of the agent's own.
    """

    tool: str
    target: str
    call: str
    success: bool = True
    error: str = ""
    outcome: str | None = None
    before: str | None = None
    kind: Kind = "tool"
    raw_error: str = ""
    error_kind: str = ""
    shape: str | None = None
    call_shape: str = ""
    error_shape: str = ""
    ordered: bool = False


@dataclass(frozen=True)
class Control:
    """Something that is no action: a person's message, the system's own nudge, a phase's start, a compaction of the context."""

    kind: Literal["user", "nudge", "phase", "compaction"]


Item = Evidence | Control


def evidence_of(
    tool: str, target: str, arguments: Any, settings: Settings, *,
    result: Any = None, error: str = "", error_kind: str = "", success: bool | None = None,
    before: str | None = None, after: str | None = None, kind: Kind | None = None,
) -> Evidence:  # fmt: skip
    """The row of a call that ended. For a change, `before` and `after` are digests of the content (ABSENT: no file);
    without them the result is the outcome. A call without an error went well unless `success` says otherwise.
    """
    return Evidence(
        tool=tool, target=target, call=arguments_digest(arguments),
        success=not error if success is None else success,
        error=error_digest(error, target), raw_error=error, error_kind=error_kind,
        outcome=_outcome(result) if after is None else after, before=before,
        kind=kind or kind_of_call(tool, target, settings),
    )  # fmt: skip


def message_of(text: str) -> Evidence:
    """The row of something the agent said."""
    said = text_digest(" ".join(text.split()).casefold())
    return Evidence(tool="", target="", call=said, outcome=said, kind="message")


def _outcome(result: Any) -> str | None:
    """An empty answer carries no information: nothing was observed."""
    if result is None:
        return None
    text = result.strip() if isinstance(result, str) else canonical_json(result)
    return text_digest(text) if text else None
