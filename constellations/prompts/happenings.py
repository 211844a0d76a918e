"""What has happened, as a prompt shows it: ends of tasks that are to be answered, and the session's earlier interactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from constellations.prompts.graph_view import LEAST_RESULT, RESULT, has_outcome, render_outcome
from constellations.prompts.quoting import json_line, quote, quote_lines, shorten, words

EVENTS = 30_000
"""Characters of all events together."""
LINES = 12_000
"""Of these, those of the lines that say which tasks have ended, and how."""
REASON = 300
"""Characters of why a task has ended."""
EVENT_LINES = 500
"""Events that have a line of their own."""
MEMORY = 20_000
"""Characters of all that is remembered, and..."""
REMEMBERED = 4_000
"""...of one interaction."""
REMEMBERED_WORDS = 1_000
"""Characters of an earlier request."""

Row = Mapping[str, Any]


def render_events(events: Sequence[Row]) -> str:
    """Each end in a line, failures first where there are very many; then results and errors, as far as there is room."""
    if not events:
        return "No task has ended since you were last asked."
    ordered = list(events)
    if len(ordered) > EVENT_LINES:
        ordered.sort(key=lambda event: event["state"] == "COMPLETED")
    lines, room = [], LINES
    for event in ordered[:EVENT_LINES]:
        line = _event_line(event)
        if len(line) >= room:
            break
        lines.append(line)
        room -= len(line) + 1
    told, rest = ordered[: len(lines)], ordered[len(lines) :]
    shown = quote_lines("ends of tasks", [*lines, *([_more(rest)] if rest else [])])
    return "\n".join([shown, *_render_outcomes([event for event in told if has_outcome(event)])])


def _render_outcomes(events: Sequence[Row]) -> list[str]:
    """What each has brought, failures first. Each has its share, so that no long result pushes the others out."""
    parts: list[str] = []
    room = EVENTS - LINES
    for number, event in enumerate(sorted(events, key=lambda event: event["state"] == "COMPLETED")):
        share = min(RESULT, max(LEAST_RESULT, room // (len(events) - number)))
        if room < LEAST_RESULT:
            return [*parts, f"There is no room for what {len(events) - number:,} more have brought."]
        parts.append(render_outcome(event, share))
        room -= len(parts[-1]) + 1
    return parts


def _event_line(event: Row) -> str:
    told = {key: event[key] for key in ("task_id", "state", "error_kind", "device") if event.get(key)}
    if event.get("reason"):
        told["reason"] = shorten(event["reason"], REASON)
    return json_line(told | ({"condition_failed": True} if event.get("condition_failed") else {}))


def _more(events: Sequence[Row]) -> str:
    counts = Counter(event["state"] for event in events)
    return f"and {len(events):,} more: " + ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))


def render_memory(memory: Sequence[Row]) -> str:
    """The session's earlier interactions, oldest first; where not all fit, the oldest are left out."""
    if not memory:
        return "This is the first request of the session."
    parts: list[str] = []
    room = MEMORY
    for number, each in enumerate(reversed(memory)):
        part = _render_remembered(each)
        if len(part) >= room:
            parts.append(f"{len(memory) - number:,} earlier requests are left out.")
            break
        parts.append(part)
        room -= len(part) + 1
    return "\n".join(reversed(parts))


def _render_remembered(each: Row) -> str:
    """What was asked, how it ended, and what it brought."""
    asked = words(str(each.get("request") or ""), REMEMBERED_WORDS)
    rest = {key: value for key, value in each.items() if key not in ("request", "outcome") and value}
    told = quote("earlier interaction", rest, REMEMBERED) if rest else ""
    return "\n".join(filter(None, (f"Request ({each.get('outcome') or 'not ended'}): {asked}", told)))
