"""The libraries that the dashboard brings: the repository holds what its list says, and nothing comes from elsewhere."""

import hashlib
import json
from pathlib import Path

from django.conf import settings

VENDOR = Path(settings.BASE_DIR) / "frontend" / "vendor"
MODULES = Path(settings.BASE_DIR) / "frontend" / "static" / "frontend" / "vendor"
DESCRIBED = json.loads((VENDOR / "libraries.json").read_text())


def test_each_file_has_the_digest_that_its_list_names():
    assert {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in MODULES.iterdir()} == {
        name: one["sha256"] for name, one in DESCRIBED.items()
    }


def test_each_library_has_its_version_and_a_free_licence():
    wanted = json.loads((VENDOR / "package.json").read_text())["dependencies"]
    listed = {name: one for file in DESCRIBED.values() for name, one in file["libraries"].items()}
    assert {name: one["version"] for name, one in listed.items()} == wanted
    assert {one["license"] for one in listed.values()} <= {"MIT", "BSD-3-Clause"}


def test_no_module_loads_anything_by_itself():
    for file in MODULES.glob("*.js"):
        text = file.read_text()
        assert "import(" not in text
        assert "eval(" not in text
        assert "new Function" not in text
