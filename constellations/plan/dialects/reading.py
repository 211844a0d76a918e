"""Reading a constellation in any dialect: every problem of it, with the line and the key where it is written. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from constellations.errors import EditGiven, PlanRejected
from constellations.plan import documents
from constellations.plan.dialects import fences
from constellations.plan.dialects.parts import answers
from constellations.plan.dialects.parts.constellation import translate_document
from constellations.plan.dialects.parts.recipes import Recipes
from constellations.plan.dialects.parts.translation import Translation
from constellations.plan.dialects.recognition import (
    FOREIGN,
    NAMES,
    ORRERY,
    STATES,
    Unrecognised,
    is_envelope,
    recognise_dialect,
)
from constellations.plan.documents import MAX_JSON_BYTES, Document, Unreadable
from constellations.plan.fitting import Devices, missing_minds, unknown_devices
from constellations.plan.plan import Plan, locate_findings, read_value
from constellations.plan.values import Finding, Path, did_you_mean, key_text

STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
"""A step of a path as key_text writes it."""


Locate = Callable[[Path], tuple[int | None, Path]]
"""The line and the key where a part was written."""


@dataclass(slots=True)
class ImportedPlan(Plan):
    """A plan, and the dialect it was written in."""

    dialect: str = ""
    _locate: Locate = field(default=lambda path: (None, path), compare=False, repr=False)

    def problem(self, key: str, message: str) -> dict[str, Any]:
        """What is wrong with a part of the plan (tasks[0].device), with the line and the key where it was written."""
        return _problem(self._locate, _path_of(key), message)


@dataclass(frozen=True, slots=True)
class ImportedEdit:
    """Operations in our words, and what whoever wrote them thought."""

    operations: list[dict[str, Any]]
    thought: str
    _locate: Locate = field(compare=False, repr=False)

    def problem(self, number: int, key: str, message: str) -> dict[str, Any]:
        """What is wrong with a part of an operation, with the line and the key where it was written; `number` from 0."""
        return _problem(self._locate, (number, *_path_of(key)), message)


def _path_of(key: str) -> Path:
    return tuple(int(place) if place else step for place, step in STEP.findall(key))


def _problem(locate: Locate, path: Path, message: str) -> dict[str, Any]:
    line, at = locate(path)
    return {"line": line, "key": key_text(at), "message": message}


def read_constellation(
    written: Any, dialect: str = "", recipes: Recipes | None = None, devices: Devices | None = None
) -> ImportedPlan:  # fmt: skip
    """A constellation from text (YAML or JSON, also in a code fence) or from a value that was one.

    An empty `dialect` is told by the keys; `recipes` of devices may be named by actions. With `devices` each task that asks for
    one which is not there is a problem, too. Raises PlanRejected with every problem, EditGiven for what edits a constellation.
    """
    document = _document(written)
    _check_dialect(dialect)
    if answers.is_edit(document.value):
        raise EditGiven()
    if answers.is_answer(document.value) and not is_envelope(document.value):
        raise _refused("the answer holds neither a constellation nor actions that edit one: there is nothing to import")
    try:
        dialect = dialect or recognise_dialect(document.value)
    except Unrecognised as error:
        raise _refused(str(error)) from error
    to = _translated(document.value, dialect, recipes)
    plan, found = read_value(to.value, in_words=True)
    found += missing_minds(plan.tasks, devices)
    if devices is not None:
        found += unknown_devices(plan.tasks, devices)
    # Of what the plan's reading found only that in whose place, or around it, the dialect's has not found something.
    wrong = {path for path, _ in to.findings}
    moved = [(to.origin(path), message) for path, message in found]
    new = [(path, message) for path, message in moved if not any(path[:end] in wrong for end in range(len(path) + 1))]
    if findings := [*document.repeated, *_flaws(document.value), *to.findings, *new]:
        raise PlanRejected(locate_findings(document, findings), f"{dialect} document")
    return ImportedPlan(
        **{each.name: getattr(plan, each.name) for each in fields(Plan)}, dialect=dialect, _locate=_locator(document, to)
    )


def _translated(value: Any, dialect: str, recipes: Recipes | None) -> Translation:
    if dialect == ORRERY:  # without the states that a plan was exported with
        return Translation({key: part for key, part in value.items() if key != STATES} if isinstance(value, dict) else value)
    to = translate_document(value, FOREIGN[dialect], recipes)
    if is_envelope(value):
        answers.find_flaws(to, value)
        edit = "what edits a constellation is not imported with one; give each alone, the edit to the constellation it is of"
        to.findings += [((key,), edit) for key in answers.ACTIONS if value.get(key)]
    return to


def read_edit(written: Any, dialect: str = "", recipes: Recipes | None = None) -> ImportedEdit:
    """The edit of a constellation that an agent's answer is, or a list of operations.

    `written` and `dialect` are as `read_constellation` takes them. Raises PlanRejected.
    """
    document = _document(written)
    _check_dialect(dialect)
    if not answers.is_edit(document.value):
        edits = "an answer with actions, or a list of operations"
        raise _refused(f"this is no edit of a constellation, which is {edits}; a constellation is imported into a session")
    found = answers.read_edit(document.value, dialect, recipes or {})
    if findings := [*document.repeated, *_flaws(document.value), *found.to.findings]:
        raise PlanRejected(locate_findings(document, findings), "edit")
    return ImportedEdit(found.operations, found.thought, _locator(document, found.to))


def _check_dialect(dialect: str) -> None:
    if dialect and dialect not in NAMES:
        message = f"there is no dialect {dialect}{did_you_mean(dialect, NAMES)}"
        raise PlanRejected([{"line": None, "key": "dialect", "message": message}], "import")


def _locator(document: Document, to: Translation) -> Locate:
    """Where a part of what was translated was written."""

    def locate(path: Path) -> tuple[int | None, Path]:
        return document.line(to.origin(path)), to.origin(path)

    return locate


def _document(written: Any) -> Document:
    """What is given as a value has no lines."""
    if isinstance(written, str | bytes):
        try:
            return _opened(_of_text(written))
        except Unreadable as error:
            raise _refused(str(error), error.line, key_text(error.path)) from error
    flaws = _flaws(written)
    if flaws:
        raise PlanRejected([{"line": None, "key": key_text(path), "message": message} for path, message in flaws], "document")
    size = len(json.dumps(written, ensure_ascii=False).encode())
    if size > MAX_JSON_BYTES:
        raise _refused(f"the document has {size:,} bytes; {MAX_JSON_BYTES:,} are allowed")
    try:
        return _opened(ValueDocument(written))
    except Unreadable as error:
        raise _refused(str(error)) from error


def _of_text(written: str | bytes) -> Document:
    """The text as it is, or else what stands in its code fence. Raises Unreadable."""
    refusal: Unreadable | None = None
    try:
        document = documents.read_document(written)
        if not isinstance(document.value, str):
            return document
    except Unreadable as error:
        refusal = error
    text = written.decode("utf-8-sig", "replace") if isinstance(written, bytes) else written.removeprefix("\ufeff")
    inner = fences.strip_fence(text) if len(text) <= MAX_JSON_BYTES else None
    if inner is not None:
        return documents.read_document(inner)
    if refusal is not None:
        raise refusal
    return document


def _opened(document: Document) -> Document:
    """An answer may hold its constellation as text; all of that is in the line where it begins. Raises Unreadable."""
    if is_envelope(document.value) and isinstance(document.value["constellation"], str):
        try:
            inner = _of_text(document.value["constellation"])
        except Unreadable as error:
            raise Unreadable(f"the constellation is a text, and {error}", document.line(("constellation",))) from error
        document.value = {**document.value, "constellation": inner.value}
    return document


def _flaws(value: Any) -> list[Finding]:
    """What keeps it from being a document. In what is read past, as results, numbers may be beyond what we keep; a plan's own
    reading looks at the others."""
    return [(path, message) for path, message in documents.value_flaws(value) if message != documents.OUT_OF_RANGE]


class ValueDocument(Document):
    """A document that never was text."""

    def __init__(self, value: Any):
        super().__init__("", value)

    def line(self, path: documents.Path) -> None:
        return None


def _refused(message: str, line: int | None = None, key: str = "") -> PlanRejected:
    return PlanRejected([{"line": line, "key": key, "message": message}], "document")
