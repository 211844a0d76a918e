"""The house as an executable page: which room may know which (README.md, "The house"), and what a room must not hold."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("agents", "constellations", "frontend", "project")
"""From the innermost to the composition root: a room may import those before it."""
PURE = {
    "agents": (
        "machines", "progress", "devices/recipes", "ids", "errors", "masking", "transient", "patterns", "command_lines",
        "toolbox", "devices/names", "devices/ceilings", "shell_reading", "acting/policies", "acting/script", "acting/recovery",
    ),
    "constellations": (
        "machines", "graph", "conditions", "editing", "rules", "plans", "errors", "operations", "steps", "drafts", "forms",
        "documents", "values", "clauses", "plain_text", "call_forms", "step_keys", "step_forms", "guard_forms",
        "dialects", "commuting", "hidden_texts", "inverses", "limits", "editor_tools", "fitting", "error_kinds", "telling",
        "replacing",
    ),
}  # fmt: skip
"""Modules without Django, clock, randomness or I/O."""
IMPURE = {
    "django",
    "rest_framework",
    "channels",
    "django_q",
    "random",
    "time",
    "asyncio",
    "socket",
    "subprocess",
    "os",
    "pathlib",
}
OUTER = {
    "admin", "admin_filters", "api", "command_api", "consumers", "dialect_api", "edit_api", "management", "masked_doors", "mcp",
    "queue_admin", "sse", "urls", "versioned", "views", "working_admin", "working_api",
}  # fmt: skip
"""The edge of an app: nothing further in imports it."""
TOP_LEVEL = {"manage.py", "project", "agents", "constellations", "frontend", "tests", "requirements.txt", "README.md"}
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "base"}


def modules(package: str) -> list[Path]:
    return [path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]


def imports(path: Path) -> set[str]:
    """Dotted names a module imports, also those inside functions; `from a import b` counts as a.b."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("app", APPS)
def test_a_room_imports_only_the_rooms_further_in(app):
    allowed = APPS[: APPS.index(app) + 1]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(app)
        for name in imports(path)
        if name.split(".")[0] in APPS and name.split(".")[0] not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize(("app", "name"), [(app, name) for app, names in PURE.items() for name in names])
def test_a_pure_module_knows_neither_django_nor_the_outside(app, name):
    place = ROOT / app / name
    paths = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    wrong = [f"{path.name} imports {found}" for path in paths for found in imports(path) if found.split(".")[0] in IMPURE]
    assert wrong == []


@pytest.mark.parametrize("app", ["agents", "constellations"])
def test_nothing_imports_an_apps_edge_from_further_in(app):
    wrong = []
    for path in modules(app):
        inside = path.relative_to(ROOT / app).parts[0].removesuffix(".py")
        if inside in OUTER:
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == app and len(parts) > 1 and parts[1] in OUTER:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_the_eight_fixed_names_are_there():
    assert [name for name in sorted(TOP_LEVEL) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("app", APPS)
def test_every_module_says_what_it_is_for(app):
    silent = [
        str(path.relative_to(ROOT))
        for path in modules(app)
        if path.name not in ("__init__.py", "apps.py") and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


@pytest.mark.parametrize("app", APPS)
def test_no_module_is_called_after_nothing(app):
    assert [str(path) for path in modules(app) if path.stem in FORBIDDEN_NAMES] == []


def test_models_and_migrations_agree():
    result = subprocess.run(
        [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
