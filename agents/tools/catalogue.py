"""The tools there are and what each takes: looked at where a call is written, and again where it is made. Pure.

`agents.tools.calls.register_tool` puts them here. A tool's arguments are described by a JSON Schema of an object; one without
takes any. What is found is said in the words of whoever writes a call; the schema itself is for models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from agents.tools.namespaces import is_namespaced

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
Flaw = tuple[Path, str]
Check = Callable[[Any], Iterator[Flaw]]

TOOLS: dict[str, Callable[..., Any]] = {}
"""What is called, by name."""
SCHEMAS: dict[str, Schema] = {}
"""JSON Schemas of tools' arguments, by name; a tool without one takes any."""
PATHS: dict[str, tuple[str, ...]] = {}
"""Arguments of tools that are paths in the workspace, by name: of these policies judge where they lead, and nothing else."""

INSTRUCTION = "instruction"
"""The call of a device that carries out tasks in words: what it prints are words, as those of a model are."""
NAME_CHARACTERS = 80
"""Of a name that was written, as far as a message repeats it."""
VALUE_CHARACTERS = 40
"""Of a value that a message repeats."""
WRONG_VALUES = 20
"""Flaws of one argument that are told."""
WHOLE_WORDS = {"type", "properties", "required", "additionalProperties", "description"}
"""Keywords of a schema as a whole that are understood here; one with others is left to jsonschema."""
TEXT_WORDS = {"type", "minLength", "maxLength", "description"}
NUMBER_WORDS = {"type", "minimum", "maximum", "description"}


OTHER_NAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("bash", "exec", "execute_command", "run", "run_shell", "sh", "shell", "terminal"), ("command",)),
    **dict.fromkeys(("cat", "open", "read"), ("read_file",)),
    **dict.fromkeys(("create_file", "save", "write"), ("write_file",)),
    **dict.fromkeys(("apply_patch", "edit", "str_replace"), ("edit_file",)),
    **dict.fromkeys(("file", "file_path", "filename"), ("path",)),
    **dict.fromkeys(("text", "data"), ("content",)),
    **dict.fromkeys(("cmd", "command", "args"), ("argv",)),
}
"""What others call the same tools and arguments."""


def tool_names() -> list[str]:
    return sorted(TOOLS)


def tool_schemas() -> dict[str, Schema]:
    """JSON Schemas of the tools' arguments, by name; a tool without one takes any."""
    return {name: SCHEMAS.get(name, {"type": "object"}) for name in tool_names()}


def unknown_tool_text(name: str) -> str:
    """What is said of a tool that there is not; empty for one that there is. Which tools servers offer, devices say."""
    if name in TOOLS or is_namespaced(name):
        return ""
    return f"there is no tool {_shown(name, NAME_CHARACTERS)}; there are {', '.join(tool_names())}{_nearest(name, TOOLS)}"


def argument_flaws(name: str, arguments: Mapping[str, Any]) -> list[Flaw]:
    """What keeps `arguments` from being those of a tool: (the way to it, what it is). Nothing for a tool that takes any."""
    schema = SCHEMAS.get(name)
    return [] if schema is None else flaws_by_schema(name, schema, arguments)


def flaws_by_schema(name: str, schema: Schema, arguments: Mapping[str, Any]) -> list[Flaw]:
    """As `argument_flaws`, of a tool whose schema is said here."""
    known = _TAKEN.get(name)
    if known is None or (known.schema is not schema and known.schema != schema):
        known = _TAKEN[name] = _Taken(name, schema)
    if known.is_free and arguments.keys() <= known.free:
        return []
    return known.flaws(arguments)


