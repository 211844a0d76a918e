"""The file of a scripted model: which request gets which answer (docs/models.md, "The scripted model")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from agents.errors import AgentsError

FILE_BYTES = 20_000_000
ANSWERS = 1_000
"""Of one file."""
PIECE = 40
"""Characters in which a text is streamed that is not given in pieces."""
LONGEST_S = 3_600.0
"""That a server sleeps."""


class ScriptRejected(AgentsError):
    """The file is no script of a model; the message names the answer and the key."""

    code = "script_rejected"


@dataclass(frozen=True)
class Asked:
    """A request of either protocol. `last` is all that came after the model's last turn: words and results of tools."""

    model: str
    system: str
    last: str
    tools: tuple[str, ...]
    key: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class When:
    """Which requests an answer is for: all that is said must hold; texts are looked for in what was asked."""

    last: str = ""
    system: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()

    def fits(self, asked: Asked) -> bool:
        return (
            self.last in asked.last
            and self.system in asked.system
            and self.model in ("", asked.model)
            and set(self.tools) <= set(asked.tools)
        )


@dataclass(frozen=True)
class PreparedCall:
    """A call of a tool that the model asks for; `arguments` are JSON text, whether good or not."""

    tool: str
    arguments: str


@dataclass(frozen=True)
class Failure:
    """An HTTP error in place of an answer. `code` and `type` are the provider's words for it."""

    status: int
    message: str = "as the script says"
    code: str = ""
    type: str = ""
    retry_after: float | None = None


@dataclass
class PreparedAnswer:
    """One answer of a script. `left` counts down how often it is still given; None: as often as it fits."""

    when: When
    say: tuple[str, ...] = ()
    think: tuple[str, ...] = ()
    calls: tuple[PreparedCall, ...] = ()
    refuse: str = ""
    finish: str = ""
    fail: Failure | None = None
    garbage: bytes | None = None
    first_after_s: float = 0.0
    pause_s: float = 0.0
    stop_after: int | None = None
    tokens: tuple[int, int] = (10, 5)
    left: int | None = None
    given: int = field(default=0, init=False)


class Script:
    """The answers of a file, in their order."""

    def __init__(self, answers: list[PreparedAnswer]):
        self.answers = answers

    def answer(self, asked: Asked) -> PreparedAnswer | None:
        """The first answer that fits and is not used up; None where the file expects no such request."""
        for prepared in self.answers:
            if prepared.left != 0 and prepared.when.fits(asked):
                prepared.left = None if prepared.left is None else prepared.left - 1
                prepared.given += 1
                return prepared
        return None


FINISHES = ("", "stop", "length", "filter", "none")
"""Why an answer ends; empty: as its kind does. `none` ends the stream without saying why."""
KEYS = {
    "when", "say", "think", "call", "refuse", "finish", "fail", "garbage", "first_after", "pause", "stop_after", "tokens",
    "times",
}  # fmt: skip


def read_script(text: str | bytes) -> Script:
    """The script of a YAML file's text; raises ScriptRejected."""
    if len(text) > FILE_BYTES:
        raise ScriptRejected(f"the file has more than {FILE_BYTES:,} bytes")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ScriptRejected(f"the file is no YAML: {error}") from error
    if not isinstance(found, dict) or set(found) != {"answers"} or not isinstance(found["answers"], list):
        raise ScriptRejected("the file must have one key, answers, with a list")
    if len(found["answers"]) > ANSWERS:
        raise ScriptRejected(f"the file has {len(found['answers'])} answers, at most {ANSWERS} are allowed")
    return Script([_read_answer(each, f"answers[{number}]") for number, each in enumerate(found["answers"])])


