"""Edits of a constellation that runs: its owner follows, a start and an edit have one winner, nothing is lost or half done."""

import gc
from contextlib import suppress
from copy import deepcopy
from threading import Event as Flag
from threading import Thread

import pytest
from django.db import connections

from agents import ids
from agents.errors import AgentsError
from agents.models import Event
from agents.services import sessions
from agents.services.devices import device_create, device_take_offline
from agents.streams import garbage
from agents.streams.fold import consistent_read, events_since, fold_events, stream_head
from constellations.live import kept as graph_reads
from constellations.live.live import LiveGraph
from constellations.models import Attempt, Constellation, Edit, Task
from constellations.services.edits import edit_apply
from constellations.services.preview import edit_preview
from constellations.services.undo import edit_undo
from tests.constellations.planting import plant
from tests.constellations.runs.test_run import command, in_thread, inbox_rests, noop, query, something_runs, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified"), pytest.mark.attack]
EDITORS, EDITS = 4, 10
PATIENCE_S = 20.0


def edited_while_it_runs(engine, plan, change) -> Constellation:
    """Carry out a plan; `change` is called with the constellation's id, as by another process, while a task runs."""
    _, item = engine.submit(plan)
    made = []

    def edit_when_running() -> bool:
        if not made and something_runs():
            made.append(query("SELECT id FROM constellations_constellation"))
            in_thread(change, made[0])
        return bool(made) and inbox_rests()

    engine.run(until=edit_when_running)
    return Constellation.objects.get(interaction=item)


def test_a_task_added_meanwhile_is_carried_out_and_a_removed_one_is_not(engine, device):
    plan = {"tasks": [command("a", "sleep", "0.3"), noop("b", after=["a"]), noop("c", after=["b"])]}
    operations = [{"add_task": noop("x", after=["a"])}, {"remove_task": {"task_id": "b"}}]
    found = edited_while_it_runs(engine, plan, lambda made: edit_apply(made, operations, author="user:1"))
    assert states(found) == {"a": "COMPLETED", "x": "COMPLETED", "c": "COMPLETED"}
    assert (found.state, found.version) == ("COMPLETED", 2)
    assert not Event.objects.filter(type="state_changed", data__task_id="b").exists()


def test_a_task_that_runs_stays_as_it_is(engine, device):
    refused = []

    def change(made):
        with pytest.raises(AgentsError) as error:
            edit_apply(made, [{"remove_task": {"task_id": "a"}}], author="user:1")
        refused.append(str(error.value))

    found = edited_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.2")]}, change)
    assert refused == ["operation 1 (remove_task), task_id: a already runs"]
    assert (found.state, found.version) == ("COMPLETED", 1)


def test_work_for_a_device_changes_hands(engine, device):
    """A task that waits for a device that is not there gets another one."""
    other = device_create("pi", by="system")
    device_take_offline(other.pk, by="system")
    tasks = [command("a", "sleep", "0.3"), {**noop("b"), "device": "pi"}]
    operations = [{"update_task": {"task_id": "b", "device": "laptop"}}]
    found = edited_while_it_runs(engine, {"tasks": tasks}, lambda made: edit_apply(made, operations, author="user:1"))
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}


def test_a_task_added_meanwhile_has_its_deadline(engine, device):
    operations = [{"add_task": command("late", "sleep", "600", deadline=1.0)}]
    plan = {"tasks": [command("a", "sleep", "0.3")]}
    found = edited_while_it_runs(engine, plan, lambda made: edit_apply(made, operations, author="user:1"))
    assert states(found) == {"a": "COMPLETED", "late": "FAILED"}
    assert "deadline" in Task.objects.get(task_id="late").reason


def test_a_deadline_that_was_taken_away_does_not_end_its_task(engine, device):
    tasks = [command("a", "sleep", "0.4"), command("b", "sleep", "0.6", deadline=0.8, after=["a"])]
    operations = [{"update_task": {"task_id": "b", "deadline": None}}]
    found = edited_while_it_runs(engine, {"tasks": tasks}, lambda made: edit_apply(made, operations, author="user:1"))
    assert states(found) == {"a": "COMPLETED", "b": "COMPLETED"}


def test_an_edit_taken_back_meanwhile_leaves_nothing_to_do(engine, device):
    def change(made):
        edit_apply(made, [{"add_task": command("x", "false", after=["a"])}], author="user:1", edit_id="e1")
        edit_undo(made, "e1", "user:1")

    found = edited_while_it_runs(engine, {"tasks": [command("a", "sleep", "0.3")]}, change)
    assert states(found) == {"a": "COMPLETED"}
    assert (found.state, found.version) == ("COMPLETED", 3)


