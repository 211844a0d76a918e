"""The kinds of honest work, each in several variants: what looks like a loop at first sight and gets somewhere.

A variant acts until its piece of work is done, and yields where something else may come between.
"""

from __future__ import annotations

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

WORK = Variants()

# Reading


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


# Changing


@WORK.of("silent_batch")
def apply_one_command_to_many_files(session: Session) -> Acts:
    command = session.random.choice(
        ("sed -i 's/utcnow()/now(UTC)/' {}", "git rm -q --cached {}", "chmod 644 {}", "touch {}", "dos2unix -q {}")
    )
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


@WORK.of("bisecting")
def bisect_the_history(session: Session) -> Acts:
    """The same test fails in the same way at about half of the commits; each answer halves what is left."""
    failing, left = session.tests(1), 2 ** session.number(5, 8)
    session.shell("git bisect start", "status: waiting for both good and bad commits")
    while left:
        bad = session.chance(0.5)
        session.test(failing if bad else ())
        left //= 2
        session.shell(
            f"git bisect {'bad' if bad else 'good'}",
            f"Bisecting: {left} revisions left to test\n[{session.texts.identifier(40)}]",
        )
        yield


# Waiting


@WORK.of("growing_pauses")
def try_until_a_server_is_up(session: Session) -> Acts:
    port, pause = session.number(3000, 9000), 1
    for _ in session.times(4, 7):
        session.shell(f"curl -s localhost:{port}/health", f"curl: (7) Failed to connect to localhost port {port}", code=7)
        session.shell(f"sleep {pause}", "")
        pause *= 2
        yield
    session.shell(f"curl -s localhost:{port}/health", f'{{"status": "up", "at": "{session.texts.clock()}"}}')
    yield from check_again_after_each_change(session)


@WORK.of("growing_pauses")
def look_less_and_less_often(session: Session) -> Acts:
    run, pause = session.random.randrange(10**6, 10**7), session.pick(5, 10)
    for _ in session.times(4, 6):
        session.shell(f"sleep {pause}", "")
        session.shell(f"gh run view {run}", f"run {run}: queued")
        pause *= 2
        yield
    session.shell(f"gh run view {run}", f"run {run}: completed, 14 jobs succeeded")


@WORK.of("watching")
def watch_a_log_that_grows(session: Session) -> Acts:
    log, lines = f"/var/log/{session.name()}.log", [session.name()]
    for _ in session.times(6, 14):
        lines += [f"{session.texts.clock()} {session.name()} done" for _ in session.times(1, 4)]
        session.shell(f"sleep {session.pick(5, 10)}", "") if session.chance(0.6) else None
        session.shell(f"tail -n 5 {log}", "\n".join(lines[-5:]))
        yield


@WORK.of("watching")
def poll_a_job_that_moves(session: Session) -> Acts:
    """The answer stays for up to five looks, then moves."""
    job, tool = (
        f"job-{session.texts.identifier(6)}",
        session.pick("BashOutput", "get_job_status", "mcp__ci__poll_job"),
    )
    session.poll_tools.append(tool)
    for step in session.times(4, 8):
        name = session.name()
        for _ in session.times(1, 5):
            session.call(tool, job, f"{job}: step {step} ({name}) is running")
            yield
    session.call(tool, job, f"{job}: finished, exit code 0")


@WORK.of("waiting_person")
def talk_with_a_person(session: Session) -> Acts:
    for _ in session.times(5, 12):
        session.say(f"May I {session.name()} for your {session.name()}? Please answer yes or no.")
        session.control("user")
        if session.chance(0.4):
            session.call("get_order_details", session.name(), session.texts.json_page([session.name()]))
        yield


@WORK.of("waiting_person")
def wait_for_an_approval(session: Session) -> Acts:
    request, pause = f"request-{session.texts.identifier(4)}", 30
    session.say(f"I have asked for the approval of {request} and wait for it.")
    for _ in session.times(3, 5):
        session.shell(f"sleep {pause}", "")
        session.call("mcp__approvals__get_status", request, f"{request}: waiting for a person")
        pause *= 2
        yield
    session.control("user")
    session.call("mcp__approvals__get_status", request, f"{request}: approved")
    yield from change_many_files(session)


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


# Leading


@WORK.of("plan_progress")
def tick_off_the_plan(session: Session) -> Acts:
    steps = [f"{session.name()} in {session.path()}" for _ in session.times(5, 9)]
    for done in range(len(steps) + 1):
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(steps)
        session.plan(list(zip(steps, states, strict=False)))
        if done < len(steps):
            session.edit(session.path())
        yield


@WORK.of("delegation")
def send_helpers_to_different_work(session: Session) -> Acts:
    for _ in session.times(4, 9):
        part, path = session.name(), session.path()
        session.delegate(f"Please review {path} for {part} and report", f"{path}: {session.name()} should be {session.name()}")
        if session.chance(0.3):
            session.read(path)
        yield


@WORK.of("long_work")
def work_long(session: Session) -> Acts:
    """One piece of work after another, in any order."""
    pieces = (fix_until_the_tests_pass, write_a_test_then_the_code, refactor_one_file, tick_off_the_plan, audit_the_sources,
              send_helpers_to_different_work, lint_until_nothing_is_found, take_an_experiment_back)  # fmt: skip
    for _ in session.times(6, 10):
        yield from session.pick(*pieces)(session)
