"""What is read of a constellation is of one moment, whoever edits it while it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from agents.services import sessions
from agents.streams.fold import consistent_read
from agents.streams.statements import write_transaction
from constellations.mcp import reading
from constellations.mcp.access import Caller
from constellations.models import Constellation, Task
from constellations.services import dispatcher
from constellations.services.edits import edit_apply
from tests.agents.conftest import Rest, make_token
from tests.constellations.planting import noop, plant
from tests.constellations.runs.test_run import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]
QUERIES = 30
"""No reader here asks so often."""


class EditedMeanwhile:
    """Somebody else edits, on a connection of their own, before the reader's query number `number` to constellations."""

    def __init__(self, number: int, edit: Callable[[], Any]):
        self.left, self.edit, self.edited = number, edit, False

    def __call__(self, execute, sql, params, many, context):
        if "constellations_" in sql:
            self.left -= 1
            if self.left == 0:
                in_thread(self.edit)
                self.edited = True
        return execute(sql, params, many, context)


@pytest.fixture
def graph(operator, device) -> Constellation:
    """keep > a1 > a2; `flip` makes it keep > b1 > b2, b3, and back."""
    return plant(sessions.session_create(operator, by="system"), noop("keep"), *flipped("a"))


def flipped(letter: str) -> list[dict]:
    names = {"a": ("a1", "a2"), "b": ("b1", "b2", "b3")}[letter]
    return [noop(name, after=[before]) for before, name in zip(("keep", *names), names, strict=False)]


def flip(made: int) -> None:
    letter = "a" if Task.objects.filter(constellation=made, task_id="b1").exists() else "b"
    whole = {"op": "build_constellation", "parameters": {"tasks": [noop("keep"), *flipped(letter)]}}
    assert edit_apply(made, [whole], author="user:2")[1]


def moments(read: Callable[[], Any], made: int) -> int:
    """Read with an edit in each gap between the reader's queries; how many gaps there were."""
    for number in range(1, QUERIES):
        meanwhile, before = EditedMeanwhile(number, lambda: flip(made)), read()
        with connection.execute_wrapper(meanwhile):
            found = read()
        if not meanwhile.edited:
            return number - 1
        after = read()
        assert before != after
        assert found in (before, after), f"an edit before query {number} was read by half"
    raise AssertionError("the reader never came to an end")


def of_rest(answer) -> tuple:
    assert answer.status_code == 200, answer.content
    found = answer.json()
    clocks = {"wall_s", "work_s", "waiting_s"}
    return answer.headers.get("ETag"), {key: value for key, value in found.items() if key not in clocks}


@pytest.mark.parametrize(
    ("end", "query"),
    [
        ("", {}), ("statistics/", {}), ("export/", {}), ("export/", {"dialect": "galaxy", "states": 1}), ("edits/", {}),
    ],
)  # fmt: skip
def test_what_is_read_over_rest_is_of_one_version_and_so_is_its_etag(operator, graph, end, query):
    rest = Rest(operator)
    assert moments(lambda: of_rest(rest.get(f"/api/constellations/{graph.pk}/{end}", **query)), graph.pk) >= 2


def test_what_an_outside_program_reads_is_of_one_version(operator, graph):
    caller = Caller(operator, make_token(operator, "read")[0])

    def read() -> dict:
        return reading.get_constellation(caller, {"constellation_id": graph.pk}).model_dump()

    assert moments(read, graph.pk) >= 3


def test_the_whole_constellation_beside_an_edits_answer_is_of_one_version(graph):
    assert moments(lambda: dispatcher.describe_edit(graph.pk, None, False, before=1, full=True), graph.pk) >= 3


def test_an_exported_file_is_of_one_version(graph, capsys):
    def read() -> str:
        call_command("constellation_export", str(graph.pk), states=True)
        return capsys.readouterr().out

    assert moments(read, graph.pk) >= 3


def test_why_a_task_waits_is_of_one_moment(operator, graph):
    """Its state and what holds it back: an edit between the two would have it wait for what it no longer waits for."""
    last = Task.objects.get(task_id="a2").pk
    rest = Rest(operator)

    def edit() -> None:
        gone = {"op": "remove_dependency", "parameters": {"from": "a1", "to": "a2"}}
        edit_apply(graph.pk, [gone], author="user:2")

    for number in (2, 3):
        meanwhile = EditedMeanwhile(number, edit)
        with connection.execute_wrapper(meanwhile):
            found = rest.get(f"/api/tasks/{last}/why/").json()
        assert meanwhile.edited
        assert (found["state"], found["kind"]) == ("WAITING_DEPENDENCY", "dependency")
        assert found["text"].startswith("waits for a1 (WAITING_DEPENDENCY); besides, no runner lives")
        tied = {"op": "add_dependency", "parameters": {"from": "a1", "to": "a2"}}
        edit_apply(graph.pk, [tied], author="user:2")


def test_inside_a_transaction_a_consistent_read_is_part_of_it_and_does_not_end_it(graph):
    with write_transaction():
        Constellation.objects.update(name="mine")
        with consistent_read():
            assert Constellation.objects.get().name == "mine"
        Constellation.objects.update(name=graph.name)
        transaction.set_rollback(True)
    assert Constellation.objects.get().name == graph.name
