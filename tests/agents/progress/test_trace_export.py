"""`manage.py trace_export`: what has run here is scored like any other trace."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from hypothesis import given

from agents.crews.evidence import LoopMemory
from agents.management.commands.trace_export import action_of_row
from agents.models import Evidence
from agents.progress.settings import Settings
from agents.progress.state import State
from agents.progress.traces import item_of
from agents.progress.tracker import observe_item
from agents.streams.tables import TABLES
from tests.agents.crews.test_memory import DEEDS, PATIENT, live

in_database = pytest.mark.django_db(transaction=True)


@given(DEEDS.map(lambda deeds: [deed for deed in deeds if deed != "go on" and "missing" not in deed]))
def test_a_run_that_was_written_out_gets_the_verdicts_it_got_live(deeds):
    """But for what a person accepted, which is no action, and left out."""
    rows = live(deeds).rows
    memory, state = LoopMemory(PATIENT), State()
    columns = TABLES["evidence"].kinds
    for row in rows:
        lived = memory.take(row)
        written = json.loads(json.dumps(action_of_row(Evidence(**{name: row[name] for name in columns if name in row}))))
        # Read with other words for tools and tests: the run itself knows what its calls were.
        state, read = observe_item(state, item_of(written, Settings.of({"test_commands": ["."]})), PATIENT)
        assert read == lived
    assert state == memory.state


def steps(task_id: str, *wanted: dict) -> dict:
    return {"task_id": task_id, "device": "laptop", "steps": list(wanted)}


@in_database
def test_recorded_runs_are_judged_as_they_were_when_they_ran(engine, device, tmp_path):
    fails = [{"command": ["sh", "-c", "echo 'not found' >&2; exit 1"], "on_failure": "continue"}] * 9
    works = [{"command": ["echo", str(n)]} for n in range(6)]
    engine.carry_out({"tasks": [steps("stuck", {"say": "I begin"}, *fails), steps("fine", *works)]})
    out = StringIO()
    call_command("trace_export", stdout=out)
    traces = json.loads(out.getvalue())
    assert sorted((one["expected_stuck"], len(one["actions"]) > 3) for one in traces) == [(False, True), (True, True)]
    path = tmp_path / "recorded.json"
    path.write_text(out.getvalue())
    scored = StringIO()
    call_command("stuck_eval", str(path), stdout=scored)
    assert scored.getvalue().splitlines()[:4] == ["precision 1.00", "recall 1.00", "f1 1.00", "latency_median 0"]


@in_database
def test_only_the_loops_of_one_session_are_written_when_it_is_named(engine, device):
    found = [engine.carry_out({"tasks": [steps("t", {"command": ["echo"]})]}) for _ in range(2)]
    out = StringIO()
    call_command("trace_export", session=found[0].session_id, stdout=out)
    assert len(json.loads(out.getvalue())) == 1
