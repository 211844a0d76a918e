"""REST of sessions, agents, devices and machines."""

import pytest
from django.core.management import call_command

from agents.access.permissions import groups_of
from agents.errors import ActorEnded
from agents.machines import MACHINES
from agents.models import Event, InboxItem, Session
from agents.services import sessions
from agents.streams.fold import stream_snapshot
from tests.agents.conftest import PLAN, Rest, add_actor, add_agents, add_interaction, record

pytestmark = pytest.mark.django_db


def events_of(session):
    return Event.objects.filter(stream_id=session.pk).count()


def post_interaction(rest, session, **body):
    return rest.post(f"/api/sessions/{session.pk}/interactions", body)


def command(rest, session, kind, **body):
    return rest.post(f"/api/sessions/{session.pk}/commands", {"kind": kind, **body})


# sessions


def test_a_session_is_made_by_an_operator_and_belongs_to_them(rest, operator):
    answer = rest.post("/api/sessions/", {"title": "digits"})
    assert answer.status_code == 201
    made = Session.objects.get(pk=answer.json()["id"])
    assert (made.owner, made.title) == (operator, "digits")
    assert answer.json()["head"] == 1
    assert Event.objects.get(stream_id=made.pk).by == f"user:{operator.pk}"


def test_addresses_work_with_and_without_a_slash_at_the_end(rest, session):
    assert rest.get(f"/api/sessions/{session.pk}").json() == rest.get(f"/api/sessions/{session.pk}/").json()


def test_a_session_shows_the_state_of_its_latest_actor(rest, session):
    assert rest.get(f"/api/sessions/{session.pk}/").json()["state"] is None
    add_actor(session, "completed")
    add_actor(session, "idle", epoch=2)
    row = rest.get(f"/api/sessions/{session.pk}/").json()
    assert row["state"] == "idle"
    assert [actor["epoch"] for actor in row["actors"]] == [2, 1]


def test_the_snapshot_is_the_sessions_rows_and_the_seq_they_belong_to(rest, session):
    add_actor(session)
    row = rest.get(f"/api/sessions/{session.pk}/", snapshot=1).json()
    assert row["snapshot"] == stream_snapshot(session.pk)
    assert row["head"] == row["snapshot"]["seq"] == 2
    assert "snapshot" not in rest.get(f"/api/sessions/{session.pk}/").json()


def test_sessions_of_others_are_not_there(session, viewer, admin_user):
    for path in ("", "events", "interactions"):
        assert Rest(viewer).get(f"/api/sessions/{session.pk}/{path}").status_code == 404
    assert Rest(viewer).get("/api/sessions/").json()["results"] == []
    assert Rest(admin_user).get(f"/api/sessions/{session.pk}/").status_code == 200


def test_a_list_is_paged_by_cursor_without_a_gap_or_a_double(rest, operator):
    made = [sessions.session_create(operator, by="system").pk for _ in range(5)]
    seen, cursor = [], {}
    while cursor is not None:
        page = rest.get("/api/sessions/", limit=2, **cursor).json()
        seen += [row["id"] for row in page["results"]]
        cursor = {"cursor": page["next"]} if page["next"] is not None else None
    assert seen == made[::-1]


def test_a_page_is_bounded(rest):
    answer = rest.get("/api/sessions/", limit=501)
    assert answer.status_code == 400
    assert answer.json()["problems"] == [{"key": "limit", "message": "must be a whole number from 1 to 500"}]


@pytest.mark.parametrize("count", [1, 20])
def test_a_list_costs_the_same_queries_however_long_it_is(rest, operator, count, django_assert_max_num_queries):
    for _ in range(count):
        add_agents(sessions.session_create(operator, by="system"), 2)
    for path, most in (("sessions", 8), ("agents", 4), ("devices", 6)):
        with django_assert_max_num_queries(most):
            assert rest.get(f"/api/{path}/").status_code == 200


# interactions


def test_an_interaction_is_accepted_with_ids_and_the_seq_to_follow_from(rest, session):
    answer = post_interaction(rest, session, plan=PLAN, client_id="mine-1")
    assert answer.status_code == 202
    item = InboxItem.objects.get(pk=answer.json()["interaction"])
    assert (item.client_id, item.payload, item.kind) == ("mine-1", {"plan": PLAN}, "interaction")
    assert answer.json()["session"] == session.pk
    following = rest.get(f"/api/sessions/{session.pk}/events", since=answer.json()["seq"]).json()["events"]
    assert following[0]["type"] == "command_received"


