"""The matrix of access over the admin, from its registry and its addresses. See `access_tables.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.attacks.access_tables import ACTIONS, ADMIN, ADMIN_PLACES
from tests.attacks.test_access_matrix import is_admin, patterns, told, users, worlds  # noqa: F401  fixtures
from tests.attacks.worlds import ROLES, Identity, Writes, taken_back
from tests.conftest import person

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db]

OF_A_MODEL = re.compile(
    r"admin/(auth|axes|django_q|agents|constellations)/(\w+)/(add/|<path:object_id>/((history|delete|change)/)?)?"
)  # fmt: skip
APP_LABEL = re.compile(r"\^\(\?P<app_label>.*\)/\$")
RANKS = {"login": 0, "viewer": 1, "operator": 2, "admin": 3, "super": 4}
"""What the table asks of staff; "-" is asked of nobody."""
STAFF = (*ROLES, "super")
SHARED = ("agents.policy", "agents.device")
"""Whose rows are everybody's; what is done to them needs the role admin."""


def test_every_page_of_the_admin_has_its_line():
    assert {model._meta.label_lower for model in admin.site._registry} == set(ADMIN)
    others = [text for text, _ in patterns() if is_admin(text) and not OF_A_MODEL.fullmatch(text)]
    assert {APP_LABEL.sub("<app_label>/", text) for text in others} == set(ADMIN_PLACES)
    offered = {model._meta.label_lower: names_of(each) for model, each in admin.site._registry.items()}
    assert {label: names for label, names in offered.items() if names} == {
        label: names for label, names in ACTIONS.items() if names != ("delete_selected",)
    }  # fmt: skip


def names_of(shown: admin.ModelAdmin) -> tuple[str, ...]:
    return tuple(each.__name__ for each in shown.actions or ())


@pytest.fixture
def staff(users) -> list[Identity]:  # noqa: F811
    """Whoever may come to the admin, by role; and a superuser."""
    found = []
    for role in STAFF:
        user = users.get(role) or person("zq-super", "")
        user.is_staff, user.is_superuser = True, role == "super"
        user.save()
        client = Client()
        client.force_login(user)
        found.append(Identity(role, user, client=client))
    return found


@pytest.fixture
def outsiders(users, staff) -> list[Identity]:  # noqa: F811
    """Who has nothing to look for in the admin: no login, no staff."""
    client = Client()
    client.force_login(person("zq-no-staff", "admin"))
    return [Identity(client=Client()), Identity("admin", client=client)]


def may(who: Identity, least: str) -> bool:
    return least != "-" and STAFF.index(who.role) >= RANKS[least]


def sees_all(who: Identity) -> bool:
    return may(who, "admin")


def page(label: str, what: str, key: Any = None) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_{what}", args=() if key is None else (key,))


def keys_of(label: str, worlds) -> dict[str, Any]:  # noqa: F811
    """A row of everybody, by role, where the model has some."""
    name = label.split(".")[1]
    shared = {
        "device": lambda: worlds["stranger"].devices[""], "policy": lambda: worlds["stranger"].policy,
        "modelprofile": lambda: worlds["stranger"].model_profile, "budget": lambda: worlds["stranger"].budget,
        "user": lambda: apps.get_model("auth.User").objects.get(username="zq-stranger").pk,
        "group": lambda: apps.get_model("auth.Group").objects.first().pk,
    }  # fmt: skip
    if name in shared:
        return dict.fromkeys(worlds, shared[name]())
    return {role: world.rows[name] for role, world in worlds.items() if name in world.rows}


def asked(client: Client, path: str, sent: dict[str, Any] | None, check: Callable[[Any, Writes], str]) -> list[str]:
    """What is wrong with the answer, if anything."""
    with taken_back() as writes:
        answer = client.get(path) if sent is None else client.post(path, sent)
    flaw = check(answer, writes)
    return [f"{'GET' if sent is None else 'POST'} {path}: {answer.status_code} {flaw}"] if flaw else []


def refused(*statuses: int) -> Callable[[Any, Writes], str]:
    def check(answer, writes: Writes) -> str:
        if writes.found:
            return f"it wrote {writes.found}"
        if answer.status_code not in statuses:
            return f"is none of {statuses}"
        away = answer.status_code != 302 or answer["Location"] == "/admin/" or answer["Location"].startswith("/admin/login/?")
        return "" if away else f"leads to {answer['Location']}"

    return check


def shown(*hidden: str) -> Callable[[Any, Writes], str]:
    def check(answer, writes: Writes) -> str:
        text = answer.content.decode()
        named = [each for each in hidden if each in text]
        return f"names {named}" if named else "" if answer.status_code == 200 else "is not 200"

    return check


def reached(answer, writes: Writes) -> str:
    return "" if answer.status_code in (200, 302) else "is neither 200 nor 302"


TO_LOGIN = refused(302)
SENT = {"_save": "1", "name": "changed", "title": "changed", "order": "1", "decision": "allow", "tool": "x", "post": "yes"}


def test_who_is_no_staff_sees_nothing_of_the_admin(outsiders, worlds):  # noqa: F811
    wrong = []
    for who in outsiders:
        for label in ADMIN:
            key = next(iter(keys_of(label, worlds).values()), 1)
            places = [
                page(label, "changelist"),
                page(label, "add"),
                *(page(label, what, key) for what in ("change", "delete", "history")),
            ]
            for path in places:
                for sent in (None, SENT):
                    wrong += [f"{who}: {flaw}" for flaw in asked(who.client, path, sent, TO_LOGIN)]
    assert not wrong, told(wrong)


