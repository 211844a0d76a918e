"""What has happened, as a prompt shows it: ends of tasks that are to be answered, and the session's earlier interactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from constellations.prompts.graph_view import LEAST_RESULT, RESULT, has_outcome, render_outcome
from constellations.prompts.quoting import json_line, quote, words

EVENTS = 30_000
"""Characters of all events together."""
EVENT_LINES = 500
"""Events that have a line of their own."""
MEMORY = 20_000
"""Characters of all that is remembered, and..."""
REMEMBERED = 4_000
"""...of one interaction."""
NOT_SHOWN = "(There is no room for what it brought.)"
REMEMBERED_WORDS = 1_000
"""Characters of an earlier request."""

Row = Mapping[str, Any]


def render_events(events: Sequence[Row]) -> str:
    """Each end in a line, failures first where not all fit; results and errors behind their lines as far as there is room."""
    if not events:
        return "No task has ended since you were last asked."
    ordered = list(events)
    if len(ordered) > EVENT_LINES:
        ordered.sort(key=lambda event: event["state"] == "COMPLETED")
    parts, room = [], EVENTS
    to_tell = sum(map(has_outcome, ordered[:EVENT_LINES]))
    for number, event in enumerate(ordered):
        line = _event_line(event)
        if number >= EVENT_LINES or len(line) >= room:
            parts.append(_more(ordered[number:]))
            break
        parts.append(line)
        room -= len(line) + 1
        if has_outcome(event):  # each that is still to come has its share, so that no long result pushes the others out
            share = min(RESULT, room // to_tell)
            to_tell -= 1
            parts.append(outcome := render_outcome(event, share) if share >= LEAST_RESULT else NOT_SHOWN)
            room -= len(outcome) + 1
    return "\n".join(parts)


def _event_line(event: Row) -> str:
    told = {key: event[key] for key in ("task_id", "state", "reason", "error_kind", "device") if event.get(key)}
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
