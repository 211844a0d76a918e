"""Reading a constellation in any dialect: every problem of it, with the line and the key where it is written. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from constellations import documents, plans
from constellations.dialects.constellation import translate
from constellations.dialects.recognition import FOREIGN, NAMES, ORRERY, STATES, Unrecognised, recognise
from constellations.dialects.translation import Translation
from constellations.documents import MAX_JSON_BYTES, Document, Unreadable
from constellations.errors import PlanRejected
from constellations.plans import Plan
from constellations.values import Finding, Path, did_you_mean, key_text

STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
"""A step of a path as key_text writes it."""


@dataclass(slots=True)
class Imported(Plan):
    """A plan, and the dialect it was written in."""

    dialect: str = ""
    _locate: Callable[[Path], tuple[int | None, Path]] = field(default=lambda path: (None, path), compare=False, repr=False)

    def problem(self, key: str, message: str) -> dict[str, Any]:
        """What is wrong with a part of the plan (tasks[0].device), with the line and the key where it was written."""
        line, path = self._locate(tuple(int(place) if place else step for place, step in STEP.findall(key)))
        return {"line": line, "key": key_text(path), "message": message}


def read(written: Any, dialect: str = "") -> Imported:
    """A constellation from text (YAML or JSON) or from a value that was one; an empty `dialect` is told by the keys.

    Raises PlanRejected with every problem. Devices are not looked at.
    """
    document = _document(written)
    dialect = dialect or _recognised(document)
    if dialect not in NAMES:
        message = f"there is no dialect {dialect}{did_you_mean(dialect, NAMES)}"
        raise PlanRejected([{"line": None, "key": "dialect", "message": message}], "import")
    to = Translation(_plan_alone(document.value)) if dialect == ORRERY else translate(document.value, FOREIGN[dialect])
    plan, findings = _read(document, to)
    if findings:
        raise PlanRejected(plans.located(document, findings), f"{dialect} document")

    def locate(path: Path) -> tuple[int | None, Path]:
        return document.line(to.origin(path)), to.origin(path)

    return Imported(**{each.name: getattr(plan, each.name) for each in fields(Plan)}, dialect=dialect, _locate=locate)


def _document(written: Any) -> Document:
    """What is given as a value has no lines."""
    if isinstance(written, str | bytes):
        try:
            return documents.read(written)
        except Unreadable as error:
            raise _refused(str(error), error.line, key_text(error.path)) from error
    flaws = _flaws(written)
    if flaws:
        raise PlanRejected([{"line": None, "key": key_text(path), "message": message} for path, message in flaws], "document")
    size = len(json.dumps(written, ensure_ascii=False).encode())
    if size > MAX_JSON_BYTES:
        raise _refused(f"the document has {size:,} bytes; {MAX_JSON_BYTES:,} are allowed")
    return Unlined(written)


def _flaws(value: Any) -> list[Finding]:
    """What keeps it from being a document. In what is read past, as results, numbers may be beyond what we keep; a plan's own
    reading looks at the others."""
    return [(path, message) for path, message in documents.flaws(value) if message != documents.OUT_OF_RANGE]


class Unlined(Document):
    """A document that never was text."""

    def __init__(self, value: Any):
        super().__init__("", value)

    def line(self, path: documents.Path) -> None:
        return None


def _refused(message: str, line: int | None = None, key: str = "") -> PlanRejected:
    return PlanRejected([{"line": line, "key": key, "message": message}], "document")


def _recognised(document: Document) -> str:
    try:
        return recognise(document.value)
    except Unrecognised as error:
        raise _refused(str(error)) from error


def _plan_alone(value: Any) -> Any:
    """Without the states that a plan was exported with."""
    return {key: part for key, part in value.items() if key != STATES} if isinstance(value, dict) else value


def _read(document: Document, to: Translation) -> tuple[Plan, list[Finding]]:
    plan, findings = plans.read_value(to.value, in_words=True)
    return plan, [*document.repeated, *_flaws(document.value), *to.findings, *_others(to, findings)]


def _others(to: Translation, findings: list[Finding]) -> list[Finding]:
    """What the plan's reading found, where the dialect's has not found something in that place or around it."""
    found = {path for path, _ in to.findings}
    moved = [(to.origin(path), message) for path, message in findings]
    return [(path, message) for path, message in moved if not any(path[:end] in found for end in range(len(path) + 1))]
