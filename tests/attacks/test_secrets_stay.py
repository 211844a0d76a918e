"""Two secrets are planted in every text that a row can hold; every way out is then taken, and what comes is searched."""

from __future__ import annotations

import json
import logging
import re
from io import StringIO

import orjson
import pytest
from asgiref.sync import async_to_sync
from channels.testing import WebsocketCommunicator
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import connections, models
from django.test import Client
from django.urls import get_resolver, reverse

from agents.engine.threads.hooks import Hooks
from agents.links.holders import take_link
from agents.masks import values
from agents.masks.doors import MaskedCommand, MaskedLogs
from agents.masks.masking import MARK, is_hidden
from agents.models import Device, DeviceCall, DeviceCallMessage, Event, InboxItem, Output, Session
from agents.services import sessions
from agents.services.device_tokens import enrolment_create
from agents.services.devices import device_create
from agents.services.model_profiles import model_profile_create
from agents.services.policies import policy_create
from constellations.mcp.pieces import PLACES
from constellations.mcp.tools import TOOLS
from constellations.models import Constellation, Task
from constellations.services.edits import edit_apply
from frontend.words import MACHINES
from project.asgi import application
from tests.agents.api.live_view.test_sse import Client as SseClient
from tests.agents.conftest import (
    NOW,
    Rest,
    add_actor,
    add_agents,
    add_approvals,
    add_artifacts,
    add_evidence,
    add_loop,
    add_rows,
    make_token,
)  # fmt: skip
from tests.constellations.api.test_api import add_attempts, printed
from tests.constellations.mcp.mcp_program import Program
from tests.constellations.planting import noop, plant
from tests.project.test_queries import ROUTES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack, pytest.mark.one_database]

ROWS = 6
"""Of each table whose pages are looked at; among them are those with the most texts."""
KNOWN = 'pLaNtEd-4711 <&> "quoted" \\ sEcReT'
"""A known value that every encoding writes otherwise..."""
KEY = "ghp_fOrMpLaNtEd0123456789abcdefghij"
"""...and one that only its form gives away."""
TEXT = f"first\n{KEY} then {KNOWN}."
FRAGMENTS = ("pLaNtEd-4", "sEcReT", "fOrMpLaNtEd", "cExBTlRFRC", "704c614e7445642d")
"""What is left of them in any encoding."""

PLANTED = {
    "Event": ("data",), "Transition": ("reason",), "Runner": ("host",), "Session": ("title",), "Actor": ("reason",),
    "InboxItem": ("payload", "result"), "Agent": ("name", "reason", "blackboard", "plan", "app"), "Token": ("name",),
    "Device": (
        "os", "type", "capabilities", "recipes", "metadata", "facts", "host", "connection", "tools", "limits", "unasked",
        "apps", "reason",
    ),
    "DeviceLink": ("holder", "readings", "version", "peer"), "DeviceCall": ("tool", "arguments", "given", "outcome"),
    "DeviceCallMessage": ("kind", "body"), "DeviceReading": ("readings",), "DeviceToken": (), "Output": ("text",),
    "Loop": ("reason", "position", "label"), "NormalForm": ("form",),
    "Evidence": ("tool", "target", "arguments", "raw_error", "result", "verdict"),
    "PhaseRecord": ("description", "files_changed", "tests", "blockers"),
    "Approval": ("title", "action", "observed", "options", "reason", "answer"), "Policy": ("tool", "pattern", "note"),
    "ModelProfile": ("model", "base_url", "key"), "Prompt": ("text",), "ModelDelta": ("text",),
    "Artifact": ("name",), "StoredContent": (), "Budget": (), "Reservation": (), "Spending": (),
    "ModelCall": (
        "taken", "model", "added", "reply", "observation", "thought", "status", "actions", "result", "tries", "devices",
        "error",
    ),
    "Constellation": ("name", "reason", "rules", "fired", "result"),
    "Task": (
        "name", "description", "tips", "device_type", "capabilities", "not_device", "labels", "tool", "arguments", "phases",
        "policies", "progress", "result_schema", "unasked", "inputs", "outputs", "accepted", "reason", "result", "error",
    ),
    "Dependency": ("condition", "description"), "Attempt": ("result", "error"),
    "Edit": ("reason", "operations", "before", "after", "diff"), "Stream": (), "Lease": (), "SlotRequest": (),
}  # fmt: skip
"""Columns into which people, programs and commands can write what they like."""
FIXED = {
    "kind", "by", "type", "request_id", "machine", "from_state", "to_state", "event", "state", "files", "token_key",
    "client_id", "outcome", "platform", "digest",
    "scopes", "name", "left", "call", "call_shape", "shape", "error_shape", "seal",
    "error", "error_kind", "before", "decided_by",
    "confinement", "device", "decision", "gates", "label", "labels", "task_id", "wanted_device", "on_lost", "replaces",
    "dependency_id", "edit_id", "author", "provider", "model_profiles", "start", "model", "profile", "purpose", "prompt_digest",
    "prompt_version", "media_type", "sha256", "version", "thinking", "fallbacks", "purposes", "scope", "per", "then", "period",
    "used_by", "created_by", "way", "assignment",
}  # fmt: skip
"""Columns of words of ours, of digests and of names that addresses are made of."""
MODELS = [model for app in ("agents", "constellations") for model in apps.get_app_config(app).get_models()]
TEXTS = models.CharField | models.TextField | models.JSONField


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setenv("ORRERY_SECRET_PLANTED", KNOWN)
    monkeypatch.setattr(values, "_KNOWN", values._Known())


