"""Plain text to a plan, without a language model (docs/plans.md, "Plain text"). Pure.

Clauses in order, each "*what* on *device*": what is a command in backquotes, or one of the device's recipes named by a word
of the clause, with its parameters as name=value. `if <condition>` behind the device makes the clause depend on the previous
clause's result; without it a clause waits for the previous one's success. What is not understood is refused, not left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agents.devices.profiles.recipes import read_recipe
from constellations import conditions
from constellations.errors import ConditionRejected, PlanRejected
from constellations.plan import documents, tasks
from constellations.plan.keys import calls
from constellations.plan.plain_text import clauses
from constellations.plan.plain_text.clauses import Clause, ClauseToken, Flaw
from constellations.plan.plan import MAX_PROBLEMS, Plan
from constellations.plan.values import SHOWN, Misfit, Row

MAX_CHARACTERS = 10_000
MAX_CLAUSES = 100
MAX_TASK_NAME = 60
"""Characters of a name that is made of a command."""
MAX_LISTED = 20
"""Names that a message lists."""

WORD = re.compile(r"[^\W\d_]+(?:['\u2019_/-][^\W\d_]+)*")
"""What may stand around a recipe's name without a meaning. A digit or a sign has one, so it is never passed over."""
QUALIFIERS = (
    "after", "before", "don't", "either", "else", "except", "instead", "neither", "never", "no", "nor", "not", "or",
    "otherwise", "skip", "unless", "until", "when", "while", "without",
)  # fmt: skip
"""Words that change what a clause says, in ways that only a language model would read."""
FILLERS = ("and", "only", "please", "using", "with")
"""Words that may stand behind the device."""
CONDITION_COLUMN = re.compile(r"column (\d+): ")
IN_BACKQUOTES = "quote what is meant as it stands, or have a shell run it: `sh -c '...'`"
"""What can be done in a request about a command of which a shell would understand more than words."""
HINT = "free text needs a language model, and none is configured for creation (docs/models.md)"


def parse_text(text: str, devices: Mapping[str, Any]) -> Plan:
    """The plan that the text says; `devices` are the recipes of each by its name, as the profiles have them.

    Tasks are task_001, task_002, ... Raises PlanRejected with every problem: {"line", "key": "clause 2", "column", "message"}.
    """
    text = text.replace("\r\n", "\n")
    refuse_unfit(text)
    found, flaws = clauses.split_clauses(text)
    if flaws:
        raise _refusal(text, [(sum(clause.at <= at for clause in found), at, message) for at, message in flaws])
    if not 1 <= len(found) <= MAX_CLAUSES:
        message = f"there are {len(found)} clauses; {MAX_CLAUSES} are allowed" if found else "the request is empty"
        raise _refusal(text, [(0, 0, message)])
    reader = _Reader(devices)
    wrong = [(number, *flaw) for number, clause in enumerate(found, 1) for flaw in sorted(reader.read(clause, number))]
    if wrong:
        raise _refusal(text, wrong)
    return reader.plan


def refuse_unfit(text: str) -> None:
    """Raise PlanRejected for a text that is no request, whoever reads it: too long, empty, with signs that are none."""
    if len(text) > MAX_CHARACTERS:
        raise _refusal(text, [(0, 0, f"the request has {len(text):,} characters; {MAX_CHARACTERS:,} are allowed")])
    if unfit := [(0, 0, message) for _, message in documents.value_flaws(text)]:
        raise _refusal(text, unfit)
    if not text.strip():
        raise _refusal(text, [(0, 0, "the request is empty")])


def _refusal(text: str, wrong: Iterable[tuple[int, int, str]]) -> PlanRejected:
    """From (number of the clause or 0, place in the text, message)."""
    problems = [
        {
            "line": text.count("\n", 0, at) + 1,
            "key": f"clause {number}" if number else "",
            "column": at - text.rfind("\n", 0, at),
            "message": message,
        }
        for number, at, message in islice(wrong, MAX_PROBLEMS)
    ]
    return PlanRejected(problems, "request")


