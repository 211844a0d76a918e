"""Who imports the providers' libraries: a process that asks a model, in a thread, and nobody else."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as django_settings

ROOT = Path(django_settings.BASE_DIR)
LIBRARIES = ("pydantic_ai", "openai", "anthropic", "agents.llm.library")
IMPORTED = f"import json, sys; print(json.dumps([name for name in {LIBRARIES} if name in sys.modules]))"


def after(program: str) -> list[str]:
    """The libraries that a process has imported after `program`."""
    found = subprocess.run(
        [sys.executable, "-c", f"{program}\n{IMPORTED}"], cwd=ROOT, capture_output=True, text=True, check=True
    )  # fmt: skip
    return json.loads(found.stdout.splitlines()[-1])


SETUP = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'project.settings'; import django; django.setup()"
PROGRAMS = {
    "manage.py check": f"{SETUP}; from django.core.management import call_command; call_command('check')",
    "the web server": "import project.asgi, project.web_server, django.urls; django.urls.get_resolver().url_patterns",
    "a runner": f"{SETUP}; import agents.engine.runner, constellations.runs.handler, agents.llm.port, agents.llm.profiles",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_process_that_asks_no_model_imports_no_library(program):
    assert after(program) == []


def test_only_the_library_room_knows_the_libraries():
    wrong = []
    for path in [path for app in ("agents", "constellations", "frontend", "project") for path in (ROOT / app).rglob("*.py")]:
        if "agents/llm/library" in path.as_posix():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            wrong += [(path.name, name) for name in names if name.split(".")[0] in ("pydantic_ai", "openai", "anthropic")]
    assert wrong == []


LAG = """
import asyncio, json, os, time
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django; django.setup()
from agents.llm.port import load_libraries

async def main():
    turns, loading = 0, asyncio.create_task(load_libraries())
    while not loading.done():
        await asyncio.sleep(0.001)
        turns += 1
    await loading
    await load_libraries()
    print(turns)

asyncio.run(main())
"""


def test_the_loop_goes_on_while_the_libraries_are_imported():
    found = subprocess.run([sys.executable, "-c", LAG], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(found.stdout) > 20
