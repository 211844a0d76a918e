"""Recorded traces of agents' actions, and how well the rules judge them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from agents.progress.calls import kind_of_call, kind_of_tool
from agents.progress.digests import error_digest
from agents.progress.evidence import UNKNOWN, Control, Evidence, Item, Kind
from agents.progress.settings import Settings
from agents.progress.shapes import shape_of
from agents.progress.state import State
from agents.progress.tracker import DEFAULTS, judge_item

SILENCE = frozenset(f(b"").hexdigest()[:length] for f in (hashlib.sha1, hashlib.sha256, hashlib.md5) for length in (12, 16, 64))
"""Digests of an answer that says nothing, as recorded runs have them: nothing was observed."""
_CUT = re.compile(r"\s*~[a-z]{12}$")
"""What recorded runs put behind the first line of an error: a digest of all of it, its times and ids with it."""
CONTROLS = ("user", "nudge", "phase", "compaction")
NO_REASON = "(no reason)"
_INFRASTRUCTURE = re.compile(
    r"\b429\b|\b50[0234]\b (internal|bad gateway|service|gateway)|rate.?limit|too many requests|service unavailable|bad gateway"
    r"|connection (was )?(reset|lost|aborted)|ECONNRESET|overloaded",
    re.IGNORECASE,
)
"""A trace does not hold the kind of a fault; the live system knows it and never looks at the text."""


@dataclass(frozen=True)
class TraceJudgement:
    """One trace judged: `index` is the item at which a rule fired first (`eval: final`: the last item); None: not stuck.

    `kind` is what the trace gives as its reason, `sentence` what the verdict says of itself.
    """

    name: str
    expected: bool
    detect_by: int | None
    index: int | None
    rule: str
    kind: str = ""
    sentence: str = ""

    @property
    def right(self) -> bool:
        return self.expected == (self.index is not None)


def items_of(trace: Mapping[str, Any], settings: Settings = DEFAULTS) -> list[Item]:
    """The trace's actions as items; raises KeyError for an action without kind, tool or target."""
    settings = replace(settings, poll_tools=(*settings.poll_tools, *trace.get("poll_tools", ())))
    return [item_of(action, settings) for action in trace["actions"]]


def item_of(action: Mapping[str, Any], settings: Settings) -> Item:
    """One action of a trace (its `content_hash` is a file's state after a change, else the digest of the result).

    A run of our own says its `call_kind`: it knows what has to be guessed of any other trace.
    """
    kind, tool, target = action["kind"], action["tool"], action["target"] or ""
    if kind in CONTROLS:
        return Control(kind)
    known: Kind | None = action.get("call_kind")
    changes = action.get("pre_hash") is not None or (known is None and kind_of_tool(tool, settings) == "change")
    outcome = action.get("content_hash")
    silent = outcome in SILENCE and not changes and not known
    error = action.get("error") or ""
    if not known:
        error = _CUT.sub("", error)
    return Evidence(
        tool=tool, target=target, call=action["args_digest"], success=action["success"],
        error=action.get("error_digest") or error_digest(error, target), raw_error=error,
        error_kind=_kind_of_error(action, error),
        outcome=None if silent else outcome, before=(action.get("pre_hash") or UNKNOWN) if changes else None,
        kind=known or (kind_of_call(tool, target, settings) if kind == "tool" else kind),
        shape="" if silent else action.get("shape"), call_shape=action.get("args_shape") or "",
        error_shape=action.get("error_shape") or ("" if known else shape_of(error)),
        ordered=bool(action.get("ordered")),
    )  # fmt: skip


def _kind_of_error(action: Mapping[str, Any], error: str) -> str:
    """A recorded run knows the kind; of any other trace it has to be guessed."""
    if "error_kind" in action:
        kind: str = action["error_kind"]
        return kind
    return "server_error" if _INFRASTRUCTURE.search(error) else ""


def judge_trace(trace: Mapping[str, Any], settings: Settings = DEFAULTS) -> TraceJudgement:
    """`eval: any` is stuck when a rule fires after any prefix; `final` when one does after the last action."""
    state, index, hit = State(), None, None
    for place, item in enumerate(items_of(trace, settings), 1):
        state, found = judge_item(state, item, settings)
        hits = [one for one in found if one.strength >= 1]
        if hits:
            index, hit = place, hits[0]
        elif trace["eval"] == "final":
            index, hit = None, None
        if hit and trace["eval"] != "final":
            break
    return TraceJudgement(
        trace["name"], trace["expected_stuck"], trace["detect_by"], index, hit.rule if hit else "",
        kind=trace.get("reason") or "", sentence=hit.sentence if hit else "",
    )  # fmt: skip


@dataclass(frozen=True)
class Score:
    """How well traces were judged. `false_alarms` are of `benign` traces; `latency` is the median, over the stuck traces
    caught, of the actions past `detect_by` (0: in time).
    """

    precision: float
    recall: float
    f1: float
    latency: int
    stuck: int
    caught: int
    benign: int
    false_alarms: int
    misjudged: Sequence[TraceJudgement]


def score_judgements(judgements: Iterable[TraceJudgement]) -> Score:
    judged = list(judgements)
    expected = [one for one in judged if one.expected]
    caught = [one for one in expected if one.index is not None]
    false_alarms = sum(one.index is not None for one in judged) - len(caught)
    late = [max(0, (one.index or 0) - one.detect_by) for one in caught if one.detect_by is not None]
    precision, recall = _share(len(caught), len(caught) + false_alarms), _share(len(caught), len(expected))
    return Score(
        precision, recall, _share(2 * precision * recall, precision + recall), median_low(late) if late else 0,
        stuck=len(expected), caught=len(caught), benign=len(judged) - len(expected), false_alarms=false_alarms,
        misjudged=[one for one in judged if not one.right],
    )  # fmt: skip


def score_by_kind(judgements: Iterable[TraceJudgement]) -> dict[str, Score]:
    """The score of each kind of trace, the kinds of standstill first; a trace without a reason is of kind `(no reason)`."""
    kinds: dict[tuple[bool, str], list[TraceJudgement]] = {}
    for one in judgements:
        kinds.setdefault((not one.expected, one.kind or NO_REASON), []).append(one)
    return {kind: score_judgements(kinds[benign, kind]) for benign, kind in sorted(kinds)}


def count_by_rule(judgements: Iterable[TraceJudgement]) -> dict[str, tuple[int, int]]:
    """Rule > how often its verdict was the first, rightly and wrongly."""
    counts: dict[str, tuple[int, int]] = {}
    for one in judgements:
        if one.index is not None:
            rightly, wrongly = counts.get(one.rule, (0, 0))
            counts[one.rule] = (rightly + one.expected, wrongly + (not one.expected))
    return dict(sorted(counts.items()))


def _share(part: float, whole: float) -> float:
    """0 of 0 is 0, as nothing was shown."""
    return part / whole if whole else 0.0
