"""Words without work: announcements, plans, orders to helpers, and what compactions leave behind."""

from __future__ import annotations

from itertools import count

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

LOOPS = Variants()


OPENINGS = ("I will now", "Next I am going to", "Let me", "The next step is to", "I should", "To proceed I need to")
ENDS = ("", " and report back", ", then run the tests", " carefully", " before anything else", " as planned")
ORDERS = (
    "Please unpack {} and list what is in it", "Unpack the archive {}, then tell me its contents", "Try once more to unpack {}",
    "Extract all files of {} and give their names", "I need the contents of {}: unpack it again, please",
    "Use another way to extract {} and list the result", "Open {} and name every file in it", "Take {} apart, report the files",
)  # fmt: skip


def paraphrase_intent(session: Session, goal: str, number: int) -> str:
    """The same announcement in other words."""
    verb = session.pick("look into", "fix", "work on", "take care of", "start with", "turn to", "address")
    return f"{session.pick(*OPENINGS)} {verb} the {goal}{ENDS[number % len(ENDS)]}."


@LOOPS.of("talk", 6, "none")
def announce_without_acting(session: Session) -> Acts:
    goal = session.name()
    for number in count():
        session.say(paraphrase_intent(session, goal, number))
        yield


@LOOPS.of("talk", 6, "none")
def apologise_without_acting(session: Session) -> Acts:
    goal = session.name()
    for number in count():
        regret = session.pick("Sorry", "I apologise", "You are right", "My mistake")
        session.say(f"{regret}, {goal} is not done yet. {paraphrase_intent(session, goal, number)}")
        yield


@LOOPS.of("unanswered_nudges", 4, "none")
def answer_nudges_with_words(session: Session) -> Acts:
    goal = session.name()
    for number in count():
        session.control("nudge")
        session.say(paraphrase_intent(session, goal, number))
        yield


@LOOPS.of("unanswered_nudges", 4, "none")
def go_on_failing_after_nudges(session: Session) -> Acts:
    part = session.name()
    while True:
        session.control("nudge")
        session.shell(f"make {part}", session.texts.build_log([part], f"no rule to make target {part}"), code=2)
        yield


@LOOPS.of("plan_rewritten", 5, "words")
def rewrite_the_plan(session: Session) -> Acts:
    goals = session.names(3, 5)
    for number in count():
        session.plan([(paraphrase_intent(session, goal, number), "pending") for goal in session.shuffled(goals)])
        yield


@LOOPS.of("plan_rewritten", 5, "words")
def rewrite_the_plan_after_a_look(session: Session) -> Acts:
    goals, path = session.names(3), session.path()
    for number in count():
        session.read(path)
        states = ["in_progress", "pending", "pending"]
        session.plan([(paraphrase_intent(session, goal, number), state) for goal, state in zip(goals, states, strict=True)])
        yield


@LOOPS.of("helper_again", 5)
def send_the_helper_out_again(session: Session) -> Acts:
    archive = f"/data/{session.name()}.zip"
    for number in count():
        answer = session.pick("I could not open {}", "{} could not be read", "The file {} cannot be shown here")
        session.delegate(ORDERS[number % len(ORDERS)].format(archive), f"{answer.format(archive)} ({session.texts.clock()})")
        yield


@LOOPS.of("helper_again", 5)
def send_the_helper_into_the_same_failure(session: Session) -> Acts:
    archive = f"/data/{session.name()}.tar"
    for number in count():
        error = f"the helper stopped after {session.texts.duration()}: {archive}: not in gzip format"
        session.delegate(ORDERS[number % len(ORDERS)].format(archive), "", error=error)
        yield


@LOOPS.of("compactions", 4, "nudges")
def forget_and_begin_again(session: Session) -> Acts:
    paths = session.paths(1, 3)
    while True:
        session.control("compaction")
        for path in paths:
            session.read(path)
        yield


@LOOPS.of("compactions", 4, "nudges")
def compact_and_only_speak(session: Session) -> Acts:
    goal = session.name()
    for number in count():
        session.control("compaction")
        if session.chance(0.6):
            session.say(paraphrase_intent(session, goal, number))
        yield