def _read_answer(given: Any, place: str) -> PreparedAnswer:
    fields = _known_keys(given, KEYS, place)
    kinds = [key for key in ("fail", "garbage", "refuse") if key in fields]
    if len(kinds) > 1 or (kinds and {"say", "think", "call"} & set(fields)):
        raise ScriptRejected(f"{place}: fail, garbage and refuse stand alone")
    garbage = fields.get("garbage")
    finish = _choice(fields.get("finish", ""), FINISHES, f"{place}.finish")
    return PreparedAnswer(
        when=_read_when(fields.get("when", {}), f"{place}.when"),
        say=_pieces(fields.get("say", ""), f"{place}.say"),
        think=_pieces(fields.get("think", ""), f"{place}.think"),
        calls=tuple(_read_call(each, f"{place}.call") for each in _list(fields.get("call", []), f"{place}.call")),
        refuse=_text(fields.get("refuse", ""), f"{place}.refuse"),
        finish=finish,
        fail=_read_failure(fields["fail"], f"{place}.fail") if "fail" in fields else None,
        garbage=garbage if isinstance(garbage, bytes | None) else _text(garbage, f"{place}.garbage").encode(),
        first_after_s=_number(fields.get("first_after", 0), LONGEST_S, f"{place}.first_after"),
        pause_s=_number(fields.get("pause", 0), LONGEST_S, f"{place}.pause"),
        stop_after=None if "stop_after" not in fields else int(_number(fields["stop_after"], 1e6, f"{place}.stop_after")),
        tokens=_read_tokens(fields.get("tokens", {}), f"{place}.tokens"),
        left=None if "times" not in fields else int(_number(fields["times"], 1e6, f"{place}.times")),
    )


def _read_when(given: Any, place: str) -> When:
    fields = _known_keys(given, {"last", "system", "model", "tools"}, place)
    texts = {key: _text(fields[key], f"{place}.{key}") for key in ("last", "system", "model") if key in fields}
    tools = _list(fields.get("tools", []), f"{place}.tools")
    return When(**texts, tools=tuple(_text(tool, f"{place}.tools") for tool in tools))


def _read_call(given: Any, place: str) -> PreparedCall:
    fields = _known_keys(given, {"tool", "arguments"}, place)
    arguments = fields.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return PreparedCall(_text(fields.get("tool"), f"{place}.tool"), text)


def _read_failure(given: Any, place: str) -> Failure:
    fields = _known_keys(given, {"status", "message", "code", "type", "retry_after"}, place)
    status = int(_number(fields.get("status", 0), 599, f"{place}.status"))
    if status < 400:
        raise ScriptRejected(f"{place}.status: must be from 400 to 599")
    texts = {key: _text(fields[key], f"{place}.{key}") for key in ("message", "code", "type") if key in fields}
    wait = None if "retry_after" not in fields else _number(fields["retry_after"], LONGEST_S, f"{place}.retry_after")
    return Failure(status, **texts, retry_after=wait)


def _read_tokens(given: Any, place: str) -> tuple[int, int]:
    fields = _known_keys(given, {"input", "output"}, place)
    return int(_number(fields.get("input", 10), 1e9, place)), int(_number(fields.get("output", 5), 1e9, place))


def _known_keys(given: Any, known: set[str], place: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ScriptRejected(f"{place}: must be an object")
    if unknown := sorted(str(key) for key in given if key not in known):
        raise ScriptRejected(f"{place}: {', '.join(unknown)}: known are {', '.join(sorted(known))}")
    return given


def _list(given: Any, place: str) -> list[Any]:
    if not isinstance(given, list):
        raise ScriptRejected(f"{place}: must be a list")
    return given


def _text(given: Any, place: str) -> str:
    if not isinstance(given, str):
        raise ScriptRejected(f"{place}: must be text")
    return given


def _choice(given: Any, choices: tuple[str, ...], place: str) -> str:
    if given not in choices:
        raise ScriptRejected(f"{place}: must be one of {', '.join(filter(None, choices))}")
    return str(given)


def _number(given: Any, most: float, place: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= most:
        raise ScriptRejected(f"{place}: must be a number from 0 to {most:,.0f}")
    return given


def _pieces(given: Any, place: str) -> tuple[str, ...]:
    """A text in pieces of PIECE characters; a list as it is."""
    if isinstance(given, list):
        return tuple(_text(each, place) for each in given)
    text = _text(given, place)
    return tuple(text[at : at + PIECE] for at in range(0, len(text), PIECE))
