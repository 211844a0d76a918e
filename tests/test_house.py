"""What every room must have, and must not hold. Which room may know which is in .importlinter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("agents", "constellations", "frontend", "project")
TOP_LEVEL = {"manage.py", "project", "agents", "constellations", "frontend", "tests", "requirements.txt", "README.md"}
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "base"}


def modules(package: str) -> list[Path]:
    return [path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]


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
