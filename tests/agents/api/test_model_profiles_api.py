"""Model profiles over REST."""

import pytest

from agents.models import Event
from tests.agents.conftest import Rest, make_token

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
FAST = {"name": "fast", "provider": "anthropic", "model": "small-1"}
ADDRESS = "/api/model_profiles/"


@pytest.fixture
def as_admin(admin_user):
    return Rest(admin_user)


def test_an_admin_makes_changes_and_deletes_a_profile(as_admin, verified):
    made = as_admin.post(ADDRESS, {**FAST, "key": "MAIN", "purposes": ["creation"], "price_input": 0.5})
    assert made.status_code == 201
    row = made.json()
    assert (row["name"], row["key"], row["purposes"], row["temperature"]) == ("fast", "MAIN", ["creation"], None)
    changed = as_admin.patch(f"{ADDRESS}{row['id']}/", {"base_url": "https://models.example/v1", "temperature": 0})
    assert (changed.json()["base_url"], changed.json()["key"], changed.json()["temperature"]) == (
        "https://models.example/v1", "", 0.0,
    )  # fmt: skip
    assert as_admin.get(ADDRESS).json()["results"] == [changed.json()]
    assert as_admin.delete(f"{ADDRESS}{row['id']}/").status_code == 204
    assert as_admin.get(f"{ADDRESS}{row['id']}/").status_code == 404


def test_only_admins_change_profiles_and_everybody_with_a_role_sees_them(as_admin, viewer, operator, user):
    made = as_admin.post(ADDRESS, FAST).json()
    for person in (viewer, operator):
        rest = Rest(person)
        assert rest.get(ADDRESS).json()["results"][0]["name"] == "fast"
        assert rest.post(ADDRESS, {**FAST, "name": "mine"}).status_code == 403
        assert rest.patch(f"{ADDRESS}{made['id']}/", {"model": "m"}).status_code == 403
        assert rest.delete(f"{ADDRESS}{made['id']}/").status_code == 403
    assert Rest(user).get(ADDRESS).status_code == 403


def test_a_token_of_an_admin_needs_the_scope(admin_user):
    token = make_token(admin_user, "read", "operate", "edit")[1]
    assert Rest(token=token).post(ADDRESS, FAST).status_code == 403
    assert Rest(token=make_token(admin_user, "admin")[1]).post(ADDRESS, FAST).status_code == 201


@pytest.mark.parametrize(("more", "field"), [
    ({"base_url": "http://127.0.0.1:8000/v1"}, "base_url"), ({"key": "not a name"}, "key"), ({"api_key": "x"}, "api_key"),
    ({"temperature": "hot"}, "temperature"), ({"fallbacks": ["nobody"]}, "fallbacks"),
    ({"context_window": 0}, "context_window"),
])  # fmt: skip
def test_what_is_wrong_is_named_and_nothing_is_written(as_admin, more, field):
    answer = as_admin.post(ADDRESS, {**FAST, **more})
    assert answer.status_code == 400
    assert field in str(answer.json())
    assert not Event.objects.filter(type="model_profile_created").exists()


def test_a_name_that_is_taken_is_a_conflict(as_admin):
    as_admin.post(ADDRESS, FAST)
    assert as_admin.post(ADDRESS, FAST).status_code == 409
