"""What goes on failing: one file, one goal, the same tests after each change; and changes that flip."""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

LOOPS = Variants()


@LOOPS.of("one_target_failures", 6)
def miss_one_file_in_every_way(session: Session) -> Acts:
    path = session.path()
    session.read(path)
    while True:
        line, found = session.number(1, 400), session.number(2, 7)
        session.fail_edit(path, session.pick(
            f"old_string not found in {path} (closest match at line {line})",
            f"Found {found} matches of the string to replace, but expected 1",
            f"Search block does not match: expected {session.name()} near line {line}",
            f"patch failed: {path}:{line}: hunk #{found} does not apply",
            f"IndentationError after the change at line {line}; the change was not saved",
        ))  # fmt: skip
        yield


@LOOPS.of("one_target_failures", 6)
def run_one_script_in_every_way(session: Session) -> Acts:
    script = session.path()
    flags = ("--debug", "--force", "-v", "--config local.toml", "--jobs 1", "--no-cache", "--offline", "--fresh")
    while True:
        error = session.pick(
            f"Traceback: {session.name()} at 0x{session.texts.identifier(8)}",
            f"timed out after {session.texts.duration()}", f"cannot open {session.texts.temporary()}",
            f"RuntimeError: {session.name()} is not initialised",
        )  # fmt: skip
        session.shell(f"python {script} {' '.join(session.random.sample(flags, 2))}", error, code=1)
        yield


INSTALLERS = (
    ("pip install {}", "No matching distribution found for {}"), ("apt-get install -y {}", "E: Unable to locate package {}"),
    ("npm install {}", "npm error 404 '{}' is not in this registry"), ("brew install {}", "No formula with the name {}"),
    ("conda install {}", "PackagesNotFoundError: {} is not available"), ("cargo add {}", "error: no crate `{}` was found"),
    ("uv pip install {}", "{} was not found in the registry"), ("pip download {}", "No version satisfies {}"),
)  # fmt: skip


@LOOPS.of("one_goal_failures", 6)
def install_one_package_in_every_way(session: Session) -> Acts:
    package = session.name().replace("_", "-")
    while True:
        for command, error in session.shuffled(INSTALLERS):
            version = session.pick("", f"=={session.number(1, 9)}.{session.number(0, 9)}")
            session.shell(command.format(package) + version, error.format(package), session.pick(1, 100))
            yield


@LOOPS.of("one_goal_failures", 6)
def fetch_one_document_in_every_way(session: Session) -> Acts:
    document, host = session.name(), f"{session.name()}.example.org"
    while True:
        by_shell, folder = session.chance(0.5), session.pick("files", "docs", "archive", "v2", "download")
        address = f"https://{host}/{folder}/{document}.{session.pick('pdf', 'html', 'zip')}"
        reason = session.pick("404 Not Found", "403 Forbidden", "certificate has expired", "too many redirects", "empty reply")
        error = f"{reason}: {address} ({session.texts.identifier(8)})"
        session.shell(f"curl -fL {address}", error, code=22) if by_shell else session.browse(address, "", error=error)
        yield


@LOOPS.of("same_tests_fail", 6)
def change_one_file_in_vain(session: Session) -> Acts:
    path, failing = session.path(), session.tests(1, 3)
    while True:
        session.edit(path)
        session.test(failing)
        yield


@LOOPS.of("same_tests_fail", 6)
def change_many_files_in_vain(session: Session) -> Acts:
    paths, failing = session.paths(4), session.tests(1)
    while True:
        for path in session.random.sample(paths, session.number(1, 2)):
            session.edit(path)
        session.test(failing)
        yield


@LOOPS.of("oscillation", 3, "words")
def flip_one_file(session: Session) -> Acts:
    path = session.path()
    while True:
        session.edit(path, 1)
        if session.chance(0.4):
            session.shell("git diff --stat", f"{path} | 2 +-")
        session.edit(path, 0)
        yield


@LOOPS.of("oscillation", 3, "words")
def flip_two_files_with_failing_tests(session: Session) -> Acts:
    paths, failing = session.paths(2), [session.tests(1), session.tests(1)]
    while True:
        for state in (1, 0):
            for path in paths:
                session.edit(path, state)
            session.test(failing[state])
        yield


@LOOPS.of("oscillation", 3, "words")
def switch_a_package_up_and_down(session: Session) -> Acts:
    package = session.name().replace("_", "-")
    while True:
        for version in ("2.0", "1.9"):
            done = f"Successfully installed {package}-{version} in {session.texts.duration()}"
            session.shell(f"pip install {package}=={version}", done)
            session.shell("python -m app.check", f"ImportError: {package} {version} does not suit this interpreter", code=1)
        yield
