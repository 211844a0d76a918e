"""Odd methods at every address, foreign hosts, JSON of the wrong kind: each has an answer that says what is wrong."""

import json
import re

import pytest
from django.urls import get_resolver
from rest_framework import serializers

from agents.api.live_view.websocket import ViewClosed, acknowledged_by
from agents.api.parsers import KeyTwice, read_json
from agents.api.serializers.fields import RequestBody
from agents.api.serializers.sessions import Models
from agents.api.serializers.work import Answer
from agents.llm.choices import CHOSEN
from project import urls  # noqa: F401  loads every body, however few files of tests are run
from project.asgi import application
from tests.agents.conftest import Rest, closed_connections, make_token  # noqa: F401 (a fixture)
from tests.project.test_asgi import get

pytestmark = pytest.mark.django_db

METHODS = ("OPTIONS", "HEAD", "TRACE", "PUT")
FILLED = {"format": "json", "app_label": "agents", "object_id": "1", "content_type_id": "1", "token": "1.x", "name": "task"}
"""What stands in an address where its pattern has a name; else a number."""


def addresses(patterns, before=""):
    """One address of each route, generated from the URL conf."""
    for pattern in patterns:
        text = before + str(pattern.pattern).replace("\\Z", "").lstrip("^").removesuffix("$")
        if hasattr(pattern, "url_patterns"):
            yield from addresses(pattern.url_patterns, text.removesuffix("$"))
            continue
        text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", lambda found: FILLED.get(found[1], "1"), text)
        text = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: FILLED.get(found[1], "1"), text)
        text = re.sub(r"\(.*\)|[\^$]|\\", "", text).replace("/?", "/")
        yield f"/{text}"


@pytest.mark.attack
def test_no_address_breaks_whatever_the_method(admin_user):
    asked = sorted(set(addresses(get_resolver().url_patterns)))
    assert len(asked) > 60
    broken = []
    for method in METHODS:
        rest = Rest(admin_user)
        for address in asked:
            status = rest.client.generic(method, address, "{}", content_type="application/json").status_code
            if status >= 500:
                broken.append((method, address, status))
    assert broken == []


def test_options_say_what_an_address_takes(operator):
    answer = Rest(operator).client.options("/api/import/check")
    assert (answer.status_code, answer.json()["methods"]) == (200, ["POST", "OPTIONS"])
    assert answer["Allow"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    "path", ["/static/admin/css/base.css", "/api/sessions/1/stream/", "/api/sessions/", "/mcp", "/", "/health/"]
)
async def test_every_address_answers_only_under_our_names(path):
    for host in ("evil.example", "localhost.evil.example", "localhost@evil.example", ""):
        status, _, body = await get(path, host_instead=host)
        assert (status, json.loads(body)["code"]) == (421, "misdirected_request")
    assert (await get("/static/admin/css/base.css"))[0] == 200


# JSON of the wrong kind


def bodies(kind=RequestBody):
    for each in kind.__subclasses__():
        yield each
        yield from bodies(each)


KINDS = {"text": "x1", "a number": 0, "a fraction": 1.5, "a truth": True, "a list": [], "an object": {}}
ALLOWED = (
    (serializers.CharField, {"text"}), (serializers.ChoiceField, {"text"}), (serializers.IntegerField, {"a number"}),
    (serializers.FloatField, {"a number", "a fraction"}), (serializers.BooleanField, {"a truth"}),
    (serializers.ListField, {"a list"}), (serializers.DictField, {"an object"}), (serializers.JSONField, set(KINDS)),
    (Models, {"an object"}), (Answer, {"text", "an object"}),
)  # fmt: skip


def kinds_of(field):
    """What a field takes; a field that is none of these is not known to be strict, and the test says so."""
    return next(kinds for known, kinds in ALLOWED if isinstance(field, known))


@pytest.mark.parametrize("body", sorted(set(bodies()), key=lambda body: body.__name__), ids=lambda body: body.__name__)
def test_no_body_turns_one_kind_of_json_into_another(body):
    """Of each field, and of the entries of lists: what is of another kind is refused under the field's name."""
    taken = []
    for name, field in body().fields.items():
        kinds = kinds_of(field)
        wrong = [(name, kind, value) for kind, value in KINDS.items() if kind not in kinds]
        child = getattr(field, "child", None)
        if isinstance(field, serializers.ListField) and child is not None:
            wrong += [(name, kind, [value]) for kind, value in KINDS.items() if kind not in kinds_of(child)]
        for name, kind, value in wrong:
            form = body(data={name: value})
            form.is_valid()
            if name not in form.errors:
                taken.append((name, kind))
    assert taken == []


@pytest.mark.parametrize("purpose", CHOSEN)
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"text"}))
def test_a_model_is_named_by_a_text_and_nothing_becomes_one(operator, purpose, kind):
    rest = Rest(operator)
    session = rest.post("/api/sessions/", {}).json()["id"]
    body = {"models": {purpose: KINDS[kind]}}
    for answer in (
        rest.post("/api/sessions/", body),
        rest.client.patch(f"/api/sessions/{session}/", json.dumps(body), content_type="application/json"),
        rest.post(f"/api/sessions/{session}/interactions/", {"request": "go", **body}),
    ):
        assert (answer.status_code, [each["key"] for each in answer.json()["problems"]]) == (400, [f"models.{purpose}"])


def test_a_device_with_a_number_for_a_name_is_refused_by_that_key(admin_user):
    answer = Rest(token=make_token(admin_user, "read", "operate", "admin")[1]).post("/api/devices/", {"name": 0})
    assert (answer.status_code, answer.json()["problems"]) == (400, [{"key": "name", "message": "must be a text"}])


TWICE = ('{"title": "a", "title": "b"}', '{"title": "a", "x": [{"y": {"title": 1, "title": 1}}]}')


@pytest.mark.parametrize("text", TWICE)
def test_a_key_that_is_there_twice_is_refused_over_rest(operator, text):
    answer = Rest(operator).post("/api/sessions/", text)
    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
    assert "the key 'title' is there twice" in answer.json()["detail"]


def test_and_over_the_websocket():
    with pytest.raises(ViewClosed, match="the key 'seq' is there twice"):
        acknowledged_by('{"type": "ack", "seq": 1, "seq": 2}')


def test_the_same_key_in_two_objects_is_fine():
    assert read_json('[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]
    with pytest.raises(KeyTwice):
        read_json('{"a": 1, "\\u0061": 2}')


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("closed_connections")
async def test_and_over_mcp(operator):
    from asgiref.sync import sync_to_async

    token = (await sync_to_async(make_token)(operator, "read"))[1]
    text = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}, "method": "tools/call"}'
    found = await get("/mcp", "POST", application, body=text, authorization=f"Bearer {token}", content_type="application/json")
    assert (found[0], json.loads(found[2])["code"]) == (400, "parse_error")
    assert "'method' is there twice" in json.loads(found[2])["detail"]
