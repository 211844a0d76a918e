"""What comes between: looks, words, other work, control events, faults of the infrastructure. None of it ends a loop."""

from __future__ import annotations

from tests.agents.progress.generated.session import Session


def add_nudge(session: Session) -> None:
    session.control("nudge")


def add_word(session: Session) -> None:
    session.say(
        session.pick("Let me see what {} says.", "{} looks odd to me.", "Perhaps it is about {}.").format(session.name())
    )


def add_compaction(session: Session) -> None:
    session.control("compaction")


def look_around(session: Session) -> None:
    roll = session.random.random()
    if roll < 0.35:
        session.read(session.pick(*session.root))
    elif roll < 0.6:
        session.read(session.path())
    elif roll < 0.8:
        session.shell(session.pick("ls", "ls -la src", "ls tests"), session.texts.listing(session.root))
    else:
        session.shell(session.pick("pwd", "git branch --show-current", "git log --oneline -3"), "as ever")


def do_other_work(session: Session) -> None:
    roll = session.random.random()
    if roll < 0.4:
        name = session.name()
        session.search(name, [f"{session.path()}:{session.number(1, 300)}: {name}"])
    elif roll < 0.7:
        session.shell(f"wc -l {session.path()}", str(session.number(20, 900)))
    elif roll < 0.85:
        session.shell(f"echo '{session.name()}' >> NOTES.md", "")
    else:
        session.call("mcp__tracker__add_comment", session.name(), "added")


def meet_a_fault(session: Session) -> None:
    fault = session.pick("503 Service Unavailable", "429 Too Many Requests", "connection reset by peer")
    session.fault("mcp__search__lookup", session.name(), fault)


NOISE = {
    "any": (look_around, look_around, look_around, do_other_work, add_word, add_word, add_nudge, add_compaction, meet_a_fault),
    "words": (add_word, add_word, add_nudge),
    "nudges": (add_nudge,),
}
"""What may come between the rounds of a loop, by what the loop allows; what stands twice comes twice as often."""


def add_noise(session: Session, kind: str) -> None:
    """One thing of the kind; nothing for `none`."""
    if kind in NOISE:
        session.pick(*NOISE[kind])(session)