def test_the_same_client_id_again_is_the_same_interaction(rest, session):
    first = post_interaction(rest, session, plan=PLAN, client_id="once").json()
    again = post_interaction(rest, session, plan=PLAN, client_id="once")
    assert again.status_code == 202
    assert again.json()["interaction"] == first["interaction"]
    assert (first["created"], again.json()["created"]) == (True, False)
    assert InboxItem.objects.count() == 1


def test_without_a_client_id_one_is_made(rest, session):
    assert len(post_interaction(rest, session, plan=PLAN).json()["client_id"]) >= 16


def test_the_request_id_of_the_caller_is_in_the_event(rest, session):
    rest.post(f"/api/sessions/{session.pk}/interactions", {"plan": PLAN}, **{"X-Request-ID": "trace-7"})
    rest.post(f"/api/sessions/{session.pk}/interactions", {"plan": PLAN}, **{"X-Request-ID": "no good\x7f"})
    given, made = Event.objects.filter(type="command_received").values_list("request_id", flat=True)
    assert given == "trace-7"
    assert len(made) == 16


def test_interactions_are_listed_newest_first_without_other_commands(rest, session):
    add_actor(session)
    command(rest, session, "ping")
    ids = [post_interaction(rest, session, plan=PLAN).json()["interaction"] for _ in range(2)]
    listed = rest.get(f"/api/sessions/{session.pk}/interactions").json()
    assert [row["id"] for row in listed["results"]] == ids[::-1]


def test_a_bad_plan_names_the_place_and_changes_nothing(rest, session):
    before = events_of(session)
    answer = post_interaction(rest, session, plan="tasks:\n  - {task_id: a, after: [b]}\n  - {task_id: b, after: [a]}\n")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert "a" in answer.json()["detail"] + str(answer.json()["problems"])
    assert events_of(session) == before


def test_exactly_one_of_plan_and_request_must_be_given(rest, session):
    for body in ({}, {"plan": PLAN, "request": "do it"}):
        answer = post_interaction(rest, session, **body)
        assert answer.status_code == 400
        assert "exactly one" in answer.json()["detail"]


def test_an_operator_cannot_submit_to_a_session_of_somebody_else(session, django_user_model, operator):
    other = django_user_model.objects.create_user("other")
    other.groups.set(operator.groups.all())
    assert groups_of(other) == {"operator"}
    assert post_interaction(Rest(other), session, plan=PLAN).status_code == 404


# commands


def test_a_command_is_accepted_and_recorded(rest, session):
    add_actor(session, "idle")
    answer = command(rest, session, "pause", reason="lunch", client_id="p1")
    assert answer.status_code == 202
    item = InboxItem.objects.get(pk=answer.json()["command"])
    assert (item.kind, item.payload) == ("pause", {"reason": "lunch"})
    again = command(rest, session, "pause", reason="lunch", client_id="p1")
    assert (again.status_code, again.json()["changed"], again.json()["command"]) == (200, False, item.pk)


@pytest.mark.parametrize(
    ("state", "kind"), [("paused", "pause"), ("idle", "resume"), ("cancelled", "cancel"), ("error", "cancel")]
)
def test_a_command_for_the_state_already_there_changes_nothing(rest, session, state, kind):
    add_actor(session, state)
    before = events_of(session)
    answer = command(rest, session, kind, reason="why not")
    assert (answer.status_code, answer.json()["changed"]) == (200, False)
    assert events_of(session) == before


def test_a_command_that_the_state_does_not_take_is_409(rest, session):
    add_actor(session, "running")
    answer = command(rest, session, "resume")
    assert (answer.status_code, answer.json()["code"]) == (409, "transition_not_allowed")


@pytest.mark.parametrize("kind", ["pause", "resume", "ping"])
def test_a_command_to_an_ended_actor_is_409(rest, session, kind):
    add_actor(session, "completed")
    answer = command(rest, session, kind)
    assert (answer.status_code, answer.json()["code"]) == (409, "actor_ended")


def test_a_command_to_a_session_that_never_had_an_actor_is_409_unless_work_waits(rest, session):
    assert command(rest, session, "pause").json()["code"] == "actor_ended"
    add_interaction(session)
    assert command(rest, session, "cancel", reason="changed my mind").status_code == 202


def test_a_cancel_needs_a_reason(rest, session):
    answer = command(rest, session, "cancel")
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, "reason")


