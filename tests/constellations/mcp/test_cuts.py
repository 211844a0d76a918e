"""Nothing that the MCP server answers is cut short without a word: how much there is is said, and all of it can be read."""

from __future__ import annotations

import json

import pytest

from agents.models import Approval
from agents.services import sessions
from agents.services.devices import device_create
from agents.streams.verify import verify_database
from constellations.models import Constellation, Task
from constellations.reads.excerpts.addresses import of_task
from constellations.services.edits import edit_apply
from tests.agents.conftest import add_approvals, make_token, record
from tests.constellations.mcp.mcp_program import SCOPES, Program, parts_that_may_be_cut, with_scopes
from tests.constellations.planting import advance, noop, plant

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
LONG = {"rows": [f"row {number}: é" for number in range(3_600)]}
"""About 50 kB as JSON."""
LONG_TEXT = json.dumps(LONG, ensure_ascii=False, separators=(",", ":"))
ACTION = {"tool": "command", "arguments": {"argv": ["deploy", "x" * 11_000, "--and-delete-everything"]}}


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def digits(session) -> Constellation:
    device_create("laptop", by="system")
    return plant(session, noop("fetch"), noop("train", after=["fetch"]), noop("deploy", after=["train"]))


@pytest.fixture
def program(operator) -> Program:
    return Program(make_token(operator, *SCOPES, name="claude"))


def told(constellation: Constellation, task_id: str, **fields) -> None:
    """Fields of a task's row, as an event says them."""
    task = Task.objects.get(constellation=constellation, task_id=task_id)
    record(constellation.session_id, set={"task": {str(task.pk): fields}})


def cut_of(part: dict, key: str) -> dict:
    (found,) = [each for each in part["cut"] if each["key"] == key]
    assert found["shown"] < found["total"]
    return found


# Values of tasks


def test_a_long_result_says_how_long_it_is_and_is_read_in_pieces(program, digits):
    told(digits, "fetch", result=LONG)
    first = program("get_constellation", constellation_id=digits.pk, tasks=["fetch"])["tasks"][0]
    assert (first["result"], first["truncated"]) == (None, True)
    cut = cut_of(first, "result")
    assert (cut["total"], cut["unit"]) == (len(LONG_TEXT), "characters")
    assert program.whole(cut["more"]) == LONG_TEXT
    piece = program("read_value", address=cut["more"], offset=-100)
    assert (piece["text"], piece["next"], piece["truncated"]) == (LONG_TEXT[-100:], None, True)
    resource = program.ask(lambda client: client.read_resource(cut["more"])).contents[0]
    assert (json.loads(resource.text), resource.mime_type) == (LONG, "application/json")


def test_a_text_as_a_result_is_json_as_every_result_is(program, digits):
    text = 'a "quoted" line\n' * 3_000
    told(digits, "fetch", result=text)
    cut = cut_of(program("get_constellation", constellation_id=digits.pk, tasks=["fetch"])["tasks"][0], "result")
    assert program("read_value", address=cut["more"])["total"] == cut["total"]
    assert json.loads(program.whole(cut["more"])) == text
    resource = program.ask(lambda client: client.read_resource(cut["more"])).contents[0]
    assert (json.loads(resource.text), resource.mime_type) == (text, "application/json")
    for result in ("5", 5):
        told(digits, "fetch", result=result)
        assert program.whole(of_task(digits.pk, "fetch", "result")) == json.dumps(result)


def test_arguments_errors_and_reasons_are_cut_in_the_same_words(program, digits):
    told(digits, "train", arguments={"result": LONG}, error="e" * 3_000)
    record(digits.session_id, set={"constellation": {str(digits.pk): {"reason": "r" * 700}}})
    found = program("get_constellation", constellation_id=digits.pk, tasks=["train"])
    task = found["tasks"][0]
    assert json.loads(program.whole(cut_of(task, "arguments")["more"])) == {"result": LONG}
    assert (cut_of(task, "error")["total"], program.whole(cut_of(task, "error")["more"])) == (3_000, "e" * 3_000)
    assert program.whole(cut_of(found, "reason")["more"]) == "r" * 700
    (line,) = program("list_constellations")["constellations"]
    assert (len(line["reason"]), cut_of(line, "reason")["total"]) == (500, 700)


def test_a_task_whose_id_has_slashes_and_letters_of_any_script_has_an_address(program, session):
    device_create("laptop", by="system")
    graph = plant(session, noop("größe/β:1"))
    told(graph, "größe/β:1", result=LONG)
    task = program("get_constellation", constellation_id=graph.pk)["tasks"][0]
    assert program.whole(cut_of(task, "result")["more"]) == LONG_TEXT


