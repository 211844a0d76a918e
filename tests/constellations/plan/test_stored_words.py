"""`device` is the only word for where a task has to run; what was stored when there were two is still read."""

from __future__ import annotations

import pytest

from agents.models import Approval
from agents.services import approvals, sessions
from agents.streams.verify import verify_database
from constellations.errors import EditRefused
from constellations.models import Constellation
from constellations.plan import operations, plan
from constellations.reads.exports import export_document
from constellations.services.edits import edit_apply
from constellations.services.undo import edit_undo
from tests.agents.conftest import record
from tests.constellations.planting import noop, plant
from tests.constellations.services.test_proposals_at_work import count

RULE = {
    "name": "again", "when": {"event": "task_completed", "task": "a", "condition": ""}, "times": 1, "reason": "",
    "edit": [{"op": "add_task", "parameters": {"task_id": "b", "tool": "noop", "wanted_device": "laptop"}}],
}  # fmt: skip
"""As a plan's rules were stored before."""


@pytest.mark.parametrize(
    "stored",
    [
        {"op": "update_task", "parameters": {"task_id": "a", "wanted_device": "laptop"}},
        {"add_task": {"task_id": "a", "tool": "noop", "wanted_device": "laptop"}},
        {"op": "build_constellation", "parameters": {"tasks": [{"task_id": "a", "tool": "noop", "wanted_device": "laptop"}]}},
    ],
)
def test_a_stored_operation_is_read_in_the_words_of_today(stored):
    assert operations.read_operation(stored).findings
    (present,) = operations.write_in_present_words([stored])
    assert operations.read_operation(present).findings == []
    assert "wanted_device" not in str(present)


@pytest.mark.django_db(transaction=True)
def test_who_writes_wanted_device_is_told_the_word(device, operator):
    graph = plant(sessions.session_create(operator, by="system"), noop("a"))
    with pytest.raises(EditRefused, match="there is no key wanted_device here; did you mean device"):
        edit_apply(graph.pk, [{"update_task": {"task_id": "a", "wanted_device": "laptop"}}], author="user:1")
    made, _ = edit_apply(graph.pk, [{"update_task": {"task_id": "a", "device": "laptop"}}], author="user:1")
    edit_undo(graph.pk, made.edit_id, "user:1")
    assert graph.tasks.get().wanted_device == ""
    assert list(verify_database()) == []


@pytest.mark.django_db(transaction=True)
def test_a_rule_that_was_stored_in_the_old_words_fires_and_is_exported_in_the_new(engine, device, operator, verified):
    rule = {**RULE, "edit": [{"add_task": noop("b", device="laptop")}]}
    session, item = engine.submit({"tasks": [noop("a", confirm=True)], "replan": [rule]})
    engine.run(lambda: count("agents_approval WHERE state = 'waiting'"))
    graph = Constellation.objects.get(interaction=item)
    record(session.pk, set={"constellation": {str(graph.pk): {"rules": [RULE]}}})
    approvals.approval_decide(Approval.objects.get().pk, "approve", by=f"user:{operator.pk}")
    engine.run()
    graph.refresh_from_db()
    assert {task.task_id: (task.state, task.wanted_device) for task in graph.tasks.all()} == {
        "a": ("COMPLETED", ""), "b": ("COMPLETED", "laptop"),
    }  # fmt: skip
    document = export_document(graph)
    assert graph.rules == [RULE]
    assert "wanted_device" not in document
    assert plan.parse_plan(document).rules[0]["edit"][0]["parameters"]["device"] == "laptop"
