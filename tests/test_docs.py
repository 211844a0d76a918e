"""What the documents show is what the program takes."""

import re
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from constellations import dialects, operations, plans
from constellations.guard_forms import SETTING_READERS
from constellations.step_keys import DEFAULTS

ROOT = Path(__file__).resolve().parent.parent
PLANS = (ROOT / "docs" / "plans.md").read_text()


def blocks(text: str) -> list[str]:
    """Indented blocks of a page, without their indentation."""
    found = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, flags=re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found]


def test_the_plan_on_the_page_is_a_plan():
    shown = next(block for block in blocks(PLANS) if block.startswith("name: nightly"))
    plan = plans.parse(shown)
    assert [task["task_id"] for task in plan.tasks] == ["build", "test", "publish"]
    assert len(plan.dependencies) == 2


def test_the_rules_on_the_page_are_rules():
    shown = [yaml.safe_load(block) for block in blocks(PLANS) if block.startswith("replan:")]
    tasks = [{"task_id": name, "tool": "noop"} for name in ("evaluate", "deploy", "test_api", "test_pages")]
    read = [plans.parse(yaml.safe_dump({"tasks": tasks, **rules})).rules[0]["name"] for rules in shown]
    assert read == ["retrain", "diagnose"]


def test_the_document_of_another_program_on_the_page_is_one():
    shown = next(block for block in blocks(PLANS) if block.startswith('{"constellation_id"'))
    plan = dialects.read(shown)
    assert (plan.dialect, len(plan.tasks), plan.dependencies[0]["condition"]) == ("galaxy", 2, "errors > 0")


@pytest.mark.parametrize("key", ["steps", "phases", "confirm", "policies", "progress"])
def test_the_parts_of_a_task_on_the_page_are_what_a_task_takes(key):
    shown = next(block for block in blocks(PLANS) if block.startswith(f"{key}:"))
    whole = shown if re.search("^(steps|phases):", shown, re.MULTILINE) else f"tool: noop\n{shown}"
    (task,) = plans.parse(f"tasks:\n  - task_id: a\n{indent(whole, '    ')}").tasks
    assert task["phases" if key == "steps" else key]


def test_every_key_of_every_step_is_on_the_page():
    keys = {key for row in DEFAULTS.values() for key in row} - {"text", "question"}
    section = PLANS.split("## Tasks in steps")[1].split("## Phases")[0]
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", section)] == []


def test_every_setting_of_the_detection_of_being_stuck_is_on_the_page():
    section = PLANS.split("## Progress")[1].split("## Replan rules")[0]
    assert [name for name in SETTING_READERS if f"`{name}`" not in section] == []


@pytest.mark.parametrize("page", [*sorted(path.name for path in (ROOT / "docs").glob("*.md")), "../README.md"])
def test_links_between_pages_lead_somewhere(page):
    path = ROOT / "docs" / page
    links = [link for link in re.findall(r"\]\(([^)#]+)", path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_edit_on_the_page_is_an_edit():
    page = (ROOT / "docs" / "editing.md").read_text()
    shown = next(block for block in blocks(page) if block.startswith("POST /api/constellations/7/edits/"))
    body = yaml.safe_load(shown.split("\n", 1)[1])
    assert [(operations.read(one).op, operations.read(one).findings) for one in body["operations"]] == [
        ("add_task", []), ("add_dependency", []), ("remove_task", []),
    ]  # fmt: skip
    assert {"reason", "edit_id", "based_on"} < set(body)


def test_every_operation_is_on_the_page():
    page = (ROOT / "docs" / "editing.md").read_text()
    assert [name for name in operations.READERS if f"| `{name}` |" not in page] == []
