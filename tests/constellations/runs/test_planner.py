"""What the planner makes of a payload: read once, and the same as the editor would make of it."""

from pathlib import Path

import pytest

from agents.services.devices import device_create
from constellations.editor import editor
from constellations.graph import Graph
from constellations.reads.devices import known_devices
from constellations.runs import planner

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
DEVICES = ("laptop", "gpu_server", "test_server", "prod_server")
"""Those that the examples name."""
EMPTY = editor.Snapshot(version=1, state="CREATED", tasks={}, dependencies={}, graph=Graph())


@pytest.mark.django_db
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_plan_builds_what_an_edit_with_its_tasks_would(example):
    for name in DEVICES:
        device_create(name, capabilities=["evaluate"], by="system")
    prepared = planner.prepare_plan({"plan": example.read_text()})
    parameters = {"tasks": prepared.plan.tasks, "dependencies": prepared.plan.dependencies}
    edited = editor.apply_operations(EMPTY, [{"op": "build_constellation", "parameters": parameters}], known_devices())
    assert prepared.changes.added_tasks == edited.added_tasks
    assert prepared.changes.added_dependencies == edited.added_dependencies


@pytest.mark.django_db
def test_a_request_in_words_builds_what_an_edit_with_its_tasks_would():
    device_create("d", by="system")
    prepared = planner.prepare_plan({"request": "`make` on d, `make test` on d if exit_code == 0"})
    parameters = {"tasks": prepared.plan.tasks, "dependencies": prepared.plan.dependencies}
    edited = editor.apply_operations(EMPTY, [{"op": "build_constellation", "parameters": parameters}], known_devices())
    assert len(prepared.changes.added_tasks) == 2
    assert prepared.changes.added_tasks == edited.added_tasks
    assert prepared.changes.added_dependencies == edited.added_dependencies