def leaks(text: str) -> list[str]:
    return [text[max(0, found.start() - 60) : found.end() + 20] for found in re.finditer("|".join(FRAGMENTS), text)]


SHAPED = {
    "condition": f"result == '{KEY}'",
    "rules": [{"name": TEXT, "when": {"event": "task_failed", "task": [], "condition": ""}, "reason": TEXT, "edit": []}],
    "tests": [{"name": TEXT, "passed": True}],
    "phases": [],
    "tools": [{"name": TEXT, "description": TEXT}],
    "verdict": {
        "rule": "exact_repeat",
        "identity": TEXT,
        "rows": [1],
        "sentence": TEXT,
        "action": "steer",
        "first": True,
        "by": TEXT,
        "why": TEXT,
    },
    "label": {"stuck": True, "since": 1, "reason": TEXT, "by": "user:1", "at": NOW},
}
"""Columns whose texts are read again when they are shown."""


def planted_in(value, field) -> object:
    """`value` with the secrets in it, of the shape that it has."""
    if field.name in SHAPED:
        return SHAPED[field.name]
    if isinstance(field, models.JSONField):
        if isinstance(value, dict):
            return {**value, "planted": TEXT, TEXT: [TEXT]}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [{**each, "description": TEXT} for each in value]
        return [*value, TEXT] if isinstance(value, list) else TEXT
    return TEXT[: field.max_length] if field.max_length else TEXT


def plant_everywhere() -> int:
    """Writes beside the services, as nothing else could write into every column; how many texts were planted."""
    count = 0
    for model in MODELS:
        fields = [model._meta.get_field(name) for name in PLANTED[model.__name__]]
        for row in model.objects.all():
            changes = {field.name: planted_in(getattr(row, field.name), field) for field in fields}
            if changes:
                count += model.objects.filter(pk=row.pk).update(**changes) * len(changes)
    return count


