"""The admin shows every row to staff who may see it; what may be changed there goes through the services."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client

from agents import ids
from agents.admin.readonly import COUNTED, BoundedPaginator, ReadOnlyAdmin, shown_time
from agents.models import Budget, Device, Event, ModelProfile, Output, Policy, Session, Token
from agents.services.devices import device_create
from agents.services.model_profiles import model_profile_create
from agents.services.policies import policy_create
from agents.services.sessions import session_create
from tests.agents.conftest import add_actor, add_agents, add_approvals, add_evidence, add_loop, make_token
from tests.constellations.api.test_api import add_attempts, add_constellation, printed

pytestmark = pytest.mark.django_db
MODELS = [model for app in ("agents", "constellations") for model in apps.get_app_config(app).get_models()]
EDITED = {"Constellation", "Task", "Dependency", "Edit"}
"""Whose pages make edits: tests/constellations/admin/test_editing.py."""
DRAINED = {"Device"}
"""Which people make, change and drain there: tests/agents/admin/test_devices_admin.py."""
LABELLED = {"Loop"}
"""Of which people say whether they were stuck: tests/agents/services/test_labels.py."""
KEPT = [
    model
    for model in MODELS
    if model not in (Policy, ModelProfile, Budget) and model.__name__ not in EDITED | LABELLED | DRAINED
]
"""Those that the admin shows and no more."""
TERMS = ["1", "9" * 30, "t1", "a\x00b", "'; --", "٣", "%"]


@pytest.fixture
def staff(admin_user):
    admin_user.is_staff = True
    admin_user.save()
    client = Client()
    client.force_login(admin_user)
    return client


@pytest.fixture
def rows(operator):
    """Something of most tables."""
    session = session_create(operator, "mine", by="system")
    device = device_create("laptop", by="system")
    add_actor(session)
    _, nodes = add_constellation(session, 30)
    attempts = add_attempts(session, nodes[0], device, 20)
    printed(attempts[0], "hello")
    make_token(operator, "read", name="ci")
    agent = add_agents(session)[0]
    add_evidence(add_loop(agent, session), session, {}, {"success": False})
    add_approvals(session, 20, agent_id=agent)
    policy_create(tool="command", decision="ask", by="system")
    model_profile_create("fast", provider="anthropic", model="small", by="system")
    return session


def address(model, suffix="changelist", *args):
    from django.urls import reverse

    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{suffix}", args=args)


def test_every_model_is_there_and_searchable():
    for model in MODELS:
        shown = admin.site.get_model_admin(model)
        assert isinstance(shown, ReadOnlyAdmin)
        assert shown.get_search_fields(None)
        assert (shown.actions is None) is (model.__name__ not in (EDITED - {"Edit"}) | DRAINED)


@pytest.mark.one_database
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_row_is_deleted_or_added_beside_the_services(staff, rows, model):
    row = model.objects.first()
    if model not in (Policy, ModelProfile, Budget, Device):
        assert staff.get(address(model, "add")).status_code == 403
    if row is not None:
        sent = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        assert staff.post(address(model), sent).status_code in (200, 302)
        assert model.objects.filter(pk=row.pk).exists()


OF_SESSION = ("Actor", "InboxItem", "Agent", "Loop", "Evidence", "PhaseRecord", "Approval", "Event", "Transition")
OF_SESSION += ("Constellation", "Task", "Dependency", "Attempt", "Edit")


@pytest.mark.parametrize("name", OF_SESSION)
def test_a_list_is_narrowed_down_to_a_session(staff, rows, operator, name):
    model = next(model for model in MODELS if model.__name__ == name)
    session = Session.objects.get()
    other = session_create(operator, "another", by="system")
    shown = staff.get(address(model), {"session": session.pk}).context["cl"]
    assert shown.get_filters_params() == {"session": [str(session.pk)]}
    beyond = ids.PART_BITS if name == "Transition" else 0
    of_session = sum(ids.stream_of(row.pk >> beyond) == session.pk for row in model.objects.all())
    assert len(shown.result_list) == min(50, of_session)
    if name != "Event":
        assert len(staff.get(address(model), {"session": other.pk}).context["cl"].result_list) == 0


def test_the_page_of_a_session_leads_to_all_that_is_of_it(staff, rows):
    session = Session.objects.get()
    page = staff.get(address(Session, "change", session.pk)).content.decode()
    for name in ("agents/agent", "agents/approval", "agents/event", "constellations/constellation", "constellations/edit"):
        assert f'<a href="/admin/{name}/?session={session.pk}">' in page


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_list_and_a_page_cost_at_most_20_queries(staff, rows, model, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        assert staff.get(address(model)).status_code == 200
    row = model.objects.first()
    if row is not None:
        with django_assert_max_num_queries(20):
            assert staff.get(address(model, "change", row.pk)).status_code == 200


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_any_text_may_be_searched_for(staff, rows, model):
    for term in TERMS:
        assert staff.get(address(model), {"q": term}).status_code == 200


def test_a_search_finds_rows_by_id_and_by_the_beginning_of_a_name(staff, rows):
    from constellations.models import Task

    task = Task.objects.get(task_id="t7")
    for term in (str(task.pk), "t7"):
        page = staff.get(address(Task), {"q": term}).content.decode()
        assert address(Task, "change", task.pk) in page
        assert page.count('class="field-task_id"') == 1
    assert 'class="field-task_id"' not in staff.get(address(Task), {"q": "zzz"}).content.decode()


@pytest.mark.one_database
@pytest.mark.parametrize("model", KEPT, ids=lambda model: model.__name__)
def test_nothing_can_be_added_changed_or_deleted(staff, rows, model):
    assert staff.get(address(model, "add")).status_code == 403
    row = model.objects.first()
    if row is not None:
        assert staff.post(address(model, "change", row.pk), {"title": "other"}).status_code == 403
        assert staff.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
        assert model.objects.filter(pk=row.pk).exists()


def test_json_is_shown_indented_and_escaped(staff, rows):
    event = Event.objects.filter(type="session_created").first()
    page = staff.get(address(Event, "change", event.pk)).content.decode()
    assert "<pre>{\n" in page
    assert "&quot;add&quot;" in page


def test_a_tokens_digest_is_not_shown(staff, rows):
    token = Token.objects.get()
    page = staff.get(address(Token)).content.decode()
    assert token.token_key in page
    assert token.digest not in page


def test_only_staff_see_it(rows, operator):
    client = Client()
    client.force_login(operator)
    assert client.get(address(Session)).status_code == 302


def test_staff_who_are_no_admins_see_what_is_theirs(rows, viewer, operator):
    for user, sessions in ((viewer, 0), (operator, 1)):
        user.is_staff = True
        user.save()
        client = Client()
        client.force_login(user)
        assert client.get(address(Session)).content.decode().count('class="field-title"') == sessions
        assert client.get(address(Output)).content.decode().count('class="field-offset') == 0


def test_a_list_counts_only_so_far(operator, django_assert_max_num_queries):
    for _ in range(3):
        add_agents(session_create(operator, by="system"))
    paginator = BoundedPaginator(Session.objects.all(), 2)
    with django_assert_max_num_queries(1) as queries:
        assert paginator.count == 3
    assert f"LIMIT {COUNTED + 1}" in queries[0]["sql"]


def test_a_count_that_was_not_finished_says_more_than(staff, operator, monkeypatch):
    for _ in range(4):
        session_create(operator, by="system")
    monkeypatch.setattr("agents.admin.readonly.COUNTED", 3)
    assert "more than 3 sessions" in staff.get("/admin/agents/session/").content.decode()


def test_times_are_to_the_millisecond_and_sessions_have_names(staff, rows):
    session_create(rows.owner, "another", by="system")
    event = Event.objects.filter(stream=rows.pk).order_by("-pk").first()
    page = staff.get("/admin/agents/event/").content.decode()
    assert shown_time(event.at) in page
    assert f'<a href="/admin/agents/session/{rows.pk}/change/" title="{rows.pk}">mine</a>' in page
    assert page.index(">another</a>") < page.index(">mine</a>")


def test_events_are_narrowed_down_by_type(staff, rows):
    types = set(Event.objects.values_list("type", flat=True))
    assert len(types) > 1
    one = min(types)
    page = staff.get(f"/admin/agents/event/?type={one}")
    assert {row.type for row in page.context["cl"].result_list} == {one}
    assert all(f"type={each}" in page.content.decode() for each in types)


POLICY = {"order": "5", "tool": "command", "pattern": "rm ", "device": "*", "label": "*", "decision": "deny", "note": "careful"}


def test_an_admin_keeps_policies_and_the_stream_has_it(staff, admin_user, verified):
    assert staff.post(address(Policy, "add"), POLICY).status_code == 302
    made = Policy.objects.get()
    assert (made.order, made.pattern, made.decision, made.critical) == (5, "rm ", "deny", False)
    assert staff.post(address(Policy, "change", made.pk), {**POLICY, "critical": "on"}).status_code == 302
    assert staff.post(address(Policy, "delete", made.pk), {"post": "yes"}).status_code == 302
    assert not Policy.objects.exists()
    events = Event.objects.filter(stream__kind="system").order_by("seq")
    assert [(event.type, event.by) for event in events] == [
        (f"policy_{what}", f"user:{admin_user.pk}") for what in ("created", "changed", "deleted")
    ]  # fmt: skip
    assert events[1].data["set"] == {"policy": {str(made.pk): {"critical": True}}}


def test_a_wrong_policy_is_refused_at_its_field(staff):
    page = staff.post(address(Policy, "add"), {**POLICY, "pattern": "a(b", "order": "9999999"})
    assert page.status_code == 200
    assert set(page.context["adminform"].form.errors) == {"pattern", "order"}
    assert "missing )" in page.content.decode()
    assert not Policy.objects.exists()


def test_one_policy_too_many_is_refused(staff, rows, monkeypatch):
    monkeypatch.setattr("agents.services.policies.POLICIES", 1)
    page = staff.post(address(Policy, "add"), POLICY)
    assert "delete one first" in page.content.decode()
    assert Policy.objects.count() == 1


def test_staff_who_are_no_admins_see_policies_and_change_none(rows, operator):
    operator.is_staff = True
    operator.save()
    client, policy = Client(), Policy.objects.get()
    client.force_login(operator)
    assert client.get(address(Policy, "change", policy.pk)).status_code == 200
    assert client.post(address(Policy, "change", policy.pk), POLICY).status_code == 403
    assert client.post(address(Policy, "delete", policy.pk), {"post": "yes"}).status_code == 403
    assert client.get(address(Policy, "add")).status_code == 403


PROFILE = {
    "name": "fast", "provider": "anthropic", "model": "small-1", "key": "MAIN", "price_input": "0.5", "thinking": "low",
    "fallbacks": "[]", "purposes": ["creation"],
}  # fmt: skip


def test_an_admin_keeps_model_profiles_and_the_stream_has_it(staff, admin_user, verified):
    assert staff.post(address(ModelProfile, "add"), PROFILE).status_code == 302
    made = ModelProfile.objects.get()
    assert (made.model, made.key, made.price_input, made.purposes) == ("small-1", "MAIN", 0.5, ["creation"])
    changed = {**PROFILE, "model": "small-2", "name": "another"}
    assert staff.post(address(ModelProfile, "change", made.pk), changed).status_code == 302
    assert staff.post(address(ModelProfile, "delete", made.pk), {"post": "yes"}).status_code == 302
    assert not ModelProfile.objects.exists()
    events = Event.objects.filter(stream__kind="system").order_by("seq")
    assert [(event.type, event.by) for event in events] == [
        (f"model_profile_{what}", f"user:{admin_user.pk}") for what in ("created", "changed", "deleted")
    ]  # fmt: skip
    assert events[1].data["set"] == {"model_profile": {str(made.pk): {"model": "small-2"}}}, "its name stays"


def test_a_moved_model_profile_loses_its_key_in_the_admin_too(staff):
    staff.post(address(ModelProfile, "add"), PROFILE)
    made = ModelProfile.objects.get()
    staff.post(address(ModelProfile, "change", made.pk), {**PROFILE, "base_url": "https://models.example"})
    made.refresh_from_db()
    assert (made.base_url, made.key) == ("https://models.example", "")


def test_a_wrong_model_profile_is_refused_at_its_field(staff):
    wrong = {**PROFILE, "base_url": "http://10.0.0.1", "key": "a b", "fallbacks": '["nobody"]'}
    page = staff.post(address(ModelProfile, "add"), wrong)
    assert page.status_code == 200
    assert set(page.context["adminform"].form.errors) == {"base_url", "key", "fallbacks"}
    assert not ModelProfile.objects.exists()


def test_a_model_profile_that_another_falls_back_to_is_not_deleted(staff, rows):
    used = ModelProfile.objects.get()
    model_profile_create("slow", provider="anthropic", model="m", fallbacks=["fast"], by="system")
    page = staff.post(address(ModelProfile, "delete", used.pk), {"post": "yes"}, follow=True)
    assert "falls back to fast" in page.content.decode()
    assert ModelProfile.objects.filter(pk=used.pk).exists()


def test_staff_who_are_no_admins_see_model_profiles_and_change_none(rows, operator):
    operator.is_staff = True
    operator.save()
    client, profile = Client(), ModelProfile.objects.get()
    client.force_login(operator)
    assert client.get(address(ModelProfile, "change", profile.pk)).status_code == 200
    assert client.post(address(ModelProfile, "change", profile.pk), PROFILE).status_code == 403
    assert client.post(address(ModelProfile, "delete", profile.pk), {"post": "yes"}).status_code == 403
    assert client.get(address(ModelProfile, "add")).status_code == 403


def test_an_admin_keeps_budgets_and_the_stream_has_it(staff, admin_user, verified):
    said = {"scope": "session", "tokens": "1000", "money": "", "subject": "", "per": "total", "then": "ask"}
    assert staff.post(address(Budget, "add"), said).status_code == 302
    made = Budget.objects.get()
    assert (made.scope, made.tokens, made.money, made.subject, made.then) == ("session", 1000, None, None, "ask")
    assert staff.post(address(Budget, "change", made.pk), {**said, "money": "2.5"}).status_code == 302
    wrong = staff.post(address(Budget, "change", made.pk), {**said, "tokens": "-1"})
    assert (wrong.status_code, "must be a whole number" in wrong.content.decode()) == (200, True)
    assert staff.post(address(Budget, "delete", made.pk), {"post": "yes"}).status_code == 302
    events = list(Event.objects.filter(type__startswith="budget").order_by("seq"))
    assert [event.type for event in events] == ["budget_created", "budget_changed", "budget_deleted"]
    assert events[1].data["set"] == {"budget": {str(made.pk): {"money": 2.5}}}
