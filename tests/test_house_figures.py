"""The figures of docs/house.md: what `benchmarks.house` counts is what is there."""

import ast
import json
import subprocess
import sys

from django.conf import settings

from benchmarks import house


def test_functions_are_measured_by_their_lines_names_and_callers():
    tree = ast.parse(
        "def read():\n    return _once() + _twice()\n\n\ndef write_rows():\n    return _twice()\n\n\n"
        "def _once():\n    return 1\n\n\ndef _twice():\n    found = 1\n\n    return found\n"
    )
    assert house.measure_functions([tree]) == {
        "functions: median / p90 / longest, lines": "2 / 4 / 4",
        "private helpers used in one place, of all functions": "25%",
        "public functions that are one bare word": "1 of 2",
    }


def test_comments_for_tools_are_none():
    assert house.count_comments("import os  # noqa: F401\n# why\nx = '# no'  # because\n") == 2


def test_arrows_that_lead_back_up_are_found():
    rooms = {"api", "services", "streams", "words"}
    down = {("api", "services"), ("api", "streams"), ("services", "streams"), ("streams", "words")}
    assert house.find_circles(rooms, down) == (set(), 0)
    assert house.count_floors(rooms, down) == 4
    assert house.find_circles(rooms, down | {("streams", "api")}) == ({("streams", "api")}, 1)


def test_this_house_has_no_arrow_back_up_and_no_circle():
    asked = [sys.executable, "-m", "benchmarks.house", "--measure"]
    found = subprocess.run(asked, cwd=settings.BASE_DIR, check=True, text=True, stdout=subprocess.PIPE)
    figures = json.loads(found.stdout)
    assert figures["agents: arrows back up / circles"] == figures["constellations: arrows back up / circles"] == "0 / 0"