@pytest.fixture
def rows(operator, admin_user):
    """Something in every table that has texts, and the secrets in it."""
    session = sessions.session_create(operator, "mine", by=f"user:{operator.pk}")
    device = device_create("laptop", by="system")
    add_actor(session)
    made = plant(session, noop("a"), noop("b", after=["a"]))
    edit_apply(made.pk, [{"op": "add_task", "parameters": {"task_id": "c", "tool": "noop"}}], author=f"user:{operator.pk}")
    attempt = add_attempts(session, Task.objects.get(task_id="a").pk, device)[0]
    agent = add_agents(session, device_id=device.pk)[0]
    loop = add_loop(agent, session)
    add_evidence(loop, session, {"success": False}, {})
    add_artifacts(session, b"a file of no interest", attempt=attempt)
    add_rows(session.pk, "phase", [{"agent_id": agent, "number": 1, "total": 1, "description": "x", "started_at": NOW}])
    add_approvals(session, 2, agent_id=agent)
    policy_create(tool="command", decision="ask", by="system")
    model_profile_create("one", provider="anthropic", model="m", key="ONE", by="system")
    make_token(operator, "read", name="ci")
    remote = device_create("far", kind="remote", by="system").pk
    enrolment_create(remote, by="system")
    take_link(remote, peer="10.0.0.1")
    call = DeviceCall.objects.create(
        key=1, device_id=remote, session=session, attempt_id=attempt, fence=1, tool="command", created_at=NOW, outcome={}
    )  # fmt: skip
    DeviceCallMessage.objects.create(call=call, way="up", kind="output", body=["x"])
    assert plant_everywhere() > 100
    Output.objects.all().delete()
    printed(attempt, "x" * 100 + TEXT[:20], TEXT[20:30], TEXT[30:] + "\n")
    return session


def test_every_column_with_text_is_planted_or_known_not_to_be():
    for model in MODELS:
        columns = {field.name for field in model._meta.concrete_fields if isinstance(field, TEXTS)}
        assert set(PLANTED[model.__name__]) <= columns
        assert columns - set(PLANTED[model.__name__]) <= FIXED, model


QUERIES = {"{id}": ("", "?snapshot=1"), "export": ("?states=1", "?dialect=galaxy&states=1", "?dialect=seed")}
"""Of an address by its last part, where there are others than none."""


def keys_of(path: str) -> list[object]:
    """What may stand in the place of an id in an address."""
    app = "constellations" if "/constellations/" in path or "/tasks/" in path else "agents"
    named = {"tasks": "task", "constellations": "constellation", "sessions": "session", "agents": "agent",
             "approvals": "approval", "policies": "policy", "devices": "device",
             "model_profiles": "modelprofile", "budgets": "budget", "model_calls": "modelcall",
             "artifacts": "artifact"}  # fmt: skip
    word = next((named[part] for part in path.split("/") if part in named), None)
    if word is None:
        return []
    model = apps.get_model("agents" if word not in ("task", "constellation") else app, word)
    return list(model.objects.values_list("pk", flat=True))


def test_rest(rows, operator, admin_user, closing):
    hidden: set[str] = set()
    walked = [path for path, method, _ in ROUTES if method == "GET"]
    assert len(walked) > 20
    for user in (operator, admin_user):
        rest = Rest(user)
        for path in walked:
            for key in keys_of(path) or [0]:
                edit = "1" if "edit_id" not in path else apps.get_model("constellations", "edit").objects.get().edit_id
                address = path.replace("{edit_id}", edit).replace("{name}", "task")
                address = re.sub(r"\{\w+\}", str(key), address)
                for query in QUERIES.get(path.rstrip("/").rpartition("/")[2], ("",)):
                    answer = rest.client.get(address + query)
                    assert answer.status_code < 500, address
                    said = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
                    assert leaks(said) == [], address
                    assert not answer.headers.get("Content-Type", "").endswith("json") or json.loads(said) is not None
                    hidden |= {path} if is_hidden(said) else set()
    fields = ("sessions", "tasks", "agents", "approvals", "policies", "devices", "constellations", "tokens")
    for word in fields:
        assert any(f"/api/{word}/" in path for path in hidden), f"nothing was hidden under /api/{word}/: {hidden}"
    for part in ("events", "export", "output", "evidence", "interactions", "edits", "transitions"):
        assert any(path.rstrip("/").endswith(part) for path in hidden), f"nothing was hidden in {part}"


@pytest.fixture
def closing():
    yield
    connections.close_all()


