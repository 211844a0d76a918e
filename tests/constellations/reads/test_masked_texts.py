"""What was read masked and is sent back: the secret stays, or the writer is told; never is a mask kept in its place."""

import pytest

from agents.masks.masking import MARK
from agents.models import Approval, Policy
from agents.services import sessions
from agents.services.devices import device_create
from agents.services.policies import policy_create
from constellations.models import Edit, Task
from tests.agents.conftest import Rest, add_agents, add_approvals, make_token
from tests.conftest import person
from tests.constellations.admin.admin_client import Staff, row_of
from tests.constellations.mcp.mcp_program import Program
from tests.constellations.planting import noop, plant

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "ghp_0123456789abcdefghij0123456789"
HIDDEN = MARK * len(KEY)
ARGV = ["deploy", "--token", KEY, "it's"]


@pytest.fixture
def made(operator):
    session = sessions.session_create(operator, "mine", by="system")
    device_create("laptop", by="system")
    task = {"task_id": "a", "command": ARGV, "description": f"with {KEY}", "tips": [KEY]}
    return plant(session, task, noop("b", after=["a"]))


def row() -> Task:
    return Task.objects.get(task_id="a")


def untouched() -> bool:
    return (row().arguments["argv"], row().description, row().tips) == (ARGV, f"with {KEY}", [KEY])


def edited(rest, made, parameters, **more):
    operations = [{"op": "update_task", "parameters": {"task_id": "a", **parameters}}]
    return rest.post(f"/api/constellations/{made.pk}/edits/", {"operations": operations, **more})


@pytest.mark.parametrize("field", ["arguments", "command", "description", "tips"])
def test_an_edit_that_sends_a_mask_back_is_refused_where_it_stands(made, operator, field):
    rest = Rest(operator)
    shown = rest.get(f"/api/tasks/{row().pk}/").json()
    assert shown["description"] == f"with {HIDDEN}"
    value = {**shown, "command": shown["arguments"]["argv"]}[field]
    answer = edited(rest, made, {field: value})
    assert (answer.status_code, answer.json()["code"]) in ((400, "edit_refused"), (409, "edit_refused"))
    assert "holds what is shown in the place of a secret" in answer.json()["detail"]
    assert field in answer.json()["problems"][0]["field"]
    assert untouched()
    assert edited(rest, made, {"name": "another"}).status_code in (200, 201)
    assert untouched()


def test_the_same_over_mcp_and_in_a_plan(made, operator):
    program = Program(make_token(operator, "read", "edit", "operate", name="claude"))
    written = program("get_constellation", constellation_id=made.pk, tasks=["a"])["written"]["tasks"][0]
    assert HIDDEN in str(written)
    said = program("update_task", constellation_id=made.pk, task_id="a", description=written["description"])
    assert "holds what is shown in the place of a secret" in said
    export = Rest(operator).get(f"/api/constellations/{made.pk}/export/").content.decode()
    assert HIDDEN in export
    refused = Rest(operator).post("/api/sessions/", {"plan": export})
    assert refused.status_code == 400
    assert "what is shown in the place of a secret" in refused.json()["detail"]
    assert untouched()


def test_a_page_that_is_sent_back_keeps_the_secret_and_changes_the_rest(made, operator):
    staff = Staff(operator)
    for page in (made, row()):
        values = staff.form(page)
        prefix = row_of(values, "a")
        assert HIDDEN in values[f"{prefix}-command"]
        assert staff.save(page, values).status_code == 302
        assert (Edit.objects.count(), untouched()) == (0, True)
    assert staff.save(made, {**values, f"{prefix}-name": "renamed"}).status_code == 302
    assert (row().name, untouched()) == ("renamed", True)
    values = staff.form(row())
    changed = values[f"{prefix}-command"].replace("deploy", "publish")
    assert "holds what is shown" in staff.save(row(), {**values, f"{prefix}-command": changed}).content.decode()
    assert untouched()


def test_a_policy_keeps_what_its_page_hides(admin_user):
    policy = policy_create(tool="command", decision="ask", pattern=KEY, note=f"for {KEY}", by="system")
    staff = Staff(admin_user)
    values = {"order": "5", "tool": "command", "pattern": HIDDEN, "device": "*", "label": "*", "decision": "ask"}
    values["note"] = f"for {HIDDEN}"
    assert HIDDEN in staff.page(policy).content.decode()
    assert staff.save(policy, values).status_code == 302
    kept = Policy.objects.get()
    assert (kept.order, kept.pattern, kept.note) == (5, KEY, f"for {KEY}")
    assert staff.save(policy, {**values, "note": f"also for {HIDDEN}"}).status_code == 200
    answer = Rest(admin_user).patch(f"/api/policies/{policy.pk}/", {"pattern": HIDDEN})
    assert (answer.status_code, Policy.objects.get().pattern) == (400, KEY)


def test_arguments_that_a_person_puts_in_the_place_of_others_are_no_masks(made, roles):
    agent = add_agents(made.session)[0]
    approval = add_approvals(made.session, 1, agent_id=agent, action={"tool": "command", "arguments": {"argv": ARGV}})[0]
    rest = Rest(person("boss", "admin"))
    body = {"decision": "approve", "arguments": {"argv": ["deploy", HIDDEN]}}
    answer = rest.post(f"/api/approvals/{approval}/decision/", body)
    assert "what is shown in the place of a secret" in answer.json()["detail"]
    assert Approval.objects.get(pk=approval).state == "waiting"


def test_a_recipe_and_an_environment_take_no_mask(admin_user):
    rest = Rest(admin_user)
    for body in ({"recipes": {"go": {"command": ["go", HIDDEN]}}}, {"limits": {"env": {"A": HIDDEN}}}):
        assert rest.post("/api/devices/", {"name": "d", **body}).status_code == 400
