"""What a verdict says to a person: its rule in plain words, since when, and what can be done now (docs/stuck.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.models import Evidence, ModelCall

RULES = {
    "same_target_error": "the same error over the same target",
    "same_tool_error": "one tool fails alike, whatever it is given",
    "same_failure": "its tests fail in the same way, whatever it changes",
    "oscillation": "changes that undo each other",
    "exact_repeat": "the same call with the same outcome",
    "same_deed": "the same deed again, whatever it seems to say",
    "cycle": "the same few calls go round",
    "going_round": "it goes round in what it did before",
    "same_message": "the same is said again",
    "only_talk": "it talks and does nothing",
    "compactions": "its context is cut down again and again, with little done between",
    "plan_again": "it plans again, and does none of it",
    "same_order": "it sends out the same order again",
    "endless_poll": "it waits for what does not come",
    "same_answer": "whatever it asks, the answer is the same",
    "no_novelty": "nothing new",
    "tries_used_up": "all tries are used up",
}
"""The rules in plain words. A row of another release may name one that is not here."""
WAYS = {
    "go_on": "Let it go on anyway: this loop is none from now on, for this task.",
    "hint": "Give it a hint: its model reads your words next. Where it has ended, its task begins again with them.",
    "model": "Let the task begin again with another model.",
    "change": "Change the task, for example its command or what a step does to recover, and let it begin again.",
    "elsewhere": "Let the task begin again on another device.",
    "patience": "Let the task begin again with more patience (progress, tries, every).",
}
"""What a person can do about an agent that is stuck. A task that still runs is cancelled before it begins again."""
OF_A_MIND = {"hint", "model"}
"""Ways that only an agent with a model has."""
FOLLOWED = {
    "steer": "It was told so, and goes on.", "halt": "It was halted.", "fail": "Its task failed.", "continue": "It goes on.",
}  # fmt: skip
"""What followed from a verdict, by its action."""


def describe_rule(rule: str) -> str:
    """A rule in plain words."""
    return RULES.get(rule, rule.replace("_", " "))


def ways_on(verdict: dict[str, Any], *, lives: bool, has_mind: bool) -> dict[str, str]:
    """The ways of WAYS that are open: an agent that has ended cannot go on, only a loop can be none, only a mind can read."""
    may_go_on = lives and verdict["action"] in ("steer", "halt")
    closed = (set() if may_go_on else {"go_on"}) | (set() if has_mind else OF_A_MIND)
    return {name: text for name, text in WAYS.items() if name not in closed}


def describe_verdict(row: Evidence) -> dict[str, Any] | None:
    """The verdict of a row that `set_since` knows, in words: also `about`, `followed`, and `since` as {row, at}."""
    verdict = row.verdict
    if verdict is None:
        return None
    number, at = getattr(row, "since", (row.number, row.started_at))
    words = {"about": describe_rule(verdict["rule"]), "followed": FOLLOWED.get(verdict["action"], "")}
    return {**verdict, **words, "since": {"row": number, "at": at}}


def set_since(rows: Iterable[Evidence]) -> None:
    """Let each row of one loop that has a verdict know where that began: (number, time) of the first row it names."""
    judged = [row for row in rows if row.verdict is not None and row.verdict["rows"]]
    if not judged:
        return
    firsts = {row.verdict["rows"][0] for row in judged if row.verdict}
    times = dict(Evidence.objects.filter(loop=judged[0].loop_id, number__in=firsts).values_list("number", "started_at"))
    for row in judged:
        first = row.verdict["rows"][0] if row.verdict else 0
        if first in times:
            row.since = (first, times[first])  # type: ignore[attr-defined]


def latest_verdict(rows: Iterable[Evidence], *, lives: bool) -> dict[str, Any] | None:
    """The last verdict of these rows, oldest first, in words and with the `ways` on: [{way, text}]."""
    judged = [row for row in rows if row.verdict is not None]
    found = describe_verdict(judged[-1]) if judged else None
    if found is None:
        return None
    has_mind = ModelCall.objects.filter(agent__loop=judged[-1].loop_id).exists()
    ways = [{"way": name, "text": text} for name, text in ways_on(found, lives=lives, has_mind=has_mind).items()]
    return {**found, "row": judged[-1].number, "ways": ways}
