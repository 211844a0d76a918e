"""What watches over a task's calls, as a plan writes it: policies, and the settings of the detection of being stuck. Pure."""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import Any

from agents import patterns
from agents.decisions import DECISIONS
from agents.gates import unasked
from agents.progress.settings import TOOL_KIND, Settings
from constellations.plan.keys import json_schema, kinds
from constellations.plan.keys.calls import MAX_WORD
from constellations.plan.keys.json_schema import Schema
from constellations.plan.keys.kinds import Field, defaults_of, readers_of, schemas_of
from constellations.plan.values import Misfit, Reader, Row, list_reader, quote_value, read_fields, text_reader

MAX_POLICIES = 50
"""Policies of a task."""
MAX_PATTERN = 500
"""Characters of a regular expression."""
MAX_COUNT = 100_000
"""The largest threshold, window, interval or memory of the detection of being stuck, in actions."""


def read_pattern(value: Any) -> str:
    written = text_reader(MAX_PATTERN)(value)
    if wrong := patterns.pattern_fault(written):
        raise Misfit(wrong)
    return written


POLICY = (
    Field("tool", kinds.word(MAX_WORD), "*"),
    Field("pattern", kinds.line(read_pattern), about="RE2, found in a call's target."),
    Field("decision", kinds.choice(DECISIONS)),
)
"""The keys of a policy: `tool` as in file names, `pattern` searched in the call's target (empty: any)."""
POLICY_DEFAULTS = defaults_of(POLICY)
POLICY_READERS = readers_of(POLICY)
POLICY_SCHEMA = json_schema.a_part(schemas_of(POLICY), "decision")


def read_policy(value: Any) -> Row:
    row = {**POLICY_DEFAULTS, **_whole(value, POLICY_READERS)}
    if not row["tool"]:
        raise Misfit("is empty; * is any tool", "tool")
    if not row["decision"]:
        raise Misfit(f"a policy needs a decision: one of {', '.join(DECISIONS)}")
    return row


def read_unasked(value: Any) -> Row:
    """Which calls of a model are made without asking, and which are asked about (agents.gates.unasked)."""
    try:
        return unasked.read_unasked(value)
    except unasked.UnaskedRejected as error:
        raise Misfit(str(error), *error.path) from error


def read_progress(value: Any) -> Row:
    """The settings that the task has of its own, those of `agents.progress.settings` that it names."""
    return _whole(value, SETTING_READERS)


def _whole(value: Any, readers: dict[str, Reader]) -> Row:
    """The fields of an object, or its first finding as a Misfit."""
    fields, findings = read_fields(value, readers)
    for path, message in findings:
        raise Misfit(message, *path)
    return fields


def _setting(name: str, default: Any) -> Reader:
    read_list = list_reader(read_pattern if name.endswith("_commands") else text_reader(MAX_PATTERN))

    def read(value: Any) -> Any:
        value = read_list(value) if isinstance(default, tuple) else value
        try:
            Settings.of({name: value})
        except ValueError as error:
            raise Misfit(str(error)) from error
        if isinstance(value, int) and value > MAX_COUNT:
            raise Misfit(f"is {quote_value(value)}; it must be at most {MAX_COUNT:,}")
        return value

    return read


SETTING_READERS: dict[str, Reader] = {field.name: _setting(field.name, field.default) for field in fields_of(Settings)}

policies = list_reader(read_policy, MAX_POLICIES)


def _schema_of_setting(name: str, default: Any) -> Schema:
    if isinstance(default, bool):
        return json_schema.FLAG
    if name == "tool_kinds":
        return json_schema.many({**json_schema.TEXT, "pattern": TOOL_KIND})
    return json_schema.whole(0) if isinstance(default, int) else json_schema.TEXTS


UNASKED_SCHEMA: Schema = json_schema.a_part(
    {
        "commands": json_schema.many(json_schema.TEXTS),
        "tools": json_schema.TEXTS,
        "ask": json_schema.many({"type": ["array", "string"], "items": json_schema.TEXT}),
    }
)
PROGRESS_SCHEMA = json_schema.a_part(
    {field.name: _schema_of_setting(field.name, field.default) for field in fields_of(Settings)}
)
