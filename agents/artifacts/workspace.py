"""Artifacts and a workspace of this host: inputs are placed in it before a call, outputs are kept from it after one.

An input says where it goes and what it is: {path, sha256, ...}, or {path, missing: why there is none}. Blocking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.artifacts.keeping import Reference, keep_artifact
from agents.artifacts.reading import whole_content
from agents.artifacts.store import ArtifactRefused
from agents.devices.workspace.contents import find_files, opened_file, place_file

MOST_OUTPUTS = 100
"""Files that are kept after one call."""


class InputMissing(ArtifactRefused):
    """What a task is to be given is not there."""

    code = "input_missing"


def place_inputs(workspace: Path, inputs: Iterable[Mapping[str, Any]]) -> None:
    """Put all of them there, each whole. Raises InputMissing before any is placed, FileRefused and what stores raise."""
    wanted = list(inputs)
    for each in wanted:
        if each.get("missing"):
            raise InputMissing(f"{each['path']}: {each['missing']}")
    for each in wanted:
        place_file(workspace, each["path"], whole_content(each["sha256"]))


def keep_outputs(workspace: Path, patterns: Sequence[str]) -> list[Reference]:
    """Keep the files that fit any of the patterns, under their paths. Raises FileRefused, ArtifactRefused, StoreUnusable."""
    kept = []
    for path in find_files(workspace, patterns, MOST_OUTPUTS):
        with opened_file(workspace, path) as file:
            kept.append(keep_artifact(file, name=path))
    return kept
