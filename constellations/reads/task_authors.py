"""Whose work a task is beside the request it came with: of edits that wrote or placed it, and of the retry that began it.

Nobody approves what they wrote themselves (`agents.access.ancestry`), also where the run is somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from agents.access import ancestry
from agents.models import Transition
from constellations.models import Constellation, Edit, Task
from constellations.reads.excerpts.history import Ties

KINDS = ("task", "tool", "question", "lost")
"""Of the approvals that are about a task."""
FORKS = 16
"""Constellations that are looked through, from a fork back to the first."""


def authors_of(row: int) -> Iterator[ancestry.Part]:
    """Tokens that wrote or changed the task, put it where it is in the graph, or let it begin again the last time.

    A fork takes over what was written before it was made.
    """
    task = Task.objects.select_related("constellation").filter(pk=row).first()
    if task is None:
        return
    for author in tokens_of_edits(task):
        yield author, f"task {task.task_id}, which {author.replace(':', ' ', 1)} has written or changed"
    begun = Transition.objects.filter(machine="task", subject_id=task.pk, event="retry")
    author = begun.order_by("-id").values_list("by", flat=True).first() or ""
    if ancestry.token_key_of(author):
        yield author, f"task {task.task_id}, which {author.replace(':', ' ', 1)} has let begin again"


def tokens_of_edits(task: Task) -> list[str]:
    """Each once; one more than `ancestry.AUTHORS` are too many to look at."""
    found = _edits_of(task.constellation, task.task_id)
    source, seen = task.constellation, task.constellation.created_at
    for _ in range(FORKS):
        if source.forked_from is None:
            break
        source, seen = source.forked_from, min(seen, source.created_at)
        found = found | _edits_of(source, task.task_id).filter(at__lte=seen)
    return list(found.order_by("author").values_list("author", flat=True).distinct()[: ancestry.AUTHORS + 1])


def _edits_of(constellation: Constellation, task_id: str) -> QuerySet[Edit]:
    """Edits by tokens that changed the task or a dependency into it."""
    edits = Edit.objects.filter(constellation=constellation, author__startswith=ancestry.TOKEN)
    into = (Q(Ties(column, task_id, ends=("to",))) for column in ("before", "after"))
    return edits.filter(Q(before__tasks__has_key=task_id) | next(into) | next(into))


ancestry.register_authors(KINDS, authors_of)
