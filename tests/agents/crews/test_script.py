"""Where a script stands, and what comes next."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.crews.script import Position, Script, plain_script
from agents.errors import AgentsError
from agents.tools.calls import Outcome


def holds(condition: str, value) -> bool:
    """A condition is the name of a key whose value counts; one that is not there cannot be decided."""
    if condition not in value:
        raise AgentsError(f"there is no {condition}")
    return bool(value[condition])


def call(**more) -> dict:
    return {**plain_script("command", {"argv": ["true"]}, None)[0]["steps"][0], **more}


def say(text: str = "well", condition: str = "") -> dict:
    return {"do": "say", "text": text, "if": condition}


def script(*phases: list[dict], described: bool = True, **more) -> Script:
    rows = [
        {"description": f"phase {n}" if described else "", "expected_duration": None, "steps": steps}
        for n, steps in enumerate(phases, 1)
    ]
    return Script(rows, holds, **more)


def ended(at: Position, met: bool) -> Position:
    return replace(at, met=met, tries=at.tries + 1)


@given(
    st.builds(
        Position,
        phase=st.integers(0, 99),
        step=st.integers(0, 1999),
        tries=st.integers(0, 1000),
        detour=st.integers(-1, 9),
        met=st.sampled_from([None, True, False]),
        error=st.text(max_size=20),
        fault=st.text(max_size=9),
        faults=st.integers(0, 9),
        stretch=st.floats(1, 8),
        waits=st.sampled_from(["", "time", "approval", "child", "over"]),
        until=st.none() | st.floats(0, 2e9),
        detoured=st.booleans(),
        done=st.booleans(),
    )
)
def test_a_position_survives_being_stored(at):
    assert Position.of(at.to_json()) == at


def test_a_position_tells_only_what_differs_from_the_beginning():
    assert Position().to_json() == {}
    assert Position(step=2, met=False).to_json() == {"step": 2, "met": False}


def test_steps_without_a_description_are_no_phase():
    assert script([call()], described=False).total == 0
    assert script([call()]).total == 1
    assert script([call()], [call()], described=False).total == 2


def test_a_step_that_went_well_is_followed_by_the_next_and_the_last_by_the_end():
    steps = script([call(), call()], described=False)
    course, at = steps.choose_course(ended(Position(), True))
    assert (course, at) == ("next", Position(step=1))
    assert steps.choose_course(ended(at, True)) == ("done", Position(step=2, done=True))


def test_the_last_step_of_a_phase_ends_the_phase():
    steps = script([call()], [call()])
    course, at = steps.choose_course(ended(Position(), True))
    assert course == "phase_done"
    assert steps.next_phase(at) == Position(phase=1)
    assert steps.next_phase(Position(phase=1, step=1)) is None


def test_a_step_is_tried_as_often_as_it_says_and_then_it_has_failed():
    steps, at, courses = script([call(tries=3)]), Position(), []
    while not at.done:
        course, at = steps.choose_course(ended(at, False))
        courses.append(course)
    assert courses == ["again", "again", "failed"]
    assert at.met is False


def test_a_failure_that_may_be_passed_over_is_followed_by_the_next_step():
    assert script([call(on_failure="continue"), call()]).choose_course(ended(Position(), False)) == ("next", Position(step=1))


@pytest.mark.parametrize(
    "step",
    [
        say(),
        {"do": "ask", "question": "?", "options": [], "timeout": 60.0, "save": "", "if": ""},
        {"do": "wait", "seconds": None, "for": "it", "timeout": 60.0, "save": "", "if": ""},
        {"do": "observe", "save": "", "if": ""},
    ],
)
def test_what_is_no_call_has_failed_when_it_did_not_go_well_once(step):
    assert script([step, call()]).choose_course(ended(Position(), False))[0] == "failed"


def test_a_detour_is_walked_to_its_end_however_its_calls_end_and_leads_back_to_the_step():
    steps = script([call(recover=[call(), call()], tries=9)])
    at = steps.steer(Position(tries=3, met=False))
    assert (at.detour, at.met) == (0, None)
    course, at = steps.choose_course(ended(at, False))
    assert (course, at.detour) == ("again", 1)
    course, at = steps.choose_course(ended(at, True))
    assert (course, at) == ("again", Position(detoured=True))


def test_whoever_is_stuck_in_a_detour_goes_back_to_the_step():
    steps = script([call(recover=[call(), call()])])
    assert steps.steer(Position(detour=1)).detour == -1


def test_steps_whose_condition_is_false_are_passed_over():
    steps = script([say(condition="no"), say(condition="no"), say(condition="yes")])
    assert steps.pass_over(Position(), {"no": 0, "yes": 1}) == Position(step=2)
    assert steps.pass_over(Position(), {"no": 0, "yes": 0}) == Position(step=3)


def test_a_step_that_has_been_tried_is_not_asked_again_whether_it_is_wanted():
    at = Position(tries=1)
    assert script([call(**{"if": "no"}, tries=2)]).pass_over(at, {"no": False}) == at


@pytest.mark.parametrize("step", [say(condition="nowhere"), call(**{"if": "nowhere"}), call(**{"if": "nowhere"}, tries=50)])
def test_a_step_has_failed_when_nobody_can_say_whether_it_is_wanted(step):
    steps = script([say(condition="no"), step])
    at = steps.pass_over(Position(), {"no": False})
    assert (at.step, at.met) == (1, False)
    assert at.error == "whether the step is wanted cannot be said: there is no nowhere"
    assert steps.choose_course(at)[0] == "failed"


def test_such_a_step_may_be_passed_over_like_any_failure():
    steps = script([call(**{"if": "nowhere"}, on_failure="continue"), call()])
    assert steps.choose_course(steps.pass_over(Position(), {})) == ("next", Position(step=1))


def test_there_is_no_step_beyond_the_last():
    steps = script([call()])
    assert steps.step(Position(step=1)) is None
    assert steps.step(Position(phase=1)) is None


@pytest.mark.parametrize(
    ("expect", "outcome", "wrong"),
    [
        ({}, Outcome("completed"), ""),
        ({}, Outcome("failed", error="no such file"), "no such file"),
        ({}, Outcome("lost"), "lost"),
        ({"fails": True}, Outcome("failed", error="no such file"), ""),
        ({"fails": True}, Outcome("completed"), "it went well, and should have failed"),
        ({"exit_code": 3}, Outcome("failed", error="exit code 3", exit_code=3), ""),
        ({"exit_code": 3}, Outcome("completed", exit_code=0), "exit code 0, not 3"),
        ({"exit_code": 0}, Outcome("timeout", error="stopped after 5 s"), "stopped after 5 s"),
        ({"contains": "ready"}, Outcome("completed", text="is ready now"), ""),
        ({"contains": "ready"}, Outcome("completed", result={"state": "ready"}), ""),
        ({"contains": "ready"}, Outcome("completed", text="not yet"), "its output does not contain 'ready'"),
        ({"contains": "ready"}, Outcome("failed", error="exit code 1", text="ready"), "exit code 1"),
        ({"result": "good"}, Outcome("completed", result={"good": 1}), ""),
        ({"result": "good"}, Outcome("completed", result={"good": 0}), "its result is not as expected: good"),
        ({"exit_code": 3, "contains": "x"}, Outcome("failed", exit_code=3, text="y"), "its output does not contain 'x'"),
    ],
)
def test_what_is_missing_from_an_outcome_is_said(expect, outcome, wrong):
    assert script([]).find_shortfall(call(expect=expect), outcome) == wrong


def test_a_condition_on_a_result_that_cannot_be_decided_is_an_error():
    with pytest.raises(AgentsError, match="there is no good"):
        script([]).find_shortfall(call(expect={"result": "good"}), Outcome("completed", result={}))


def test_a_plain_task_is_a_script_of_its_one_call():
    phases = plain_script("noop", {"result": 1}, 5.0)
    steps = Script(phases, holds, plain=True)
    step = steps.step(Position())
    assert (step["tool"], step["arguments"], step["timeout"], steps.total) == ("noop", {"result": 1}, 5.0, 0)
    assert steps.choose_course(ended(Position(), False))[0] == "failed"


def test_a_retry_that_the_plan_orders_is_known_as_one():
    steps = script([call(tries=3), call(tries=1)])
    assert [steps.is_ordered(Position(tries=n)) for n in range(4)] == [False, True, True, False]
    assert [steps.uses_up_tries(Position(tries=n)) for n in range(4)] == [False, False, True, True]
    once = Position(step=1, tries=1)
    assert not steps.is_ordered(once)
    assert not steps.uses_up_tries(once)
    over = Position(step=2, tries=1)
    assert not steps.is_ordered(over)
    assert not steps.uses_up_tries(over)


def test_a_step_that_says_what_to_do_when_its_agent_is_stuck_orders_retries_only_after_that():
    steps = script([call(tries=3, recover=[call()])])
    at = Position(tries=1)
    assert not steps.is_ordered(at)
    assert not steps.is_ordered(replace(at, detour=0, detoured=True))
    assert steps.is_ordered(replace(at, detoured=True))
