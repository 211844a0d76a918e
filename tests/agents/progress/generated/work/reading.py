"""Reading: page after page, a large file in parts, many things at once."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

WORK = Variants()


@WORK.of("paging")
def page_by_cursor(session: Session) -> Acts:
    """The same call each time; where it stands is the server's business."""
    tool, arguments = session.pick("mcp__terminal__read_output", "next_page", "mcp__mail__fetch_next"), {"size": 4}
    for _ in session.times(6, 20):
        items = session.names(4)
        session.call(tool, "", session.texts.json_page(items, session.texts.identifier(6)), arguments=arguments)
        yield


@WORK.of("paging")
def page_by_number(session: Session) -> Acts:
    resource = session.name()
    for number in range(1, session.number(6, 18)):
        page = session.texts.json_page(session.names(4), str(number + 1))
        session.shell(f"curl -s 'https://api.example.org/{resource}?page={number}'", page)
        yield


@WORK.of("reading_parts")
def read_one_large_file(session: Session) -> Acts:
    path = session.path()
    for first in range(1, session.number(900, 2400), session.pick(150, 200)):
        session.read(path, first, 200)
        yield


@WORK.of("reading_parts")
def scroll_through_a_page(session: Session) -> Acts:
    name = session.name()
    for _ in session.times(6, 14):
        text = session.texts.web_page(name, [f"{session.name()} and {session.name()}" for _ in range(3)])
        session.call("browser_scroll", "scrolled down one page in the browser", text, arguments={"direction": "down"})
        yield


@WORK.of("audit")
def audit_the_sources(session: Session) -> Acts:
    """Many files are read; a third of the searches finds nothing."""
    for _ in session.times(14, 40):
        if session.chance(0.35):
            name = session.name()
            session.search(name, [] if session.chance(0.4) else [f"{session.path()}:{session.number(1, 300)}: {name}"])
        else:
            session.read(session.path())
        yield


@WORK.of("audit")
def audit_the_machines(session: Session) -> Acts:
    command = session.pick("systemctl is-active {}", "openssl verify {}.pem", "pip-audit -r {}.txt")
    for _ in session.times(8, 20):
        session.shell(command.format(session.name()), "active" if "systemctl" in command else "OK")
        yield