def test_a_client_id_of_another_kind_of_request_is_a_conflict(rest, session):
    add_actor(session)
    post_interaction(rest, session, plan=PLAN, client_id="taken")
    assert command(rest, session, "pause", client_id="taken").json()["code"] == "conflict"


# events


def test_events_since_a_seq_are_gapless_and_bounded(rest, session):
    for number in range(5):
        record(session.pk, note=number)
    page = rest.get(f"/api/sessions/{session.pk}/events", since=1, limit=3).json()
    assert [event["seq"] for event in page["events"]] == [2, 3, 4]
    assert (page["next"], page["head"]) == (4, 6)
    rest_of_it = rest.get(f"/api/sessions/{session.pk}/events", since=page["next"]).json()
    assert [event["data"]["note"] for event in rest_of_it["events"]] == [3, 4]
    assert rest.get(f"/api/sessions/{session.pk}/events", since=6).json()["events"] == []
    assert set(page["events"][0]) == {"seq", "type", "v", "at", "by", "request_id", "data"}


def test_events_are_told_with_fewer_rows_where_that_is_asked_for(rest, session):
    post_interaction(rest, session, plan=PLAN)
    events = f"/api/sessions/{session.pk}/events"
    item = next(event for event in rest.get(events).json()["events"] if "inbox" in event["data"].get("add", {}))
    told = next(event for event in rest.get(events, most_rows=0).json()["events"] if event["seq"] == item["seq"])
    assert (told["data"]["add"]["inbox"], told["left_out"]) == ([], {"inbox": 1})
    assert rest.get(events, most_rows=-1).status_code == 400


@pytest.mark.parametrize(
    "query", [{"since": -1}, {"since": "x"}, {"since": 10**30}, {"limit": 0}, {"limit": 1001}, {"since": "٣"}]
)
def test_a_bad_place_in_the_stream_is_400(rest, session, query):
    answer = rest.get(f"/api/sessions/{session.pk}/events", **query)
    assert answer.status_code == 400
    assert answer.json()["problems"][0]["key"] in query


# agents, devices, machines


def test_an_agent_shows_its_transitions_and_the_time_in_each_state(rest, session):
    agent = add_agents(session)[0]
    moved = [
        ("CONTINUE", "PENDING", "wait", 1.5),
        ("PENDING", "CONTINUE", "received", 2.0),
        ("CONTINUE", "FINISH", "finish", 0.5),
    ]
    for source, target, event, spent in moved:
        told = {"machine": "device_agent", "id": agent, "from_state": source, "to_state": target, "event": event}
        record(session.pk, "state_changed", **told, reason="", spent=spent, set={"agent": {str(agent): {"state": target}}})
    row = rest.get(f"/api/agents/{agent}/").json()
    assert [(each["from_state"], each["to_state"]) for each in row["transitions"]] == [(a, b) for a, b, *_ in moved]
    assert row["time_per_state"] == {"CONTINUE": 2.0, "PENDING": 2.0}
    assert (row["state"], row["choices"]) == ("FINISH", [])


def test_the_present_state_counts_until_now(rest, session):
    agent = add_agents(session)[0]
    row = rest.get(f"/api/agents/{agent}/").json()
    assert set(row["time_per_state"]) == {"CONTINUE"}
    assert "finish" in row["choices"]


def test_agents_are_filtered_by_session_and_state(rest, operator, session):
    other = sessions.session_create(operator, by="system")
    add_agents(other, 2)
    mine = add_agents(session, 1, state="PENDING")
    assert [row["id"] for row in rest.get("/api/agents/", session=session.pk).json()["results"]] == mine
    assert [row["id"] for row in rest.get("/api/agents/", state="PENDING").json()["results"]] == mine
    assert len(rest.get("/api/agents/", machine="device_agent").json()["results"]) == 3


def test_agents_of_others_are_not_there(session, viewer):
    agent = add_agents(session)[0]
    assert Rest(viewer).get(f"/api/agents/{agent}/").status_code == 404
    assert Rest(viewer).get("/api/agents/").json()["results"] == []


def test_a_device_is_made_by_an_admin_once(rest, viewer, admin_user):
    body = {"name": "laptop", "capabilities": ["train"], "limits": {"seconds": 60}, "max_concurrent": 2}
    answer = Rest(admin_user).post("/api/devices/", body)
    assert answer.status_code == 201
    assert rest.get(f"/api/devices/{answer.json()['id']}/").json()["limits"] == {"seconds": 60}
    again = Rest(admin_user).post("/api/devices/", body)
    assert (again.status_code, again.json()["code"]) == (409, "device_exists")
    for other in (rest, Rest(viewer)):
        assert other.post("/api/devices/", {**body, "name": "other"}).status_code == 403


