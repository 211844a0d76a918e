"""Going round: in order, in no order, over known things, and at a job that hangs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

LOOPS = Variants()


def known_calls(session: Session, number: int) -> list[Callable[[], None]]:
    """Calls whose answers, or errors, stay as they were."""
    calls: list[Callable[[], None]] = []
    for _ in range(number):
        name, path = session.name(), session.path()
        calls.append(session.pick(
            lambda path=path: session.read(path),
            lambda name=name: session.shell(f"./scripts/{name}.sh", f"{name}: as before"),
            lambda name=name: session.shell(f"make {name}", f"make: no rule for {name}", code=2),
            lambda name=name: session.search(name, [f"src/{name}.py:4: {name}"]),
        ))  # fmt: skip
    return calls


@LOOPS.of("cycle", 4)
def go_round_in_order(session: Session) -> Acts:
    calls = known_calls(session, session.number(2, 5))
    while True:
        for act in calls:
            act()
        yield


@LOOPS.of("cycle", 4)
def build_and_install_in_turn(session: Session) -> Acts:
    name = session.name()
    while True:
        session.shell("npm run build", session.texts.build_log([name], f"cannot find module {name}"), code=1)
        session.shell("npm install", f"npm error missing peer {name}\nlog {session.texts.temporary()}", code=1)
        yield


@LOOPS.of("irregular_alternation", 14)
def alternate_in_no_order(session: Session) -> Acts:
    calls = known_calls(session, session.number(3, 4))
    while True:
        session.pick(*calls)()
        yield


@LOOPS.of("irregular_alternation", 14)
def alternate_between_failures(session: Session) -> Acts:
    names, failing = session.names(2), session.tests(1)
    while True:
        if session.chance(0.34):
            session.test(failing)
        else:
            name = session.pick(*names)
            session.shell(f"python -m {name}", f"{session.texts.clock()} {name}: address already in use", code=98)
        yield


@LOOPS.of("standstill", 16)
def look_at_known_things(session: Session) -> Acts:
    paths = session.paths(4, 7)
    while True:
        session.read(session.pick(*paths))
        if session.chance(0.2):
            session.shell("git status --short", "")
        yield


@LOOPS.of("standstill", 6)
def test_and_look_without_a_change(session: Session) -> Acts:
    failing, paths = session.tests(2), session.paths(3)
    while True:
        session.test(failing)
        session.read(session.pick(*paths))
        yield


@LOOPS.of("dead_poll", 12, "words")
def poll_a_job_that_hangs(session: Session) -> Acts:
    """The job used to move at every second or third look; then it stays where it is."""
    tool, job = session.start_job()
    for step in range(4):
        for _ in session.times(1, 3):
            session.call(tool, job, f"{job}: step {step} of 9 is running")
    while True:
        session.call(tool, job, f"{job}: step 4 of 9 is running")
        yield


@LOOPS.of("dead_poll", 12, "words")
def sleep_and_look_at_a_run_that_hangs(session: Session) -> Acts:
    """Pauses of the same length; the run moved at first, and has not since."""
    run, pause = session.random.randrange(10**6, 10**7), session.pick(30, 60, 120)
    together = session.chance(0.5)
    steps = session.names(5)
    for finished in count():
        look, answer = f"gh run view {run}", f"run {run} in progress: {' '.join(f'{step} ok' for step in steps[:finished])}"
        if together:
            session.shell(f"sleep {pause} && {look}", answer)
        else:
            session.shell(f"sleep {pause}", "")
            session.shell(look, answer)
        if finished >= len(steps):
            yield
