"""Edits by several processes of the operating system while a real cluster of runners carries their constellations out."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, groupby
from random import Random

import pytest
from django.conf import settings

from agents.models import InboxItem
from constellations.machines.constellation import CLOSED
from constellations.models import Attempt, Constellation, Edit, Task
from tests.reliability.cluster import Cluster, until
from tests.reliability.conflicts import check_story
from tests.reliability.edit_history import check_answers, check_history, check_specifications, check_told, events_of
from tests.reliability.editors import EditorProcess, Note

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]

EDITORS = 4
CHANGE_SETS = 50
"""Of each of the four."""
CONSTELLATIONS = 3
SEED = 7
RATE = 200
"""Edits a second of all editors together, as far as the machine can."""
RATE_EDITS = 800
KILLS = (1, 2, 3)
"""Seeds."""
HOLD = "while ! test -e {}; do sleep 0.05; done"


def plan(random: Random, devices: list[str], done, tasks: int = 20) -> dict:
    """Short work, half of it behind `hold`, which runs until `done` is there: so there is always something to edit."""
    rows: list[dict] = [{"task_id": "hold", "device": devices[0], "command": ["sh", "-c", HOLD.format(done)]}]
    for number in range(tasks):
        after = ["hold"] if number % 2 else []
        after += sorted({f"t{random.randrange(number)}" for _ in range(random.randrange(3)) if number})
        work = {"command": ["sleep", random.choice(("0", "0.05", "0.2"))]} if number % 3 else {"tool": "noop"}
        rows.append({"task_id": f"t{number}", "device": random.choice(devices), "after": after, **work})
    rule = {"name": "more", "when": {"event": "task_completed"}, "times": 3, "edit": [{"add_task": {"task_id": "r"}}]}
    rule["edit"] = [{"add_task": {"task_id": "r", "device": devices[0], "tool": "noop", "after": ["hold"]}}]
    return {"tasks": rows, "replan": [rule]}


@pytest.fixture
def done(state_dir):
    return state_dir / "done"


@pytest.fixture
def executing(clusters, engine, wide, done):
    """(a cluster at work, the ids of constellations that execute until `done` is there)"""

    def begin(count: int, **shape) -> tuple[Cluster, list[int]]:
        random = Random(SEED)
        for _ in range(count):
            engine.submit(plan(random, wide, done, **shape))
        cluster = clusters()
        cluster.start()
        holds = Task.objects.filter(task_id="hold", state="RUNNING")
        until(lambda: holds.count() == count, "every constellation executes")
        return cluster, list(Constellation.objects.order_by("pk").values_list("pk", flat=True))

    yield begin
    done.touch()


@contextmanager
def editing(cluster: Cluster, devices: list[str], names: list[str], seed: int, **arguments) -> Iterator[list[EditorProcess]]:
    """Editors at work; none of them outlives the block."""
    made = [
        EditorProcess(cluster.env, cluster.folder, name, seed=seed * 100 + number, devices=devices, **arguments)
        for number, name in enumerate(names)
    ]
    try:
        yield made
    finally:
        for editor in made:
            editor.kill()


def finish(done) -> None:
    """Let the rest run, and wait until everything has ended."""
    done.touch()
    until(lambda: not InboxItem.objects.filter(state__in=("queued", "running")).exists(), "everything ends")


def check_all(cluster: Cluster, notes: list[list[Note]]) -> None:
    """From the database alone, and from what the editors were told."""
    for told in notes:
        check_answers(told)
    check_told(list(chain.from_iterable(notes)))
    for constellation in Constellation.objects.all():
        assert constellation.state in CLOSED
        check_history(constellation)
        check_specifications(constellation.session_id)
        check_story(constellation.session_id)
    assert not Attempt.objects.filter(outcome="").exists()
    assert set(Attempt.objects.values_list("number", flat=True)) == {1}
    found = subprocess.run(
        [sys.executable, "manage.py", "verify"], cwd=settings.BASE_DIR, env=cluster.env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr


def names(count: int = EDITORS) -> list[str]:
    return [f"e{number}" for number in range(count)]


def test_two_hundred_change_sets_from_four_processes_are_all_there_or_not_at_all(executing, wide, done):
    cluster, constellations = executing(CONSTELLATIONS)
    with editing(cluster, wide, names(), SEED, constellations=constellations, count=CHANGE_SETS) as editors:
        notes = [editor.result() for editor in editors]
    finish(done)
    answers = Counter(note.answer for note in chain.from_iterable(notes))
    kinds = Counter(operation["op"] for edit in Edit.objects.all() for operation in edit.operations)
    print(f"{dict(answers)}; of {Edit.objects.count()} edits: {dict(kinds)}")
    assert set(answers) == {"applied", "nothing", "there", "refused", "stale"}
    assert len(kinds) == 7
    assert Edit.objects.exclude(undoes=None).exists()
    assert any(edit.rebased_from for edit in Edit.objects.all())
    check_all(cluster, notes)


def test_tasks_go_on_ending_while_two_hundred_edits_a_second_come_in(executing, wide, done):
    """The runner and the editors meet at every commit, and both get on."""
    cluster, constellations = executing(1, tasks=60)
    every_s, count = EDITORS / RATE, RATE_EDITS // EDITORS
    with editing(cluster, wide, names(), SEED, constellations=constellations, count=count, every_s=every_s) as editors:
        notes = [editor.result() for editor in editors]
    finish(done)
    assert [len(told) >= count * 0.9 and all(note.answer for note in told) for told in notes] == [True] * EDITORS
    (session,) = Constellation.objects.values_list("session", flat=True)
    moves = ["edit" if event["type"] == "edited" else "end" for event in events_of(session) if is_edit_or_end(event)]
    longest = max(len(list(same)) for kind, same in groupby(moves) if kind == "edit")
    made, seconds = Edit.objects.count(), span(notes)
    print(f"{made} edits in {seconds:.1f} s, at most {longest} events of edits between two ends")
    assert longest < made / 4
    check_all(cluster, notes)


def is_edit_or_end(event: dict) -> bool:
    data = event["data"]
    return event["type"] == "edited" or (data.get("machine") == "task" and data["event"] in ("succeed", "fail"))


def span(notes: list[list[Note]]) -> float:
    """Seconds from the first edit to the last."""
    times = Edit.objects.order_by("at").values_list("at", flat=True)
    return (times[len(times) - 1] - times[0]).total_seconds()


@pytest.mark.parametrize("seed", KILLS)
def test_an_editor_that_is_killed_leaves_whole_edits(executing, wide, done, seed):
    cluster, constellations = executing(1, tasks=8)
    random, notes, cut = Random(seed), [], 0
    with editing(cluster, wide, names(2), seed, constellations=constellations, count=10**6) as editors:
        survivor, victim = editors
        wanted = random.randint(3, 30)
        until(lambda: victim.count() >= wanted, f"{wanted} edits")
        notes.append(victim.kill())
        cut += not notes[-1][-1].answer
        later = survivor.count() + 5
        until(lambda: survivor.count() >= later, "the other editor goes on")
        notes.append(survivor.kill())
    finish(done)
    print(f"killed after {wanted} edits, {'in the middle of one' if cut else 'between two'}")
    check_all(cluster, notes)
