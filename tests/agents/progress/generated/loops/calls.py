"""Calls that say nothing new: the same one, or the same one in other words."""

from __future__ import annotations

from itertools import count

from tests.agents.progress.generated.kinds import Acts, Variants
from tests.agents.progress.generated.session import Session

LOOPS = Variants()


@LOOPS.of("exact_repeat", 5)
def repeat_a_look(session: Session) -> Acts:
    path, by_shell = session.path(), session.chance(0.5)
    command, answer = session.pick(("gh api repos/app/pulls/1/reviews", "[]"), ("make", "make: nothing to be done"))
    while True:
        session.shell(command, answer) if by_shell else session.read(path)
        yield


@LOOPS.of("exact_repeat", 5)
def repeat_a_query_that_finds_nothing(session: Session) -> Acts:
    tool, query = session.pick("mcp__notion__search", "search_notes", "sql"), session.name()
    while True:
        session.call(tool, query, "[]")
        yield


@LOOPS.of("same_failure", 5)
def repeat_a_command_that_fails_at_another_time(session: Session) -> Acts:
    part, tool = session.name(), session.pick("make", "cargo build", "npm run build", "docker build .")
    while True:
        session.shell(tool, session.texts.build_log(["lexer", part], f"{part}: undefined reference"), code=2)
        yield


@LOOPS.of("same_failure", 5)
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
        begun = f"started {session.texts.clock()} pid {session.number(900, 9000)}\n{name}: total 0 of 12"
        ended = f"memory {session.number(30, 60)}%\nwrote {session.texts.temporary()}.json in {session.texts.duration()}"
        session.shell(f"python {script}", f"{begun}\n{ended}")
        yield


@LOOPS.of("looks_new", 5)
def ask_an_interface_for_the_same_items(session: Session) -> Acts:
    items = session.names(4)
    while True:
        shuffled = session.shuffled(items)
        session.call("mcp__github__list_issues", "app open", session.texts.json_page(shuffled), arguments={"state": "open"})
        yield


@LOOPS.of("reworded_same_answer", 7)
def reword_a_shell_question(session: Session) -> Acts:
    name = session.name()
    ends = ("", "| sort", "| sort -u", "| head -20", "| uniq", "| tail -5", "| grep -v '#'", "| tr -d ' '", "| cat")
    for number in count():
        command = session.pick(f"grep -rn {name} .", f"find . -name '*{name}*'", f"git log --oneline -S{name}")
        session.shell(f"{command} 2>/dev/null {ends[number % len(ends)]}".strip(), "")
        yield


@LOOPS.of("reworded_same_answer", 7)
def reword_a_web_search(session: Session) -> Acts:
    name, noun = session.name(), session.name()
    forms = ("{0} {1} list", "list of {0} with {1}", "official {0} {1} list", "{0} list {1} 2026", "complete list {0} {1}",
             "{1} list for {0}", "{0} all {1}", "where is the {0} {1} list")  # fmt: skip
    found = [f"{name}: no {noun} is given", "see also the index"]
    for number in count():
        query = forms[number % len(forms)].format(name, noun)
        session.call("browser_search", query, session.texts.web_page("Results", found))
        yield


@LOOPS.of("reworded_same_answer", 7)
def reword_a_database_question(session: Session) -> Acts:
    table, column = session.name(), session.name()
    for number in count():
        value = session.pick("'open'", "'OPEN'", "'Open'", "1", "true")
        test = session.pick("= {}", "LIKE {}", "IN ({})", "<=> {}").format(value)
        columns = session.pick("*", "id", "count(id)")
        session.call("sql", f"SELECT {columns} FROM {table} WHERE {column} {test} LIMIT {number + 1}", "[]")
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
        refusal = f"{session.texts.clock()} deploy@{host}: Permission denied (publickey)."
        session.shell(f"ssh {chosen} deploy@{host} uptime", refusal, code=255)
        yield


@LOOPS.of("reworded_same_error", 5)
def guess_at_a_table_that_is_not_there(session: Session) -> Acts:
    table = session.name()
    while True:
        query = f"SELECT {session.name()} FROM {table} {session.pick('', 'LIMIT 5', 'ORDER BY id')}"
        session.call("sql", query, error=f"Error executing query: Table 'app.{table}' doesn't exist")
        yield
