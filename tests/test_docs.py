"""What the documents show is what the program takes, and what the code cites is there to be read."""

import json
import re
import shlex
import sys
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from textwrap import indent
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from agents.devices.starting import command_environment
from constellations.plan import operations
from constellations.plan.keys.guards import SETTING_READERS
from constellations.plan.keys.step_keys import DEFAULTS
from constellations.services.plans import read_plan
from project.demo.demo import demo_devices
from tests.agents.conftest import Rest

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / app / "README.md" for app in ("agents", "constellations"))]
)
PLANS = (ROOT / "docs" / "plans.md").read_text()
COMMANDS = (ROOT / "agents" / "tools" / "command.py").read_text()
PRODUCT = ("agents", "constellations", "frontend", "project")
CODE = [*PRODUCT, "tests", "benchmarks", "examples"]
SOURCES = [path for room in CODE for kind in ("py", "js", "css", "html") for path in (ROOT / room).rglob(f"*.{kind}")]
PAGE = re.compile(r"[\w./-]*\w\.md\b")
CITED = re.compile(r'\b((?:docs|examples)/[\w-]+\.md|README\.md), "([^"]+)"')
NOT_A_PAGE = re.compile(
    r'\([a-z][\w-]*, (?:sections? |last section|introduction|"[A-Z0-9]|\d and \d)[^()]*\)'
    r"|\((?:seeds?|design|stack|quality|house|architecture|machines|constellations): [^()]*\)"
)
"""A citation of something that is no page of ours: (machines, section Task), (seed: some-document), (quality, "Speed")."""
SQL = re.compile(r"[\"'](SELECT |INSERT INTO |DELETE FROM |LISTEN |UPDATE [a-z{])")
NOT_TESTED = {"tests/test_docs.py", "tests/project/test_machine_docs.py"}


def test_every_key_of_every_step_is_on_the_page():
    keys = {key for row in DEFAULTS.values() for key in row} - {"text", "question"}
    section = PLANS.split("## Tasks in steps")[1].split("## Phases")[0]
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", section)] == []


def test_every_setting_of_the_detection_of_being_stuck_is_on_the_page():
    section = (ROOT / "docs" / "stuck.md").read_text().split("## Settings")[1].split("\n## ")[0]
    assert [name for name in SETTING_READERS if f"`{name}`" not in section] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path):
    links = [link for link in re.findall(r"\]\(([^)#]+)", path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_operation_is_on_the_page():
    page = (ROOT / "docs" / "editing.md").read_text()
    assert [name for name in operations.READERS if f"| `{name}` |" not in page] == []


# What the code says of the documents


def texts_of(path: Path) -> str:
    """A module's docstrings and comments; all of a file that is no Python."""
    source = path.read_text()
    if path.suffix != ".py":
        return source
    found = [*re.findall(r'"""(.*?)"""', source, re.DOTALL), *re.findall(r"(?m)(?:^|\s)# (.*)$", source)]
    return " ".join(" ".join(text.split()) for text in found)


@cache
def told() -> tuple[tuple[str, str], ...]:
    """(file, its docstrings and comments) of all there are, but for those that are about citing."""
    named = ((str(path.relative_to(ROOT)), path) for path in SOURCES)
    return tuple((name, texts_of(path)) for name, path in named if name not in NOT_TESTED)


def test_a_page_that_the_code_cites_is_in_the_repository():
    cited = [(name, page) for name, text in told() for page in PAGE.findall(text)]
    assert len(cited) > 20
    assert [(name, page) for name, page in cited if not (ROOT / page).exists()] == []


def test_a_section_that_the_code_cites_is_on_its_page():
    cited = [(name, page, title) for name, text in told() for page, title in CITED.findall(text)]
    assert len(cited) > 20
    headings = {page: re.findall(r"(?m)^#+ (.*)$", (ROOT / page).read_text()) for _, page, _ in cited}
    assert [each for each in cited if each[2] not in headings[each[1]]] == []


def test_the_code_cites_nothing_that_a_reader_does_not_have():
    modules = [(name, text) for name, text in told() if name.endswith(".py")]
    assert [(name, found) for name, text in modules for found in NOT_A_PAGE.findall(text)] == []


def test_a_file_that_a_page_names_is_there():
    named = r"\b((?:agents|constellations|frontend|project|tests|benchmarks|examples)/[a-z_/]+(?:\.\w+|/))"
    wrong = [(page.name, file) for page in PAGES for file in re.findall(named, page.read_text()) if not (ROOT / file).exists()]
    assert wrong == []


@pytest.mark.parametrize("app", ["agents", "constellations"])
def test_what_an_app_says_is_to_be_touched_is_there(app):
    """A path in the page of an app is one in that app, or one of the repository."""
    paths = re.findall(r"`([\w./]+(?:\.\w+|/))`", (ROOT / app / "README.md").read_text())
    paths = [path for path in paths if "/" in path]
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / app / path).exists() and not (ROOT / path).exists()] == []


