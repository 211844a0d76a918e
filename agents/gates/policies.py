"""What a call may do, by the rules of the installation and of its task. Pure: values in, values out.

Judged is what would happen: an `Act` says what a call is about once paths are resolved and shells are read, and what of it
cannot be known. Patterns over commands are a seat belt, and confinement is the wall (docs/plans.md, "Policies").
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from agents.decisions import DECISIONS
from agents.devices.command_lines import run_by_a_shell
from agents.devices.workspace.paths import PathResolver, ResolvedPath, unresolved_path
from agents.patterns import fits_beginning, is_found, may_fit
from agents.progress.digests import canonical_json
from agents.tools.catalogue import PATHS
from agents.tools.shell_reading import SeenCommand, commands_seen_in

SEARCHED = 2_000_000
"""Characters of everything a call is about; a longer one is denied where a pattern would have to be searched in it."""
WORDS_RESOLVED = 100
"""Words of a call that are looked at as paths."""

FileDigest = Callable[[str], str]
"""What identifies the content of a file of the workspace now; empty where a word names none."""


@dataclass(frozen=True)
class Rule:
    """One rule. `tool`, `device` and `label` are patterns as in file names, `label` of one of the labels that a device's owner
    gave it (`*`: of a device without any, too); `pattern` is a regular expression, empty for any target.
    """

    tool: str = "*"
    pattern: str = ""
    device: str = "*"
    decision: str = "allow"
    critical: bool = False
    note: str = ""
    label: str = "*"


@dataclass(frozen=True)
class Judgement:
    """What the rules say of one call. `critical` counts with `ask`; `note` says why."""

    decision: str = "allow"
    critical: bool = False
    note: str = ""


class Site(NamedTuple):
    """Where a call is made, as rules see it. `is_here`: in a workspace of this host, whose paths can be looked at.
    `is_confined`: whose commands are behind walls, too (agents.tools.confining).
    """

    name: str
    labels: tuple[str, ...] = ()
    is_here: bool = False
    is_confined: bool = False

    @classmethod
    def of(cls, device: Mapping[str, Any]) -> Site:
        return cls(device["name"], tuple(device["labels"]))


class Act:
    """A call, and what it is about; found out when a rule asks for it. `resolve` tells where a path leads.

    With `digest_of` the files that the words of a command name are part of what is decided about.
    """

    def __init__(
        self, tool: str, arguments: Mapping[str, Any], resolve: PathResolver = unresolved_path, writes: str = "",
        digest_of: FileDigest | None = None,
    ):  # fmt: skip
        self.tool, self.arguments, self.writes = tool, arguments, writes
        self._resolve, self._digest_of = resolve, digest_of

    @cached_property
    def target(self) -> str:
        return target_of(self.tool, self.arguments)

    @cached_property
    def argv(self) -> list[str] | None:
        """The words of a command; None for any other call."""
        return _argv(self.tool, self.arguments)

    @cached_property
    def places(self) -> list[ResolvedPath]:
        """Where the paths lead that the call names as such."""
        named = [self.arguments.get(key) for key in PATHS.get(self.tool, ())]
        return [self._resolve(path) for path in (*named, self.writes) if isinstance(path, str) and path]

    @property
    def place(self) -> str | None:
        """Where the first path leads that the call names as such; None where it names none."""
        return self.places[0].path if self.places and self.tool in PATHS else None

    @cached_property
    def action(self) -> dict[str, Any]:
        """What people are shown and decide about. `leads_to` is there where the path leads elsewhere than it reads, `files`
        where the words of a model's command name files: {name: what identifies its content}.
        """
        action: dict[str, Any] = {"tool": self.tool, "arguments": self.arguments}
        path = self.arguments.get(PATHS[self.tool][0]) if self.place is not None else None
        if path is not None and unresolved_path(path).path != self.place:
            action["leads_to"] = self.place
        if files := self._files:
            action["files"] = files
        return action

    @property
    def _files(self) -> dict[str, str]:
        """The files that the words of the command and of what it runs name, as they are now."""
        if self._digest_of is None or self.argv is None:
            return {}
        words = dict.fromkeys(word for command in commands_seen_in(self.argv) for word in command.words)
        names = dict.fromkeys(name for word in list(words)[:WORDS_RESOLVED] for name in (word, word.partition("=")[2]) if name)
        return {name: digest for name in names if (digest := self._digest_of(name))}

    @property
    def any_case(self) -> bool:
        return any(place.any_case for place in self.places)

    @cached_property
    def seen(self) -> list[SeenCommand]:
        """Everything that the call is about, as far as it can be known."""
        found = [SeenCommand(self.target)]
        found += [SeenCommand(place.path, 0, place.doubt) for place in self.places]
        if self.argv is not None:
            commands = commands_seen_in(self.argv)
            return [*found, *commands, *self._follow_words(commands)]
        if self.tool not in PATHS:
            for text in _texts(self.arguments):
                found += [SeenCommand(text), SeenCommand(self._resolve(text).path)] if "/" in text else [SeenCommand(text)]
        return found

    def _follow_words(self, commands: Sequence[SeenCommand]) -> Iterator[SeenCommand]:
        """The commands with the paths that their words lead to, where these are others, or may be."""
        left = WORDS_RESOLVED
        for command in commands:
            words = command.words[: max(left, 0)]
            left -= len(words)
            places = [self.follow(word) for word in words]
            paths = [place.path for place in places]
            # The text is certain up to the first word in doubt.
            doubtful = next((number for number, place in enumerate(places) if place.doubt), None)
            if doubtful is not None or paths != list(words):
                text = shlex.join([*paths, *command.words[len(places) :]])
                yield (
                    SeenCommand(text)
                    if doubtful is None
                    else SeenCommand(text, len(shlex.join(paths[:doubtful])), places[doubtful].doubt)
                )

    def follow(self, word: str) -> ResolvedPath:
        """Where a word leads, or what stands in it behind the name of an option: `--file=x`, `if=x`."""
        name, sign, value = word.partition("=")
        if not sign:
            return ResolvedPath(word) if word.startswith("-") else self._resolve(word, True)
        place = self._resolve(value, True) if value else ResolvedPath(value)
        return place._replace(path=f"{name}={place.path}")

    @cached_property
    def length(self) -> int:
        return sum(len(seen.text) for seen in self.seen)


def _argv(tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    argv = arguments.get("argv")
    if tool == "command" and isinstance(argv, list | tuple) and all(isinstance(word, str) for word in argv):
        return list(argv)
    return None


def _texts(value: Any) -> Iterator[str]:
    """All texts of a JSON value, keys left out."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            todo.extend(one.values())
        elif isinstance(one, list | tuple):
            todo.extend(one)


