"""Edits made in the admin while a real runner carries the constellation out."""

from threading import Thread

import pytest

from agents.models import Event
from constellations.models import Attempt, Constellation, Edit, Task
from tests.constellations.admin.admin_client import Staff, added, problems, row_of
from tests.constellations.runs.test_run import command, noop, states
from tests.constellations.services.test_live_edits import edited_while_it_runs, outsider, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


def test_a_save_takes_effect_in_what_runs(engine, device, operator):
    staff, told = Staff(operator), []
    plan = {"tasks": [command("a", "sleep", "0.5"), noop("b", after=["a"]), noop("c", after=["b"])]}

    def save(made):
        seen = Constellation.objects.get(pk=made)
        values = added(staff.form(seen), "tasks", task_id="x", command="true", device="laptop")
        values = added(values, "dependencies", upstream="a", downstream="x")
        values[f"{row_of(values, 'b')}-DELETE"] = "on"
        told.extend(staff.told(staff.save(seen, values, reason="b is not needed")))

    found = edited_while_it_runs(engine, plan, save)
    assert told[0].startswith("Saved as version 2: removed task b, added task x")
    assert states(found) == {"a": "COMPLETED", "x": "COMPLETED", "c": "COMPLETED"}
    assert Attempt.objects.get(task__task_id="x").outcome == "completed"
    assert not Event.objects.filter(type="state_changed", data__task_id="b").exists()
    assert Edit.objects.get().author == f"user:{operator.pk}"


def test_a_save_that_comes_too_late_changes_nothing_of_what_runs(engine, device, operator, tmp_path):
    staff, found = Staff(operator), {}
    go, done = tmp_path / "go", tmp_path / "done"
    _, item = engine.submit({"tasks": [waits_for("a", go), waits_for("b", done, after=["a"])]})

    def save(made):
        seen = Constellation.objects.get(pk=made)
        values = staff.form(seen)
        go.touch()
        until(lambda: Task.objects.filter(task_id="b", state="RUNNING").exists())
        values[f"{row_of(values, 'b')}-name"] = "late"
        page = staff.save(seen, added(values, "tasks", task_id="x", tool="noop"))
        found.update(problems(page), text=page.content.decode())
        done.touch()

    operator_at_work = Thread(target=outsider, args=(save,), daemon=True)
    operator_at_work.start()
    engine.run()
    operator_at_work.join()
    text = found.pop("text")
    assert "Nothing was saved. What you typed is still here." in text
    assert 'value="late"' in text
    assert found == {"b.__all__": ["b already runs"]}
    made = Constellation.objects.get(interaction=item)
    assert states(made) == {"a": "COMPLETED", "b": "COMPLETED"}
    assert (Edit.objects.count(), made.version, Task.objects.get(task_id="b").name) == (0, 1, "b")


def waits_for(task_id, path, **more):
    return command(task_id, "sh", "-c", f"while ! test -e {path}; do sleep 0.02; done", **more)