@dataclass
class _Reader:
    """Reads clauses in order into `plan`, which is complete when no clause had a flaw."""

    devices: Mapping[str, Any]
    plan: Plan = field(default_factory=Plan)

    def read(self, clause: Clause, number: int) -> list[Flaw]:
        task_id = f"task_{number:03}"
        row, flaws = _task(clause, self.devices)
        flaws += _dependency_flaws(clause, number)
        if not flaws:
            task, _, findings = tasks.read_task({"task_id": task_id, **row})
            flaws += [(clause.at, message) for _, message in findings]
            self.plan.tasks.append(task)
        if not flaws and number > 1:
            written = {"from": f"task_{number - 1:03}", "to": task_id, "condition": clause.condition}
            dependency, findings = tasks.read_dependency(written)
            flaws += [(clause.condition_at, message) for _, message in findings]
            self.plan.dependencies.append(dependency)
        return flaws


# Where


def _task(clause: Clause, devices: Mapping[str, Any]) -> tuple[Row, list[Flaw]]:
    """A task in the words of a plan file: name, description, device, command."""
    places = _after_on(clause.tokens)
    if not places:
        message = f"it does not say where: write what on device; {_listed('devices', devices)}; {HINT}"
        if clause.condition is not None and not clause.tokens:
            message = "a condition stands behind the device: what on device if condition"
        return {}, [(clause.at, message)]
    named = clause.tokens[places[-1]]
    device = named.text if named.text in devices else named.bare
    if device not in devices:
        return {}, [(named.at, f"there is no device {device[:SHOWN]}; {_listed('devices', devices)}")]
    others = [clause.tokens[place] for place in places[:-1] if clause.tokens[place].bare in devices]
    if others:
        message = "names two devices, {} and {}: part what they do with a comma or `then`"
        return {}, [(token.at, message.format(token.bare, device)) for token in others]
    behind = clause.tokens[places[-1] + 1 :]
    strange = [token for token in behind if token.kind == "word" and token.bare and not token.says(*FILLERS)]
    # The first is enough: what follows it belongs to the same thought.
    allowed = "behind the device there are only parameters (name=value) and `if`"
    flaws = [(token.at, f"`{token.text[:SHOWN]}` is not understood: {allowed}; {HINT}") for token in strange[:1]]
    spoken = [token for token in clause.tokens[: places[-1]] if token.kind == "word"]
    name, argv, found = _what(clause, spoken, device, devices[device])
    description = " ".join(clause.text.split())
    return {"name": name, "description": description, "device": device, "command": argv}, flaws + found


def _after_on(tokens: list[ClauseToken]) -> list[int]:
    """Numbers of the words behind `on` and `on the`; the last of them names the device."""
    places = []
    for number, token in enumerate(tokens):
        place = number + 2 if len(tokens) > number + 2 and tokens[number + 1].says("the") else number + 1
        if token.says("on") and place < len(tokens) and tokens[place].kind == "word":
            places.append(place)
    return places


# What


def _what(clause: Clause, spoken: list[ClauseToken], device: str, profile: Any) -> tuple[str, list[str], list[Flaw]]:
    """(name, argument list, flaws) of what the clause wants done."""
    known = profile if isinstance(profile, Mapping) else {}
    named = _recipes_named(spoken, known)
    commands = clause.of_kind("command")
    flaws = list(_unread(spoken, named))
    if commands:
        name, argv, found = _command(commands, clause.of_kind("parameter"), named)
    elif len(named) == 1:
        name, argv, found = _recipe(named[0], known, clause, device)
    elif named:
        name, argv, found = "", [], [(clause.at, f"names {len(named)} recipes, {', '.join(named)}: one clause for each")]
    else:
        offered = _listed("recipes", known, f" of {device}")
        wanted = f"names no recipe; {offered}; a command stands in backquotes; {HINT}"
        name, argv, found = "", [], [(clause.at, wanted)]
        flaws = []  # what it says besides does not matter
    return name, argv, flaws + found