def test_all_machine_tables_are_served(rest):
    listed = {machine["name"]: machine for machine in rest.get("/api/machines/").json()["results"]}
    assert set(listed) == set(MACHINES)
    task = rest.get("/api/machines/task/").json()
    assert task == listed["task"]
    assert len(task["rows"]) == len(MACHINES["task"].rows)
    assert rest.get("/api/machines/nothing/").status_code == 404


# bad input


def test_unknown_keys_are_named(rest, session):
    answer = post_interaction(rest, session, plan=PLAN, colour="red", **{"client-id": "x"})
    assert answer.status_code == 400
    assert {each["key"] for each in answer.json()["problems"]} == {"colour", "client-id"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("[" * 100_000, "levels deep"),
        ('{"plan": "a\\u0000b"}', "NUL"),
        ('{"plan": "a\\ud800b"}', "surrogate"),
        ('{"request": NaN}', "NaN"),
        ('{"request": 1e999}', "out of range"),
        ('{"request": 99999999999999999999}', "out of range"),
        (f'{{"request": {"9" * 5000}}}', "not JSON"),
        ("[1]", "Expected a dictionary"),
        ('"text"', "Expected a dictionary"),
        ("null", ""),
        ('{"plan": 7}', "plan"),
        ('{"plan": null}', "plan"),
        ('{"plan": ["x"]}', "plan"),
        ('{"request": ""}', "request"),
        ('{"request": "x", "client_id": "with space"}', "client_id"),
        ('{"request": "x", "client_id": 5}', "client_id"),
        ('{"request": "x", "client_id": "' + "y" * 65 + '"}', "client_id"),
    ],
)
def test_a_malformed_body_is_a_400_that_says_why(rest, session, body, says):
    before = events_of(session)
    answer = rest.post(f"/api/sessions/{session.pk}/interactions", body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert says in answer.json()["detail"]
    assert set(answer.json()) == {"type", "title", "status", "detail", "code", "problems"}
    assert events_of(session) == before


def test_a_huge_body_is_413(rest, session, settings):
    answer = rest.post(f"/api/sessions/{session.pk}/interactions", b'{"plan": "' + b"x" * settings.BODY_BYTES + b'"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense"]
)
def test_a_wrong_content_type_is_415(rest, session, kind):
    answer = rest.post(f"/api/sessions/{session.pk}/interactions", "plan=x", content_type=kind)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "path",
    [
        "sessions/999999999999999999/",
        "sessions/9999999999999999999999/",
        "agents/0/",
        "sessions/x/",
        "nothing/",
        "devices/%00/",
    ],
)
def test_what_does_not_exist_is_a_problem_404(rest, path):
    answer = rest.get(f"/api/{path}")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("sessions", {"cursor": "x"}),
        ("sessions", {"cursor": 10**19}),
        ("agents", {"session": "x"}),
        ("agents", {"session": 10**19}),
        ("agents", {"session": "1e9999999"}),
        ("agents", {"machine": "a\x00b"}),
        ("tokens", {"cursor": "a\x00b"}),
    ],
)
def test_a_bad_query_is_400(rest, path, query):
    answer = rest.get(f"/api/{path}/", **query)
    assert answer.status_code == 400
    assert answer.json()["problems"][0]["key"] in query


def test_a_large_but_possible_id_finds_nothing(rest):
    assert rest.get("/api/agents/", session=2**62).json()["results"] == []
    assert rest.get("/api/sessions/", cursor=2**63 - 1).status_code == 200


@pytest.mark.parametrize("limits", [{"seconds": -1}, {"seconds": "5"}, {"seconds": True}, {"seconds": 1.5}])
def test_limits_of_a_device_are_whole_numbers(admin_user, limits):
    answer = Rest(admin_user).post("/api/devices/", {"name": "d", "limits": limits})
    assert answer.status_code == 400
    assert answer.json()["problems"][0]["key"] == "limits.seconds"