def test_what_the_api_refuses(rows, operator, closing):
    rest = Rest(operator)
    constellation = Constellation.objects.get()
    bad = {"operations": [{"op": "add_task", "parameters": {"task_id": "d", "command": [KNOWN], "nope": KEY, KEY: 1}}]}
    for path, body in (
        (f"constellations/{constellation.pk}/edits/", bad), ("sessions/", {"plan": f"tasks: [{{{KEY}: 1}}]"}),
        ("sessions/", {KEY: TEXT}), (f"sessions/{rows.pk}/commands/", {"kind": KEY}), ("import/check/", {"document": TEXT}),
    ):  # fmt: skip
        answer = rest.post(f"/api/{path}", body)
        assert answer.status_code < 500
        assert leaks(answer.content.decode()) == [], path
    assert leaks(rest.get(f"/api/{KEY}/").content.decode()) == []
    assert leaks(rest.get("/api/tasks/", **{KEY: KNOWN}).content.decode()) == []


def test_pages_and_the_admin(rows, operator, admin_user, closing):
    operator.is_staff = True
    operator.save()
    hidden: set[str] = set()
    for user in (operator, admin_user):
        client = Client()
        client.force_login(user)
        addresses = [
            "/",
            "/inbox/",
            "/inbox/count/",
            "/search/",
            "/runs/",
            "/api/home/",
            "/runners/",
            "/models/",
            "/policies/",
            "/stuck/",
            "/editing/forms/",
            "/devices/",
            "/reference/",
            *(f"/machines/{name}/" for name in MACHINES),
            *(f"/machines/{name}/diagram/" for name in MACHINES),
        ]
        addresses += [f"/sessions/{rows.pk}/", *(f"/agents/{key}/" for key in keys_of("/agents/")), "/admin/", "/health/"]
        for model in admin.site._registry:
            at = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            addresses += [reverse(f"{at}_changelist"), reverse(f"{at}_changelist") + "?q=fOr"]
            keys = list(model._default_manager.values_list("pk", flat=True)[:ROWS])
            addresses += [reverse(f"{at}_change", args=[key]) for key in keys]
            addresses += [reverse(f"{at}_{page}", args=[key]) for page in ("history", "delete") for key in keys[:1]]
        for address in addresses:
            answer = client.get(address)
            assert answer.status_code < 500, address
            said = answer.content.decode()
            assert leaks(said) == [], address
            hidden |= {re.sub("[0-9]+", "N", address)} if MARK in said else set()
    assert {"/api/home/", "/sessions/N/", "/agents/N/"} <= hidden
    assert {f"/admin/{word}/N/change/" for word in ("agents/event", "agents/output", "constellations/task")} <= hidden


def test_the_pages_of_the_dashboard_are_all_walked():
    known = {
        "sessions", "session", "agent", "inbox", "inbox-count", "search", "runs", "devices", "runners", "models", "policies",
        "stuck", "machines", "machine", "machine-diagram", "editing-forms", "login", "logout", "login-link",
    }  # fmt: skip
    (frontend,) = (each for each in get_resolver().url_patterns if getattr(each, "app_name", "") == "frontend")
    assert {pattern.name for pattern in frontend.url_patterns if pattern.name} == known  # those without lead to another


def test_mcp(rows, operator, closing):
    program = Program(make_token(operator, "read", "edit", "operate", "approve", name="claude"))
    constellation, hidden = Constellation.objects.get(), set()
    given = {"constellation_id": constellation.pk, "task_id": "a", "session": rows.pk, "tasks": ["a", "b"]}
    for name, tool in TOOLS.items():
        if not tool.reads or name in ("preview_edit", "read_value"):
            continue
        arguments = {key: value for key, value in given.items() if key in tool.parameters["properties"]}
        found = program.ask(lambda client, name=name, arguments=arguments: client.call_tool(name, arguments))
        said = found.model_dump_json()
        assert leaks(said) == [], name
        hidden |= {name} if MARK in said else set()
    assert {"get_constellation", "get_output", "list_devices", "list_approvals", "get_session"} <= hidden
    for address in addresses_of(constellation, rows):
        whole = program.whole(address, limit=25 if address.endswith("output") else 16_000)
        assert leaks(whole) == [], address
        found = program.ask(lambda client, address=address: client.read_resource(address)).model_dump_json()
        assert leaks(found) == [], address
    listed = program.ask(lambda client: client.list_resources()).model_dump_json()
    assert leaks(listed) == []
    assert leaks(str(program("why", constellation_id=constellation.pk, task_id=KEY))) == []


