"""What must be true of edits by many, from the database and from what each editor was told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from agents.streams import fold
from agents.streams.tables import Fields
from constellations.editor.draft import normal_dependency, normal_task
from constellations.models import Constellation, Edit
from constellations.plan.tasks import TASK_DEFAULTS
from tests.reliability.editors import Note

Graph = dict[str, dict[str, Fields]]


def check_told(notes: Iterable[Note]) -> None:
    """What somebody was told of is in the history once, as it was asked for; what was refused has left nothing there."""
    made = {(edit.constellation_id, edit.edit_id): edit for edit in Edit.objects.select_related("undoes")}
    applied = Counter(key_of(note) for note in notes if note.answer == "applied")
    assert set(applied.values()) <= {1}, applied.most_common(3)
    unknown = {key_of(note) for note in notes if not note.answer}
    for note in notes:
        edit = made.get(key_of(note))
        if note.answer == "applied":
            assert edit is not None, note
            assert (edit.version, edit.author) == (note.told["version"], note.asked["author"])
            check_asked(note.asked, edit)
        elif note.answer == "there" and "undoes" not in note.asked:
            assert edit is not None, note
            assert (edit.version, edit.operations) == (note.told["version"], note.asked["operations"])
        elif edit is not None:
            assert applied[key_of(note)] or key_of(note) in unknown, f"{note} has left an edit"
    planned = {key for key, edit in made.items() if edit.author == "planner"}
    assert set(made) - set(applied) - planned <= unknown


def check_asked(asked: Fields, edit: Edit) -> None:
    if "undoes" in asked:
        assert edit.undoes is not None
        assert edit.undoes.edit_id == asked["undoes"]
    else:
        assert edit.operations == asked["operations"]
        assert edit.based_on == (edit.version - 1 if asked["based_on"] is None else asked["based_on"])


def key_of(note: Note) -> tuple[int, str]:
    return note.asked["constellation"], note.asked["edit_id"]


def check_answers(notes: list[Note]) -> None:
    """Of one editor: versions only grow, and whoever is behind is told the newest one."""
    seen: dict[int, int] = defaultdict(int)
    for note in notes:
        constellation = note.asked["constellation"]
        if note.answer == "applied":
            assert note.told["version"] > seen[constellation], note
            seen[constellation] = note.told["version"]
        if note.answer == "stale":
            assert note.told["status"] == 409
            assert note.told["newest"] >= max(seen[constellation], note.asked["based_on"] + 1), note
            seen[constellation] = note.told["newest"]


def check_history(constellation: Constellation) -> None:
    """From the first graph, each edit begins where those before it ended, and the last one ends at what there is."""
    graph, edits = first_graph(constellation), list(Edit.objects.filter(constellation=constellation).order_by("version"))
    assert [edit.version for edit in edits] == list(range(2, len(edits) + 2))
    assert constellation.version == len(edits) + 1
    for edit in edits:
        assert edit.diff, edit
        for table, rows in edit.before.items():
            for name, row in rows.items():
                assert graph[table].pop(name, None) == row, f"version {edit.version}: {table} {name}"
            graph[table].update((name, row) for name, row in edit.after[table].items() if row is not None)
    assert graph == present_graph(constellation)


def first_graph(constellation: Constellation) -> Graph:
    events = fold.events_since(constellation.session_id, 0)
    built = [event for event in events if event["type"] in ("constellation_created", "constellation_built")]
    return normal(fold.fold_events(built), constellation)


def present_graph(constellation: Constellation) -> Graph:
    return normal(fold.read_rows(constellation.session_id, ("task", "dependency")), constellation)


def normal(rows: dict[str, dict[str, Fields]], constellation: Constellation) -> Graph:
    """Rows by name, as edits write them. Every dependency has both its ends here."""
    tasks = {row["id"]: row for row in rows["task"].values() if row["constellation_id"] == constellation.pk}
    lines = [row for row in rows.get("dependency", {}).values() if row["constellation_id"] == constellation.pk]
    ends = [(tasks[row["upstream_id"]]["task_id"], tasks[row["downstream_id"]]["task_id"]) for row in lines]
    named = [{**row, "from": up, "to": down} for row, (up, down) in zip(lines, ends, strict=True)]
    return {
        "tasks": {row["task_id"]: normal_task(row) for row in tasks.values()},
        "dependencies": {row["dependency_id"]: normal_dependency(row) for row in named},
    }


def check_specifications(session: int) -> None:
    """By the stream: nothing that a plan or an edit says of a task changes once the task has started, nor does it go."""
    started: set[str] = set()
    said = set(TASK_DEFAULTS)
    for event in events_of(session):
        data = event["data"]
        for key, fields in data.get("set", {}).get("task", {}).items():
            assert key not in started or not said & set(fields), (event["seq"], key, fields)
        assert not started & {str(key) for key in data.get("del", {}).get("task", ())}, event["seq"]
        if data.get("machine") == "task" and data["event"] == "start":
            started.add(str(data["id"]))
    assert started


def events_of(session: int) -> Iterable[Fields]:
    seq = 0
    while events := fold.events_since(session, seq):
        yield from events
        seq = events[-1]["seq"]