def judge_act(rules: Sequence[Rule], own: Sequence[Rule], act: Act, site: Site) -> Judgement:
    """The stricter of what the installation's `rules` and the task's `own` say: a plan can only tighten.

    Of each the first that fits counts; where none fits, the call is allowed. A rule that asks or denies, and of which nobody
    can say whether it fits, makes the call one that is asked about. Patterns are checked when they are written.
    """
    return max((_judge_by(rules, act, site), _judge_by(own, act, site)), key=_strictness)


def _strictness(judgement: Judgement) -> tuple[int, bool]:
    return DECISIONS.index(judgement.decision), judgement.critical


def _judge_by(rules: Sequence[Rule], act: Act, site: Site) -> Judgement:
    """What the first rule that fits says, and what those before it leave open."""
    found = [Judgement()]
    for rule in rules:
        if not concerns_call(rule, act.tool, site):
            continue
        if rule.pattern and act.length > SEARCHED:
            return Judgement("deny", note=f"it has {act.length:,} characters; {SEARCHED:,} can be judged")
        if fits_act(rule, act):
            found.append(Judgement(rule.decision, rule.critical, rule.note))
            break
        if rule.decision != "allow" and (doubt := _find_doubt(rule, act)):
            found.append(Judgement("ask", rule.critical and rule.decision == "ask", f"a policy may apply: {doubt}"))
    return max(found, key=_strictness)


def concerns_call(rule: Rule, tool: str, site: Site) -> bool:
    """Whether `rule` is about calls of this tool on this device."""
    if not (fnmatchcase(tool, rule.tool) and fnmatchcase(site.name, rule.device)):
        return False
    return rule.label == "*" or any(fnmatchcase(label, rule.label) for label in site.labels)


def fits_act(rule: Rule, act: Act) -> bool:
    """Whether `rule`, which concerns this call, is about what it does.

    What a shell runs may do more than what a pattern knows of it. So a rule that allows has to fit from the shell's name on
    (`^sh -c`), for files where the path leads, and for any other tool each text that it is given. One that asks or denies is
    about the call where it fits anything that the call is about.
    """
    if not rule.pattern:
        return True
    if rule.decision != "allow":
        return any(is_found(rule.pattern, seen.text, act.any_case) for seen in act.seen)
    if act.tool in PATHS:
        return all(not place.doubt and is_found(rule.pattern, place.path) for place in act.places)
    argv = _argv(act.tool, act.arguments)
    if argv is None:
        return all(is_found(rule.pattern, text) for text in list(_texts(act.arguments)) or [act.target])
    return (is_found if run_by_a_shell(argv) is None else fits_beginning)(rule.pattern, act.target)


def _find_doubt(rule: Rule, act: Act) -> str:
    """Why nobody can say that `rule` does not fit; empty where it does not."""
    return next((seen.why for seen in act.seen if seen.why and may_fit(rule.pattern, seen.text[: seen.sure])), "")


def target_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call is about, as text: a command's words quoted as for a shell, else the path, else all its arguments."""
    argv = _argv(tool, arguments)
    if argv is not None:
        return shlex.join(argv)
    path = arguments.get("path")
    return path if isinstance(path, str) else canonical_json(arguments)


def action_digest(action: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal digits, of exactly what is to be done: equal for equal actions in any order of their keys."""
    return hashlib.sha256(canonical_json(action).encode("utf-8", "surrogatepass")).hexdigest()
