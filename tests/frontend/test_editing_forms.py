"""What the page's forms are made from: the editor's own keys."""

from django.test import Client

from constellations.plan.schemas import TOOLS


def test_forms_have_the_keys_of_the_editors_tools(db, django_user_model):
    client = Client()
    client.force_login(django_user_model.objects.create_user("ann"))
    names = ("add_task", "update_task", "add_dependency", "update_dependency")
    assert client.get("/editing/forms/").json() == {name: TOOLS[name].parameters for name in names}


def test_forms_are_for_those_who_are_logged_in(db):
    assert Client().get("/editing/forms/").status_code == 302
