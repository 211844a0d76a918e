"""Evidence as rows, and read back from them: what the rules of `agents.progress` remember is never stored itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import orjson

from agents.gates.policies import target_of
from agents.progress.digests import canonical_json
from agents.progress.evidence import Control, Evidence, evidence_of, message_of
from agents.progress.rules.hits import ROWS_SHOWN, quote_text
from agents.progress.settings import Settings
from agents.progress.shapes import shape_of
from agents.progress.state import STEERED_LIMIT, State, Suspicion, with_newest
from agents.progress.tracker import Verdict, accept_loop, confirm_suspicion, observe_item, suspicion
from agents.streams.row_types import EvidenceRow
from agents.streams.tables import Fields
from agents.tools.calls import Outcome

RAW_ERROR = 4_000
"""Characters of an error that a row keeps; the digest is of the whole."""
TARGET = 2_000
RESULT_BYTES = 64_000
"""A larger result is not kept with the evidence."""
ARGUMENT_BYTES = 64_000
CONTROLS = ("user", "nudge", "phase", "compaction")
CALLS = ("tool", "test", "poll")
"""Kinds of evidence that calls leave."""
ASKED_FROM = 0.75
"""The score of a suspicion from which an arbiter is asked about it."""
TRIES_USED_UP = "tries_used_up"
"""The rule of the verdict on a step that has made all its tries; no rule of `agents.progress`."""


class LoopMemory:
    """What one loop has done: its rows' numbers, the rules' state, and what they said of the last row.

    `called` are the numbers of the latest calls, as many as a verdict names. `suspicion` is one of the last row that nobody has
    been asked about, and `asked` are the loops of those before.
    """

    def __init__(self, settings: Settings, accepted: Iterable[str] = ()):
        self.settings = settings
        self.state = State()
        self.count = 0
        self.called: list[int] = []
        self.verdict: Verdict | None = None
        self.suspicion: Suspicion | None = None
        self.asked: dict[str, bool] = {}
        self._pending: Verdict | None = None
        for identity in accepted:
            self.state = accept_loop(self.state, identity)

    def take(self, row: EvidenceRow) -> Verdict | None:
        """A row that is complete."""
        self.count = max(self.count, row["number"])
        self.verdict = None
        if row["kind"] in CALLS:
            self.called = [*self.called, row["number"]][-ROWS_SHOWN:]
        self.suspicion = None
        if row["kind"] in ("accept", "ruling"):  # counted, so that the rows a verdict names are numbers of rows
            self.state = replace(self.state, observed=self.state.observed + 1)
            return self._take_word(row)
        self.state, verdict = observe_item(self.state, item_of(row), self.settings)
        self.suspicion = self._new_suspicion()
        # What follows from no action of the agent's waits for the end of one, because the agent is told at no other time.
        if row["kind"] in CONTROLS:
            self._pending = verdict or self._pending
        else:
            self.verdict, self._pending = verdict or self._pending, None
        return verdict

    def _take_word(self, row: EvidenceRow) -> Verdict | None:
        """What somebody says of a loop: that it is none, or whether a suspicion is right."""
        if row["kind"] == "accept":
            self.state = accept_loop(self.state, row["target"])
        elif row["arguments"]["stuck"]:
            suspected = {field.name: row["arguments"]["suspicion"][field.name] for field in fields(Suspicion)}
            suspected["rows"] = tuple(suspected["rows"])
            self.state, self._pending = confirm_suspicion(self.state, Suspicion(**suspected), self.settings)
            return self._pending
        return None

    def _new_suspicion(self) -> Suspicion | None:
        """What the rules suspect now, strongly, and for the first time."""
        found = suspicion(self.state)
        if found is None or found.score < ASKED_FROM or found.identity in self.asked or found.identity in self.state.steered:
            return None
        self.asked = with_newest(self.asked, found.identity, True, STEERED_LIMIT)
        return found

    def read(self, rows: Iterable[EvidenceRow]) -> EvidenceRow | None:
        """All rows of a loop; returns the one whose call had not ended.

        They are taken in the order in which they ended. What was accepted in the course of it counts from there on.
        """
        unended, ordered = None, sorted(rows, key=_order)
        since = {row["target"] for row in ordered if row["kind"] == "accept"}
        self.state = replace(self.state, accepted={one: True for one in self.state.accepted if one not in since})
        for row in ordered:
            if row["ended_at"] is None:
                unended = row
                self.count = max(self.count, row["number"])
            else:
                self.take(row)
        return unended


def _order(row: EvidenceRow) -> tuple[bool, str, bool, int]:
    """What a person accepts, and what an arbiter rules, comes first in its turn, as all requests do."""
    return row["ended_at"] is None, row["ended_at"] or "", row["kind"] not in ("accept", "ruling"), row["number"]


def item_of(row: EvidenceRow) -> Evidence | Control:
    """A row as the rules see it."""
    if row["kind"] in CONTROLS:
        return Control(row["kind"])  # type: ignore[arg-type]
    return Evidence(
        tool=row["tool"], target=row["target"], call=row["call"], success=bool(row["success"]), error=row["error"],
        outcome=row["outcome"], before=row["before"],
        kind="tool" if row["kind"] == "observe" else row["kind"],  # type: ignore[arg-type]
        raw_error=row["raw_error"], error_kind=row["error_kind"], ordered=row["ordered"],
        shape=row["shape"], call_shape=row["call_shape"], error_shape=row["error_shape"],
    )  # fmt: skip


def call_row(tool: str, arguments: Mapping[str, Any], kind: str, settings: Settings, writes: str = "") -> Fields:
    """The fields that are known when a call begins; raises TypeError for arguments that are not JSON."""
    target = writes or target_of(tool, arguments)
    item = evidence_of(tool, target, arguments, settings, kind=kind or None)  # type: ignore[arg-type]
    kept = dict(arguments) if len(orjson.dumps(arguments)) <= ARGUMENT_BYTES else {}
    return {
        "kind": item.kind, "tool": tool, "target": target[:TARGET], "arguments": kept, "call": item.call,
        "call_shape": shape_of(canonical_json(arguments)),
    }  # fmt: skip


def ended_fields(row: Mapping[str, Any], outcome: Outcome, wrong: str, at: str) -> Fields:
    """What the end of a call adds to its row; `wrong` is what was missing, empty when it went well."""
    item = evidence_of(
        row["tool"], row["target"], row["arguments"], Settings(), result=outcome.result, error=wrong,
        error_kind=outcome.error_kind, before=outcome.before, after=outcome.digest, kind=row["kind"],
    )  # fmt: skip
    result = outcome.result if len(orjson.dumps(outcome.result)) <= RESULT_BYTES else None
    told = {
        "success": not wrong, "error": item.error, "error_kind": outcome.error_kind, "raw_error": wrong[:RAW_ERROR],
        "outcome": item.outcome, "before": item.before, "result": result, "exit_code": outcome.exit_code, "ended_at": at,
        "shape": _answer_shape(outcome), "error_shape": shape_of(wrong),
    }  # fmt: skip
    return {name: value for name, value in told.items() if value != row.get(name)}


def _answer_shape(outcome: Outcome) -> str | None:
    """The shape of what a call said, empty where it said nothing; None of a change, which is told by the file's content."""
    if outcome.before is not None:
        return None
    return shape_of(outcome.text or ("" if outcome.result is None else canonical_json(outcome.result)))