def test_a_task_whose_attempt_failed_cannot_be_removed_before_the_next(engine, device):
    tasks = [command("a", "sleep", "0.5"), command("b", "false", max_attempts=2, backoff=1.0)]
    refused = []

    def change(made):
        until(lambda: Task.objects.filter(task_id="b", state="PENDING", attempt=1).exists())
        with pytest.raises(AgentsError) as error:
            edit_apply(made, [{"remove_task": {"task_id": "b"}}], author="user:1")
        refused.append(str(error.value))

    found = edited_beside(engine, {"tasks": tasks}, change)
    assert refused == ["operation 1 (remove_task), task_id: b cannot go: it has been tried once, and that stays on record"]
    assert states(found) == {"a": "COMPLETED", "b": "FAILED"}


# What an edit decides about a task, and what waits for that task and for something else


def both(**more) -> dict:
    """`last` waits for `mid`, however it ends, and for `slow`; `mid` waits for what `more` says."""
    tasks = [command("slow", "sleep", "0.4"), noop("first", {"n": 1}), command("mid", "sleep", "0.2"), noop("last")]
    lines = [{"from": "mid", "to": "last", "type": "UNCONDITIONAL"}, {"from": "slow", "to": "last"}, {"to": "mid", **more}]
    return {"tasks": tasks, "dependencies": lines}


def edited_beside(engine, plan, change) -> Constellation:
    """Carry out a plan while another process, as it were, waits for its moment and edits."""
    _, item = engine.submit(plan)
    thread = Thread(target=outsider, args=(change,))
    thread.start()
    engine.run()
    thread.join()
    return Constellation.objects.get(interaction=item)


NEVER = {"from": "first", "to": "mid", "type": "CONDITIONAL", "condition": "n > 5"}


def test_what_waits_for_a_task_that_an_edit_skips_starts_when_the_rest_has_ended(engine, device):
    def change(made):
        until(lambda: Task.objects.filter(task_id="first", state="COMPLETED").exists())
        edit_apply(made, [{"add_dependency": NEVER}], author="user:1")

    found = edited_beside(engine, both(**{"from": "slow"}), change)
    assert states(found) == {"slow": "COMPLETED", "first": "COMPLETED", "mid": "CANCELLED", "last": "COMPLETED"}


def test_what_waits_for_a_task_that_an_edit_revives_waits_for_it_again(engine, device):
    def change(made):
        until(lambda: Task.objects.filter(task_id="mid", state="CANCELLED").exists())
        operations = [
            {"remove_dependency": {"from": "first", "to": "mid"}},
            {"add_dependency": {"from": "slow", "to": "mid"}},
        ]
        edit_apply(made, operations, author="user:1")

    found = edited_beside(engine, both(**NEVER), change)
    assert set(states(found).values()) == {"COMPLETED"}
    times = {attempt.task.task_id: attempt for attempt in Attempt.objects.select_related("task")}
    assert times["mid"].ended_at <= times["last"].started_at


# Editors and starts at once


def outsider(change) -> None:
    """In a thread: another process, as it were, once there is a constellation."""
    try:
        until(lambda: Constellation.objects.filter(state="EXECUTING").exists())
        change(Constellation.objects.get().pk)
    finally:
        connections.close_all()


def until(holds) -> None:
    pause, tries = Flag(), int(PATIENCE_S / 0.005)
    while not holds() and tries:
        pause.wait(0.005)
        tries -= 1
    assert tries, "it never came"


class Editor(Thread):
    """Puts a task in the place of each of its chain's, while these are being started."""

    def __init__(self, number: int):
        super().__init__(daemon=True)
        self.number = number
        self.applied: set[int] = set()
        self.refused: dict[int, AgentsError] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            outsider(self.edit)
        except BaseException as error:
            self.error = error

    def edit(self, made: int) -> None:
        for part in range(EDITS):
            operations = [
                {"add_task": noop(f"new{self.number}_{part}")},
                {"remove_task": {"task_id": f"old{self.number}_{part}"}},
            ]
            try:
                said = {"author": f"user:{self.number}", "edit_id": f"e{self.number}-{part}", "based_on": (1, None)[part % 2]}
                _, changed = edit_apply(made, operations, **said)
                assert changed
                self.applied.add(part)
            except AgentsError as error:
                self.refused[part] = error


def chain(number: int) -> list[dict]:
    before = [[], *([f"old{number}_{part}"] for part in range(EDITS))]
    return [command(f"old{number}_{part}", "sleep", "0.01", after=before[part]) for part in range(EDITS)]


