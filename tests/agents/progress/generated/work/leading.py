"""Leading: a plan whose steps get done, helpers with work of their own, long work of all kinds."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session
from tests.agents.progress.generated.work import changing, checking, reading

WORK = Variants()


@WORK.of("plan_progress")
def tick_off_the_plan(session: Session) -> Acts:
    steps = [f"{session.name()} in {session.path()}" for _ in session.times(5, 9)]
    for done in range(len(steps) + 1):
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(steps)
        session.plan(list(zip(steps, states, strict=False)))
        if done < len(steps):
            session.edit(session.path())
        yield


@WORK.of("plan_progress")
def let_the_plan_grow(session: Session) -> Acts:
    """Steps get done and others are found on the way."""
    steps = [(step, "pending") for step in session.names(2, 3)]
    for done in range(session.number(5, 8)):
        steps = [(step, "completed" if place <= done else state) for place, (step, state) in enumerate(steps)]
        steps += [(session.name(), "pending")]
        session.plan(steps)
        session.edit(session.path())
        if session.chance(0.5):
            session.test()
        yield


@WORK.of("delegation")
def send_helpers_to_different_work(session: Session) -> Acts:
    for _ in session.times(4, 9):
        part, path = session.name(), session.path()
        session.delegate(f"Please review {path} for {part} and report", f"{path}: {session.name()} should be {session.name()}")
        if session.chance(0.3):
            session.read(path)
        yield


@WORK.of("delegation")
def have_everything_reviewed(session: Session) -> Acts:
    """Each helper has another part of the work, and none of them finds anything."""
    for path in session.paths(5, 9):
        session.delegate(f"Check {path} for secrets", "No findings.")
        yield


@WORK.of("long_work")
def work_long(session: Session) -> Acts:
    """One piece of work after another, in any order."""
    for _ in session.times(6, 10):
        yield from session.pick(*reading.WORK, *changing.WORK, *checking.WORK).act(session)
