"""The gate of an attempt: what a person has let through, and what is asked about all the same."""

import pytest

from agents.gates.gate import Gate
from agents.gates.policies import Rule

DEVICE = {"kind": "remote", "name": "far", "labels": ["prod"]}
ASKS = Rule(tool="command", decision="ask")


def gate(*own, rules=(), asks=True, is_one_call=True) -> Gate:
    return Gate(DEVICE, lambda: rules, own, asks=asks, is_one_call=is_one_call)


def test_a_gate_is_shut_until_a_person_opens_it_and_never_where_nobody_is_asked():
    assert not gate(asks=False).is_shut
    one = gate()
    assert one.is_shut
    one.open(None)
    assert not one.is_shut


def test_the_stricter_of_the_installations_policies_and_the_tasks_counts_as_they_are_now():
    rules = []
    one = gate(ASKS, rules=rules)
    act = one.describe_call("command", {"argv": ["true"]})
    assert one.judge(act).decision == "ask"
    rules.append(Rule(label="prod", decision="deny"))
    assert one.judge(act).decision == "deny"


@pytest.mark.parametrize(
    ("is_one_call", "critical", "covered"),
    [(True, False, True), (True, True, True), (False, False, False), (False, True, True)],
)
def test_who_opens_the_gate_has_answered_for_the_one_call_and_for_what_is_critical(is_one_call, critical, covered):
    one = gate(is_one_call=is_one_call)
    act = one.describe_call("command", {"argv": ["true"]})
    assert not one.covers(act, critical)
    one.open(None)
    assert one.covers(act, critical) is covered


def test_a_gate_at_which_nobody_was_asked_covers_nothing():
    one = gate(asks=False)
    assert not one.covers(one.describe_call("command", {"argv": ["true"]}), critical=True)


def test_a_path_that_leads_elsewhere_than_was_shown_is_not_covered():
    one = gate()
    one.open("/elsewhere/f")
    assert not one.covers(one.describe_call("read_file", {"path": "f"}), critical=True)
