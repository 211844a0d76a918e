"""The kinds of being stuck, each in several variants. A variant acts one round of its loop and yields, for ever.

A loop is clear to a person who reads the run: nothing but what only looks new comes back, and each round is as the last.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

LOOPS = Variants()

# The same call


@LOOPS.of("exact_repeat", 4)
def repeat_a_look(session: Session) -> Acts:
    path, command = session.path(), session.pick("git diff --stat", "gh api repos/app/pulls/1/reviews", "make")
    command_answer = "[]" if "gh" in command else "nothing to be done"
    by_shell = session.chance(0.5)
    while True:
        session.shell(command, command_answer) if by_shell else session.read(path)
        yield


@LOOPS.of("exact_repeat", 4)
def repeat_a_query_that_finds_nothing(session: Session) -> Acts:
    tool, query = session.pick("mcp__notion__search", "search_notes", "sql"), session.name()
    while True:
        session.call(tool, query, "[]")
        yield


@LOOPS.of("same_failure", 4)
def repeat_a_command_that_fails_at_another_time(session: Session) -> Acts:
    part, tool = session.name(), session.pick("make", "cargo build", "npm run build", "docker build .")
    while True:
        session.shell(tool, session.texts.build_log(["lexer", part], f"{part}: undefined reference"), code=2)
        yield


@LOOPS.of("same_failure", 4)
def repeat_a_call_that_is_not_allowed(session: Session) -> Acts:
    tool, record = session.pick("mcp__crm__save_record", "write_file", "update_ticket"), session.name()
    while True:
        session.call(tool, record, error=f"Permission denied for {record} (request {session.texts.identifier()})")
        yield


@LOOPS.of("looks_new", 5)
def load_the_same_page(session: Session) -> Acts:
    name = session.name()
    paragraphs = [f"{name} is {session.name()} of {session.name()}" for _ in range(4)]
    while True:
        session.browse(f"https://docs.example.org/{name}", session.texts.web_page(name, paragraphs))
        yield


@LOOPS.of("looks_new", 5)
def click_the_same_control(session: Session) -> Acts:
    label, rows = session.name(), session.names(5)
    while True:
        seen = session.texts.web_page("Screener", session.shuffled(rows))
        session.call("browser_click", f"clicked '{label}'", f"viewport shows {session.number(20, 60)}% of the page\n{seen}")
        yield


@LOOPS.of("looks_new", 5)
def run_the_same_script_unchanged(session: Session) -> Acts:
    script, name = session.path(), session.name()
    while True:
        session.shell(
            f"python {script}",
            f"started {session.texts.clock()} pid {session.random.randrange(900, 9000)}\n{name}: total 0 of 12\n"
            f"memory {session.number(30, 60)}%\nwrote {session.texts.temporary()}.json in {session.texts.duration()}",
        )
        yield


@LOOPS.of("looks_new", 5)
def ask_an_interface_for_the_same_items(session: Session) -> Acts:
    items = session.names(4)
    while True:
        shuffled = session.shuffled(items)
        session.call("mcp__github__list_issues", "app open", session.texts.json_page(shuffled), arguments={"state": "open"})
        yield


# The call in other words


@LOOPS.of("reworded_same_answer", 7)
def reword_a_shell_question(session: Session) -> Acts:
    name = session.name()
    ends = (
        "",
        " | sort",
        " | sort -u",
        " | head -20",
        " | uniq",
        " | tail -5",
        " | wc -w | grep -v 0",
        " | tr -d ' '",
        " | cat",
    )
    for number in count():
        command = session.pick(f"grep -rn {name} .", f"find . -name '*{name}*'", f"git log --oneline -S{name}")
        session.shell(f"{command}{ends[number % len(ends)]} {'2>/dev/null' if number % 2 else ''}".strip(), "")
        yield


@LOOPS.of("reworded_same_answer", 7)
def reword_a_web_search(session: Session) -> Acts:
    name, noun = session.name(), session.name()
    forms = ("{0} {1} list", "list of {0} with {1}", "official {0} {1} list", "{0} list {1} 2026", "complete list {0} {1}",
             "{1} list for {0}", "{0} all {1}", "where is the {0} {1} list")  # fmt: skip
    found = [f"{name}: no {noun} is given", "see also the index"]
    for number in count():
        query = forms[number % len(forms)].format(name, noun)
        session.call("browser_search", query, session.texts.web_page("Results", found), arguments={"query": query, "n": number})
        yield


@LOOPS.of("reworded_same_answer", 7)
def reword_a_database_question(session: Session) -> Acts:
    table, column = session.name(), session.name()
    for number in count():
        value = session.pick("'open'", "'OPEN'", "'Open'", "1", "true")
        test = session.pick("= {}", "LIKE {}", "IN ({})", "<=> {}").format(value)
        session.call(
            "sql",
            f"SELECT {session.pick('*', 'id', 'count(id)')} FROM {table} WHERE {column} {test} LIMIT {number + 1}",
            "[]",
        )
        yield


@LOOPS.of("reworded_same_error", 5)
def query_with_a_token_that_has_expired(session: Session) -> Acts:
    tool = session.pick("mcp__notion__notion-search", "mcp__jira__search_issues", "linear_search")
    while True:
        session.call(tool, session.name(), error=f"401 Unauthorized: token has expired (trace {session.texts.identifier()})")
        yield


@LOOPS.of("reworded_same_error", 5)
def connect_with_other_flags(session: Session) -> Acts:
    host = session.name().replace("_", "-")
    flags = ("-4", "-v", "-o BatchMode=yes", "-p 2222", "-i key", "-tt", "-o StrictHostKeyChecking=no", "-C", "-A", "-q")
    while True:
        chosen = " ".join(session.random.sample(flags, 2))
        session.shell(
            f"ssh {chosen} deploy@{host} uptime", f"{session.texts.clock()} deploy@{host}: Permission denied (publickey).", 255
        )
        yield


@LOOPS.of("reworded_same_error", 5)
def guess_at_a_table_that_is_not_there(session: Session) -> Acts:
    table = session.name()
    for number in count():
        query = f"SELECT {session.name()} FROM {table} {session.pick('', 'LIMIT 5', 'ORDER BY id')} -- {number}"
        session.call("sql", query, error=f"Error executing query: Table 'app.{table}' doesn't exist")
        yield


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


# Words without work


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


@LOOPS.of("helper_again", 4)
def send_the_helper_out_again(session: Session) -> Acts:
    archive = f"/data/{session.name()}.zip"
    for number in count():
        answer = session.pick("I could not open {}", "{} could not be read", "The file {} cannot be shown here")
        session.delegate(ORDERS[number % len(ORDERS)].format(archive), f"{answer.format(archive)} ({session.texts.clock()})")
        yield


@LOOPS.of("helper_again", 4)
def send_the_helper_into_the_same_failure(session: Session) -> Acts:
    archive = f"/data/{session.name()}.tar"
    for number in count():
        error = f"the helper stopped after {session.texts.duration()}: {archive}: not in gzip format"
        session.delegate(ORDERS[number % len(ORDERS)].format(archive), "", error=error)
        yield


# Changes that change nothing


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
            session.shell(
                f"pip install {package}=={version}", f"Successfully installed {package}-{version} in {session.texts.duration()}"
            )
            session.shell("python -m app.check", f"ImportError: {package} {version} does not suit this interpreter", code=1)
        yield


# Round and round


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


@LOOPS.of("irregular_alternation", 12)
def alternate_in_no_order(session: Session) -> Acts:
    calls = known_calls(session, session.number(3, 4))
    while True:
        session.pick(*calls)()
        yield


@LOOPS.of("irregular_alternation", 12)
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


@LOOPS.of("dead_poll", 10, "words")
def poll_a_job_that_hangs(session: Session) -> Acts:
    """The job used to move at every second or third look; then it stays where it is."""
    job, tool = (
        f"job-{session.texts.identifier(6)}",
        session.pick("BashOutput", "get_job_status", "mcp__ci__poll_job"),
    )
    session.poll_tools.append(tool)
    for step in range(4):
        for _ in session.times(1, 3):
            session.call(tool, job, f"{job}: step {step} of 9 is running")
    while True:
        session.call(tool, job, f"{job}: step 4 of 9 is running")
        yield


@LOOPS.of("dead_poll", 10, "words")
def sleep_and_look_at_a_run_that_hangs(session: Session) -> Acts:
    """Pauses of the same length; the run moved at first, and has not since."""
    run, pause = session.random.randrange(10**6, 10**7), session.pick(5, 10, 30)
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
