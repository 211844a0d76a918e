"""The admin's pages of a constellation of 10,000 tasks: bounded in queries and in what they show."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.services import sessions
from agents.services.devices import device_create
from constellations.models import Constellation, Edit, Task
from tests.conftest import person
from tests.constellations.admin.admin_client import Form, Staff, added, address, row_of
from tests.constellations.planting import advance, noop, plant

pytestmark = [pytest.mark.django_db, pytest.mark.attack]
TASKS = 10_000
QUERIES = 20
"""Of a page, at most."""
FORM_BYTES = 300_000
MODELS = [model for app in ("agents", "constellations") for model in apps.get_app_config(app).get_models()]


@contextmanager
def bounded() -> Iterator[None]:
    """At most QUERIES are made inside; the savepoints that a test's own transaction makes of transactions are none."""
    with CaptureQueriesContext(connection) as found:
        yield
    asked = [each["sql"] for each in found if not each["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(asked) <= QUERIES, asked


@pytest.fixture(scope="module")
def planted(django_db_setup, django_db_blocker):
    """A constellation of two dependencies a task, once for all tests of this module: they read it, or are rolled back."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        from django.contrib.auth.models import Group

        Group.objects.get_or_create(name="operator")
        owner = person("planter", "operator")
        device_create("laptop", by="system")
        session = sessions.session_create(owner, "large", by="system")
        names = [f"task_{number:05}" for number in range(TASKS)]
        above = [[names[other] for other in (number - 50, number - 57) if other >= 0] for number in range(TASKS)]
        made = plant(session, *(noop(name, after=after) for name, after in zip(names, above, strict=True)))
        advance(made, **dict.fromkeys(names[:20], "COMPLETED"), task_00020="RUNNING")
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def large(planted, db) -> Constellation:
    return planted


@pytest.fixture
def staff(large) -> Staff:
    return Staff(large.session.owner)


def test_the_page_of_the_constellation_is_bounded(staff, large):
    with bounded():
        page = staff.page(large)
    sheet, picture = page.context["sheet"], page.context["picture"]
    assert (len(sheet.tasks.forms), len(sheet.dependencies.forms)) == (50, 35)
    assert (picture.drawn, picture.total, picture.editable) == (150, TASKS, TASKS - 21)
    assert len(page.content) < FORM_BYTES
    text = page.content.decode()
    assert "The first 50 of 9979" in text
    assert "9850 are left out" in text


def test_a_save_and_a_refusal_are_bounded(staff, large):
    values = added(staff.form(large), "tasks", task_id="extra", tool="noop")
    values = added(values, "dependencies", upstream="task_09999", downstream="extra")
    values[f"{row_of(values, 'task_00030')}-timeout"] = "5"
    with bounded():
        answer = staff.save(large, values)
    assert staff.told(answer)[0].startswith("Saved as version 2: added task extra, updated task task_00030")
    values = added(staff.form(large), "dependencies", upstream="extra", downstream="task_00030")
    with bounded():
        assert staff.save(large, values).status_code == 200
    with bounded():
        assert staff.send(large, {**values, "_preview": "1"}).status_code == 200
    assert Edit.objects.count() == 1


def test_the_pages_of_a_task_and_of_a_dependency_are_bounded(staff, large):
    for row in (large.tasks.get(task_id="task_05000"), large.dependencies.get(dependency_id="task_04950>task_05000")):
        with bounded():
            assert staff.page(row).status_code == 200
        values = staff.form(row)
        field = "tasks-0-description" if "tasks-0-description" in values else "dependencies-0-description"
        with bounded():
            assert staff.save(row, {**values, field: "changed"}).status_code == 302
        with bounded():
            assert staff.client.get(address(row, "delete")).status_code == 200


@pytest.mark.parametrize("way", ["reopen", "fork"])
def test_the_pages_that_ask_how_it_goes_on_are_bounded(staff, large, way):
    Constellation.objects.filter(pk=large.pk).update(state="PARTIALLY_FAILED")
    Task.objects.filter(constellation=large).update(state="FAILED")
    with bounded():
        page = staff.client.get(address(large, way))
    assert len(page.content) < FORM_BYTES
    values = Form(page.content.decode(), f"{way}_form").values
    with bounded():
        refused = staff.client.post(address(large, way), {**values, "retry": "nowhere"})
    assert refused.context["form"].errors == {"retry": ["there is no task nowhere"]}


def test_removing_what_waits_for_nothing_more_is_bounded(staff, large):
    chosen = list(large.tasks.order_by("-id").values_list("pk", flat=True)[:50])
    sent = {"action": "remove", "_selected_action": chosen}
    lists = reverse("admin:constellations_task_changelist")
    with bounded():
        assert staff.client.post(lists, sent).status_code == 200
    with bounded():
        assert staff.client.post(lists, {**sent, "confirmed": "yes"}).status_code == 302
    assert Task.objects.filter(constellation=large).count() == TASKS - 50


@pytest.mark.one_database
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_is_bounded(staff, large, model):
    lists = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    narrow = {"session": large.session_id, "constellation": large.pk, "editable": "yes"}
    for query in ({}, {"q": "task_0"}, {key: value for key, value in narrow.items() if key in filters_of(model)}):
        with bounded():
            assert staff.client.get(lists, query).status_code == 200


def filters_of(model) -> list[str]:
    from django.contrib import admin

    return [getattr(each, "parameter_name", each) for each in admin.site.get_model_admin(model).list_filter]
