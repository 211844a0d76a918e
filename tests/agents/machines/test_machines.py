"""The seven tables: every state times event times facts has at most one outcome, and a table that lies is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.machines import MACHINES, Machine, MachineError, Row, TransitionNotAllowed, step
from constellations.runs.attempts.ends import EFFECTS

NAMES = ("actor", "constellation_agent", "device_agent", "tool_loop", "task", "constellation", "device")
TERMINAL = {
    "actor": {"completed", "error", "cancelled"},
    "constellation_agent": {"FINISH", "FAIL"},
    "device_agent": {"FINISH", "FAIL", "ERROR"},
    "tool_loop": {"Halted"},
    "task": {"COMPLETED"},
    "constellation": {"CANCELLED"},
    "device": {"retired"},
}


def test_the_seven_machines_are_registered():
    assert set(MACHINES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_state_event_and_fact_has_exactly_one_outcome(name):
    machine = MACHINES[name]
    for state in machine.states:
        for event in machine.events:
            for facts in machine.combinations():
                row = machine.find(state, event, facts)
                if row is None:
                    with pytest.raises(TransitionNotAllowed, match=state):
                        step(machine, state, event, facts)
                else:
                    target, effects = step(machine, state, event, facts)
                    assert target in machine.states
                    assert effects == row.effects


@pytest.mark.parametrize("name", NAMES)
def test_terminal_states_are_those_of_the_page_and_have_no_way_out(name):
    machine = MACHINES[name]
    assert machine.terminal == TERMINAL[name]
    for state in machine.terminal:
        assert machine.choices(state) == ()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_random_walk_never_leaves_the_table(name, data):
    machine = MACHINES[name]
    state = machine.initial
    facts = list(machine.combinations())
    for _ in range(60):
        event = data.draw(st.sampled_from(machine.events))
        known = data.draw(st.sampled_from(facts))
        before = state
        try:
            state, _ = step(machine, state, event, known)
        except TransitionNotAllowed:
            assert state == before
        else:
            assert before not in machine.terminal
            assert state in machine.states


EXPECTED = [
    ("actor", "running", "Pause", {}, "paused"),
    ("actor", "paused", "ProcessInteraction", {}, "idle"),
    ("actor", "running", "InteractionComplete", {"success": True}, "idle"),
    ("actor", "running", "InteractionComplete", {"success": False}, "error"),
    ("actor", "created", "Cancel", {}, "cancelled"),
    ("constellation_agent", "CONTINUE", "restart", {}, "START"),
    ("device_agent", "CONFIRM", "expired", {}, "FAIL"),
    ("device_agent", "SCREENSHOT", "error", {}, "ERROR"),
    ("tool_loop", "ResourcePaused", "resources_ok", {"left": "ExecutingTool"}, "ExecutingTool"),
    ("tool_loop", "AwaitingPermission", "denied", {"left": "ExecutingTool"}, "StreamingResponse"),
    ("task", "RUNNING", "fail", {"attempts_left": True}, "PENDING"),
    ("task", "RUNNING", "fail", {"attempts_left": False}, "FAILED"),
    ("task", "RUNNING", "lost", {"on_lost": "fail"}, "FAILED"),
    ("task", "WAITING_DEPENDENCY", "deadline", {}, "FAILED"),
    ("task", "RUNNING", "deadline", {}, "FAILED"),
    ("task", "PENDING", "rejected", {}, "FAILED"),
    ("task", "PENDING", "expired", {}, "FAILED"),
    ("task", "CANCELLED", "revive", {"skipped": True}, "WAITING_DEPENDENCY"),
    ("task", "FAILED", "retry", {"unmet": False}, "PENDING"),
    ("constellation", "EXECUTING", "close", {"verdict": "some_failed"}, "PARTIALLY_FAILED"),
    ("constellation", "FAILED", "reopen", {}, "EXECUTING"),
]

REFUSED = [
    ("actor", "running", "InactivityTimeout", {}),
    ("actor", "idle", "Resume", {}),
    ("constellation_agent", "START", "finished", {}),
    ("device_agent", "PENDING", "finish", {}),
    ("task", "WAITING_DEPENDENCY", "start", {}),
    ("task", "COMPLETED", "retry", {"unmet": False}),
    ("task", "RUNNING", "rejected", {}),
    ("task", "CANCELLED", "revive", {"skipped": False}),
    ("constellation", "CANCELLED", "reopen", {}),
    ("constellation", "PAUSED", "close", {"verdict": "all_done"}),
]


@pytest.mark.parametrize(("name", "state", "event", "facts", "target"), EXPECTED)
def test_rows_of_the_page(name, state, event, facts, target):
    assert step(MACHINES[name], state, event, facts)[0] == target


@pytest.mark.parametrize(("name", "state", "event", "facts"), REFUSED)
def test_what_has_no_row_is_refused_by_name(name, state, event, facts):
    with pytest.raises(TransitionNotAllowed, match=f"{name} does not take `{event}` in state {state}"):
        step(MACHINES[name], state, event, facts)


def test_the_engine_carries_out_every_effect_that_a_table_names():
    named = {effect for machine in MACHINES.values() for row in machine.rows for effect in row.effects}
    assert named == set(EFFECTS)


def table(**changes) -> Machine:
    parts = {"name": "lamp", "initial": "off", "terminal": frozenset(), "rows": (Row("off", "press", "on"),), **changes}
    return Machine(**parts)


def test_two_rows_for_one_case_are_refused_when_the_machine_is_built():
    with pytest.raises(MachineError, match="off/press has 2 rows"):
        table(rows=(Row("off", "press", "on"), Row("off", "press", "off")))


def test_a_guard_outside_its_domain_is_refused():
    with pytest.raises(MachineError, match="outside its domain"):
        table(rows=(Row("off", "press", "on", guard={"power": True}),))


def test_a_state_that_nothing_leads_to_is_refused():
    with pytest.raises(MachineError, match="no row leads to"):
        table(rows=(Row("off", "press", "on"), Row("broken", "press", "on")))


def test_an_unknown_terminal_state_is_refused():
    with pytest.raises(MachineError, match="appear in no row"):
        table(terminal=frozenset({"gone"}))