def test_the_modules_that_hold_sql_are_those_that_the_decision_names():
    decision = (ROOT / "docs" / "decisions.md").read_text().split("## Hand-written statements")[1].split("\n## ")[0]
    modules = [path for room in PRODUCT for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts]
    holding = {str(path.relative_to(ROOT)) for path in modules if SQL.search(path.read_text())}
    assert holding <= set(re.findall(r"`([\w/]+\.py)`", decision))
    assert "agents/streams/statements.py" in holding


def test_every_library_that_is_asked_for_is_used():
    asked_for = (ROOT / "requirements.txt").read_text().split("# needed by those above")[0]
    wanted = {name.lower().replace("_", "-") for name in re.findall(r"(?m)^([\w-]+)(?:\[\w+\])?==", asked_for)}
    code = "\n".join(path.read_text() for room in PRODUCT for path in (ROOT / room).rglob("*.py"))
    named = set(re.findall(r"(?m)^\s*(?:import|from) (\w+)", code)) | set(re.findall(r"[\"'](\w+)[\"'.]", code))
    provided = packages_distributions()
    used = {library.lower().replace("_", "-") for module in named for library in provided.get(module, ())}
    assert len(wanted) > 15
    assert sorted(wanted - used) == []


def test_every_variable_that_a_command_sees_is_on_the_page_and_no_other(tmp_path):
    names = set(command_environment(tmp_path, 1, "instance", "/bin", {})) | set(re.findall(r'"(ORRERY_[A-Z]+)"', COMMANDS))
    section = PLANS.split("### What a command sees")[1].split("\n| dependency")[0]
    assert names == set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", section))
    assert len(names) >= 10


# The code blocks of the pages


class Block(NamedTuple):
    """A fenced block of a page: where it is, its language, its text."""

    place: str
    language: str
    text: str


class Request(NamedTuple):
    """A request of a page: its method, its address with the query string, its body as JSON."""

    method: str
    address: str
    body: str


FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REQUEST = re.compile(r"^(GET|POST|PATCH|PUT|DELETE) +(/\S+)", re.MULTILINE)
PROGRAMS = r"make|curl|git|export|(?:\S*/)?(?:python[\d.]*|pip|ruff|lint-imports)|manage\.py"
CODE_ALL_THE_SAME = re.compile(
    rf"^(?:(?:{PROGRAMS}) |(?:GET|POST|PATCH|DELETE) /|[{{\[]|import |def |tasks:|replan:)", re.MULTILINE
)
"""How a block begins its lines that is code, whatever it says of itself."""
LANGUAGES = {"yaml", "json", "http", "console", "python", "text", "mermaid"}
BINARIES = Path(sys.executable).parent


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text()
    name = path.relative_to(ROOT)
    return [Block(f"{name}:{text[: found.start()].count(chr(10)) + 1}", found[1], found[2]) for found in FENCED.finditer(text)]


BLOCKS = [block for path in PAGES for block in blocks_of(path)]


def of_language(language: str):
    found = [block for block in BLOCKS if block.language == language]
    return pytest.mark.parametrize("block", found, ids=[block.place for block in found])


