"""What follows from a fault, by its kind."""

import pytest

from agents.crews.ways import FAULTS, KINDS, RECOVERIES, way_out


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("rate_limit", "wait"), ("server_error", "wait"), ("connection_lost", "wait"), ("timeout", "longer"),
        ("bad_arguments", "steer"), ("missing", "ask"), ("permission", "ask"), ("lost", "retry"), ("interrupted", "retry"),
        ("broken", "give_up"), ("of a later version", "give_up"),
    ],
)  # fmt: skip
def test_each_kind_of_fault_has_its_way_out(kind, way):
    assert way_out(kind, 1) == way


@pytest.mark.parametrize("kind", sorted(FAULTS - {"interrupted"}))
def test_a_fault_that_comes_again_and_again_is_given_up(kind):
    assert way_out(kind, RECOVERIES + 1) == "give_up"


def test_what_a_pause_cut_off_is_made_again_however_often():
    assert way_out("interrupted", 100, own=True, detour=True) == "retry"


@pytest.mark.parametrize("made", [1, RECOVERIES, RECOVERIES + 1, 1000])
@pytest.mark.parametrize("kind", ["missing", "permission", "timeout", "bad_arguments", "broken"])
def test_a_step_with_an_answer_of_its_own_to_failures_gives_it_as_often_as_it_says(kind, made):
    assert way_out(kind, made, own=True, detour=True) == "check"


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "connection_lost"])
def test_faults_of_the_infrastructure_are_waited_for_before_the_step_answers_to_them(kind):
    assert [way_out(kind, made, own=True) for made in range(1, RECOVERIES + 2)] == ["wait"] * RECOVERIES + ["check"]


@pytest.mark.parametrize("kind", ["missing", "permission", "timeout", "bad_arguments", "broken"])
def test_the_detour_that_a_step_names_comes_before_what_the_kind_says(kind):
    assert way_out(kind, 1, detour=True) == "steer"


@pytest.mark.parametrize(("on_lost", "way"), [("retry", "retry"), ("ask", "ask"), ("fail", "give_up")])
def test_what_was_lost_is_decided_by_on_lost_whatever_the_step_says(on_lost, way):
    assert way_out("lost", 1, on_lost=on_lost, own=True, detour=True) == way


def test_a_refusal_is_an_answer_and_no_fault():
    assert set(KINDS) - FAULTS == {"denied"}
