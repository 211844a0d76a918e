"""Every address of the API takes the parameters that its description names, each once, and says so of any other."""

from __future__ import annotations

import re

import pytest
from django.db import OperationalError
from django.http import QueryDict
from drf_spectacular.generators import EndpointEnumerator
from rest_framework.request import Request

from agents.api import schema
from agents.api.problems import not_found
from agents.api.queries import KnownQuery, query_flaws
from agents.api.schema import query_parameters
from constellations.api.views import TaskViews
from tests.agents.conftest import Rest

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


class EveryAddress(EndpointEnumerator):
    """All that is under /api/, also what the description leaves out, but for the answer to what does not exist."""

    def should_include_endpoint(self, path, callback):
        return path.startswith("/api/") and callback is not not_found


ROUTES = sorted((path, method, view) for path, _, method, view in EveryAddress().get_api_endpoints())
NAMES = [f"{method} {path}" for path, method, _ in ROUTES]
COUNTED = 40
"""There are more endpoints than this: the walk has not lost them."""


def address(path: str) -> str:
    """The path with something in each place that a view could be asked about."""
    return re.sub(r"\{\w+\}", "1", path.replace("{name}", "task").replace("{edit_id}", "r-1"))


def ask(rest: Rest, method: str, path: str, query: str):
    return rest.client.generic(method, f"{address(path)}?{query}", "{}", content_type="application/json")


@pytest.fixture
def rest(admin_user):
    return Rest(admin_user)


@pytest.fixture
def documented(rest):
    """Names of the query string, by path and method, as the served description has them."""
    paths = rest.get("/api/schema/", format="json").json()["paths"]
    return {
        (path, method.upper()): {each["name"]: each for each in operation.get("parameters", []) if each["in"] == "query"}
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


def test_the_walk_finds_them_all(documented):
    walked = {(path.replace("{pk}", "{id}"), method) for path, method, _ in ROUTES}
    assert set(documented) <= walked
    assert {path for path, _ in walked - set(documented)} == {"/api/docs/", "/api/schema/"}
    assert len(walked) > COUNTED


@pytest.mark.parametrize(("path", "method", "view"), ROUTES, ids=NAMES)
def test_each_view_knows_its_query(path, method, view):
    assert issubclass(view.cls, KnownQuery)


@pytest.mark.parametrize(("path", "method", "view"), ROUTES, ids=NAMES)
def test_a_parameter_that_there_is_not_is_refused_by_its_name(rest, path, method, view):
    answer = ask(rest, method, path, "no_such_thing=1")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    (problem,) = answer.json()["problems"]
    assert problem["key"] == "no_such_thing"
    assert problem["message"].startswith("unknown parameter; ")
    assert "no_such_thing: unknown parameter" in answer.json()["detail"]


def test_what_the_description_names_is_taken_once_and_refused_twice(rest, documented):
    for (path, method), parameters in documented.items():
        for name, parameter in parameters.items():
            assert parameter["schema"].get("type") != "array", "every parameter has one value"
            once = ask(rest, method, path, f"{name}=1").content.decode()
            assert "unknown parameter" not in once, (method, path, name)
            twice = ask(rest, method, path, f"{name}=1&{name}=1")
            said = {"key": name, "message": "is given 2 times, and has one value"}
            assert (twice.status_code, twice.json()["problems"]) == (400, [said]), (method, path, name)


def test_the_check_and_the_description_are_one(rest, documented):
    for (path, method), parameters in documented.items():
        request = Request(ask(rest, method, path, "").wsgi_request)
        request.user = request._request.user
        assert set(query_parameters(method, request)) == set(parameters), (method, path)


def test_a_database_that_fails_leaves_no_view_without_its_filters(rest, monkeypatch):
    """The description of a view asks for its rows' model; what fails then is a fault, and is asked again."""
    monkeypatch.setattr(schema, "_described", {})
    with monkeypatch.context() as failing:
        failing.setattr(TaskViews, "get_queryset", gone)
        assert rest.get("/api/tasks/", state="RUNNING").status_code == 500
    assert rest.get("/api/tasks/", state="RUNNING").status_code == 200


def gone(view):
    raise OperationalError("the connection is gone")


def test_the_nearest_is_named_and_all_that_there_are(rest):
    (problem,) = rest.get("/api/constellations/", stat="RUNNING").json()["problems"]
    assert problem == {
        "key": "stat",
        "message": "unknown parameter; did you mean state? Known are cursor, limit, session, state",
    }
    (problem,) = rest.get("/api/tasks/", LIMIT=3).json()["problems"]
    assert "did you mean limit?" in problem["message"]


def test_all_that_is_wrong_is_told_at_once(rest):
    answer = rest.client.get("/api/agents/?format=xml&states=a&limit=1&limit=2&=3")
    assert answer.status_code == 400
    assert {each["key"] for each in answer.json()["problems"]} == {"format", "states", "limit", ""}


def test_who_may_not_ask_is_told_that_first(client, rest):
    assert client.get("/api/sessions/?stat=1").status_code == 401
    assert rest.client.put("/api/sessions/?stat=1").status_code == 405
    assert rest.client.head("/api/sessions/?limit=1").status_code == 200
    assert rest.client.head("/api/sessions/?stat=1").status_code == 400


def test_the_pages_about_the_api_take_theirs(rest):
    assert rest.get("/api/schema/", format="json").status_code == 200
    assert rest.get("/api/docs/", script="").status_code == 200
    assert rest.get("/api/docs/").status_code == 200


def test_a_long_name_is_told_in_part():
    ((name, said),) = query_flaws(dict(QueryDict("a" * 10_000).lists()), ["limit"]).items()
    assert (name, said) == ("a" * 80, "unknown parameter; known are limit")
    assert query_flaws({"x": ["1"]}, []) == {"x": "unknown parameter; there are none here"}
