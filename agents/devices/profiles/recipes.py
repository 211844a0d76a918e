"""Recipes: named commands with parameters in a device's profile (docs/plans.md, "Plain text"). Pure.

    {"train": {
        "command": ["python", "train.py", "--out", "{model}", "--epochs={epochs}"],
        "parameters": {"model": {}, "epochs": {"type": "integer", "default": 30, "description": "Passes over the data."}},
        "description": "Train a classifier."}}

A parameter without a default is required; its type is one of TYPES, "string" unless given. A `{name}` in the command stands
for a parameter's value, as a whole argument or as a part of one and never as several; `{{name}}` stands for `{name}` itself;
other braces are just braces. No shell sees any of it.

A command may also be one text: of which a shell would do no more than split it, or with `"shell": true` whatever a shell
understands. Values are then the shell's own parameters, so that no value is ever read as a part of the line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.devices.command_lines import NotPlain, is_quoted, shell_arguments, split_line
from agents.masks.masking import is_hidden

MAX_RECIPES = 100
MAX_PARAMETERS = 50
MAX_WORDS = 200
"""Words of a recipe's command."""
MAX_TEXT = 4_000
"""Characters of a word of a command, of a default, of a description."""
MAX_SHOWN = 40
"""Characters of a value that a message repeats."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,79}")
PLACEHOLDER = re.compile(rf"\{{\{{({NAME.pattern})\}}\}}|\{{({NAME.pattern})\}}")
RECIPE_KEYS = ("command", "shell", "parameters", "description")
PARAMETER_KEYS = ("type", "default", "description")

WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
REAL = re.compile(r"[-+]?([0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})([eE][-+]?[0-9]{1,3})?")
TYPES = {
    "string": (str, re.compile(r"[^\0]*"), "text"),
    "integer": (int, WHOLE, "a whole number"),
    "number": (int | float, REAL, "a number"),
    "boolean": (bool, re.compile(r"true|false"), "true or false"),
}
"""What a default is in JSON, how a value is written, what a message calls it."""

WAYS_OUT = 'give a list of words to have it as it stands, or `"shell": true` beside it to have `sh -c` run it'
"""What can be done about a text of which a shell would understand more than words."""

Problem = dict[str, str]
"""{"key": "train.command[1]", "message": "..."}"""


@dataclass(frozen=True)
class RecipeParameter:
    """`default` is None when a value must be given. `leads` says that its value begins an argument somewhere."""

    type: str
    default: str | None
    leads: bool

    def problem(self, value: str) -> str:
        """What keeps the text `value` from being this parameter's, or nothing."""
        _, pattern, called = TYPES[self.type]
        if not pattern.fullmatch(value):
            return f"must be {called}, not '{_shown(value)}'"
        if self.type == "number" and not math.isfinite(float(value)):
            return f"is not a number that can be told apart from infinity: '{_shown(value)}'"
        if self.type == "string" and self.leads and value.startswith("-"):
            return f"'{_shown(value)}' would be read as an option, because it begins with -"
        return ""


@dataclass(frozen=True)
class Recipe:
    """A named command whose parameters are waiting for values."""

    name: str
    command: tuple[str, ...]
    parameters: Mapping[str, RecipeParameter]
    description: str = ""

    def missing(self, given: Mapping[str, str]) -> list[str]:
        """Names of the parameters that have neither a value nor a default."""
        return [name for name, one in self.parameters.items() if one.default is None and name not in given]

    def argv(self, given: Mapping[str, str]) -> list[str]:
        """The argument list; of as many words as the command, whatever the values are."""
        defaults = {name: one.default or "" for name, one in self.parameters.items()}
        values = {**defaults, **given}
        return [
            PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], word) for word in self.command
        ]

    def usage(self) -> str:
        """As a message shows it: `train model=... epochs=30`."""
        shown = [f"{name}={'...' if one.default is None else _shown(one.default)}" for name, one in self.parameters.items()]
        return " ".join([self.name, *shown])


def read_recipe(name: str, written: Any) -> Recipe | None:
    """The recipe, or None when it has problems."""
    if next(_recipe_problems(name, written), None):
        return None
    command, described = written["command"], written.get("parameters", {})
    words = list(command)
    if isinstance(command, str):  # of what a shell runs the words can be told only roughly
        words = command.split() if written.get("shell") else split_line(command)
    parameters = {}
    for each, one in described.items():
        default = _text(one["default"]) if "default" in one else None
        leads = any(word.startswith(f"{{{each}}}") for word in words)
        parameters[each] = RecipeParameter(one.get("type", "string"), default, leads)
    if written.get("shell"):  # the parameters of its line become the shell's own: "${1}", "${2}", ...
        places = {each: f'"${{{place}}}"' for place, each in enumerate(parameters, 1)}
        line = PLACEHOLDER.sub(lambda found: places[found[2]] if found[2] else found[0], command)
        words = [*shell_arguments(line), *((name, *(f"{{{each}}}" for each in parameters)) if parameters else ())]
    return Recipe(name, tuple(words), parameters, written.get("description", ""))


def recipe_problems(written: Any) -> list[Problem]:
    """What is wrong with the recipes of a device's profile; nothing when they are well."""
    if not isinstance(written, Mapping):
        return [{"key": "", "message": f"recipes are an object (name: recipe), not {_kind(written)}"}]
    if len(written) > MAX_RECIPES:
        return [{"key": "", "message": f"there are {len(written)} recipes; {MAX_RECIPES} are allowed"}]
    found = (problem for name, recipe in written.items() for problem in _recipe_problems(name, recipe))
    return [{"key": key, "message": message} for key, message in found]


