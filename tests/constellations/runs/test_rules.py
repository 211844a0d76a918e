"""Which replan rules fire when tasks end."""

import pytest

from constellations.plan import plan as plans
from constellations.runs.rules import match_rules

EDIT = [{"op": "remove_task", "parameters": {"task_id": "deploy"}}]


def rule(name: str = "r", event: str = "task_ended", task=(), condition: str = "", **fields) -> dict:
    when = {"event": event, "task": list(task), "condition": condition}
    return {"name": name, "when": when, "times": 1, "reason": "", "edit": EDIT, **fields}


def ended(task_id: str, state: str = "COMPLETED", result=None, reason: str = "") -> dict:
    return {
        "task_id": task_id, "state": state, "reason": reason, "result": result, "error": "", "error_kind": "", "device": "pi",
    }  # fmt: skip


def fired_by(rules, *tasks, fired=None, results=None) -> list[tuple[str, str]]:
    firings, notes = match_rules(rules, fired or {}, tasks, results or {})
    assert notes == []
    return [(firing.rule, firing.task_id) for firing in firings]


def test_a_rule_fires_with_its_operations_and_reason():
    (firing,), notes = match_rules([rule(), rule("retrain", reason="too low", task=["a"])], {"r": 1}, [ended("a")], {})
    assert (firing.rule, firing.index, firing.task_id) == ("retrain", 1, "a")
    assert (firing.reason, firing.operations) == ("too low", EDIT)
    assert notes == []


def test_a_rule_without_a_reason_says_what_happened():
    (firing,), _ = match_rules([rule("retrain")], {}, [ended("a", "FAILED")], {})
    assert firing.reason == "retrain: a is FAILED"


SKIPPED = ended("a", "CANCELLED", reason="skipped: x>a condition is false")
UNREADABLE = ended("a", "CANCELLED", reason="skipped: x>a condition unknown: `n` is missing") | {"condition_failed": True}
CANCELLED = ended("a", "CANCELLED", reason="cancelled")


@pytest.mark.parametrize(
    ("event", "task", "fires"),
    [
        ("task_completed", ended("a"), True),
        ("task_completed", ended("a", "FAILED"), False),
        ("task_completed", SKIPPED, False),
        ("task_failed", ended("a", "FAILED"), True),
        ("task_failed", ended("a"), False),
        ("task_failed", CANCELLED, False),
        ("task_skipped", SKIPPED, True),
        ("task_skipped", CANCELLED, False),
        ("task_skipped", ended("a"), False),
        ("task_skipped", UNREADABLE, True),
        ("condition_failed", UNREADABLE, True),
        ("condition_failed", SKIPPED, False),
        ("condition_failed", CANCELLED, False),
        ("task_ended", UNREADABLE, True),
        ("task_ended", ended("a"), True),
        ("task_ended", ended("a", "FAILED"), True),
        ("task_ended", SKIPPED, True),
        ("task_ended", CANCELLED, True),
    ],
)
def test_an_event_is_how_a_task_ended(event, task, fires):
    assert bool(fired_by([rule(event=event)], task)) is fires


def test_a_rule_names_one_task_several_or_none():
    rules = [rule("one", task=["a"]), rule("several", task=["b", "c"]), rule("any")]
    rules[0]["when"]["task"] = "a"
    assert fired_by(rules, ended("a")) == [("one", "a"), ("any", "a")]
    assert fired_by(rules, ended("c")) == [("several", "c"), ("any", "c")]
    assert fired_by(rules, ended("d")) == [("any", "d")]


def test_a_rule_fires_its_times_and_no_more():
    rules = [rule(times=2)]
    assert fired_by(rules, ended("a"), ended("b"), ended("c")) == [("r", "a"), ("r", "b")]
    assert fired_by(rules, ended("a"), ended("b"), fired={"r": 1}) == [("r", "a")]
    assert fired_by(rules, ended("a"), fired={"r": 2}) == []


def test_what_has_fired_before_is_counted_by_the_caller():
    fired = {"r": 0}
    match_rules([rule()], fired, [ended("a")], {})
    assert fired == {"r": 0}


def test_a_condition_reads_the_ended_tasks_result_and_those_of_others():
    low = rule(condition="accuracy <= 0.95 and results.train.epochs < 50")
    assert fired_by([low], ended("a", result={"accuracy": 0.9}), results={"train": {"epochs": 30}})
    assert not fired_by([low], ended("a", result={"accuracy": 0.96}), results={"train": {"epochs": 30}})


def test_a_false_condition_does_not_use_up_the_rule():
    rules = [rule(condition="accuracy < 0.5")]
    assert fired_by(rules, ended("a", result={"accuracy": 0.9}), ended("b", result={"accuracy": 0.1})) == [("r", "b")]


