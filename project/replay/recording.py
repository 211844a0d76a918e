"""The file of a recorded session: what is in it, how it is written and read (docs/models.md, "Record and replay").

    answers: what models said, as the file of a scripted model; `scripted_model` serves them
    recording:
      session, devices, policies, profiles: what the run stood on
      requests, approvals, edits: what people did, each with its time `at`
      prompts: system prompts, by the digests that questions have
      questions: one for each answer: of whom, what was asked, begun, ended, and the fault where there was one
      results: what calls of tools brought: of whom, tool, arguments, begun, ended, and the fields of an outcome
      decisions: what is compared: of whom, at, kind, what

Times are seconds since the first request. `of` is {request, task, agent}: the number of the interaction, the task's id and
the agent's name, both empty where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from agents.errors import AgentsError
from agents.llm.scripted.script import Script, ScriptRejected, read_script
from agents.masks.masking import HIDDEN
from agents.masks.values import mask_value

VERSION = 1
FILE_BYTES = 200_000_000
LISTS = ("devices", "policies", "profiles", "requests", "approvals", "edits", "questions", "results", "decisions")
SHOWN_INSTEAD = "(secret)"
Fields = dict[str, Any]


class RecordingRejected(AgentsError):
    """The file is no recording of a session; the message says what is wrong."""

    code = "recording_rejected"


@dataclass(frozen=True)
class Recording:
    """A recording that was read: `script` has its answers, `content` the rest, as the module's text describes it."""

    script: Script
    content: Mapping[str, Any]


def hide_secrets(value: Any) -> Any:
    """A JSON value masked, with SHOWN_INSTEAD for each secret: a plan may not hold the mask's own marks."""
    return _replace_marks(mask_value(value))


def _replace_marks(value: Any) -> Any:
    if isinstance(value, str):
        return HIDDEN.sub(SHOWN_INSTEAD, value)
    if isinstance(value, list):
        return [_replace_marks(each) for each in value]
    return {key: _replace_marks(each) for key, each in value.items()} if isinstance(value, dict) else value


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are read."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def write_recording(recorded: Fields) -> str:
    """The file of {answers, recording}."""
    return yaml.dump(recorded, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=128)


def read_recording(text: str | bytes) -> Recording:
    """The recording of a file's text; raises RecordingRejected."""
    if len(text) > FILE_BYTES:
        raise RecordingRejected(f"the file has more than {FILE_BYTES:,} bytes")
    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # a safe loader
        content = found["recording"]
        script = read_script(yaml.safe_dump({"answers": found["answers"]}))
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ScriptRejected) as error:
        raise RecordingRejected(f"the file is no recording: {type(error).__name__}: {error}") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise RecordingRejected(f"recording.version: must be {VERSION}")
    if wrong := [name for name in LISTS if not isinstance(content.get(name), list)]:
        raise RecordingRejected(f"recording.{wrong[0]}: must be a list")
    if len(content["questions"]) != len(script.answers):
        raise RecordingRejected(f"there are {len(script.answers)} answers to {len(content['questions'])} questions")
    return Recording(script, content)
