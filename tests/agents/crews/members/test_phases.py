"""Records of phases: begun once, completed once, and how they end."""

import pytest

from agents.clock import from_iso
from agents.crews.members.phases import BLOCKERS, FILES, TESTS, Phases
from agents.crews.script import Script
from agents.ids import row_id
from agents.streams.tables import TABLES
from agents.streams.turn import Turn

BEGIN = "2026-11-21T03:04:05.000000Z"
START_S = from_iso(BEGIN)


class Stage:
    """An agent as its phases see it, and the rows as the recorded events leave them."""

    def __init__(self, *expected, phase=0):
        steps = [{"description": f"phase {n}", "expected_duration": s, "steps": []} for n, s in enumerate(expected, 1)]
        script = Script(steps, lambda condition, value: True)
        self.taken = 0
        self.turn = Turn(BEGIN, "system", self.take)
        self.phases = Phases(1)
        self.phases.start(self.turn, script, phase)

    def take(self) -> int:
        self.taken += 1
        return row_id(1, self.taken)

    def rows(self) -> list[dict]:
        """What folding the events gives."""
        rows: dict[str, dict] = {}
        for event in self.turn.events:
            for row in event.data.get("add", {}).get("phase", ()):
                rows[str(row["id"])] = TABLES["phase"].whole(row)
            for key, fields in event.data.get("set", {}).get("phase", {}).items():
                rows[key].update(fields)
        return list(rows.values())

    def row(self) -> dict:
        return self.rows()[-1]

    def events(self) -> list[str]:
        return [event.type for event in self.turn.events]

    def read_back(self) -> Phases:
        phases = Phases(1)
        phases.load(self.rows())
        return phases


def call(target="f", kind="tool", success=True, before=None, outcome=None) -> dict:
    return {"target": target, "kind": kind, "success": success, "before": before, "outcome": outcome}


def test_a_phase_begins_where_the_script_stands():
    row = Stage(None, 60.0, phase=1).row()
    assert (row["number"], row["total"], row["description"], row["expected_s"]) == (2, 2, "phase 2", 60.0)
    assert (row["started_at"], row["ended_at"], row["outcome"]) == (BEGIN, None, "")


def test_a_phase_without_tests_and_blockers_is_a_success():
    stage = Stage(None)
    stage.phases.complete(stage.turn)
    assert (stage.row()["outcome"], stage.row()["ended_at"]) == ("success", BEGIN)


def test_a_phase_is_completed_once():
    stage = Stage(None)
    stage.phases.complete(stage.turn)
    stage.phases.complete(stage.turn, ended_well=False)
    assert stage.events() == ["phase_started", "phase_ended"]
    assert stage.row()["outcome"] == "success"


@pytest.mark.parametrize(("last", "outcome"), [(True, "success"), (False, "completed_with_issues")])
def test_the_last_run_of_a_test_counts(last, outcome):
    stage = Stage(None)
    for passed in (not last, last):
        stage.phases.note_call(stage.turn, call("pytest", "test", passed))
    stage.phases.complete(stage.turn)
    assert (stage.row()["tests"], stage.row()["outcome"]) == ([{"name": "pytest", "passed": last}], outcome)


def test_a_blocker_and_an_agent_that_failed_are_issues():
    blocked, failed = Stage(None), Stage(None)
    blocked.phases.block(blocked.turn, "no network")
    blocked.phases.complete(blocked.turn)
    failed.phases.complete(failed.turn, ended_well=False)
    assert [stage.row()["outcome"] for stage in (blocked, failed)] == ["completed_with_issues"] * 2


def test_a_file_counts_as_changed_once_and_only_when_it_was_changed():
    stage = Stage(None)
    for row in (
        call("same", before="1", outcome="1"), call("read", outcome="1"), call("new", before="absent", outcome="1"),
        call("new", before="1", outcome="2"),
    ):  # fmt: skip
        stage.phases.note_call(stage.turn, row)
    assert stage.row()["files_changed"] == ["new"]


def test_a_record_keeps_no_more_than_its_limits():
    stage = Stage(None)
    for number in range(FILES + 10):
        stage.phases.note_call(stage.turn, call(f"f{number}", before="1", outcome="2"))
        stage.phases.note_call(stage.turn, call(f"t{number}", "test"))
        stage.phases.block(stage.turn, "x" * 1000)
    row = stage.row()
    assert (len(row["files_changed"]), len(row["tests"]), len(row["blockers"])) == (FILES, TESTS, BLOCKERS)
    assert row["tests"][-1]["name"] == f"t{FILES + 9}"
    assert {len(text) for text in row["blockers"]} == {500}


def test_a_phase_that_takes_long_is_told_of_and_then_blocked_and_never_again():
    stage = Stage(10.0)
    for seconds in (9, 10, 11, 19, 20, 21, 1000):
        stage.phases.look(stage.turn, START_S + seconds)
    assert stage.events() == ["phase_started", "phase_overdue", "phase_overdue", "phase_blocked"]
    assert stage.row()["blockers"] == ["it takes more than twice the expected 10 s"]
    assert stage.row()["ended_at"] is None


def test_a_phase_is_looked_at_when_its_time_is_over_and_not_before():
    stage = Stage(10.0)
    assert stage.phases.wake_at() == START_S + 10
    stage.phases.look(stage.turn, START_S + 10)
    assert stage.phases.wake_at() == START_S + 20
    stage.phases.look(stage.turn, START_S + 20)
    assert stage.phases.wake_at() is None
    assert Stage(None).phases.wake_at() is None


def test_whoever_reads_a_phase_back_does_not_block_it_twice():
    stage = Stage(10.0)
    for seconds in (10, 20):
        stage.phases.look(stage.turn, START_S + seconds)
    assert stage.read_back().wake_at() is None


def test_another_blocker_that_speaks_of_expectations_does_not_hide_that_a_phase_takes_long():
    stage = Stage(10.0)
    stage.phases.block(stage.turn, "its result is not as expected: n > 3")
    assert stage.read_back().wake_at() == START_S + 10


def test_phases_that_have_ended_are_not_gone_on_with():
    stage = Stage(10.0)
    stage.phases.complete(stage.turn)
    back = stage.read_back()
    back.note_call(stage.turn, call("t", "test"))
    back.block(stage.turn, "too late")
    back.complete(stage.turn)
    assert stage.events() == ["phase_started", "phase_ended"]