def test_a_condition_that_cannot_be_said_is_noted_and_does_not_fire():
    firings, notes = match_rules([rule("retrain", condition="acuracy < 1")], {}, [ended("a", result={"accuracy": 0.9})], {})
    assert firings == []
    assert notes == ["rule retrain after a: `acuracy` is missing: the result has accuracy"]


def test_firings_come_in_the_order_of_the_ends_then_of_the_rules():
    rules = [rule("x", times=2), rule("y", times=2)]
    assert fired_by(rules, ended("b"), ended("a")) == [("x", "b"), ("y", "b"), ("x", "a"), ("y", "a")]


def test_the_rules_of_a_plan_are_taken_as_they_are():
    plan = plans.parse_plan("""
tasks: [{task_id: evaluate, tool: noop}]
replan:
  - name: retrain
    when: {event: task_completed, task: evaluate, condition: accuracy <= 0.95}
    edit: [{add_task: {task_id: again, tool: noop}}]
""")
    (firing,), _ = match_rules(plan.rules, {}, [ended("evaluate", result={"accuracy": 0.9})], {})
    assert firing.operations == [{"op": "add_task", "parameters": {"task_id": "again", "tool": "noop"}}]


def test_operations_name_the_task_that_ended():
    row = {"task_id": "look_{task}", "command": ["look", "--at={task}", 3], "{task}": True}
    edit = [{"op": "add_task", "parameters": row}, {"op": "add_dependency", "parameters": {"from": "{task}", "to": "x"}}]
    firings, _ = match_rules([rule(times=2, edit=edit)], {}, [ended("a"), ended("b/c")], {})
    assert [firing.operations[0]["parameters"] for firing in firings] == [
        {"task_id": "look_a", "command": ["look", "--at=a", 3], "{task}": True},
        {"task_id": "look_b/c", "command": ["look", "--at=b/c", 3], "{task}": True},
    ]
    assert [firing.operations[1]["parameters"]["from"] for firing in firings] == ["a", "b/c"]
    assert row["task_id"] == "look_{task}"


def test_without_rules_nothing_is_looked_at():
    def tasks():
        raise AssertionError("no task need be read")
        yield

    assert match_rules([], {}, tasks(), {}) == ([], [])


@pytest.mark.parametrize(
    ("task", "kind", "text"),
    [
        ({"reason": "failed", "error_kind": "exit_code", "error": "exit code 3: no"}, "exit_code", "exit code 3: no"),
        ({"reason": "failed", "error_kind": "missing", "error": "command not found: x"}, "missing", "command not found: x"),
        ({"reason": "failed", "error_kind": "of its own", "error": "no"}, "failed", "no"),
        ({"reason": "timeout", "error_kind": "timeout", "error": "stopped after 1 s"}, "timeout", "stopped after 1 s"),
        ({"reason": "stuck:repeat", "error_kind": "stuck", "error": "again and again"}, "stuck", "again and again"),
        ({"reason": "lost", "error_kind": "exit_code", "error": ""}, "lost", "lost"),
        ({"reason": "deadline", "error": ""}, "deadline", "deadline"),
        ({"state": "CANCELLED", "reason": "cancelled by ada: no", "error": "exit code 3"}, "", ""),
        ({"state": "COMPLETED"}, "", ""),
    ],
)
def test_a_condition_reads_the_kind_and_the_text_of_an_error(task, kind, text):
    condition = f"error.kind == '{kind}' and error.text == '{text}'"
    assert fired_by([rule(condition=condition)], {**ended("a", "FAILED"), **task}) == [("r", "a")]


def test_a_key_of_the_result_that_is_called_error_is_the_results():
    assert fired_by([rule(condition="error < 0.1")], ended("a", result={"error": 0.05})) == [("r", "a")]


def test_operations_name_the_device_of_the_task_that_ended():
    copied = {"task_id": "{task}_again", "copy": "{task}", "not_device": ["{device}"]}
    (firing,), _ = match_rules([rule(edit=[{"op": "add_task", "parameters": copied}])], {}, [ended("a", "FAILED")], {})
    assert firing.operations[0]["parameters"] == {"task_id": "a_again", "copy": "a", "not_device": ["pi"]}


def test_a_rule_that_ends_the_run_says_why():
    told = {"finish": {"finish": True}, "fail": {"fail": "{task} broke on {device}"}, "restart": {"restart": True}}
    for does, fields in told.items():
        (firing,), _ = match_rules([rule(edit=[], **fields)], {}, [ended("a")], {})
        assert (firing.does, firing.operations) == (does, [])
        assert firing.reason == ("a broke on pi" if does == "fail" else "r: a is COMPLETED")
