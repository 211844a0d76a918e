"""Checking: the same checks after each change, checks that fail by design, faults that pass."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

WORK = Variants()


@WORK.of("formatting")
def format_after_each_change(session: Session) -> Acts:
    command, answer = session.pick(
        ("ruff format .", "212 files left unchanged"), ("npx prettier --write src", "src formatted"), ("gofmt -w .", ""),
        ("cargo fmt", ""), ("npm run lint", "0 errors"),
    )  # fmt: skip
    for _ in session.times(5, 12):
        session.edit(session.path())
        session.shell(command, answer)
        yield


@WORK.of("formatting")
def commit_after_each_change(session: Session) -> Acts:
    for _ in session.times(5, 10):
        path = session.path()
        session.edit(path)
        session.shell("pre-commit run --all-files", "trim whitespace: Passed\ncheck yaml: Passed\nruff: Passed")
        session.shell(f"git commit -qam 'Change {path}'", "")
        yield


@WORK.of("recheck")
def check_again_after_each_change(session: Session) -> Acts:
    paths = session.paths(1, 4)
    for _ in session.times(5, 12):
        session.edit(session.pick(*paths))
        if session.chance(0.8):
            session.test()
        if session.chance(0.6):
            session.shell("git status --short", "\n".join(f" M {path}" for path in paths))
        yield


@WORK.of("recheck")
def compare_pages_after_each_change(session: Session) -> Acts:
    address, path = f"http://localhost:5173/{session.name()}", session.texts.path("css")
    for _ in session.times(4, 9):
        session.edit(path)
        session.browse(address, session.texts.web_page("app", session.names(3)))
        yield


@WORK.of("reverted_experiment")
def take_an_experiment_back(session: Session) -> Acts:
    """Once or twice a change is tried, fails and is taken back; then another one holds."""
    path, failing = session.path(), session.tests(1)
    for _ in session.times(1, 2):
        session.edit(path)
        before = session.revisions[path]
        yield
        session.edit(path)
        session.test(session.tests(1))
        session.take_back(path, before)
        yield
    session.edit(path)
    session.test(failing if session.chance(0.3) else ())
    session.edit(path)
    session.test()
    yield


@WORK.of("reverted_experiment")
def measure_one_value_after_another(session: Session) -> Acts:
    """A setting gets one value after another, something else is measured each time, and the best value comes back."""
    setting, values = session.name(), [2**power for power in session.times(4, 7)]
    for value in [*values, session.pick(*values[:-1])]:
        session.shell(f"sed -i 's/{setting}=.*/{setting}={value}/' app.conf", "")
        session.shell("make bench", f"{setting} {value}: {session.number(900, 4000)} requests in {session.texts.duration()}")
        yield
    session.shell(f"git commit -qam 'Tune {setting}'", "")


@WORK.of("bisecting")
def bisect_the_history(session: Session) -> Acts:
    """The same test fails in the same way at about half of the commits; each answer halves what is left."""
    failing, left = session.tests(1), 2 ** session.number(5, 8)
    session.shell("git bisect start", "status: waiting for both good and bad commits")
    while left:
        bad = session.chance(0.5)
        session.test(failing if bad else ())
        left //= 2
        answer = f"Bisecting: {left} revisions left to test\n[{session.texts.identifier(40)}] {session.name()}"
        session.shell(f"git bisect {'bad' if bad else 'good'}", answer)
        yield


@WORK.of("bisecting")
def try_commits_by_hand(session: Session) -> Acts:
    """One test at one commit after another, failing in the same way at some of them."""
    failing = session.tests(1)
    for _ in session.times(5, 9):
        session.shell(f"git checkout -q {session.texts.identifier(8)}", "")
        session.test(failing if session.chance(0.5) else ())
        yield
    session.edit(session.path())
    session.test()


@WORK.of("infrastructure")
def try_again_after_faults(session: Session) -> Acts:
    faults = ("503 Service Unavailable", "429 Too Many Requests: slow down", "502 Bad Gateway", "connection reset by peer")
    for _ in session.times(2, 4):
        tool, record = (
            session.pick("mcp__crm__get_record", "web_fetch", "mcp__github__get_issue"),
            session.name(),
        )
        for _ in session.times(1, 6):
            session.fault(tool, record, session.pick(*faults))
            if session.chance(0.4):
                session.shell(f"sleep {session.pick(2, 5, 10)}", "")
        session.call(tool, record, session.texts.json_page([record]))
        yield


@WORK.of("infrastructure")
def push_through_a_bad_line(session: Session) -> Acts:
    """A shell's command meets the fault, so that its text alone tells; the pauses grow until it goes through."""
    command = session.pick("git push origin main", "docker pull registry.example.org/app:3", "npm publish")
    for again in session.times(2, 5):
        session.shell(command, session.pick("error: 503 Service Unavailable", "fatal: Connection reset by peer"), code=1)
        session.shell(f"sleep {5 * 2**again}", "")
        yield
    session.shell(command, f"done in {session.texts.duration()}")


@WORK.of("expected_failures")
def run_a_check_that_exits_by_design(session: Session) -> Acts:
    """Exit code 65 says that something was found, which is what the check is for: another file each time."""
    for _ in session.times(5, 10):
        path, found = session.path(), session.number(1, 9)
        session.shell(f"./check_fields {path}", f"{path}: {found} deprecated fields, such as {session.name()}", code=65)
        if session.chance(0.5):
            session.edit(path)
        yield


@WORK.of("expected_failures")
def lint_until_nothing_is_found(session: Session) -> Acts:
    paths = session.paths(5, 9)
    while paths:
        found = "\n".join(f"{path}:{len(path)}:1 unused name" for path in paths)
        session.shell("ruff check .", f"{found}\nFound {len(paths)} errors.", code=1)
        session.edit(paths.pop())
        yield
    session.shell("ruff check .", "All checks passed!")


@WORK.of("expected_failures")
def make_sure_that_names_are_gone(session: Session) -> Acts:
    for _ in session.times(5, 9):
        session.shell(f"grep -rn {session.name()} src", "", code=1)
        yield
