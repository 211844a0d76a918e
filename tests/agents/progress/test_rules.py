"""Each rule fires on its loop, and not on the work that looks like it."""

import pytest

from agents.progress.evidence import ABSENT, Control, Evidence, message_of
from agents.progress.settings import Settings
from agents.progress.state import State
from agents.progress.tracker import observe_item

SETTINGS = Settings()


def look(target: str, says: str = "", tool: str = "view") -> Evidence:
    return Evidence(tool, target, call=target, outcome=says or f"content of {target}")


def bash(line: str, says: str | None = "done") -> Evidence:
    return Evidence("bash", line, call=line, outcome=says)


def fails(target: str, error: str = "e", tool: str = "edit", call: str = "same", **fields) -> Evidence:
    return Evidence(tool, target, call=call, success=False, error=error, raw_error=f"raw {error}", **fields)


def edit(target: str, before: str, after: str) -> Evidence:
    return Evidence("edit", target, call=f"{target} {before} {after}", outcome=after, before=before)


def ran(passes: bool, says: str = "1 failed", line: str = "pytest") -> Evidence:
    return Evidence("bash", line, call=line, success=passes, outcome="passed" if passes else says, kind="test")


def poll(says: str) -> Evidence:
    return Evidence("poll", "job", call="job", outcome=says, kind="poll")


def first(items, settings=SETTINGS):
    """The first verdict, or None."""
    state = State()
    for item in items:
        state, verdict = observe_item(state, item, settings)
        if verdict:
            return verdict
    return None


def test_three_equal_errors_on_a_target_are_a_loop_although_it_is_read_between():
    verdict = first([fails("a"), look("a"), fails("a", call="x"), look("b"), fails("a", call="y")])
    assert (verdict.rule, verdict.rows) == ("same_target_error", (1, 3, 5))
    assert verdict.sentence == "“a” failed 3 times with the same error since it last changed: “raw e”"


def test_a_target_that_changed_begins_to_count_anew():
    assert first([fails("a"), fails("a"), edit("a", "0", "1"), fails("a"), fails("a")]) is None


def test_a_change_elsewhere_does_not_excuse_a_file():
    verdict = first([fails("a"), edit("b", "0", "1"), fails("a"), edit("b", "1", "2"), fails("a")])
    assert verdict.rule == "same_target_error"


def test_a_test_depends_on_every_file_so_any_new_content_clears_its_failures():
    failing = fails("pytest", tool="bash", kind="test")
    work = [one for step in range(4) for one in (edit("a", str(step), str(step + 1)), failing)]
    assert first(work) is None
    assert first([failing, look("a"), failing, look("b"), failing]).rule == "same_target_error"


def test_two_errors_each_of_two_tools_are_not_added():
    assert first([fails("x", "a", "one"), fails("y", "b", "two"), fails("z", "a", "one"), fails("w", "b", "two")]) is None


def test_one_tool_failing_with_one_error_whatever_its_arguments_is_a_loop():
    verdict = first([fails(f"query {n}", "401", "search", call=str(n)) for n in range(9)])
    assert (verdict.rule, verdict.rows) == ("same_tool_error", (1, 2, 3, 4, 5, 6))


def test_another_program_going_well_in_the_same_shell_does_not_excuse_the_one_that_fails():
    ssh = [fails(f"ssh -{n} host", "denied", "bash", call=str(n)) for n in range(7)]
    assert first([one for pair in zip(ssh, map(look, "abcdefg"), strict=True) for one in pair]).rule == "same_tool_error"
    assert first([one for n in range(7) for one in (ssh[n], bash(f"ssh -ok{n} host", str(n)))]) is None


def test_an_edit_that_fails_once_on_each_of_many_files_is_no_loop():
    assert first([one for n in range(20) for one in (fails(f"f{n}"), edit(f"f{n}", "0", f"{n}"))]) is None


def test_the_fourth_identical_call_is_a_loop_and_the_third_is_not():
    assert first([bash("ls")] * 3) is None
    verdict = first([bash("ls")] * 4)
    assert (verdict.rule, verdict.rows) == ("exact_repeat", (1, 2, 3, 4))


def test_repeats_with_other_reads_between_are_found_where_they_were_needless():
    calls = [bash("x")] * 3 + [look(name) for name in "abcde"] + [bash("x")] * 2
    assert first(calls).rows == (1, 2, 3, 9, 10)


def test_looking_at_the_status_between_new_reads_is_no_loop():
    assert first([one for n in range(20) for one in (look(f"f{n}"), bash("git status"))]) is None