def addresses_of(constellation: Constellation, session: Session) -> list[str]:
    """One for each part of each place that the MCP server reads."""
    edit = constellation.edits.get().edit_id
    approval = apps.get_model("agents", "approval").objects.filter(kind="tool").order_by("pk").first()
    request = InboxItem.objects.filter(session=session, kind="interaction").first()
    found = [f"constellations/{constellation.pk}/{part}" for part in ("reason", "result", "rules")]
    parts = ("result", "arguments", "error", "reason", "description", "output", "written", "dependencies")
    found += [f"constellations/{constellation.pk}/tasks/a/{part}" for part in parts]
    found += [f"constellations/{constellation.pk}/tasks/a/attempts/1/{part}" for part in ("output", "result", "error")]
    found += [f"constellations/{constellation.pk}/edits/{edit}/{part}" for part in ("operations", "diff", "before", "reason")]
    found += [f"devices/laptop/{part}" for part in ("recipes", "limits", "capabilities")]
    found += [f"approvals/{approval.pk}/{part}" for part in ("action", "observed")]
    found += [f"sessions/{session.pk}/interactions/{request.pk}/{part}" for part in ("result", "plan")]
    assert {each.split("/")[0] for each in found} == {name.split("/")[0] for name, _, _ in PLACES}
    return [f"orrery://{each}" for each in found]


def test_websocket_and_server_sent_events(rows, operator, closing):
    token = make_token(operator, "read", name="live")[1]
    last = Event.objects.filter(stream=rows.pk).order_by("-seq").first().seq

    async def listen() -> tuple[str, str, str, str]:
        told = []
        for since in ("", "?since=1"):
            headers = [(b"authorization", f"Bearer {token}".encode()), (b"host", b"localhost")]
            wire = WebsocketCommunicator(application, f"/ws/sessions/{rows.pk}/{since}", headers=headers)
            await wire.connect()
            frames = [await wire.receive_from(5)]
            while since and (f'"seq":{last}' not in frames[-1] or '"type":"heartbeat"' in frames[-1]):
                frames.append(await wire.receive_from(5))
            told.append("".join(frames))
            await wire.disconnect()
        for after in (None, 1):
            client = SseClient(rows.pk, token, after=after)
            await client.start()
            told.append(json.dumps(await client.events(1 if after is None else last - 1), ensure_ascii=False))
            await client.leave()
        return told[0], told[1], told[2], told[3]

    for said in async_to_sync(listen)():
        assert leaks(said) == []
        assert is_hidden(said)
        assert "noted" not in said or orjson.loads(said) is not None


def test_commands(rows, closing):
    constellation, hidden = Constellation.objects.get(), 0
    for name, *arguments in (
        ("trace_export",), ("constellation_export", str(constellation.pk), "--states"),
        ("constellation_export", str(constellation.pk), "--dialect", "galaxy"),
    ):  # fmt: skip
        out = StringIO()
        call_command(name, *arguments, stdout=out, stderr=out)
        assert leaks(out.getvalue()) == [], name
        hidden += MARK in out.getvalue()
    out = StringIO()
    with pytest.raises(CommandError, match="findings"):  # all rows were changed beside the services
        call_command("verify", stdout=out, stderr=out)
    assert leaks(out.getvalue()) == []
    assert hidden >= 3


SHOWING = {"token_create", "login_link", "up", "demo", "mcp"}
"""Commands that show a secret because they are there for it, or mask line by line or answer by answer."""


def test_a_command_of_ours_masks_what_it_prints_or_is_named_here():
    ours = {name for name, app in get_commands().items() if app in ("agents", "constellations", "frontend", "project")}
    open_ones = {name for name in ours if not isinstance(load_command_class(get_commands()[name], name), MaskedCommand)}
    assert open_ones == SHOWING


