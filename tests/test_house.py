"""What every room must have, and must not hold. Which room may know which is in .importlinter."""

import ast
import configparser
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("agents", "constellations", "frontend", "project")
TOP_LEVEL = {"manage.py", "project", "agents", "constellations", "frontend", "tests", "requirements.txt", "README.md"}
NO_ROOMS = {"migrations", "management", "commands"}
"""Packages whose names and contents are Django's."""
ROOMS = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for app in APPS
    for path in (ROOT / app).rglob("__init__.py")
    if not NO_ROOMS.intersection(path.parent.parts)
)
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


# What the text of a room says


def text_of(room: str) -> str:
    return ast.get_docstring(ast.parse((ROOT / room.replace(".", "/") / "__init__.py").read_text())) or ""


def said(room: str, key: str) -> str:
    """What a room's text says after `key:`, up to the next key, in one line."""
    found = re.search(rf"^{key}: (.*(?:\n    .*)*)$", text_of(room), re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def layers_of(app: str) -> list[set[str]]:
    """The layers of an app in .importlinter, the highest first."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    lines = contracts[f"importlinter:contract:{app}"]["layers"].strip().splitlines()
    return [{name.strip() for name in re.split("[|:]", line)} for line in lines]


def below(room: str) -> set[str]:
    """What a room may import: the apps below its own, and the layers of its app below it."""
    app, *rest = room.split(".")
    layers = layers_of("apps")
    names: set[str] = set().union(*layers[next(n for n, layer in enumerate(layers) if app in layer) + 1 :])
    if rest:
        own = layers_of(app)
        names |= set().union(*own[next(n for n, layer in enumerate(own) if rest[0] in layer) + 1 :])
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_it_is_for_in_one_sentence_and_who_calls_it(room):
    first = text_of(room).split("\n\n")[0]
    assert 5 <= len(first.split()) <= 30
    assert said(room, "Called by")


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_names_three_places_to_begin_that_are_there(room):
    places = re.findall(rf"\b{re.escape(room)}(?:\.\w+)+", said(room, "Begin at"))
    assert len(places) == 3
    for place in places:
        assert pkgutil.resolve_name(place) is not None


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_it_may_import_what_lies_below_it_and_nothing_else(room):
    told = said(room, "May import").rstrip(".")
    assert told
    named = set() if told.startswith("nothing") else set(told.split(", "))
    assert named <= below(room)
