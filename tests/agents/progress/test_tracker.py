"""The ladder, what a restart keeps, and the seed's own cases."""

import json

from agents.progress.evidence import Control
from agents.progress.settings import Settings
from agents.progress.state import FILES_LIMIT, SEEN_LIMIT, State
from agents.progress.tracker import Progress, accept_loop, count_progress, is_progress_due, observe_item
from tests.agents.progress.test_rules import bash, edit, fails, look, poll, ran


def run(items, state=None, settings=None):
    """The final state and every verdict."""
    state, verdicts = state or State(), []
    for item in items:
        state, verdict = observe_item(state, item, settings or Settings())
        if verdict:
            verdicts.append(verdict)
    return state, verdicts


def test_a_task_of_ten_phases_and_a_thousand_productive_calls_has_no_alarm():
    items = []
    for phase in range(10):
        items.append(Control("phase"))
        items += [edit(f"pkg{phase}/file{n}.go", "", f"{phase} {n}") for n in range(100)]
        items.append(ran(True, line="go test ./..."))
    state, verdicts = run(items)
    assert verdicts == []
    assert (state.calls, state.window) == (1010, 10)


def test_three_equal_errors_are_steered_and_a_recovery_goes_on():
    _, verdicts = run([fails("main.go")] * 3 + [edit("main.go", "0", "1"), look("x"), edit("main.go", "1", "2")])
    assert [(one.action, one.rule, one.first) for one in verdicts] == [("steer", "same_target_error", True)]
    assert verdicts[0].reason == "stuck:same_target_error"


def test_the_same_loop_again_halts():
    items = [fails("main.go")] * 3 + [edit("main.go", "0", "1")] + [fails("main.go")] * 3
    _, verdicts = run(items)
    assert [(one.action, one.first) for one in verdicts] == [("steer", True), ("halt", False)]
    assert verdicts[0].identity == verdicts[1].identity
    assert verdicts[1].rows == (5, 6, 7)


def test_a_loop_that_goes_on_after_the_steer_halts_when_it_is_complete_again():
    assert [(one.rows[-1], one.action) for one in run([fails("a")] * 6)[1]] == [(3, "steer"), (6, "halt")]
    assert [one.action for one in run([bash("ls")] * 7)[1]] == ["steer", "halt"]


def test_another_loop_is_steered_of_its_own_until_the_budget_is_spent():
    settings = Settings.of({"steer_budget": 2})
    _, verdicts = run([fails(f"f{n // 3}", f"e{n // 3}") for n in range(9)], settings=settings)
    assert [(one.action, one.first) for one in verdicts] == [("steer", True), ("steer", True), ("halt", True)]


def test_a_new_window_forgets_neither_the_loop_nor_the_budget():
    _, verdicts = run([fails("a")] * 3 + [Control("user"), Control("phase")] + [fails("a")] * 3)
    assert [one.action for one in verdicts] == ["steer", "halt"]


def test_going_on_anyway_accepts_that_loop_and_no_other():
    state, (verdict,) = run([fails("a")] * 3)
    state = accept_loop(state, verdict.identity)
    items = [one for n in range(3) for one in (fails("a"), look(f"f{n}"))]
    state, verdicts = run(items, state)
    assert verdicts == []
    assert run([fails("b", "other")] * 3, state)[1][0].rule == "same_target_error"


def test_a_restart_at_any_place_changes_no_verdict():
    items = [edit("a", "0", "1"), fails("a"), look("x"), fails("a"), poll("r"), fails("a"), Control("user"), bash("ls")]
    items += [bash("ls")] * 4 + [edit("b", "0", "1"), edit("b", "1", "0")] * 3 + [fails("a")] * 3
    straight, expected = run(items)
    state, verdicts = State(), []
    for item in items:
        state, verdict = observe_item(State.from_json(state.to_json()), item)
        verdicts += [verdict] if verdict else []
    assert verdicts == expected
    assert len(expected) > 3
    assert State.from_json(state.to_json()) == straight


def test_a_state_is_never_changed_in_place():
    state, _ = run([fails("a"), edit("b", "0", "1")])
    before = state.to_json()
    observe_item(state, edit("b", "1", "2"))
    assert state.to_json() == before


def test_memory_is_bounded_however_long_an_agent_works():
    items = [one for n in range(2_000) for one in (edit(f"file{n}", "0", f"{n}"), look(f"other{n}"))]
    state, _ = run(items)
    assert len(state.seen) == SEEN_LIMIT
    assert len(state.files) == FILES_LIMIT
    assert (len(state.actions), len(state.alterations)) == (20, 20)
    assert len(json.dumps(state.to_json())) < 100_000


def test_progress_is_due_every_ten_calls_and_says_how_it_goes():
    state, due = State(), []
    for n in range(20):
        item = fails(f"f{n}", f"error {n}") if n >= 17 else edit(f"f{n}", "old", str(n))
        state, _ = observe_item(state, item)
        due += [state.calls] if is_progress_due(state) else []
    assert due == [10, 20]
    assert count_progress(state) == Progress(files_modified=17, recent_successes=17, recent_failures=3, consecutive_errors=3)
    assert not is_progress_due(state, Settings.of({"progress_check_interval": 0}))