def test_a_wrong_method_is_405_with_the_methods_there_are(rest, session):
    answer = rest.delete(f"/api/sessions/{session.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer["Allow"]


def test_a_fault_of_ours_is_a_problem_without_a_traceback(rest, monkeypatch):
    monkeypatch.setattr("agents.api.views.sessions.session_create", lambda *args, **kwargs: 1 / 0)
    answer = rest.post("/api/sessions/", {})
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert "ZeroDivision" not in answer.content.decode()


def test_answers_are_not_cached(rest):
    assert rest.get("/api/sessions/")["Cache-Control"] == "no-store"


@pytest.mark.one_database
def test_the_schema_is_valid_and_complete(rest):
    from drf_spectacular.validation import validate_schema

    schema = rest.client.get("/api/schema/", {"format": "json"}).json()
    validate_schema(schema)
    assert "/api/sessions/{id}/interactions/" in schema["paths"]
    assert "413" in schema["paths"]["/api/sessions/{id}/interactions/"]["post"]["responses"]


@pytest.mark.one_database
def test_nothing_in_the_schema_is_guessed_or_called_as_something_else_is(tmp_path):
    call_command("spectacular", "--fail-on-warn", "--file", tmp_path / "schema.yaml")
    assert (tmp_path / "schema.yaml").read_text().startswith("openapi: 3")


@pytest.mark.one_database
def test_the_schema_describes_decisions_and_policies_as_they_are(rest):
    schema = rest.client.get("/api/schema/", {"format": "json"}).json()
    paths, parts = schema["paths"], schema["components"]["schemas"]
    for path in (
        "approvals/",
        "approvals/{id}/",
        "approvals/{id}/decision/",
        "approvals/{id}/callback/",
        "agents/{id}/evidence/",
    ):
        assert f"/api/{path}" in paths
    assert {"get", "patch", "delete"} <= set(paths["/api/policies/{id}/"])
    listed = paths["/api/policies/"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert listed == {"$ref": "#/components/schemas/PolicyList"}
    assert parts["DecisionBody"]["required"] == ["decision"]
    assert parts["CallbackBody"]["oneOf"] == [{"required": ["data"]}, {"required": ["error"]}]
    assert {"loop", "phases", "evidence", "approvals", "children", "blackboard", "progress"} <= set(
        parts["AgentDetail"]["required"]
    )
    assert {"progress", "approvals"} <= set(parts["TaskDetail"]["required"])


def test_the_docs_page_takes_nothing_from_elsewhere(rest):
    page = rest.get("/api/docs/").content.decode()
    assert "swagger-ui" in page
    assert "https://" not in page


def test_tokens_leave_their_trace_in_the_system_stream(client, operator):
    from agents.models import Event

    client.force_login(operator)
    made = client.post("/api/tokens/", {"name": "ci", "scopes": ["read"]}, content_type="application/json").json()
    assert client.delete(f"/api/tokens/{made['id']}/").status_code == 204
    events = Event.objects.filter(stream__kind="system").order_by("seq")
    assert [(event.type, event.by) for event in events] == [
        ("token_created", f"user:{operator.pk}"), ("token_revoked", f"user:{operator.pk}"),
    ]  # fmt: skip
    assert made["token"] not in str([event.data for event in events])


@pytest.mark.parametrize("body", [{}, {"agent": 7}, {"identity": "cycle:read"}])
def test_go_on_names_an_agent_and_an_identity(rest, session, body):
    add_actor(session)
    answer = command(rest, session, "go_on", **body)
    assert (answer.status_code, {each["key"] for each in answer.json()["problems"]}) == (400, {"agent", "identity"} - set(body))
    assert "names an agent and an identity" in answer.json()["detail"]


def test_no_other_command_names_an_agent(rest, session):
    add_actor(session)
    answer = command(rest, session, "ping", agent=7, identity="x")
    assert (answer.status_code, {each["key"] for each in answer.json()["problems"]}) == (400, {"agent", "identity"})


def test_go_on_reaches_a_live_actor_only(rest, session):
    assert command(rest, session, "go_on", agent=7, identity="x").json()["code"] == "actor_ended"
    add_actor(session)
    answer = command(rest, session, "go_on", agent=7, identity="cycle:read", client_id="g1")
    assert answer.status_code == 202
    item = InboxItem.objects.get(pk=answer.json()["command"])
    assert (item.kind, item.payload) == ("go_on", {"reason": "", "agent": 7, "identity": "cycle:read"})


def test_an_ended_actor_cannot_go_on(rest, session):
    add_actor(session, "completed")
    with pytest.raises(ActorEnded):
        sessions.request_submit(session.pk, "go_on", "", {"agent": 7, "identity": "x"}, by="user:1")
    assert command(rest, session, "go_on", agent=7, identity="x").status_code == 409


def test_approve_is_no_command_any_more(rest, session):
    add_actor(session)
    assert command(rest, session, "approve").json()["problems"][0]["key"] == "kind"
