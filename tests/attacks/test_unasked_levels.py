"""Who may let a model do more without asking: in a plan and on a device. Whoever may not approve may only narrow."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from agents.models import Device, InboxItem
from agents.services.devices import device_create
from agents.services.sessions import session_create
from agents.services.tokens import token_create
from tests.agents.conftest import Rest
from tests.attacks.gated import ALL, EDITOR, token
from tests.conftest import person

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]

WIDE = {"commands": [["pytest", "-q"]]}
NARROW = {"ask": ["*"]}


def submit(rest: Rest, session, unasked: dict, **task):
    plan = {"tasks": [{"task_id": "a", "command": ["true"]}, {"task_id": "b", "tool": "noop", "unasked": unasked, **task}]}
    return rest.post(f"/api/sessions/{session.pk}/interactions/", {"plan": json.dumps(plan)})


@pytest.fixture
def session(operator):
    device_create("laptop", by="system")
    return session_create(operator, "mine", by=f"user:{operator.pk}")


def test_a_plan_of_a_token_that_may_not_approve_only_narrows(operator, session):
    author = Rest(token=token(operator, *EDITOR)[1])
    refused = submit(author, session, WIDE)
    assert (refused.status_code, refused.json()["code"]) == (403, "not_approver")
    assert "b: unasked lets a model run pytest -q unasked" in refused.content.decode()
    assert not InboxItem.objects.exists()
    assert submit(author, session, NARROW).status_code in (201, 202)


def test_a_plan_of_somebody_who_may_approve_widens(operator, session):
    assert submit(Rest(operator), session, WIDE).status_code in (201, 202)
    assert submit(Rest(token=token(operator, *ALL)[1]), session, WIDE).status_code in (201, 202)


def test_a_token_that_was_issued_for_a_session_never_widens(operator, session):
    _, text = token_create(operator, "agent", ALL, timedelta(days=1), by="system", session=session.pk)
    assert submit(Rest(token=text), session, WIDE).status_code == 403


@pytest.mark.parametrize(
    ("unasked", "place"),
    [({"comands": []}, "unasked.comands"), ({"commands": [["sh", "-c", "x"]]}, "unasked.commands[0]"), ([], "unasked")],
)
def test_what_a_plan_cannot_mean_is_refused_with_its_place(operator, session, unasked, place):
    refused = submit(Rest(operator), session, unasked)
    assert refused.status_code == 400
    assert place in refused.content.decode()


@pytest.fixture
def keeper(roles):
    Group.objects.get_or_create(name="devices")
    return Rest(person("keeper", "devices"))


def test_who_makes_devices_and_may_not_approve_only_narrows_them(keeper, admin_user):
    refused = keeper.post("/api/devices/", {"name": "wide", "unasked": WIDE})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_approver")
    assert not Device.objects.filter(name="wide").exists()
    made = keeper.post("/api/devices/", {"name": "narrow", "unasked": NARROW})
    assert (made.status_code, made.json()["unasked"]) == (201, NARROW)
    address = f"/api/devices/{made.json()['id']}/"
    assert keeper.patch(address, {"unasked": {}}).status_code == 403
    assert keeper.patch(address, {"unasked": {"ask": ["*", "noop"]}}).status_code == 200
    assert Rest(admin_user).patch(address, {"unasked": WIDE}).json()["unasked"] == WIDE
    assert keeper.patch(address, {"type": "same", "unasked": WIDE}).status_code == 200


def test_what_a_device_cannot_mean_is_refused_with_its_place(admin_user):
    refused = Rest(admin_user).post("/api/devices/", {"name": "odd", "unasked": {"commands": [["sh", "-c", "x"]]}})
    assert refused.status_code == 400
    assert "unasked.commands.0" in refused.content.decode()
