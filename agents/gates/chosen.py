"""What policies leave open of a call that a model chose: the default is to ask. Pure.

Only what is written in `unasked` runs without a person: argument lists, and tools. A wildcard stands for plain words that lead
nowhere but into the workspace; options, assignments, code and whatever runs other programs have to be written out (see "Calls
that a model chose" in docs/security.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.gates.policies import Act, Judgement, Site
from agents.gates.unasked import COMMAND, Unasked, Words, fits_name, fits_words, hands_on
from agents.tools.catalogue import PATHS

PLAIN = re.compile(r"[\w./][\w./:,@%+\[\]-]*")
"""A word that a wildcard may stand for: no option, no assignment, no pattern, no code."""
LOOKS = frozenset(["observe", "read_file"])
"""Tools that show a workspace and change nothing in it."""
WATCHED = ".git"
"""A folder whose files say what programs run: to change them is always asked about."""


def judge_chosen(act: Act, site: Site, judgement: Judgement, unasked: Unasked) -> Judgement:
    """What is to be done about a call that a model chose. `judgement` is what the policies say; it only gets stricter."""
    if judgement.decision != "allow":
        return judgement
    why = why_asked(act, site, unasked)
    return Judgement("ask", note=why) if why else judgement


def why_asked(act: Act, site: Site, unasked: Unasked) -> str:
    """Why a person is asked about a model's call; empty where it may be made unasked."""
    if _is_asked_about(act, unasked):
        return f"a model chose it, and {act.tool} is to be asked about"
    if act.tool == COMMAND:
        argv = act.argv
        let = argv and any(_covers(pattern, argv, act) for pattern in unasked.commands)
        return "" if let else "a model chose this command"
    if act.tool not in unasked.tools:
        return f"a model chose to call {act.tool}"
    return _why_not_here(act, site) if act.tool in PATHS or act.tool in LOOKS else ""


def _is_asked_about(act: Act, unasked: Unasked) -> bool:
    """Whether some level asks: by the name of the tool, or by the words of any command that the call would run."""
    if any(isinstance(each, str) and fits_name(each, act.tool) for each in unasked.ask):
        return True
    patterns = [each for each in unasked.ask if not isinstance(each, str)]
    if not patterns or act.argv is None:
        return False
    commands: list[Sequence[str]] = [act.argv, *(seen.words for seen in act.seen if seen.words)]
    return any(fits_words(pattern, words) is not None for pattern in patterns for words in commands)


def _covers(pattern: Words, argv: Sequence[str], act: Act) -> bool:
    free = fits_words(pattern, argv)
    if not free:
        return free is not None
    if hands_on(argv) or any(seen.why for seen in act.seen):
        return False
    return all(_is_plain(word, act) for word in free)


def _is_plain(word: str, act: Act) -> bool:
    """Whether a word is nothing but a name, and no path that leads out of the workspace."""
    if not PLAIN.fullmatch(word) or "://" in word:
        return False
    place = act.follow(word)
    return not (place.doubt or _leads_out(place.path))


def _why_not_here(act: Act, site: Site) -> str:
    """Why a file tool has to ask where it would work."""
    looks = act.tool in LOOKS
    if not (site.is_here if looks else site.is_confined):
        return f"a model chose it, and nothing confines what is done on {site.name}"
    for place in act.places:
        if place.doubt or _leads_out(place.path):
            return f"a model chose it, and its path leads to {place.path}" + (f": {place.doubt}" if place.doubt else "")
        if not looks and WATCHED in place.path.casefold().split("/"):
            return f"a model chose to change {place.path}, which may run programs"
    return ""


def _leads_out(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


def why_different(approved: Mapping[str, Any], act: Act, *, is_edited: bool) -> str:
    """Why a call is not the one that was approved; empty where it is. `is_edited`: with other arguments than were asked for,
    whose paths nobody had looked up; the files that both name are held to all the same.
    """
    now, files = act.action, approved.get("files", {})
    found = now.get("files", {})
    names = [name for name in files if name in found] if is_edited else {**files, **found}
    if changed := next((name for name in names if files.get(name) != found.get(name)), ""):
        return f"{changed} has been changed since"
    if not is_edited and now != approved:
        return f"the path leads to {act.place} now"
    return ""