@pytest.fixture
def rest(admin_user):
    """An admin's client, on an installation with the devices of the examples."""
    demo_devices()
    return Rest(admin_user)


def test_every_block_says_what_it_is_and_no_code_stands_outside_of_one():
    assert [
        block.place
        for block in BLOCKS
        if block.language not in {"yaml", "json", "http", "console", "python", "text", "mermaid"}
    ] == []
    outside = {str(path): FENCED.sub("", path.read_text()) for path in PAGES}
    assert {name: found for name, text in outside.items() if (found := re.findall(r"(?m)^(?:    |\t|```).*$", text))} == {}


def test_only_the_generated_page_has_diagrams():
    assert {block.place.split(":")[0] for block in BLOCKS if block.language == "mermaid"} == {"docs/machines.md"}


@of_language("text")
def test_a_block_that_says_it_is_no_code_is_none(block):
    assert CODE_ALL_THE_SAME.findall(block.text) == []


def plan_with(text: str) -> str:
    """A plan with what a block shows, as it is written: the whole of it, its rules, or parts of one task."""
    shown = yaml.safe_load(text)
    if "tasks" in shown:
        return text
    if "replan" in shown:
        tasks = [{"task_id": name, "tool": "noop"} for name in sorted(set().union(*map(tasks_named, shown["replan"])))]
        return f"tasks: {json.dumps(tasks)}\n{text}"
    does = "" if {"command", "steps", "phases"} & set(shown) else "tool: noop\n"
    return f"tasks:\n  - task_id: shown\n{indent(does + text, '    ')}"


def tasks_named(rule: dict) -> set[str]:
    """The tasks that a rule is about, but those that it adds itself."""
    about = rule["when"].get("task", ["any"])
    named, added = {about} if isinstance(about, str) else set(about), set()
    for operation in rule.get("edit", ()):
        ((name, fields),) = operation.items()
        if name == "add_task":
            added.add(fields["task_id"])
        else:
            named |= {fields[key] for key in ("task_id", "from", "to") if key in fields}
    return {name for name in named - added if "{" not in name}


@pytest.mark.django_db
@of_language("yaml")
def test_a_plan_on_a_page_is_built_and_begins(block, rest):
    text = plan_with(block.text)
    assert read_plan({"plan": text}).tasks
    answer = rest.post("/api/sessions/", {"title": block.place, "plan": text})
    assert answer.status_code == 201, answer.content


@cache
def description() -> dict:
    """The API's own description."""
    return SchemaGenerator().get_schema(request=None, public=True)


def operation_of(request: Request) -> dict:
    """What the description says of a request; fails where it knows no such address, or no such method there."""
    path = urlsplit(request.address).path
    for template, methods in description()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", template), path):
            return methods[request.method.lower()]
    raise AssertionError(f"{request.method} {path} is no address of the API")


def resolved(schema: dict) -> dict:
    """A schema behind its reference."""
    while "$ref" in schema:
        schema = description()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def check_request(request: Request) -> None:
    """A request is one of those that the API's description has: its address, its query string, its body."""
    operation = operation_of(request)
    known = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
    assert set(parse_qs(urlsplit(request.address).query)) <= known, request.address
    if not request.body:
        return
    body = json.loads(request.body)
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(body) <= set(resolved(schema)["properties"]), request
    faults = Draft202012Validator({**schema, "components": description()["components"]}).iter_errors(body)
    assert [fault.message for fault in faults] == [], request
    written = [operations.read_operation(one) for one in body.get("operations", ())]
    assert [finding for one in written for finding in one.findings] == []


