"""Role x scope x owner over every door, generated from the routes and held against `access_tables.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from agents.api.problems import not_found
from tests.attacks.access_tables import BODIES, PAGES, RAW, REST, Line
from tests.attacks.worlds import ROLES, Identity, World, identities, make_world, pairs, people, taken_back
from tests.conftest import person

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
TOLD = 40
"""Lines of a failure."""


@pytest.fixture
def users(roles, caplog):
    caplog.set_level("CRITICAL", "django.request")  # each refusal is a line
    return people(*ROLES)


@pytest.fixture
def worlds(users) -> dict[str, World]:
    """One of everybody who asks, and one of an operator who does not."""
    stranger = person("zq-stranger", "operator")
    return {role: make_world(user) for role, user in {**users, "stranger": stranger}.items()}


# The addresses that there are


def patterns(of=None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """(address, pattern) of the whole URL conf."""
    for each in (of or get_resolver()).url_patterns:
        text = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each, text)
        else:
            yield text, each


def readable(text: str) -> str:
    """A route as the table writes it: /api/sessions/{pk}/events, /sessions/<pk>/."""
    text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"{\1}", text)
    text = re.sub(r"<\w+:(\w+)>", r"<\1>", text)
    return "/" + text.replace("^", "").replace("$", "").replace("/?", "")


def is_admin(text: str) -> bool:
    return text.startswith("admin/")


def rest_addresses() -> set[str]:
    found = set()
    for text, pattern in patterns():
        if not text.startswith("api/") or pattern.callback is not_found:
            continue
        actions = getattr(pattern.callback, "actions", None) or {"get": "get"}
        found |= {f"{method.upper()} {readable(text)}" for method in actions if method != "head"}
    return found


def page_addresses() -> set[str]:
    return {readable(text) for text, _ in patterns() if not is_admin(text) and not text.startswith(("api/", "^api"))}


def test_every_address_has_its_line():
    assert rest_addresses() == set(REST)
    assert page_addresses() == set(PAGES)


# What is asked, and what should come


def asked_about(table: dict[str, Line], who: Identity, own: bool) -> list[Line]:
    """All of them with their own rows; those of a stranger where there are any, and who asks may do so with their own."""
    if own or not who.role:
        return list(table.values())
    return [line for line in table.values() if line.whose in ("own", "mine") and expected(line, who, True) == "yes"]


def filled(line: Line, world: World) -> str:
    """The line's path, about rows of that world."""
    kind = line.address.split("/")[2] if "/api/" in line.address else line.address.split("/")[1]
    ended = line.address.endswith("/reopen")
    keys: dict[str, Any] = {
        "sessions": world.session, "agents": world.agent, "policies": world.policy,
        "model_profiles": world.model_profile, "devices": world.devices.get(line.address, world.devices[""]),
        "budgets": world.budget, "model_calls": world.model_call, "artifacts": world.artifact,
        "approvals": world.callback if line.address.endswith("/callback") else world.approval,
        "constellations": world.ended if ended else world.constellation,
        "tasks": world.task("failed" if line.address.endswith("/retry") else "done" if "output" in line.address else "waits"),
    }  # fmt: skip
    names = {"pk": keys.get(kind), "name": "task", "edit_id": world.edit, "id": world.token, "token": "1.nonsense"}
    names["plan"] = world.constellation  # runs of a graph that no plan made are known by its own number
    return re.sub(r"[{<](\w+)[}>]", lambda found: str(names[found[1]]), line.address.split()[-1])


def expected(line: Line, who: Identity, own: bool) -> str:
    """What the table says of a request: yes, or the status of its refusal."""
    if line.role == "anyone":
        return "yes"
    if not who.role or line.role == "enrolment":
        return "401"
    if not (who.has_scope(line.scope) and who.has_role(line.role)):
        return "403"
    hidden = line.whose == "own" and not own and not who.is_admin
    return "404" if hidden or (line.whose == "mine" and not own) else "yes"


