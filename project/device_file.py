"""The client of devices as one file: a zip archive that plain Python 3.11 runs, without this repository and without packages.

What the client imports is found by importing it; the library for websockets comes whole, as it imports its own parts late.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

CLIENT = "agents.devices.client.main"
LIBRARY = "websockets"
FOUND = f"""
import json, sys
import {CLIENT}
known = {{name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}}
print(json.dumps({{name: file for name, file in known.items() if name.split(".")[0] in ("agents", "{LIBRARY}")}}))
"""
BEGINNING = '''\
"""Offers this machine to Orrery. Unpacked beside the user's other caches, as commands need a launcher that is a file."""

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("Python 3.11 or later is needed")
archive = Path(__file__).resolve().parent
caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orrery-device"
caches.mkdir(mode=0o700, parents=True, exist_ok=True)
place = caches / hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
if not place.exists():
    fresh = Path(tempfile.mkdtemp(dir=caches))
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(fresh)
    try:
        fresh.rename(place)
    except OSError:  # somebody else was first
        shutil.rmtree(fresh)
sys.path[0] = str(place)

from agents.devices.client.main import main

sys.exit(main())
'''


def client_files() -> dict[str, Path]:
    """What goes into the archive: paths in it, and the files here."""
    told = subprocess.run([sys.executable, "-c", FOUND], check=True, text=True, stdout=subprocess.PIPE, cwd=_root()).stdout
    files = {name: Path(file) for name, file in json.loads(told).items()}
    wanted = {_place(name, file): file for name, file in files.items() if name.split(".")[0] == "agents"}
    library = files[LIBRARY].parent
    return wanted | {f"{LIBRARY}/{file.relative_to(library)}": file for file in sorted(library.rglob("*.py"))}


def build_client(path: Path) -> int:
    """Write the archive; its bytes. The same sources give the same archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in [("__main__.py", BEGINNING.encode()), *_contents()]:
                packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    path.chmod(0o755)
    return path.stat().st_size


def _contents() -> list[tuple[str, bytes]]:
    return [(name, file.read_bytes()) for name, file in sorted(client_files().items())]


def _place(name: str, file: Path) -> str:
    folder = name.replace(".", "/")
    return f"{folder}/__init__.py" if file.name == "__init__.py" else f"{folder}.py"


def _root() -> Path:
    return Path(__file__).resolve().parent.parent