def test_editors_and_starts_at_once_have_one_winner_each(engine, device, tmp_path):
    done = tmp_path / "done"
    anchor = command("anchor", "sh", "-c", f"while ! test -e {done}; do sleep 0.02; done")
    editors = [Editor(number) for number in range(EDITORS)]
    _, item = engine.submit({"tasks": [anchor, *(task for editor in editors for task in chain(editor.number))]})
    for editor in editors:
        editor.start()
    Thread(target=lambda: [[editor.join() for editor in editors], done.touch()], daemon=True).start()
    engine.run()
    assert [editor.error for editor in editors] == [None] * EDITORS
    found = Constellation.objects.get(interaction=item)
    ends, tried = states(found), set(Attempt.objects.values_list("task__task_id", flat=True))
    for editor in editors:
        for part in range(EDITS):
            old, new = f"old{editor.number}_{part}", f"new{editor.number}_{part}"
            applied = part in editor.applied
            assert ((old in ends), (new in ends)) == (not applied, applied), (old, editor.refused.get(part))
            assert ends[new if applied else old] == "COMPLETED"
    made = sum(len(editor.applied) for editor in editors)
    assert made + sum(len(editor.refused) for editor in editors) == EDITORS * EDITS
    assert {refused.status for editor in editors for refused in editor.refused.values()} <= {409}
    assert (Edit.objects.count(), found.version) == (made, made + 1)
    assert sorted(Edit.objects.values_list("version", flat=True)) == list(range(2, made + 2))
    assert tried == set(ends)
    assert Attempt.objects.exclude(outcome="completed").count() == 0


# Graphs read before the lock is taken


def shape(live: LiveGraph) -> dict:
    """All that an edit goes by."""
    nodes = {key: (node.row, node.unmet) for key, node in live.nodes.items()}
    edges = {key: (edge.row, edge.holds, edge.why) for key, edge in live.edges.items()}
    return {
        "constellation": live.constellation, "nodes": nodes, "edges": edges, "open": live.open, "results": live.results,
        "links": sorted(live.graph.edges()), "in": {key: len(node.incoming) for key, node in live.nodes.items()},
    }  # fmt: skip


def graph_from(rows: dict) -> LiveGraph:
    (row,) = rows["constellation"].values()
    live = LiveGraph(dict(row), lambda node: None)
    live.load(*([dict(row) for row in rows.get(name, {}).values()] for name in ("task", "dependency")))
    return live


def test_a_graph_that_takes_up_what_happened_is_the_one_there_is(engine, device):
    line = {"from": "b", "to": "never", "type": "CONDITIONAL", "condition": "n > 1"}
    tasks = [command("a", "sleep", "0.3"), noop("b", {"n": 1}, after=["a"]), noop("never"), noop("last", after=["never"])]
    tasks += [noop("c", after=["b"]), command("fails", "false", max_attempts=2, backoff=0.01)]

    def change(made):
        edit_apply(made, [{"add_task": noop("x", after=["a"])}, {"remove_task": {"task_id": "c"}}], author="user:1")
        edit_apply(made, [{"update_dependency": {"dependency_id": "a>b", "type": "UNCONDITIONAL"}}], author="user:1")

    found = edited_while_it_runs(engine, {"tasks": tasks, "dependencies": [line]}, change)
    events = events_since(found.session_id, 0)
    begun = next(n for n, event in enumerate(events) if event["type"] == "constellation_created") + 1
    whole = shape(graph_from(fold_events(events)))
    assert {node[0]["state"] for node in whole["nodes"].values()} == {"COMPLETED", "FAILED", "CANCELLED"}
    for cut in range(begun, len(events)):
        live = graph_from(fold_events(events[:cut]))
        live.catch_up(event["data"] for event in events[cut:])
        assert shape(live) == whole