def test_all_that_is_written_of_a_task_can_be_read_however_long_it_is(program, digits):
    edit_apply(digits.pk, [{"update_task": {"task_id": "train", "tips": ["x" * 20_000] * 6}}], author="user:1")
    written = program("get_constellation", constellation_id=digits.pk, tasks=["train"])["written"]
    assert (written["tasks"], cut_of(written, "tasks")["total"]) == ([], 1)
    text = program.whole(of_task(digits.pk, "train", "written"))
    assert json.loads(text)["tips"] == ["x" * 20_000] * 6


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("orrery://constellations/{id}/tasks/trian/result", "has no task trian; did you mean train?"),
        ("orrery://constellations/{id}/tasks/train/results", "there is nothing at orrery://"),
        ("orrery://constellations/{id}/edits/e9/diff", "has no edit e9"),
        ("orrery://constellations/{id}/tasks/train/attempts/3/output", "train has no attempt 3; its last is 0"),
        ("orrery://constellations/99/reason", "there is no constellation 99, or it is not yours to see"),
        ("orrery://approvals/99/action", "there is no approval 99 for you to see"),
        ("orrery://devices/labtop/recipes", "there is no device labtop; did you mean laptop?"),
        ("orrery://sessions/1/interactions/1/plan", "there is no interaction 1 in session 1"),
        ("file:///etc/passwd", "there is nothing at file:///etc/passwd"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_in_words(program, digits, address, says):
    assert says in program("read_value", address=address.format(id=digits.pk))


def test_what_a_stranger_may_not_see_has_no_address(roles, program, digits):
    from tests.conftest import person

    stranger = with_scopes(person("stranger", "operator"), *SCOPES)
    assert "not yours to see" in stranger("read_value", address=of_task(digits.pk, "train", "result"))
    (approval,) = add_approvals(digits.session, action=ACTION)
    assert "for you to see" in stranger("read_value", address=f"orrery://approvals/{approval}/action")


# Pages of graphs


def test_tasks_are_found_by_state_and_name_and_read_page_by_page(program, session):
    device_create("laptop", by="system")
    graph = plant(session, *(noop(f"step-{number:04}") for number in range(1_200)))
    told(graph, "step-0777", state="FAILED", error="no space left")
    found = program("get_constellation", constellation_id=graph.pk, state="FAILED")
    assert [(task["task_id"], task["error"]) for task in found["tasks"]] == [("step-0777", "no space left")]
    assert (found["matching"], found["next"], found["truncated"]) == (1, None, False)
    by_name = program("get_constellation", constellation_id=graph.pk, name="STEP-077", limit=4)
    assert ([task["task_id"][-4:] for task in by_name["tasks"]], by_name["matching"]) == (["0770", "0771", "0772", "0773"], 10)
    seen, after = [], None
    while True:
        page = program("get_constellation", constellation_id=graph.pk, **({"after": after} if after else {}))
        seen += [task["task_id"] for task in page["tasks"]]
        assert (cut_of(page, "tasks")["total"], page["counts"]) == (1_200, {"PENDING": 1_199, "FAILED": 1})
        if (after := page["next"]) is None:
            break
    assert seen == [f"step-{number:04}" for number in range(1_200)]


def test_more_dependencies_of_one_task_than_an_answer_shows_can_be_read(program, session, monkeypatch):
    monkeypatch.setattr("constellations.reads.excerpts.overview.DEPENDENCIES", 30)
    device_create("laptop", by="system")
    names = [f"t{number}" for number in range(40)]
    graph = plant(session, *map(noop, names), noop("last", after=names), noop("after", after=["last"]))
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = program("get_constellation", constellation_id=graph.pk, **({"after": after} if after else {}))
        for line in (each for each in page["cut"] if each["key"] == "dependencies"):
            assert (line["shown"], line["total"]) == (30, 40)
            assert len(json.loads(program.whole(line["more"]))) == 40
            seen.append("cut")
        seen += [line["from"] for line in page["dependencies"] if line["to"] == "after"]
        after = page["next"]
    assert seen == ["cut", "last"]


# Edits


def test_the_history_says_of_what_it_shows_a_part_and_all_of_it_can_be_read(program, digits):
    program(
        "update_task", constellation_id=digits.pk, task_id="train", description="x" * 20_000, edit_id="long", reason="y" * 900
    )
    (line,) = program("list_edits", constellation_id=digits.pk)["edits"]
    assert (line["operations"], line["diff"], len(line["reason"])) == ([], [], 500)
    (operation,) = json.loads(program.whole(cut_of(line, "operations")["more"]))
    assert operation["parameters"]["description"] == "x" * 20_000
    assert json.loads(program.whole(cut_of(line, "diff")["more"]))[0]["task"] == "train"
    assert program.whole(cut_of(line, "reason")["more"]) == "y" * 900


def test_an_edit_of_many_tasks_answers_with_what_follows_and_says_what_it_does_not_show(program, digits):
    operations = [{"op": "add_task", "parameters": {"task_id": f"new-{number}", "tool": "noop"}} for number in range(300)]
    preview = program("preview_edit", constellation_id=digits.pk, operations=operations)
    assert (len(preview["diff"]), cut_of(preview, "diff")["total"]) == (200, 300)
    assert cut_of(preview, "consequences.ready")["total"] == 300
    piece = program("preview_edit", constellation_id=digits.pk, operations=operations, part="ready", limit=100_000)["piece"]
    assert json.loads(piece["text"]) == [f"new-{number}" for number in range(300)]
    made = program("apply_edit", constellation_id=digits.pk, operations=operations)
    assert made["consequences"]["ready"] == [f"new-{number}" for number in range(200)]
    assert cut_of(made, "consequences.ready") | {"shown": 200, "total": 300} == cut_of(made, "consequences.ready")
    assert len(json.loads(program.whole(cut_of(made, "diff")["more"]))) == 300


def test_a_proposal_says_how_much_follows_of_which_it_shows_a_part(operator, digits):
    program = with_scopes(operator, "read", "operate")
    operations = [{"op": "add_task", "parameters": {"task_id": f"new-{number}", "tool": "noop"}} for number in range(300)]
    waiting = program("apply_edit", constellation_id=digits.pk, operations=operations)
    assert waiting["proposal"]["state"] == "waiting"
    assert (cut_of(waiting, "diff")["total"], cut_of(waiting, "consequences.ready")["total"]) == (300, 300)
    assert Approval.objects.get().observed["consequences_total"]["ready"] == 300


def test_the_answer_to_an_edit_carries_the_consequences_that_its_preview_has(program, digits):
    operations = [{"op": "remove_dependency", "parameters": {"from": "fetch", "to": "train"}}]
    foreseen = program("preview_edit", constellation_id=digits.pk, operations=operations)["consequences"]
    made = program("apply_edit", constellation_id=digits.pk, operations=operations, edit_id="e1")
    assert made["consequences"] == foreseen
    assert (foreseen["ready"], foreseen["critical_path_after"]) == (["train"], ["train", "deploy"])
    again = program("apply_edit", constellation_id=digits.pk, operations=operations, edit_id="e1")
    assert (again["changed"], again["consequences"]) == (False, None)
    undone = program("undo_edit", constellation_id=digits.pk, edit_id="e1")
    assert (undone["consequences"]["blocked"], undone["consequences"]["critical_path_after"]) == (
        ["train"],
        ["fetch", "train", "deploy"],
    )
    assert list(verify_database()) == []


# Approvals


def read_action(program: Program, approval: int, limit: int = 4_000) -> tuple[str, str | None]:
    """The action as its pieces have it, and the digest that came with the last."""
    address, offset, seen, pieces = f"orrery://approvals/{approval}/action", 0, {}, []
    while True:
        piece = program("read_value", address=address, offset=offset, limit=limit, **seen)
        pieces.append(piece["text"])
        if piece["next"] is None:
            return "".join(pieces), piece["digest"]
        assert piece["digest"] is None
        offset, seen = piece["next"], {"seen": piece["seen"]}


def test_a_long_action_is_never_approved_unseen(program, session):
    (approval,) = add_approvals(session, action=ACTION)
    (row,) = program("list_approvals")["approvals"]
    assert (row["action"], row["digest"], row["truncated"]) == (None, None, True)
    address = cut_of(row, "action")["more"]
    decide = {"approval_id": approval, "decision": "approve"}
    assert program("decide_approval", **decide).startswith("digest: approving needs the digest of the action")
    guessed = program("decide_approval", **decide, digest="0" * 64)
    assert "what you saw is not what would be done" in guessed
    assert Approval.objects.get().digest not in guessed
    text, digest = read_action(program, approval)
    assert json.loads(text) == ACTION
    assert address == f"orrery://approvals/{approval}/action"
    assert Approval.objects.get().state == "waiting"
    assert program("decide_approval", **decide, digest=digest)["approval"]["state"] == "approved"
    assert list(verify_database()) == []


def test_the_digest_of_an_action_is_for_those_who_have_read_all_of_it(program, operator, session):
    (approval,) = add_approvals(session, action=ACTION)
    address = f"orrery://approvals/{approval}/action"
    unread = "an approval's action is read from its beginning, piece by piece"
    assert unread in program("read_value", address=address, offset=-10)
    assert unread in program("read_value", address=address, offset=11_000)
    first = program("read_value", address=address, limit=100)
    assert first["digest"] is None
    assert unread in program("read_value", address=address, offset=11_000, seen=first["seen"])
    assert unread in program("read_value", address=address, offset=100, seen="0" * 32)
    other = Program(make_token(operator, *SCOPES, name="other"))
    assert unread in other("read_value", address=address, offset=100, seen=first["seen"])
    assert program("read_value", address=address, offset=100, seen=first["seen"])["offset"] == 100


def test_a_short_action_comes_with_its_digest_and_rejecting_needs_none(program, session):
    approval, other = add_approvals(session, 2)
    shown = {row["id"]: row for row in program("list_approvals")["approvals"]}
    assert shown[approval]["digest"] == Approval.objects.get(pk=approval).digest
    assert "needs the digest" in program("decide_approval", approval_id=approval, decision="approve")
    approved = program("decide_approval", approval_id=approval, decision="approve", digest=shown[approval]["digest"])
    assert approved["approval"]["state"] == "approved"
    assert program("decide_approval", approval_id=other, decision="reject")["approval"]["state"] == "rejected"


def test_a_question_is_answered_without_a_digest(program, session):
    (approval,) = add_approvals(session, kind="question", title="Which?", action={}, digest="")
    answered = program("decide_approval", approval_id=approval, decision="approve", answer="that one")
    assert answered["approval"]["state"] == "approved"


def test_many_actions_of_a_list_are_shown_as_far_as_they_go_and_said_to_be_cut(program, session):
    action = {"tool": "command", "arguments": {"argv": ["x" * 9_000]}}
    add_approvals(session, 15, action=action)
    rows = program("list_approvals")["approvals"]
    assert {row["digest"] is None for row in rows if row["truncated"]} == {True}
    assert (len(rows), sum(row["truncated"] for row in rows)) == (15, 4)


def test_an_approval_is_a_resource_with_all_of_its_action(program, session):
    (approval,) = add_approvals(session, action=ACTION)
    text = program.ask(lambda client: client.read_resource(f"orrery://approvals/{approval}")).contents[0].text
    whole = json.loads(text)
    assert (whole["action"], whole["truncated"]) == (ACTION, False)
    assert program("decide_approval", approval_id=approval, decision="approve", digest=whole["digest"])["changed"] is True


# Devices and resources


def test_devices_come_with_tools_recipes_and_limits_in_pages(program, monkeypatch):
    monkeypatch.setattr("constellations.mcp.reading.DEVICES_SHOWN", 2)
    recipes = {f"check-{number}": {"command": ["df", "-h", "/" + "x" * 50]} for number in range(100)}
    device_create("pi", by="system", recipes=recipes, limits={"seconds": 60})
    for name in ("laptop", "tablet"):
        device_create(name, by="system")
    found = program("list_devices")
    assert ([row["name"] for row in found["devices"]], found["next"]) == (["laptop", "pi"], "pi")
    assert [row["name"] for row in program("list_devices", after="pi")["devices"]] == ["tablet"]
    laptop, pi = found["devices"]
    assert (laptop["recipes"], laptop["limits"]["seconds"], pi["limits"]["seconds"]) == ({}, 3600, 60)
    assert json.loads(program.whole(cut_of(pi, "recipes")["more"])) == recipes
    assert {"command", "noop", "read_file", "write_file", "edit_file"} <= found["tools"].keys()
    assert found["runners"] == 0


def test_resources_are_listed_page_by_page(program, session, monkeypatch):
    monkeypatch.setattr("constellations.mcp.resources.LISTED", 2)
    device_create("laptop", by="system")
    made = [plant(session, noop("a")).pk for _ in range(3)]
    first = program.ask(lambda client: client.list_resources())
    rest = program.ask(lambda client: client.list_resources(cursor=first.next_cursor))
    assert [each.uri for each in [*first.resources, *rest.resources]] == [f"orrery://constellations/{pk}" for pk in made[::-1]]
    assert rest.next_cursor is None


def test_every_part_of_an_answer_that_may_be_cut_says_so_in_the_same_words(program, digits):
    """What is cut somewhere is read to its end by the address beside it."""
    advance(digits, fetch="COMPLETED")
    told(digits, "fetch", result=LONG, arguments={"result": LONG}, error="e" * 600)
    followed = 0
    for name, arguments in (("get_constellation", {"constellation_id": digits.pk}), ("list_constellations", {})):
        for part in parts_that_may_be_cut(program(name, **arguments)):
            for each in part["cut"]:
                assert len(program.whole(each["more"])) == each["total"]
                followed += 1
    assert followed == 3