def _recipes_named(spoken: list[ClauseToken], known: Collection[str]) -> list[str]:
    """The recipes whose names are among the words, as written or else in other case, in order."""
    named: dict[str, None] = {}
    for token in filter(lambda token: token.bare, spoken):
        exact = [token.bare] if token.bare in known else [name for name in known if name.casefold() == token.bare.casefold()]
        named.update(dict.fromkeys(exact))
    return list(named)


def _unread(spoken: list[ClauseToken], named: list[str]) -> Iterator[Flaw]:
    """Words that are more than decoration: passing over them would do something else than was asked for."""
    names = {name.casefold() for name in named}
    for token in spoken:
        if token.bare.casefold() in names or not token.bare:
            continue
        if token.bare.casefold().replace("\u2019", "'") in QUALIFIERS:
            yield token.at, f"`{token.bare}` changes what is asked for and is not understood; {HINT}"
        elif not WORD.fullmatch(token.bare):
            yield token.at, f"`{token.text[:SHOWN]}` is not understood; parameters are written name=value, without spaces"


def _command(commands: list[ClauseToken], given: list[ClauseToken], named: list[str]) -> tuple[str, list[str], list[Flaw]]:
    flaws = [(token.at, "a second command in backquotes: one clause for each") for token in commands[1:]]
    flaws += [(token.at, f"a command in backquotes takes no parameters: {token.name[:SHOWN]}") for token in given]
    if named:
        flaws.append((commands[0].at, f"names the recipe {named[0]} beside a command in backquotes: one clause for each"))
    try:
        argv = calls.read_argv(commands[0].text, IN_BACKQUOTES)
    except Misfit as misfit:
        return "", [], [*flaws, (commands[0].at, f"the command {misfit}")]
    name = " ".join(commands[0].text.split())
    return name if len(name) <= MAX_TASK_NAME else f"{name[: MAX_TASK_NAME - 3]}...", argv, flaws


def _recipe(name: str, known: Mapping[str, Any], clause: Clause, device: str) -> tuple[str, list[str], list[Flaw]]:
    recipe = read_recipe(name, known[name])
    if recipe is None:
        return "", [], [(clause.at, f"the recipe {name[:SHOWN]} of {device} is broken: its profile must be corrected")]
    given: dict[str, str] = {}
    flaws: list[Flaw] = []
    for token in clause.of_kind("parameter"):
        if token.name not in recipe.parameters:
            takes = _listed("parameters", recipe.parameters, f" of {name}")
            flaws.append((token.at, f"{name} has no parameter {token.name[:SHOWN]}; {takes}"))
        elif token.name in given:
            flaws.append((token.at, f"{token.name} is given twice"))
        else:
            given[token.name] = token.text
            if problem := recipe.parameters[token.name].problem(token.text):
                flaws.append((token.at, f"{token.name} {problem}"))
    missing = recipe.missing(given)
    if missing:
        flaws.append((clause.at, f"{name} needs {' and '.join(f'{each}=...' for each in missing)}: {recipe.usage()}"))
    return name, [] if flaws else recipe.argv(given), flaws


# If


def _dependency_flaws(clause: Clause, number: int) -> Iterator[Flaw]:
    """What is wrong with its condition; a condition's own columns become the text's."""
    if clause.condition is None:
        return
    if number == 1:
        yield clause.condition_at, "the first clause follows nothing, so it has no condition"
    try:
        conditions.check_condition(clause.condition)
        unknown = conditions.tasks_read_by(clause.condition) - {f"task_{before:03}" for before in range(1, number)}
    except ConditionRejected as error:
        column = CONDITION_COLUMN.match(str(error))
        if column is None or "\n" in clause.condition:
            yield clause.condition_at, str(error)
        else:
            yield clause.condition_at + int(column[1]) - 1, str(error)[column.end() :]
    else:
        for task_id in sorted(unknown):
            yield clause.condition_at, f"the condition reads the result of {task_id[:SHOWN]}, and no clause before is that task"


def _listed(what: str, names: Iterable[Any], owner: str = "") -> str:
    names = sorted(map(str, names))
    if not names:
        return f"there are no {what}{owner}"
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{what}{owner}: {', '.join(names[:MAX_LISTED])}{more}"
