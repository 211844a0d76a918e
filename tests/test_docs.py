"""What the documents show is what the program takes, and what the code cites is there to be read."""

import re
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from agents.devices.local import environment
from constellations.plan import dialects, operations
from constellations.plan import plan as plans
from constellations.plan.guards import SETTING_READERS
from constellations.plan.step_keys import DEFAULTS

ROOT = Path(__file__).resolve().parent.parent
PLANS = (ROOT / "docs" / "plans.md").read_text()
COMMANDS = (ROOT / "agents" / "tools" / "command.py").read_text()
PRODUCT = ("agents", "constellations", "frontend", "project")
CODE = [*PRODUCT, "tests", "benchmarks", "examples"]
SOURCES = [path for room in CODE for kind in ("py", "js", "css", "html") for path in (ROOT / room).rglob(f"*.{kind}")]
PAGE = re.compile(r"[\w./-]*\w\.md\b")
CITED = re.compile(r'\b((?:docs|examples)/[\w-]+\.md|README\.md), "([^"]+)"')
NOT_A_PAGE = re.compile(
    r'\([a-z][\w-]*, (?:sections? |last section|introduction|"[A-Z0-9]|\d and \d)[^()]*\)'
    r"|\((?:seeds?|design|stack|quality|house|architecture|machines|constellations): [^()]*\)"
)
"""A citation of something that is no page of ours: (machines, section Task), (seed: some-document), (quality, "Speed")."""
SQL = re.compile(r"[\"'](SELECT |INSERT INTO |DELETE FROM |LISTEN |UPDATE [a-z{])")
NOT_TESTED = {"tests/test_docs.py", "tests/project/test_machine_docs.py"}


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


# What the code says of the documents


def texts_of(path: Path) -> str:
    """A module's docstrings and comments; all of a file that is no Python."""
    source = path.read_text()
    if path.suffix != ".py":
        return source
    found = [*re.findall(r'"""(.*?)"""', source, re.DOTALL), *re.findall(r"(?m)(?:^|\s)# (.*)$", source)]
    return " ".join(" ".join(text.split()) for text in found)


@cache
def told() -> tuple[tuple[str, str], ...]:
    """(file, its docstrings and comments) of all there are, but for those that are about citing."""
    named = ((str(path.relative_to(ROOT)), path) for path in SOURCES)
    return tuple((name, texts_of(path)) for name, path in named if name not in NOT_TESTED)


def test_a_page_that_the_code_cites_is_in_the_repository():
    cited = [(name, page) for name, text in told() for page in PAGE.findall(text)]
    assert len(cited) > 20
    assert [(name, page) for name, page in cited if not (ROOT / page).exists()] == []


def test_a_section_that_the_code_cites_is_on_its_page():
    cited = [(name, page, title) for name, text in told() for page, title in CITED.findall(text)]
    assert len(cited) > 20
    headings = {page: re.findall(r"(?m)^#+ (.*)$", (ROOT / page).read_text()) for _, page, _ in cited}
    assert [each for each in cited if each[2] not in headings[each[1]]] == []


def test_the_code_cites_nothing_that_a_reader_does_not_have():
    modules = [(name, text) for name, text in told() if name.endswith(".py")]
    assert [(name, found) for name, text in modules for found in NOT_A_PAGE.findall(text)] == []


def test_a_file_that_a_page_names_is_there():
    named = r"\b((?:agents|constellations|frontend|project|tests|benchmarks|examples)/[a-z_/]+(?:\.\w+|/))"
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    wrong = [(page.name, file) for page in pages for file in re.findall(named, page.read_text()) if not (ROOT / file).exists()]
    assert wrong == []


def test_the_modules_that_hold_sql_are_those_that_the_decision_names():
    decision = (ROOT / "docs" / "decisions.md").read_text().split("## Hand-written statements")[1].split("\n## ")[0]
    modules = [path for room in PRODUCT for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts]
    holding = {str(path.relative_to(ROOT)) for path in modules if SQL.search(path.read_text())}
    assert holding <= set(re.findall(r"`([\w/]+\.py)`", decision))
    assert "agents/streams/statements.py" in holding


def test_every_library_that_is_asked_for_is_used():
    asked_for = (ROOT / "requirements.txt").read_text().split("# needed by those above")[0]
    wanted = {name.lower().replace("_", "-") for name in re.findall(r"(?m)^([\w-]+)(?:\[\w+\])?==", asked_for)}
    code = "\n".join(path.read_text() for room in PRODUCT for path in (ROOT / room).rglob("*.py"))
    named = set(re.findall(r"(?m)^\s*(?:import|from) (\w+)", code)) | set(re.findall(r"[\"'](\w+)[\"'.]", code))
    provided = packages_distributions()
    used = {library.lower().replace("_", "-") for module in named for library in provided.get(module, ())}
    assert len(wanted) > 15
    assert sorted(wanted - used) == []


def test_every_variable_that_a_command_sees_is_on_the_page_and_no_other(tmp_path):
    names = set(environment(tmp_path, 1, "instance", "/bin", {})) | set(re.findall(r'"(ORRERY_[A-Z]+)"', COMMANDS))
    section = PLANS.split("### What a command sees")[1].split("\n| dependency")[0]
    assert names == set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", section))
    assert len(names) >= 10
