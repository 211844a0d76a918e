"""Changing: batches, fixes until the tests pass, one file again and again."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

WORK = Variants()


@WORK.of("silent_batch")
def apply_one_command_to_many_files(session: Session) -> Acts:
    command = session.pick("sed -i 's/utcnow()/now(UTC)/' {}", "git rm -q --cached {}", "chmod 644 {}", "dos2unix -q {}")
    for _ in session.times(8, 24):
        session.shell(command.format(session.path()), "")
        yield


@WORK.of("silent_batch")
def label_many_records(session: Session) -> Acts:
    for _ in session.times(8, 20):
        record = f"{session.name()}-{session.number(100, 999)}"
        session.call("mcp__jira__add_label", record, "ok", arguments={"issue": record, "label": "reviewed"})
        yield


@WORK.of("silent_batch")
def change_many_files(session: Session) -> Acts:
    for _ in session.times(8, 20):
        path = session.path()
        if session.chance(0.3):
            session.read(path)
        session.edit(path)
        yield


@WORK.of("test_fix")
def fix_until_the_tests_pass(session: Session) -> Acts:
    """Fewer tests fail after a while; until then they may fail two or three times in the same way."""
    failing, path = session.tests(2, 5), session.path()
    session.test(failing)
    while failing:
        for _ in session.times(1, 2):
            if session.chance(0.5):
                session.read(path)
            session.edit(path)
            yield
            session.test(failing)
        failing = failing[session.number(1, 2) :]
        session.edit(path)
        session.test(failing)
        yield


@WORK.of("test_fix")
def fix_one_error_after_another(session: Session) -> Acts:
    """The same command fails each time for a reason of its own, as one missing module after another is put in."""
    script = session.path()
    for _ in session.times(4, 8):
        module = session.name()
        session.shell(f"python {script}", f"ModuleNotFoundError: No module named '{module}'", code=1)
        session.shell(f"pip install {module} -q", "")
        yield
    session.shell(f"python {script}", f"{session.name()}: 12 of 12 done")


@WORK.of("tdd")
def write_a_test_then_the_code(session: Session) -> Acts:
    path, test_path = session.path(), session.test_module
    for _ in session.times(4, 9):
        session.edit(test_path)
        session.test(session.tests(1))
        yield
        session.edit(path)
        session.passed += 1
        session.test()
        yield


@WORK.of("tdd")
def write_all_tests_then_the_code(session: Session) -> Acts:
    """Many tests fail at first, and one less after each change."""
    path, failing = session.path(), session.tests(4, 8)
    session.edit(session.test_module)
    session.test(failing)
    while failing:
        failing = failing[1:]
        session.passed += 1
        session.edit(path)
        session.test(failing)
        yield


@WORK.of("refactoring")
def refactor_one_file(session: Session) -> Acts:
    path = session.path()
    session.read(path)
    for _ in session.times(8, 25):
        session.edit(path)
        if session.chance(0.2):
            session.read(path, session.number(1, 200))
        yield
    session.test()


@WORK.of("refactoring")
def rename_until_nothing_is_left(session: Session) -> Acts:
    """The same search after each change, with fewer places left each time."""
    name, paths = session.name(), session.paths(5, 10)
    while paths:
        session.shell(f"grep -rln {name} src", "\n".join(paths))
        session.edit(paths.pop())
        yield
    session.shell(f"grep -rln {name} src", "", code=1)
    session.test()
