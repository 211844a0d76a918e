"""Search in all that somebody may see: titles of sessions, tasks, results, what attempts printed, agents. The latest first.

The database finds rows in which the text stands as it is stored; a hit is where it stands in what is shown, which is masked.
So nobody finds out by searching what a mask hides. One answer looks at a bounded number of rows; `next` goes on from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast

from agents.masks.values import mask_text
from agents.models import Agent, Session
from agents.models.sessions import SessionQuerySet
from constellations.models import Attempt, Task
from constellations.reads.output_search import search_attempts

TEXT_CHARACTERS = 200
"""Of what is searched for."""
HITS = 20
"""Of one group in one answer."""
ROWS_LOOKED_AT = 50_000
"""Of one group in one answer, found or not."""
AROUND = 80
"""Characters before and after a hit that an excerpt shows."""
LONGEST_TEXT = 200_000
"""Characters of one text that are looked at."""
GROUPS = ("sessions", "tasks", "results", "outputs", "agents")

Hit = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Rows of one kind: those that may be seen, the columns that are searched, and what a hit says of its row."""

    rows: Callable[[SessionQuerySet], QuerySet[Any]]
    columns: tuple[str, ...]
    describe: Callable[[Any], Hit]
    texts: Callable[[Any], Iterable[str]]


def search_everything(user: Any, text: str, groups: Iterable[str], before: int | None) -> dict[str, dict[str, Any]]:
    """{group: {"hits", "next"}}. A hit is {id, name, session, task, excerpt, begins, ends}: where it stands in the excerpt.

    `before` is the `next` of an answer about one group: its rows from there on are not looked at any more.
    """
    visible = Session.objects.visible_to(user)
    return {name: _search_group(name, visible, text, before) for name in groups}


def _search_group(name: str, visible: SessionQuerySet, text: str, before: int | None) -> dict[str, Any]:
    if name == "outputs":
        return _search_outputs(visible, text, before)
    group = FOUND_IN[name]
    seen = group.rows(visible).order_by("-id")
    seen = seen if before is None else seen.filter(pk__lt=before)
    beyond = seen.values_list("pk", flat=True)[ROWS_LOOKED_AT : ROWS_LOOKED_AT + 1].first()
    wanted = Q()
    for column in group.columns:
        wanted |= Q(**{f"{column}__icontains": text})
    rows = seen.filter(wanted) if beyond is None else seen.filter(wanted, pk__gt=beyond)
    candidates = list(rows[: HITS + 1])
    hits = [hit for row in candidates[:HITS] if (hit := _hit_in(row, group, text)) is not None]
    after = candidates[HITS - 1].pk if len(candidates) > HITS else (None if beyond is None else beyond + 1)
    return {"hits": hits, "next": after}


def _hit_in(row: Any, group: Group, text: str) -> Hit | None:
    """Where the text stands in what is shown of a row; None where only hidden characters have it."""
    for whole in group.texts(row):
        shown = mask_text(whole[:LONGEST_TEXT])
        if place := re.search(re.escape(text), shown, re.IGNORECASE):
            return {**group.describe(row), **_excerpt(shown, place.start(), place.end())}
    return None


def _excerpt(text: str, start: int, end: int) -> Hit:
    first = max(0, start - AROUND)
    return {"excerpt": text[first : end + AROUND], "begins": start - first, "ends": end - first}


def _search_outputs(visible: SessionQuerySet, text: str, before: int | None) -> dict[str, Any]:
    attempts = Attempt.objects.filter(task__constellation__session__in=visible)
    found = search_attempts(attempts, text, before=before)
    tasks = {task.pk: task for task in _tasks(visible).filter(pk__in={hit["task"] for hit in found["hits"]})}
    hits = []
    for hit in found["hits"]:
        place = re.search(re.escape(text), hit["excerpt"], re.IGNORECASE)
        begins, ends = place.span() if place else (0, 0)
        about = {**_describe_task(tasks[hit["task"]]), "id": hit["attempt"]}
        hits.append({**about, "excerpt": hit["excerpt"], "begins": begins, "ends": ends})
    return {"hits": hits, "next": found["next"]}


def _tasks(visible: SessionQuerySet) -> QuerySet[Task]:
    return Task.objects.filter(constellation__session__in=visible).select_related("constellation__session")


def _tasks_with_results(visible: SessionQuerySet) -> QuerySet[Task]:
    return _tasks(visible).filter(result__isnull=False).annotate(result_text=Cast("result", CharField()))


def _agents(visible: SessionQuerySet) -> QuerySet[Agent]:
    return Agent.objects.filter(session__in=visible).select_related("session")


def _describe_session(row: Session) -> Hit:
    return {"id": row.pk, "name": str(row), "session": {"id": row.pk, "title": str(row)}, "task": None}


def _describe_task(row: Task) -> Hit:
    session = row.constellation.session
    return {"id": row.pk, "name": row.name or row.task_id, "session": _describe_session(session)["session"], "task": row.pk}


def _describe_agent(row: Agent) -> Hit:
    return {"id": row.pk, "name": row.name, "session": _describe_session(row.session)["session"], "task": None}


def _task_texts(row: Task) -> tuple[str, ...]:
    return row.task_id, row.name, row.description


def _result_texts(row: Task) -> tuple[str]:
    return (json.dumps(row.result, ensure_ascii=False),)


FOUND_IN = {
    "sessions": Group(lambda visible: visible, ("title",), _describe_session, lambda row: (row.title,)),
    "tasks": Group(_tasks, ("task_id", "name", "description"), _describe_task, _task_texts),
    "results": Group(_tasks_with_results, ("result_text",), _describe_task, _result_texts),
    "agents": Group(_agents, ("name",), _describe_agent, lambda row: (row.name,)),
}