def named(who: Identity, own: bool, line: Line) -> str:
    return f"{who}, {'own' if own else 'foreign'}: {line.address}"


def told(wrong: list[str]) -> str:
    """The first of them, each on a line of its own."""
    return "\n".join([f"{len(wrong)} answers are not those of the table", *wrong[:TOLD]])


def came(status: int) -> str:
    return "yes" if 200 <= status < 300 else str(status)


def ask(line: Line, who: Identity, world: World):
    headers = {"Authorization": f"Bearer {who.token}"} if who.token else {}
    body, kind = json.dumps(BODIES.get(line.address, {})), "application/json"
    path = filled(line, world)
    if line.address in RAW:
        path, kind = path + RAW[line.address], "application/octet-stream"
    return who.client.generic(line.address.split()[0], path, body, content_type=kind, headers=headers)


def text_of(answer) -> str:
    return (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()


def others(who: Identity, line: Line, worlds: dict[str, World]) -> list[str]:
    """What the answer must not name: the rows of everybody else."""
    if who.is_admin and line.whose != "mine" and "tokens" not in line.address:
        return []
    return [world.marker for role, world in worlds.items() if role != who.role]


def test_rest_does_what_the_table_says(users, worlds):
    wrong = []
    for who, world, own in pairs(users, worlds):
        for line in asked_about(REST, who, own):
            with taken_back() as writes:
                answer = ask(line, who, world)
            wanted, text = expected(line, who, own), text_of(answer)
            asked = named(who, own, line)
            if came(answer.status_code) != wanted:
                wrong.append(f"{asked}: {answer.status_code}, the table says {wanted}: {text[:150]}")
            if (wanted != "yes" or line.address.startswith("GET")) and writes.found:
                wrong.append(f"{asked}: {answer.status_code}, and it wrote {writes.found}")
            wrong += [f"{asked}: names {marker}" for marker in others(who, line, worlds) if marker in text]
    assert not wrong, told(wrong)


def test_other_methods_are_refused_and_write_nothing(users, worlds):
    wrong = []
    admin = next(who for who in identities(users) if who.is_admin and not who.token)
    for path in sorted({line.address.split()[1] for line in REST.values()}):
        for method in METHODS:
            if f"{method} {path}" in REST:
                continue
            line = Line(f"{method} {path}", "admin", "-", "-")
            with taken_back() as writes:
                answer = ask(line, admin, worlds["admin"])
            if answer.status_code != 405 or writes.found:
                wrong.append(f"{line.address}: {answer.status_code} {writes.found}")
    assert not wrong, told(wrong)


def test_pages_do_what_the_table_says(users, worlds):
    wrong = []
    for who, world, own in pairs(users, worlds):
        known = who if not who.token else Identity()
        for line, method in product(asked_about(PAGES, who, own), ("GET", "POST")):
            if (line.address, method) == ("/logout/", "POST"):
                continue  # it does what it says
            with taken_back() as writes:
                answer = ask(line._replace(address=f"{method} {line.address}"), who, world)
            wanted, text, asked = expected(line, known, own), answer.content.decode(), f"{named(who, own, line)} by {method}"
            if not is_page_as_wanted(answer, wanted, line, method):
                wrong.append(f"{asked}: {answer.status_code}, the table says {wanted}")
            if writes.found:
                wrong.append(f"{asked}: {answer.status_code}, and it wrote {writes.found}")
            wrong += [f"{asked}: names {marker}" for marker in others(known, line, worlds) if marker in text]
    assert not wrong, told(wrong)


def is_page_as_wanted(answer, wanted: str, line: Line, method: str) -> bool:
    to_login = answer.status_code == 302 and answer["Location"].startswith("/login/?next=")
    if line.role == "anyone":
        return answer.status_code < 500 and not to_login
    if method == "POST":
        return to_login or answer.status_code == 405
    return to_login if wanted == "401" else came(answer.status_code) == wanted