def test_the_admin_does_what_the_table_says(staff, worlds):  # noqa: F811
    wrong = []
    for who in staff:
        for label in ADMIN:
            for path, sent, check in about_model(who, label, worlds):
                wrong += [f"{who}: {flaw}" for flaw in asked(who.client, path, sent, check)]
    assert not wrong, told(wrong)


def about_model(who: Identity, label: str, worlds) -> list[tuple]:  # noqa: F811
    """(path, what is sent, what should come) of the pages of a model."""
    sees, adds, changes, deletes, whose = ADMIN[label]
    keys = keys_of(label, worlds)
    hidden = [world.marker for role, world in worlds.items() if role != who.role and whose != "shared" and not sees_all(who)]
    found: list[tuple] = [
        (page(label, "changelist"), None, shown(*hidden) if may(who, sees) else refused(403)),
        (page(label, "add"), None, shown() if may(who, adds) else refused(403)),
    ]
    found += [] if may(who, adds) else [(page(label, "add"), SENT, refused(403))]
    for role in {who.role, "stranger"} & set(keys):
        visible = whose == "shared" or sees_all(who) or (whose != "admins" and role == who.role)
        found += about_row(who, label, keys[role], visible=visible and may(who, sees), table=(changes, deletes))
    return found


def about_row(who: Identity, label: str, key: Any, *, visible: bool, table: tuple[str, str]) -> list[tuple]:
    """Requests about one row, with what should come of each; a row that is not to be seen leads away, or is refused."""
    changes, deletes = table
    change, delete, history = (page(label, what, key) for what in ("change", "delete", "history"))
    gone = refused(302, 403, 404)
    if not visible:
        return [(path, sent, gone) for path in (change, delete, history) for sent in (None, SENT)]
    found: list[tuple] = [] if label == "agents.token" else [(change, None, shown())]
    found += [] if may(who, changes) else [(change, SENT, refused(403))]
    found += [] if may(who, deletes) else [(delete, None, refused(403)), (delete, SENT, refused(403))]
    return found


def test_actions_are_done_by_whom_the_table_says_and_to_their_rows_only(staff, worlds):  # noqa: F811
    wrong = []
    for who in staff:
        for label, names in ACTIONS.items():
            least, keys = "admin" if label in SHARED else "operator", keys_of(label, worlds)
            for name, role in [(name, role) for name in names for role in (who.role, "stranger") if role in keys]:
                sent = {
                    "action": name, "_selected_action": [keys[role]], "confirmed": "yes", "reason": "because", "post": "yes",
                    "once": "abc",
                }  # fmt: skip
                visible = sees_all(who) or role == who.role or label in SHARED
                with taken_back() as writes:
                    answer = who.client.post(page(label, "changelist"), sent)
                told_of = f"{who}: {name} of a row of {role}: {answer.status_code}"
                if writes.found and not (visible and may(who, least)):
                    wrong.append(f"{told_of}, and it wrote {writes.found}")
                if answer.status_code >= 500:
                    wrong.append(told_of)
    assert not wrong, told(wrong)


def test_the_other_places_are_for_whom_the_table_says(staff, outsiders, worlds):  # noqa: F811
    wrong, world = [], worlds["stranger"]
    for text, least in ADMIN_PLACES.items():
        path = "/" + text.replace("<app_label>", "agents")
        path = re.sub(r"\(\?P<url>.*", "nothing/", path).replace("<int:interaction>", str(world.interaction))
        path = path.replace("<path:content_type_id>/<path:object_id>", "1/1")
        path = path.replace("<path:object_id>", str(world.constellation)).replace("<id>", str(staff[0].user.pk))
        about_a_stranger = str(world.constellation) in path or str(world.interaction) in path
        for who in [*staff, *outsiders]:
            inside = who not in outsiders
            if least == "anyone":
                continue
            allowed = inside and least != "refused" and may(who, least) and (sees_all(who) or not about_a_stranger)
            no = refused(403, 404, 405) if inside else TO_LOGIN
            wrong += [f"{who}: {flaw}" for flaw in asked(who.client, path, None, reached if allowed else no)]
            if not allowed:
                wrong += [f"{who}: {flaw}" for flaw in asked(who.client, path, {"once": "abc", "retry": "failed"}, no)]
    assert not wrong, told(wrong)


def test_the_queue_is_shown_and_nobody_puts_functions_into_it(staff, worlds):  # noqa: F811
    """A superuser scheduled os.system in the admin, and the server's user ran it."""
    root = staff[-1]
    assert root.client.get("/admin/django_q/schedule/").status_code == 200
    assert root.client.get("/admin/django_q/schedule/add/").status_code == 403
    sent = {"name": "x", "func": "os.system", "args": "'id'", "schedule_type": "O", "repeats": "-1"}
    assert root.client.post("/admin/django_q/schedule/add/", sent).status_code == 403
    queued = apps.get_model("django_q", "OrmQ").objects
    before = queued.count()
    for kind in ("success", "failure"):
        answer = root.client.post(f"/admin/django_q/{kind}/", {"action": "resubmit_task", "_selected_action": ["x"]})
        assert answer.status_code in (200, 302)
        assert queued.count() == before