def test_a_call_whose_answer_moves_is_no_repeat():
    assert first([Evidence("board", "team", call="c", outcome=str(step // 3)) for step in range(60)]) is None


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_a_cycle_of_calls_is_found_in_its_third_round(period):
    verdict = first([look(f"f{step % period}") for step in range(60)])
    assert verdict.rule in ("cycle", "going_round")
    assert verdict.rows[-1] <= 3 * period


def test_a_cycle_with_a_little_that_is_new_between_is_found():
    calls = [look("a"), look("b"), look("new"), look("a"), look("b"), look("a"), look("b")]
    assert first(calls).rule == "cycle"


def test_changes_that_end_where_they_began_are_an_oscillation():
    verdict = first([edit("a", "0", "1"), edit("b", "0", "1"), edit("a", "1", "0"), edit("b", "1", "0")])
    assert (verdict.rule, verdict.rows) == ("oscillation", (1, 2, 3, 4))


def test_a_file_made_and_removed_again_and_again_is_an_oscillation():
    assert first([edit("a", ABSENT, "1"), edit("a", "1", ABSENT)] * 2).rule == "oscillation"


def test_work_on_other_files_does_not_hide_one_that_flips():
    flips = [edit("a", "0", "1"), edit("b", "0", "1"), edit("a", "1", "0"), edit("b", "1", "2"), edit("a", "0", "1")]
    assert first([*flips, look("c"), edit("a", "1", "0")]).rows == (1, 3, 5, 7)


def test_a_test_between_makes_a_roll_back_no_oscillation():
    back = [edit("a", "0", "1"), edit("b", "0", "1"), ran(False), edit("a", "1", "0"), edit("b", "1", "0")]
    assert first(back) is None


def test_alternating_edits_that_make_new_content_are_progress():
    assert first([edit("ab"[step % 2], str(step // 2), str(step // 2 + 1)) for step in range(200)]) is None


def test_known_files_in_no_order_bring_nothing_new():
    known = [look("f0"), look("f1"), look("f2"), look("f3")]
    order = [0, 2, 1, 3, 0, 3, 1, 2, 3, 0, 2, 1, 0, 3]
    verdict = first(known + [known[n] for n in order])
    assert verdict.rule == "going_round"


def test_ten_actions_without_anything_new_are_a_standstill():
    settings = Settings.of({"stuck_threshold": 0})
    verdict = first([look("a"), look("b")] * 6, settings)
    assert (verdict.rule, verdict.rows) == ("no_novelty", tuple(range(3, 13)))


def test_reading_many_different_files_is_no_loop():
    assert first([look(f"f{n}") for n in range(300)]) is None


def test_questions_that_move_while_the_answer_never_does_are_a_loop():
    assert first([look(f"pattern{letter}", "nothing", "grep") for letter in "abcdefgh"]).rule == "same_answer"


def test_silent_commands_are_deeds_and_no_standstill():
    assert first([bash(f"mv {n} {n}.old", None) for n in range(100)]) is None


def test_a_test_that_passes_for_the_first_time_is_news():
    assert first([ran(True, line=f"go test ./p{n}") for n in range(100)]) is None


def test_the_same_message_three_times_with_no_call_between_is_a_loop():
    said = message_of("I will now fix it.")
    assert first([said, message_of("i will now  fix it.")]) is None
    assert first([said, said, message_of("Another."), said]).rows == (1, 2, 4)
    assert first([one for n in range(9) for one in (said, look(f"f{n}"))]) is None


def test_polling_may_wait_far_longer_but_not_for_ever():
    assert first([poll("running")] * 29) is None
    assert first([poll("running")] * 30).rule == "endless_poll"
    assert first([poll(str(step // 20)) for step in range(400)]) is None


def test_faults_of_the_infrastructure_never_count():
    assert first([fails("a", error_kind="rate_limit")] * 50) is None


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("stuck_threshold", [fails("a"), bash("x"), fails("a"), bash("x"), fails("a"), bash("x"), bash("x"), bash("x")]),
        ("oscillation_window", [edit("a", "0", "1"), edit("a", "1", "0")] * 2),
        ("progress_check_interval", [look(f"q{n}", "none", "grep") for n in range(9)]),
        ("max_recent_errors", [fails(f"f{n}", call=str(n)) for n in range(8)]),
        ("max_recent_actions", [bash("x")] * 5),
        ("enable", [fails("a")] * 9),
    ],
)
def test_nought_switches_a_rule_off(name, items):
    assert first(items) is not None
    assert first(items, Settings.of({name: False if name == "enable" else 0})) is None


@pytest.mark.parametrize("kind", ["nudge", "compaction"])
def test_the_systems_own_events_reset_nothing(kind):
    assert first([fails("a"), Control(kind), fails("a"), Control(kind), fails("a")]).rows == (1, 3, 5)


@pytest.mark.parametrize("kind", ["user", "phase"])
def test_a_person_or_a_phase_begins_a_new_window(kind):
    assert first([fails("a"), fails("a"), Control(kind), fails("a"), fails("a")]) is None
    assert first([bash("ls")] * 3 + [Control(kind)] + [bash("ls")] * 3) is None
    assert first([message_of("x")] * 2 + [Control(kind)] + [message_of("x")] * 2) is None