def test_a_graph_that_is_kept_for_the_next_edit_is_the_one_there_is(engine, device):
    """After edits that were made, refused and taken back, between them what the runner does meanwhile."""
    tasks = [command("hold", "sleep", "2"), noop("a"), command("b", "sleep", "0.1", after=["a"]), noop("c", after=["b"])]
    tasks += [noop("d", after=["hold"]), noop("e", after=["d"]), noop("f", after=["e"])]
    lines = [{"from": "hold", "to": "e", "type": "UNCONDITIONAL"}]
    changes = (
        [{"add_task": noop("x", after=["a"])}, {"remove_task": {"task_id": "d"}}],
        [{"add_task": noop("y", after=["e"])}, {"remove_task": {"task_id": "hold"}}],
        [{"add_dependency": {"from": "a", "to": "e", "type": "CONDITIONAL", "condition": "n > 1"}}],
        [{"update_task": {"task_id": "f", "timeout": 3}}, {"remove_dependency": {"from": "a", "to": "e"}}],
    )
    seen = []

    def change(made):
        for number, operations in enumerate(changes):
            with suppress(AgentsError):
                edit_apply(made, operations, author="user:1", edit_id=f"e{number}")
            until(lambda ends=number: Task.objects.filter(state__in=("COMPLETED", "CANCELLED")).count() >= min(ends, 3))
            seen.append(both_graphs(made))
        edit_undo(made, "e3", "user:1")
        seen.append(both_graphs(made))

    edited_beside(engine, {"tasks": tasks, "dependencies": lines}, change)
    assert len(seen) == len(changes) + 1
    for kept, fresh in seen:
        assert kept == fresh


def both_graphs(made: int) -> tuple[dict, dict]:
    """What this process has kept, brought to the newest state, and what is read anew."""
    assert made in graph_reads.KEPT._graphs
    stream = ids.stream_of(made)
    ahead = graph_reads.read_ahead(made)
    with consistent_read():
        now, fresh = stream_head(stream), graph_reads.read_graph(made)
    kept = graph_reads._brought_to(ahead, stream, now)
    graph_reads.KEPT.put(graph_reads.GraphReadAhead(kept, now))
    assert shape(kept.copy()) == shape(kept)
    return deepcopy(shape(kept)), shape(fresh)


def test_a_preview_leaves_the_graph_that_is_kept_as_it_is(operator, device):
    made = plant(sessions.session_create(operator, by="system"), noop("a"), noop("b", after=["a"]), noop("c", after=["b"]))
    operations = [
        {"remove_task": {"task_id": "b"}},
        {"add_task": noop("x", after=["a"])},
        {"update_task": {"task_id": "c", "name": "C"}},
    ]
    for _ in range(2):
        previewed = edit_preview(made.pk, operations)
        kept, fresh = both_graphs(made.pk)
        assert kept == fresh
    edit, _ = edit_apply(made.pk, operations, author="user:1", based_on=previewed["version"])
    assert (edit.diff, edit.before, edit.after) == (previewed["diff"], previewed["before"], previewed["after"])
    kept, fresh = both_graphs(made.pk)
    assert kept == fresh


def test_a_process_keeps_no_more_graphs_than_it_may():
    kept, graphs = graph_reads.KeptGraphs(), [LiveGraph({"id": number}, lambda node: None) for number in range(6)]
    for live in graphs:
        kept.put(graph_reads.GraphReadAhead(live, 1))
    assert [kept.take(number) is not None for number in range(6)] == [False, False, True, True, True, True]
    assert kept.take(5) is None


def test_a_graph_that_is_kept_no_more_leaves_nothing_to_the_search_for_garbage(operator, device):
    made = plant(sessions.session_create(operator, by="system"), noop("a"), noop("b", after=["a"]))
    kept, live = graph_reads.KeptGraphs(), graph_reads.read_graph(made.pk)
    assert live.nodes["b"].incoming
    kept.put(graph_reads.GraphReadAhead(live, 1))
    for number in range(graph_reads.KEPT_GRAPHS):
        kept.put(graph_reads.GraphReadAhead(LiveGraph({"id": -number}, lambda node: None), 1))
    assert kept.take(made.pk) is None
    assert not any(node.incoming or node.outgoing for node in live.nodes.values())


def test_a_large_graph_counts_as_old_once_it_is_read(operator, device, monkeypatch):
    made = plant(sessions.session_create(operator, by="system"), noop("a"), noop("b", after=["a"]))
    small = graph_reads.read_graph(made.pk)
    assert not is_old(small.nodes["a"])
    monkeypatch.setattr(garbage, "LARGE", 2)
    large = graph_reads.read_graph(made.pk)
    assert is_old(large.nodes["a"])
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def is_old(thing: object) -> bool:
    return any(other is thing for other in gc.get_objects(generation=2))


def test_a_graph_that_is_far_behind_is_read_anew(engine, device, monkeypatch):
    monkeypatch.setattr(graph_reads, "EVENTS_BEHIND", 0)
    monkeypatch.setattr(graph_reads, "EVENTS_A_TASK", 0)
    operations = [{"add_task": noop("x", after=["a"])}]
    plan = {"tasks": [command("a", "sleep", "0.2")]}
    found = edited_while_it_runs(engine, plan, lambda made: edit_apply(made, operations, author="user:1"))
    assert states(found) == {"a": "COMPLETED", "x": "COMPLETED"}
