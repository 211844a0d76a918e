"""What a plan chooses about models: names of profiles by purpose, and whether it waits for its review."""

from __future__ import annotations

import json

import pytest

from constellations.errors import PlanRejected
from constellations.plan.condensed import condense_plan, expand_plan
from constellations.plan.dialects import read_constellation, write_document
from constellations.plan.plan import parse_plan

TASKS = [{"task_id": "a", "command": ["ls"]}]
KNOWN = {"wise", "quick"}


def parsed(**more):
    return parse_plan(json.dumps({"tasks": TASKS, **more}), profiles=lambda: KNOWN)


def refused(**more) -> list[tuple[str, str]]:
    with pytest.raises(PlanRejected) as caught:
        parsed(**more)
    return [(problem["key"], problem["message"]) for problem in caught.value.problems]


def test_a_plan_names_profiles_by_purpose_and_its_review():
    plan = parsed(models={"editing": "wise", "device_agent": "quick"}, start="review")
    assert (plan.models, plan.start) == ({"editing": "wise", "device_agent": "quick"}, "review")
    assert expand_plan(json.loads(json.dumps(condense_plan(plan)))) == plan


def test_a_profile_that_is_not_there_is_refused_with_those_that_are():
    said = "there is no model profile clever; there are quick, wise"
    assert refused(models={"editing": "clever"}) == [("models.editing", said)]
    assert refused(tasks=[{**TASKS[0], "model": "clever"}]) == [("tasks[0].model", said)]


@pytest.mark.parametrize(
    ("models", "key", "said"),
    [
        (["wise"], "models", "must be an object with names of model profiles by purpose"),
        ({"cooking": "wise"}, "models.cooking", "there is no such purpose; there are creation, editing, device_agent"),
        ({"editing": ""}, "models.editing", "must be the name of a model profile"),
        ({"editing": {"base_url": "http://x"}}, "models.editing", "must be the name of a model profile"),
    ],
)
def test_what_names_no_profile_is_refused_at_its_place(models, key, said):
    (found,) = refused(models=models)
    assert found[0] == key
    assert found[1].startswith(said)


def test_a_plan_starts_at_once_or_after_a_review_and_in_no_other_way():
    assert refused(start="later") == [("start", "must be one of review, not the text 'later'")]


@pytest.mark.parametrize("dialect", ["orrery", "seed", "galaxy"])
def test_an_export_keeps_the_models_in_every_dialect(dialect):
    plan = parsed(models={"editing": "wise"})
    written = write_document(plan.tasks, plan.dependencies, plan.rules, dialect, "n", models=plan.models)
    assert read_constellation(written).models == {"editing": "wise"}