def message_row(text: str) -> Fields:
    """The fields of something the agent said."""
    item, shape = message_of(text), shape_of(text)
    return {
        "kind": "message", "call": item.call, "outcome": item.outcome, "call_shape": shape, "shape": shape, "success": True,
        "arguments": {"text": text},
    }  # fmt: skip


def tries_verdict(row: EvidenceRow, rows: Sequence[int], tries: int, on_failure: str) -> Fields:
    """The verdict on a step whose last try, `row`, has failed; `on_failure` is what follows: fail or continue."""
    what = f"{row['tool']} {quote_text(row['target'])}" if row["target"] else row["tool"]
    return {
        "rule": TRIES_USED_UP, "identity": f"{TRIES_USED_UP}:{row['call']}", "rows": list(rows)[-tries:],
        "sentence": f"{what} was tried {tries} of {tries} times; the last error: {quote_text(row['raw_error'])}",
        "action": on_failure, "first": True,
    }  # fmt: skip


def arbiter_of(row: EvidenceRow) -> Fields:
    """Who ruled so, and why, where a verdict is an arbiter's."""
    if row["kind"] != "ruling":
        return {}
    return {"arbiter": row["arguments"]["by"], "why": row["arguments"]["why"]}


def verdict_json(verdict: Verdict) -> Fields:
    return {
        "rule": verdict.rule, "identity": verdict.identity, "rows": list(verdict.rows), "sentence": verdict.sentence,
        "action": verdict.action, "first": verdict.first,
    }  # fmt: skip
