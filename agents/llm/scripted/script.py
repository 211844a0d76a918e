"""The file of a scripted model: which request gets which answer (docs/models.md, "The scripted model")."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from agents.errors import AgentsError
from agents.llm.scripted.matching import Asked, When, fill_json, fill_text

FILE_BYTES = 20_000_000
ANSWERS = 10_000
"""Of one file, those in `then` among them."""
PIECE = 40
"""Characters in which a text is streamed that is not given in pieces."""
REPEATED = 10_000
"""Times that an answer says the same over and over."""
LONGEST_S = 3_600.0
"""That a server sleeps, or waits to be told to go on."""


class ScriptRejected(AgentsError):
    """The file is no script of a model; the message names the answer and the key."""

    code = "script_rejected"


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
    """One answer of a script. `left` counts down how often it is still given; None: as often as it fits.

    `say_is_json`: what it says is the JSON of an object. `wait_for` names what the server is told before it goes on.
    """

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
    wait_for: str = ""
    stop_after: int | None = None
    tokens: tuple[int, int] = (10, 5)
    left: int | None = None
    say_is_json: bool = False
    given: int = field(default=0, init=False)

    def give(self, groups: Mapping[str, str]) -> PreparedAnswer:
        """The answer as it is sent: a copy with the groups in its texts, streamed in pieces of PIECE characters."""
        self.left = None if self.left is None else self.left - 1
        self.given += 1
        if not groups:
            return self
        fill = fill_json if self.say_is_json else fill_text
        calls = tuple(PreparedCall(call.tool, fill_json(call.arguments, groups)) for call in self.calls)
        say, think = fill("".join(self.say), groups), fill_text("".join(self.think), groups)
        return replace(self, say=_cut(say), think=_cut(think), calls=calls)


class Script:
    """The answers of a file, in their order."""

    def __init__(self, answers: list[PreparedAnswer]):
        self.answers = answers

    def answer(self, asked: Asked) -> PreparedAnswer | None:
        """The first answer that fits and is not used up; None where the file expects no such request."""
        for prepared in self.answers:
            if prepared.left != 0 and (groups := prepared.when.find(asked)) is not None:
                return prepared.give(groups)
        return None

    def used_up(self, asked: Asked) -> list[int]:
        """The numbers of the answers that would fit, had they not been given as often as they may."""
        fitting = (number for number, each in enumerate(self.answers) if each.when.find(asked) is not None)
        return [number for number in fitting if self.answers[number].left == 0]


FINISHES = ("", "stop", "length", "filter", "none")
"""Why an answer ends; empty: as its kind does. `none` ends the stream without saying why."""
KEYS = {
    "say", "repeat", "think", "call", "refuse", "finish", "fail", "garbage", "first_after", "pause", "wait_for", "stop_after",
    "tokens", "times",
}  # fmt: skip
MATCHED = {"last", "said", "system", "model", "tools", "turn", "pictures", "matches"}


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
    answers = [one for number, each in enumerate(found["answers"]) for one in _read_answers(each, f"answers[{number}]")]
    if len(answers) > ANSWERS:
        raise ScriptRejected(f"the file has {len(answers)} answers, at most {ANSWERS} are allowed")
    return Script(answers)


def _read_answers(given: Any, place: str) -> list[PreparedAnswer]:
    """An answer and those of its `then`: each for the same requests, and but for the last given once if it does not say."""
    fields = _known_keys(given, KEYS | {"when", "then"}, place)
    when = _read_when(fields.pop("when", {}), f"{place}.when")
    after = _list(fields.pop("then", []), f"{place}.then")
    answers = [_read_answer(fields, when, place)]
    answers += [_read_answer(each, when, f"{place}.then[{number}]") for number, each in enumerate(after)]
    for each in answers[:-1]:
        each.left = 1 if each.left is None else each.left
    return answers


def _read_answer(given: Any, when: When, place: str) -> PreparedAnswer:
    fields = _known_keys(given, KEYS, place)
    kinds = [key for key in ("fail", "garbage", "refuse") if key in fields]
    if len(kinds) > 1 or (kinds and {"say", "think", "call"} & set(fields)):
        raise ScriptRejected(f"{place}: fail, garbage and refuse stand alone")
    garbage = fields.get("garbage")
    finish = _choice(fields.get("finish", ""), FINISHES, f"{place}.finish")
    repeat = int(_number(fields.get("repeat", 1), REPEATED, f"{place}.repeat"))
    return PreparedAnswer(
        when=when,
        say=_pieces(fields.get("say", ""), f"{place}.say") * repeat,
        say_is_json=isinstance(fields.get("say"), dict),
        think=_pieces(fields.get("think", ""), f"{place}.think"),
        calls=tuple(_read_call(each, f"{place}.call") for each in _list(fields.get("call", []), f"{place}.call")),
        refuse=_text(fields.get("refuse", ""), f"{place}.refuse"),
        finish=finish,
        fail=_read_failure(fields["fail"], f"{place}.fail") if "fail" in fields else None,
        garbage=garbage if isinstance(garbage, bytes | None) else _text(garbage, f"{place}.garbage").encode(),
        first_after_s=_number(fields.get("first_after", 0), LONGEST_S, f"{place}.first_after"),
        pause_s=_number(fields.get("pause", 0), LONGEST_S, f"{place}.pause"),
        wait_for=_text(fields.get("wait_for", ""), f"{place}.wait_for"),
        stop_after=None if "stop_after" not in fields else int(_number(fields["stop_after"], 1e6, f"{place}.stop_after")),
        tokens=_read_tokens(fields.get("tokens", {}), f"{place}.tokens"),
        left=None if "times" not in fields else int(_number(fields["times"], 1e6, f"{place}.times")),
    )


def _read_when(given: Any, place: str) -> When:
    fields = _known_keys(given, MATCHED, place)
    texts = {key: _text(fields[key], f"{place}.{key}") for key in ("last", "said", "system", "model") if key in fields}
    tools = _list(fields.get("tools", []), f"{place}.tools")
    turn = None if "turn" not in fields else int(_number(fields["turn"], 1e6, f"{place}.turn"))
    pictures = None if "pictures" not in fields else int(_number(fields["pictures"], 1e6, f"{place}.pictures"))
    matches = _read_pattern(fields["matches"], f"{place}.matches") if "matches" in fields else None
    named = tuple(_text(tool, f"{place}.tools") for tool in tools)
    return When(**texts, tools=named, turn=turn, pictures=pictures, matches=matches)


def _read_pattern(given: Any, place: str) -> re.Pattern[str]:
    try:
        return re.compile(_text(given, place), re.DOTALL)
    except re.error as error:
        raise ScriptRejected(f"{place}: is no regular expression: {error}") from error


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
    """A text, or the JSON of an object, in pieces of PIECE characters; a list as it is. Bytes need not be UTF-8."""
    if isinstance(given, dict):
        return _cut(json.dumps(given, ensure_ascii=False, default=str))
    if isinstance(given, list):
        return tuple(_words(each, place) for each in given)
    return _cut(_words(given, place))


def _words(given: Any, place: str) -> str:
    return given.decode(errors="surrogateescape") if isinstance(given, bytes) else _text(given, place)


def _cut(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + PIECE] for at in range(0, len(text), PIECE))