def test_no_answer_passes_by_the_middleware():
    """A file or a stream of its own would have to be masked on its way. Artifacts and static files are handed out as they are.

    What a session printed is masked as it is read, piece by piece; a session by columns before it is compressed.
    """
    rooms = ("agents", "constellations", "frontend", "project")
    code = {path: path.read_text() for room in rooms for path in (settings.BASE_DIR / room).rglob("*.py")}
    streaming = [path for path, text in code.items() if re.search("StreamingHttpResponse|FileResponse|AS_IT_IS", text)]
    assert {str(path.relative_to(settings.BASE_DIR)) for path in streaming} == {
        "agents/api/downloads.py",
        "agents/masks/doors.py",
        "constellations/api/past_views.py",
        "constellations/api/session_views.py",
        "project/static.py",
    }
    assert settings.MIDDLEWARE[0] == "agents.masks.doors.MaskedAnswers"


def test_hooks_are_told_masked(rows):
    told = []
    hooks = Hooks()
    hooks._hooks["on_progress"] = lambda session, data: told.append(data)
    hooks._calls.put((rows.pk, "on_progress", {"note": TEXT}))
    hooks._calls.put(None)
    hooks._work()
    assert leaks(str(told)) == []
    assert is_hidden(str(told))


def test_logs(rows):
    """The handlers that the settings make, with everything that a record can carry."""
    handler = next(each for each in logging.getLogger().handlers if any(isinstance(one, MaskedLogs) for one in each.filters))
    stream, handler.stream = handler.stream, StringIO()
    try:
        log = logging.getLogger("agents.engine.runner")
        log.error("the token %s and %r", KEY, {"k": KNOWN}, stack_info=True)
        log.error("too few %s %s", KEY)
        try:
            try:
                raise KeyError(KNOWN)
            except KeyError as error:
                raise ValueError(f"cannot use {KEY}") from error
        except ValueError:
            log.exception("it broke: %s", TEXT)
        said = handler.stream.getvalue()
    finally:
        handler.stream = stream
    assert leaks(said) == []
    assert said.count("Traceback") == 2
    assert MARK in said


def test_a_search_does_not_spell_out_what_it_hides(rows, admin_user):
    """Letter by letter, a search for the beginning of a text would otherwise tell the secret in it."""
    client = Client()
    client.force_login(admin_user)
    Task.objects.update(name=f"{KEY} and more", error="")
    Session.objects.update(title=KNOWN)
    for address, term in (
        ("constellations/task", KEY[:12]), ("constellations/task", KEY), ("agents/session", KNOWN[:8]),
        ("agents/session", KNOWN[:2]),
    ):  # fmt: skip
        assert client.get(f"/admin/{address}/", {"q": term}).context["cl"].result_count == 0, term
    Session.objects.update(title="pLain")
    assert client.get("/admin/agents/session/", {"q": "pL"}).context["cl"].result_count == 1
    for lookup in ("error__startswith", "name__contains", "result__icontains", "arguments__argv__0__startswith", "name__gt"):
        assert client.get("/admin/constellations/task/", {lookup: "g"}).status_code in (302, 400), lookup
    program = Program(make_token(admin_user, "read", name="spy"))
    made = Constellation.objects.get().pk
    assert program("get_constellation", constellation_id=made, name=KEY[:9])["matching"] == 0
    assert (
        program("get_constellation", constellation_id=made, name="a")["matching"]
        == 0 + Task.objects.filter(task_id="a").count() + Task.objects.exclude(task_id="a").count()
    )


def test_a_devices_environment_is_shown_to_admins_only(rows, viewer, admin_user):
    Device.objects.update(limits={"env": {"MODE": "quiet-please", "TOKEN": {"secret": "DEPLOY"}}})
    seen = [Rest(user).get("/api/devices/").json()["results"][0]["limits"]["env"] for user in (viewer, admin_user)]
    assert seen == [
        {"MODE": MARK * 8, "TOKEN": {"secret": "DEPLOY"}}, {"MODE": "quiet-please", "TOKEN": {"secret": "DEPLOY"}},
    ]  # fmt: skip
    program = Program(make_token(viewer, "read", "admin", name="eye"))
    assert program("list_devices")["devices"][0]["limits"]["env"]["MODE"] == MARK * 8
    assert "quiet-please" not in program.whole("orrery://devices/laptop/limits")