def requests_in(text: str) -> list[Request]:
    """The requests of an `http` block: a line with method and address, the body beside or below it, comments behind `#`."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    starts = [*REQUEST.finditer(lines)]
    ends = [found.start() for found in starts[1:]] + [len(lines)]
    assert starts, lines
    assert not lines[: starts[0].start()].strip(), lines
    return [Request(found[1], found[2], lines[found.end() : end].strip()) for found, end in zip(starts, ends, strict=True)]


@pytest.mark.django_db
@of_language("http")
def test_a_request_on_a_page_is_one_that_the_api_takes(block, rest):
    for request in requests_in(block.text):
        check_request(request)
        if request.method == "POST" and not re.search(r"/\d+/", request.address):
            answer = rest.post(request.address, request.body)
            assert answer.status_code < 300, answer.content


def check_document(shown: dict, rest: Rest) -> None:
    """A constellation of another program is one."""
    answer = rest.post("/api/import/check/", {"document": shown})
    assert answer.status_code == 200, answer.content


def check_client(shown: dict, rest: Rest) -> None:
    """What a client of MCP is told leads to our server."""
    (server,) = shown["mcpServers"].values()
    if "url" in server:
        assert rest.post(urlsplit(server["url"]).path).status_code != 500
        assert set(server) == {"type", "url", "headers"}
    else:
        check_command([Path(server["command"]).name, *server["args"]])
        assert set(server["env"]) == {"ORRERY_TOKEN"}


def check_device(shown: dict, rest: Rest) -> None:
    """A device with what is shown can be made, or is refused for nothing but a secret that is not here."""
    answer = rest.post("/api/devices/", {"name": "shown", **shown})
    assert answer.status_code == 201, answer.content


def check_unasked(shown: dict, rest: Rest) -> None:
    """A device takes it."""
    answer = rest.post("/api/devices/", {"name": "shown", "unasked": shown})
    assert (answer.status_code, answer.json()["unasked"]) == (201, shown)


def check_answer(shown: dict, rest: Rest) -> None:
    """An answer to an edit has no keys but those that the description has."""
    made = resolved({"$ref": "#/components/schemas/EditMade"})["properties"]
    assert set(shown) <= set(made)
    (edit,) = made["edit"].get("allOf", [made["edit"]])[:1]
    assert set(shown["edit"]) <= set(resolved(edit)["properties"])
    for each in shown["between"]:
        assert set(each) == set(resolved(made["between"]["items"])["properties"])


CHECKS_OF_JSON = {
    "commands": check_unasked, "constellation_id": check_document, "mcpServers": check_client, "limits": check_device,
    "between": check_answer,
}  # fmt: skip
"""By a key that only such a value has."""


@pytest.mark.django_db
@of_language("json")
def test_json_on_a_page_is_what_the_program_takes_or_gives(block, rest):
    shown = json.loads(block.text)
    (check,) = [check for key, check in CHECKS_OF_JSON.items() if key in shown]
    check(shown, rest)


def commands_in(text: str) -> list[list[str]]:
    """The commands of a `console` block as their words, without comments and without the variables in front of them."""
    whole = text.replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in whole.splitlines()]
    return [words for words in map(without_variables, lines) if words]


def without_variables(words: list[str]) -> list[str]:
    return words[1:] if words and re.match(r"[A-Z_]+=", words[0]) else words


def check_command(words: list[str]) -> None:
    """A command names programs, targets, modules, files and arguments that there are."""
    program, *rest = words
    name = Path(program).name
    if name == "make":
        targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())
        variables = re.findall(r"\b([A-Z_]{4,})\b", (ROOT / "Makefile").read_text())
        assert [one for one in rest if "=" not in one and one not in targets] == []
        assert [one for one in rest if "=" in one and one.split("=")[0] not in variables] == []
    elif name == "manage.py":
        command = load_command_class(get_commands()[rest[0]], rest[0])
        command.create_parser("manage.py", rest[0]).parse_args(rest[1:])
    elif name.startswith("python") and rest[0] != "-m":
        assert (ROOT / Path(rest[0]).name).exists()
        check_command([Path(rest[0]).name, *rest[1:]])
    elif name.startswith("python"):
        assert find_spec(rest[1]) is not None, rest
        assert [one for one in rest[2:] if one.startswith(("tests/", "agents/")) and not (ROOT / one).exists()] == []
    elif name == "pip":
        files = [file for option, file in pairwise(rest) if option == "-r"]
        assert files
        assert [file for file in files if not (ROOT / file).exists()] == []
    elif name == "curl":
        check_request(request_of(rest))
    elif name not in ("git", "export"):
        assert (BINARIES / name).exists(), program


def request_of(words: list[str]) -> Request:
    """The request that curl makes with these arguments."""
    (url,) = [word for word in words if word.startswith("http")]
    given = dict(pairwise(words))
    body = given.get("-d", given.get("--data", ""))
    if body.startswith("@"):
        assert (ROOT / body[1:]).exists()
        body = ""
    address = urlsplit(url)
    resolve(address.path)
    method = given.get("-X", "POST" if "-d" in words else "GET")
    return Request(method, address.path + (f"?{address.query}" if address.query else ""), body)


@of_language("console")
def test_a_command_on_a_page_is_one_that_there_is(block):
    commands = commands_in(block.text)
    assert commands
    for words in commands:
        check_command(words)


@of_language("python")
def test_a_hook_on_a_page_takes_what_hooks_are_told(block):
    names: dict[str, object] = {"__name__": "shown"}
    exec(compile(block.text, block.place, "exec"), names)
    hooks = [value for name, value in names.items() if name.startswith("on_")]
    arbiters = [value for name, value in names.items() if name == "rule_on"]
    assert hooks or arbiters
    for arbiter in arbiters:
        assert set(arbiter("a prompt", {"rule": "no_novelty"})) == {"stuck", "why"}
    for hook in hooks:
        hook(1, {"task_id": "shown"})


# How the pages are written


def sentences_of(path: Path) -> list[str]:
    """The sentences of a page. What stands before a colon or a semicolon counts as one, and so does the cell of a table."""
    text = re.sub(r"(?m)^#+ .*$", "\n", FENCED.sub("", path.read_text()))
    parts = re.split(r"\n\s*\n|\n(?=[-|#]|\d+\. |  - )", text)
    cells = [cell for part in parts for cell in (part.split("|") if part.lstrip().startswith("|") else [part])]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "X", " ".join(cell.split()))) for cell in cells]
    return [sentence for cell in plain for sentence in re.split(r"(?<=[.!?:;·])\s+", cell)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_sentence_on_a_page_has_fewer_than_thirty_words(path):
    assert [sentence for sentence in sentences_of(path) if len(sentence.split()) >= 30] == []


def test_a_word_of_the_glossary_has_one_row():
    words = re.findall(r"(?m)^\| (?:\*\*([^*]+)\*\*|`(\w+)`) ", (ROOT / "docs" / "glossary.md").read_text())
    assert len(words) > 80
    assert len(set(words)) == len(words)


def anchor(heading: str) -> str:
    """What a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_index_of_decisions_has_each_once_but_the_latest():
    page = (ROOT / "docs" / "decisions.md").read_text()
    index, *sections = page.split("\n## ")
    headings = {anchor(section.split("\n")[0]): section.split("\n")[0] for section in sections}
    listed = re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", index)
    assert [(title, link) for title, link in listed if headings.get(link) != title] == []
    links = [link for _, link in listed]
    assert len(links) == len(set(links)) > 150
    latest = max(list(headings).index(link) for link in links)
    assert set(list(headings)[: latest + 1]) - set(links) == set()


def test_an_outdated_decision_says_since_when_and_is_marked_in_the_index():
    index, *sections = (ROOT / "docs" / "decisions.md").read_text().split("\n## ")
    titles = {section.split("\n")[0] for section in sections}
    marked = set(re.findall(r"\[([^\]]+)\]\(#[^)]+\) \(outdated\)", index))
    found = {section.split("\n")[0]: re.findall(r"(?m)^Outdated since (.*)$", section) for section in sections}
    assert {title for title, since in found.items() if since} == marked
    for since in (line for lines in found.values() for line in lines):
        named = re.match(r'(?:"([^"]+)"|\d\.\d): \w', since)
        assert named, since
        assert named[1] is None or named[1] in titles