@dataclass(slots=True)
class _Taken:
    """What one tool takes, made ready once: most calls have arguments of which only the names have to be looked at."""

    name: str
    schema: Schema
    checks: dict[str, Check | None] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    """Arguments without which there is no call."""
    is_open: bool = True
    whole: Check | None = None
    free: frozenset[str] = frozenset()
    """Arguments that may be anything."""
    is_free: bool = False
    """Whether nothing else has to be given."""

    def __post_init__(self) -> None:
        if not self.schema.keys() <= WHOLE_WORDS:
            self.whole = _by_schema(self.schema)
            return
        self.checks = {key: _check_of(each) for key, each in self.schema.get("properties", {}).items()}
        self.free = frozenset(key for key, check in self.checks.items() if check is None)
        self.needed = tuple(self.schema.get("required", ()))
        self.is_free = not self.needed
        self.is_open = self.schema.get("additionalProperties", True) is not False

    def flaws(self, arguments: Mapping[str, Any]) -> list[Flaw]:
        if self.whole is not None:
            return list(self.whole(dict(arguments)))
        found: list[Flaw] = []
        for key, value in arguments.items():
            if key not in self.checks:
                if not self.is_open:
                    takes = f"it takes {', '.join(self.checks)}" if self.checks else "it takes nothing"
                    strange = f"{self.name} takes no {_shown(key, NAME_CHARACTERS)}"
                    found.append(((key,), f"{strange}; {takes}{_nearest(str(key), self.checks)}"))
            elif (check := self.checks[key]) is not None:
                found += [((key, *path), message) for path, message in check(value)]
        missing = [key for key in self.needed if key not in arguments]
        return [*found, ((), f"{self.name} needs {' and '.join(missing)}")] if missing else found


_TAKEN: dict[str, _Taken] = {}


def _check_of(schema: Schema) -> Check | None:
    """What looks at one argument; None where it may be anything."""
    if not schema.keys() - {"description"}:
        return None
    if schema.get("type") == "string" and schema.keys() <= TEXT_WORDS:
        return _text(schema.get("minLength", 0), schema.get("maxLength"))
    if schema.get("type") == "integer" and schema.keys() <= NUMBER_WORDS:
        return _whole_number(schema.get("minimum"), schema.get("maximum"))
    return _by_schema(schema)


def _text(least: int, most: int | None) -> Check:
    def check(value: Any) -> Iterator[Flaw]:
        if not isinstance(value, str):
            hint = "; put it in quotes" if isinstance(value, bool | int | float) else ""
            yield (), f"must be text, not {_kind(value)}{hint}"
        elif len(value) < least:
            yield (), "is empty" if not value else f"has {len(value):,} characters; it needs {least:,}"
        elif most is not None and len(value) > most:
            yield (), f"has {len(value):,} characters; {most:,} are allowed"

    return check


def _whole_number(low: int | None, high: int | None) -> Check:
    def check(value: Any) -> Iterator[Flaw]:
        if isinstance(value, bool) or not isinstance(value, int):
            yield (), f"must be a whole number, not {_kind(value)}"
        elif low is not None and value < low:
            yield (), f"is {_shown(value)}; it must be at least {low:,}"
        elif high is not None and value > high:
            yield (), f"is {_shown(value)}; it must be at most {high:,}"

    return check


def _by_schema(schema: Schema) -> Check:
    """What says more than is understood here. jsonschema is large, so it is loaded when it is needed."""
    validator: list[Any] = []

    def check(value: Any) -> Iterator[Flaw]:
        if not validator:
            from jsonschema import Draft202012Validator

            validator.append(Draft202012Validator(schema))
        for _, error in zip(range(WRONG_VALUES), validator[0].iter_errors(value), strict=False):
            yield tuple(error.absolute_path), _shown(error.message, 5 * VALUE_CHARACTERS)

    return check


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    close = [same for same in OTHER_NAMES.get(word, ()) if same in known]
    close = close or get_close_matches(word[:NAME_CHARACTERS], list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def _kind(value: Any) -> str:
    if value is None:
        return "nothing; leave it out"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {_shown(value)}"
    if isinstance(value, str):
        return f"the text '{_shown(value)}'"
    return "an object" if isinstance(value, Mapping) else "a list"


def _shown(value: Any, characters: int = VALUE_CHARACTERS) -> str:
    said = str(value)
    return said if len(said) <= characters else f"{said[:characters]}..."