def _text(default: Any) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    return str(default)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "true or false", type(None): "nothing", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


Found = Iterator[tuple[str, str]]


def _recipe_problems(name: Any, written: Any) -> Found:
    key = _shown(name)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield key, "a recipe's name begins with a letter and has letters, digits, _ and - only, at most 80"
        return
    if not isinstance(written, Mapping):
        yield key, f"a recipe is an object with a command, not {_kind(written)}"
        return
    yield from _strange_keys(key, written, RECIPE_KEYS)
    yield from _text_problems(f"{key}.description", written.get("description", ""))
    parameters = written.get("parameters", {})
    if not isinstance(parameters, Mapping) or len(parameters) > MAX_PARAMETERS:
        yield f"{key}.parameters", f"must be an object (name: parameter) of at most {MAX_PARAMETERS}, not {_kind(parameters)}"
        return
    for each, parameter in parameters.items():
        yield from _parameter_problems(f"{key}.parameters.{_shown(each)}", each, parameter)
    command, by_shell = written.get("command"), written.get("shell", False)
    if not isinstance(by_shell, bool):
        yield f"{key}.shell", f"must be true or false, not {_kind(by_shell)}"
    elif isinstance(command, str):
        yield from _line_problems(f"{key}.command", command, by_shell, parameters)
    elif by_shell:
        yield f"{key}.shell", "shell: true is said of a command that is one text, and this one is not"
    else:
        yield from _command_problems(f"{key}.command", command, parameters)


def _parameter_problems(key: str, name: Any, written: Any) -> Found:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield key, "a parameter's name begins with a letter and has letters, digits, _ and - only, at most 80"
        return
    if not isinstance(written, Mapping):
        yield key, f"a parameter is an object ({', '.join(PARAMETER_KEYS)}; {{}} will do), not {_kind(written)}"
        return
    yield from _strange_keys(key, written, PARAMETER_KEYS)
    yield from _text_problems(f"{key}.description", written.get("description", ""))
    kind = written.get("type", "string")
    if not isinstance(kind, str) or kind not in TYPES:
        yield f"{key}.type", f"must be one of {', '.join(TYPES)}, not {_shown(kind)}"
    elif "default" in written:
        default, (wanted, pattern, called) = written["default"], TYPES[kind]
        # Python takes true for a number; nobody who writes a recipe does.
        fits = isinstance(default, wanted) and (kind == "boolean" or not isinstance(default, bool))
        if not fits or not pattern.fullmatch(_text(default)):
            yield f"{key}.default", f"must be {called}, not {_kind(default)}: {_shown(default)}"
        elif kind == "string":
            yield from _text_problems(f"{key}.default", default)


def _command_problems(key: str, command: Any, parameters: Mapping[str, Any]) -> Found:
    if not isinstance(command, list | tuple) or not 1 <= len(command) <= MAX_WORDS:
        yield key, f"must be a list of 1 to {MAX_WORDS} words, or one text, not {_kind(command)}"
        return
    wrong = [found for place, word in enumerate(command) for found in _text_problems(f"{key}[{place}]", word)]
    yield from wrong
    if wrong:
        return
    if not command[0] or any(found[2] for found in PLACEHOLDER.finditer(command[0])):
        yield f"{key}[0]", "must name the program itself, without a placeholder"
    used = {found[2]: f"{key}[{place}]" for place, word in enumerate(command) for found in PLACEHOLDER.finditer(word)}
    yield from _use_problems(key, used, parameters)


def _line_problems(key: str, line: str, by_shell: bool, parameters: Mapping[str, Any]) -> Found:
    """What is wrong with a command that is one text."""
    wrong = list(_text_problems(key, line))
    if not wrong and not line.strip():
        wrong = [(key, "is empty")]
    yield from wrong
    if wrong:
        return
    if not by_shell:
        try:
            words = split_line(line)
        except NotPlain as error:
            yield key, f"{error}: {WAYS_OUT}" if error.is_shells else f"{error}; close it"
        else:
            yield from _command_problems(key, words, parameters)
        return
    found = [each for each in PLACEHOLDER.finditer(line) if each[2]]
    for each in found:
        if is_quoted(line, each.start()) or line[: each.start()].endswith("$"):
            yield key, f"{{{each[2]}}} stands in quotes or behind a $: write it without them, it is one word whatever its value"
    yield from _use_problems(key, {each[2]: key for each in found}, parameters)


def _use_problems(key: str, used: Mapping[str | None, str], parameters: Mapping[str, Any]) -> Found:
    """`used`: where each name in braces stands; None is for braces that are meant as such."""
    for name, place in used.items():
        if name and name not in parameters:
            yield place, f"there is no parameter {name}; to have the braces themselves, write {{{{{name}}}}}"
    for name in parameters:
        if name not in used:
            yield key, f"the parameter {_shown(name)} stands nowhere in the command"


def _text_problems(key: str, value: Any) -> Found:
    if not isinstance(value, str):
        yield key, f"must be text, not {_kind(value)}"
    elif len(value) > MAX_TEXT:
        yield key, f"has {len(value)} characters; {MAX_TEXT} are allowed"
    elif "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        yield key, "may hold neither the character NUL nor half a character"
    elif is_hidden(value):
        yield key, "holds what is shown in the place of a secret; write the text itself"


def _strange_keys(key: str, written: Mapping[Any, Any], known: tuple[str, ...]) -> Found:
    for strange in [each for each in written if each not in known]:
        yield f"{key}.{_shown(strange)}", f"there is no such key; known are {', '.join(known)}"
