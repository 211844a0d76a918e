"""Requests made from the API's own description, good ones and bad ones: no answer is a fault, and each is as described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agents.models.access import SCOPES
from tests.agents.conftest import make_token
from tests.attacks.worlds import World, make_world, taken_back

pytestmark = [pytest.mark.attack, pytest.mark.one_database, pytest.mark.django_db]

EXAMPLES = 8
"""Of each operation, good and bad ones each."""
SEED = 10
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    response_headers_conformance,
]  # fmt: skip
DESCRIBED = openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
OPERATIONS = {found.ok().label: found.ok() for found in DESCRIBED.get_all_operations()}


@pytest.fixture(scope="module", autouse=True)
def _transaction_of_the_test() -> Iterator[None]:
    """Requests leave the test's connection alone, as those of Django's test client do."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def world(admin_user) -> World:
    return make_world(admin_user)


@pytest.fixture
def logins(admin_user) -> dict[str, dict[str, str]]:
    """The headers of a token, of a page's script, and of nobody."""
    client = Client()
    client.force_login(admin_user)
    key, secret = client.cookies[django_settings.SESSION_COOKIE_NAME].value, "a" * 32
    cookie = f"{django_settings.SESSION_COOKIE_NAME}={key}; {django_settings.CSRF_COOKIE_NAME}={secret}"
    return {
        "token": {"Authorization": f"Bearer {make_token(admin_user, *SCOPES)[1]}"},
        "cookie": {"Cookie": cookie, "X-CSRFToken": secret},
        "none": {},
    }


PLAN = "0" * 12
"""Of which there are no runs: to look for them is no error of form."""


def places(path: str, world: World) -> dict[str, Any]:
    """What stands in the places of a path, so that it is about something."""
    kind = path.split("/")[2]
    ids = {
        "sessions": world.session, "agents": world.agent, "approvals": world.approval, "policies": world.policy,
        "model_profiles": world.model_profile, "budgets": world.budget, "model_calls": world.model_call,
        "devices": world.devices[""], "artifacts": world.artifact, "tokens": world.token,
        "constellations": world.constellation, "tasks": world.task("waits"),
    }  # fmt: skip
    return {"id": ids.get(kind), "edit_id": world.edit, "name": "task", "plan": PLAN}


GOOD, BAD = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
NOTHING_TO_GET_WRONG = {"POST /api/devices/enrol/"}
"""Its token is its login, and it takes nothing else."""
WAYS = [(label, mode) for label in OPERATIONS for mode in (GOOD, BAD) if mode is GOOD or label not in NOTHING_TO_GET_WRONG]


@pytest.mark.parametrize(("label", "mode"), WAYS, ids=[f"{label}-{mode.value}" for label, mode in WAYS])
def test_answers_are_as_described(label, mode, world, logins, caplog):
    caplog.set_level("CRITICAL", "django.request")
    operation, app = OPERATIONS[label], get_wsgi_application()

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode), about_something=st.booleans(), login=st.sampled_from([*logins]))
    def ask(case, about_something: bool, login: str) -> None:
        routed = about_something or mode is GenerationMode.POSITIVE
        if routed:
            case.path_parameters |= {key: each for key, each in places(case.path, world).items() if key in case.path_parameters}
        with taken_back() as writes:
            answer = case.call(app=app, headers={"Host": "localhost", "Accept-Encoding": "identity", **logins[login]})
        if login == "none":
            assert answer.status_code in ((401,) if routed else (401, 404))
            assert writes.found == []
        body = case.meta.components.get(ParameterLocation.BODY) if mode is GenerationMode.NEGATIVE else None
        bad_body = body is not None and body.mode is GenerationMode.NEGATIVE
        case.validate_response(answer, checks=[*CHECKS, negative_data_rejection] if bad_body else CHECKS)

    ask()
