"""Where the digits example's commands put what the next one needs: the folder that ORRERY_ARTIFACTS names.

Each device runs its commands in a workspace of its own, so nothing is handed over by relative path.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy


def folder() -> Path:
    """The folder of this run; ends the command when there is none, so that a shell shows one line."""
    named = os.environ.get("ORRERY_ARTIFACTS", "")
    if not named or not Path(named).is_dir():
        sys.exit("ORRERY_ARTIFACTS must name a folder that exists")
    return Path(named)


def existing(name: str, made_by: str) -> Path:
    """The artifact `name`; ends the command when it is missing, naming the step that makes it."""
    path = folder() / name
    if not path.is_file():
        sys.exit(f"{name} is missing in {folder()}: run {made_by} first")
    return path


def save_arrays(name: str, **arrays: numpy.ndarray) -> Path:
    """Write an .npz file; a reader sees all of it or nothing."""
    path = folder() / name
    unfinished = path.with_name(f".{name}.{os.getpid()}")
    with unfinished.open("wb") as handle:
        numpy.savez(handle, allow_pickle=False, **arrays)
    unfinished.replace(path)
    return path


def save_json(name: str, content: dict[str, Any]) -> None:
    path = folder() / name
    unfinished = path.with_name(f".{name}.{os.getpid()}")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.replace(path)


def load_arrays(path: Path) -> dict[str, numpy.ndarray]:
    with numpy.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def digest(path: Path) -> str:
    """SHA-256 of the file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def report(**result: Any) -> None:
    """A command's result: one JSON object as the last line of its standard output."""
    print(json.dumps(result), flush=True)
