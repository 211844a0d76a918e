"""Makes the dashboard's libraries: one ES module each in static/frontend/vendor/, and what each is made of.

    python frontend/vendor/make_modules.py

It needs node with npm. What package.json names, in exactly these versions, is fetched into a temporary folder and bundled;
libraries.json then says of each file its libraries with version and licence, and its SHA-256. The modules are kept in the
repository, so that nobody who runs Orrery needs node. A test compares files and digests.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INTO = HERE.parent / "static" / "frontend" / "vendor"
MADE_OF = {
    "lit.js": ("lit-html",),
    "uplot.js": ("uplot",),
    "uplot.css": ("uplot",),
    "codemirror.js": ("@codemirror/", "@lezer/", "@marijn/", "crelt", "style-mod", "w3c-keyname"),
}
"""File by the beginnings of the names of its libraries."""


def make_modules() -> None:
    """Write all files anew; raises CalledProcessError where npm or the bundler fail."""
    INTO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in (HERE / "package.json", *HERE.glob("*.entry.js")):
            shutil.copy(source, folder)
        subprocess.run([find_program("npm"), "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        for entry in sorted(folder.glob("*.entry.js")):
            out = INTO / entry.name.replace(".entry", "")
            options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none", f"--outfile={out}"]
            subprocess.run([folder / "node_modules" / ".bin" / "esbuild", entry, "--log-level=warning", *options], check=True)
        shutil.copy(folder / "node_modules" / "uplot" / "dist" / "uPlot.min.css", INTO / "uplot.css")
        described = {file: describe_file(INTO / file, folder / "node_modules", parts) for file, parts in MADE_OF.items()}
    (HERE / "libraries.json").write_text(json.dumps(described, indent=2) + "\n")


def find_program(name: str) -> str:
    """Its path; raises SystemExit where it is missing."""
    return shutil.which(name) or sys.exit(f"{name} is needed, and is not on the path")


def describe_file(file: Path, modules: Path, beginnings: tuple[str, ...]) -> dict[str, Any]:
    """{"sha256", "libraries": {name: {"version", "license"}}}"""
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    packages = {
        name: json.loads((modules / name / "package.json").read_text()) for name in wanted if name.startswith(beginnings)
    }
    libraries = {name: {"version": one["version"], "license": one["license"]} for name, one in packages.items()}
    return {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "libraries": libraries}


if __name__ == "__main__":
    make_modules()
