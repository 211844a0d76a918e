"""Whole runs: work, then a loop or none, with noise between; and what a trace keeps of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from random import Random

from agents.progress.shapes import shape_of
from tests.agents.progress.generated.kinds import Variant
from tests.agents.progress.generated.loops import LOOPS
from tests.agents.progress.generated.noise import add_noise
from tests.agents.progress.generated.session import STYLES, Action, Session
from tests.agents.progress.generated.work import WORK

RECOVERED = "recovered"
"""The kind of honest run that was stuck and is so no more: only its end counts."""
INTERLEAVED = 0.12
"""Share of stuck runs in which a second loop runs between the rounds of the first."""
GOES_ON = 0.15
"""Share of stuck runs that find their way out and go on working."""
MORE_ROUNDS = 8
"""Rounds, at most, that a loop goes on after it is clear; a weak model's run ends sooner."""
ENDS_WITH_WORK = 15
"""Actions of work, at least, after which a loop is left behind."""
ERROR_LIMIT = 110
"""Characters of an error's line that a trace without shapes keeps."""
HASH_LENGTH = 12
"""Characters of a digest, as in the shared traces."""
LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")


def generate_runs(
    seed: int, each: int, *, shapes: bool, loops: Sequence[Variant] = LOOPS, work: Sequence[Variant] = WORK
) -> list[dict]:
    """`each` traces of every kind, stuck and not, as a list in the format of `manage.py stuck_eval`. Variants take turns.

    The same arguments give the same traces, and `shapes` only adds to them what Orrery records where it knew the texts.
    A trace also has `stuck_from`: the place of its loop's first action, from 1; an alarm before it was false.
    """
    runs = []
    for make_run, known in ((stuck_run, loops), (honest_run, work)):
        for kind in sorted({one.kind for one in known}):
            variants = [one for one in known if one.kind == kind]
            runs += [make_run(f"{seed}/{kind}/{n}", variants[n % len(variants)], shapes) for n in range(each)]
    left_behind = [loops[7 * n % len(loops)] for n in range(each)]  # seven on is another kind
    return runs + [recovered_run(f"{seed}/{RECOVERED}/{n}", one, shapes) for n, one in enumerate(left_behind)]


def stuck_run(name: str, variant: Variant, shapes: bool) -> dict:
    """Work for a while, none to very long, then the loop: to the end in most runs."""
    session = begin_session(name)
    warm_up(session)
    begins, detect_by = run_loop(session, variant, allow_second=True)
    if not session.style.short and session.chance(GOES_ON):
        work_on(session, ENDS_WITH_WORK)
    return trace_of(session, name, variant.kind, shapes, stuck_from=begins, detect_by=detect_by)


def honest_run(name: str, variant: Variant, shapes: bool) -> dict:
    """The work with noise between, often after other work and before it."""
    session = begin_session(name)
    if session.chance(0.5):
        warm_up(session)
    noise = session.pick(0, 0.1, 0.25)
    for _ in variant.act(session):
        if session.chance(noise):
            add_noise(session, "any")
    if session.chance(0.3):
        work_on(session, ENDS_WITH_WORK)
    return trace_of(session, name, variant.kind, shapes)


def recovered_run(name: str, variant: Variant, shapes: bool) -> dict:
    session = begin_session(name)
    warm_up(session)
    run_loop(session, variant, allow_second=False)
    session.control("user") if session.chance(0.3) else None
    work_on(session, ENDS_WITH_WORK)
    return trace_of(session, name, RECOVERED, shapes) | {"eval": "final"}


def begin_session(name: str) -> Session:
    random = Random(name)
    session = Session(random, random.choice(STYLES))
    session.control("user")
    return session


def warm_up(session: Session) -> None:
    """Honest work before anything else: none or little for a weak model, sometimes 150 actions."""
    if session.style.short:
        for _ in session.times(0, 2):
            add_noise(session, "any")
    elif session.chance(0.8):
        work_on(session, session.pick(5, 10, 20, 40) if session.chance(0.9) else 150)
        if session.chance(0.1):
            session.control("phase")


def work_on(session: Session, actions: int) -> None:
    """Honest work of any kind until this many actions more are done, and the piece then at hand is finished."""
    until, pieces = len(session.actions) + actions, [one for one in WORK if one.kind != "long_work"]
    while len(session.actions) < until:
        for _ in session.random.choice(pieces).act(session):
            if session.chance(0.1):
                add_noise(session, "any")


def run_loop(session: Session, variant: Variant, allow_second: bool) -> tuple[int, int]:
    """Rounds until the loop is clear, and some more. Returns where it begins and where it is clear, as places of actions."""
    begins = len(session.actions) + 1
    noise = 0.0 if session.style.short else session.pick(0, 0.15, 0.3, 0.45)
    second = None
    if allow_second and variant.noise == "any" and session.chance(INTERLEAVED):
        second = session.random.choice([one for one in LOOPS if one.noise == "any"]).act(session)
    detect_by, rounds = begins, variant.clear_after + session.number(0, 2 if session.style.short else MORE_ROUNDS)
    for number, _ in zip(range(1, rounds + 1), variant.act(session), strict=False):
        if number == variant.clear_after:
            detect_by = len(session.actions)
        if second and session.chance(0.5):
            next(second)
        if session.chance(noise):
            add_noise(session, variant.noise)
    return begins, detect_by


def trace_of(
    session: Session, name: str, kind: str, shapes: bool, *, stuck_from: int | None = None, detect_by: int | None = None
) -> dict:
    """The run as a trace. Its reason is its kind."""
    trace = {
        "name": name, "source": f"generated, in the style of {session.style.name}", "tier": "C", "eval": "any",
        "expected_stuck": stuck_from is not None, "detect_by": detect_by, "stuck_from": stuck_from, "reason": kind,
        "actions": [recorded_action(action, shapes) for action in session.actions],
    }  # fmt: skip
    return trace | ({"poll_tools": sorted(set(session.poll_tools))} if session.poll_tools else {})


def recorded_action(action: Action, shapes: bool) -> dict:
    """What is kept of an action: digests of the raw texts and a line of the error; with `shapes` also what Orrery knows."""
    text, arguments, error = action["text"], action["args_text"], action["error"]
    kept = {name: action[name] for name in ("kind", "tool", "target", "success")}
    kept |= {"args_digest": digest(arguments), "content_hash": digest(action.get("after", text)), "error": None}
    if "before" in action:
        kept["pre_hash"] = digest(action["before"])
    if action["kind"] in ("user", "nudge", "phase", "compaction"):
        return kept | {"args_digest": "", "content_hash": None}
    if error:
        kept["error"] = error if shapes else f"{error[:ERROR_LIMIT]} ~{letters_of(f'{error} {text}')}"
    if shapes:
        known = {"args_shape": shape_of(arguments), "error_shape": shape_of(error), "error_kind": action.get("error_kind", "")}
        kept |= {"shape": shape_of(text)} | {name: value for name, value in known.items() if value or name == "error_kind"}
        kept["content_hash"] = kept["content_hash"] if text else None  # an empty answer says nothing
    return kept


def digest(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()[:HASH_LENGTH]


def letters_of(text: str) -> str:
    """A digest of a text whose numbers do not count, in letters, as behind the errors of the shared traces."""
    return digest(re.sub(r"\d+", "#", text)).translate(LETTERS)
