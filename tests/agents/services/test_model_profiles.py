"""Model profiles as rows: what is refused, what follows from a change, and which profile serves a purpose."""

import os
import subprocess
import sys

import pytest

from agents.llm.choices import PURPOSES
from agents.llm.profiles import NoModelProfile, choose_profiles, read_profiles
from agents.models import Event, ModelProfile
from agents.services import model_profiles
from agents.services.model_profiles import model_profile_change, model_profile_create, model_profile_delete
from project.environment import hosts_of

pytestmark = [pytest.mark.one_database, pytest.mark.django_db(transaction=True)]
FAST = {"provider": "anthropic", "model": "small-1", "by": "system"}


def refused_fields(**said) -> set[str]:
    fields = {**FAST, **said}
    with pytest.raises(model_profiles.ModelProfileRejected) as refused:
        model_profile_create(fields.pop("name", "fast"), **fields)
    return {problem["key"] for problem in refused.value.problems}


def last_event() -> Event:
    return Event.objects.filter(stream__kind="system").latest("seq")


def test_a_profile_is_a_row_and_an_event(verified):
    made = model_profile_create("fast", **FAST, key="MAIN", price_input=0.25, fallbacks=[], purposes=["creation"])
    assert (made.name, made.key, made.price_input, made.price_output) == ("fast", "MAIN", 0.25, None)
    assert last_event().type == "model_profile_created"
    model_profile_change(made.pk, by="user:1", model="small-2", thinking="high")
    assert last_event().data["set"]["model_profile"] == {str(made.pk): {"model": "small-2", "thinking": "high"}}
    model_profile_delete(made.pk, by="user:1")
    assert not ModelProfile.objects.exists()


def test_what_is_so_already_is_not_recorded(verified):
    made = model_profile_create("fast", **FAST)
    before = last_event().pk
    model_profile_change(made.pk, by="system", model="small-1")
    assert last_event().pk == before


@pytest.mark.parametrize(("field", "value"), [
    ("name", "two words"), ("name", "Environment"), ("name", "x" * 81), ("provider", "nobody"), ("model", " "),
    ("model", "a\x00b"), ("base_url", "ftp://models.example"), ("base_url", "https://user:word@models.example"),
    ("base_url", "https://models.example/?key=1"), ("base_url", "http://models.example"), ("base_url", "https://127.0.0.1:1"),
    ("base_url", "https://[::ffff:10.0.0.1]/v1"), ("base_url", "https://169.254.169.254"), ("base_url", 7),
    ("key", "a-b"), ("key", "x" * 65), ("key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("context_window", 0), ("context_window", 1.5),
    ("max_output_tokens", True), ("price_input", -1), ("price_output", float("nan")), ("temperature", 2.1),
    ("thinking", "deep"),
    ("fallbacks", ["nobody"]), ("fallbacks", ["fast"]), ("fallbacks", "fast"), ("purposes", ["cooking"]),
    ("purposes", ["creation", "creation"]), ("colour", "red"), ("requests_per_minute", "9"), ("calls_in_flight", -3),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_at_its_field(field, value):
    assert refused_fields(**{field: value}) == {field}
    assert not ModelProfile.objects.exists()


@pytest.mark.parametrize("provider", ["openai_compatible", "ollama", "bedrock"])
def test_who_has_no_address_of_its_own_must_be_given_one(provider):
    assert refused_fields(provider=provider) == {"base_url"}


def test_bedrock_is_asked_at_amazon_and_nowhere_else():
    assert refused_fields(provider="bedrock", base_url="https://bedrock-runtime.example.com") == {"base_url"}
    model_profile_create("aws", **{**FAST, "provider": "bedrock"}, base_url="https://bedrock-runtime.eu-west-1.amazonaws.com")


def test_a_host_inside_is_taken_where_the_installation_names_it(settings, monkeypatch):
    monkeypatch.setenv("ORRERY_MODEL_HOSTS", "models.internal, 10.1.0.0/16")
    settings.MODEL_HOSTS = hosts_of("ORRERY_MODEL_HOSTS", "http://127.0.0.1:11434/v1")
    for number, host in enumerate(("models.internal", "10.1.2.3:8000", "127.0.0.1:11434")):
        model_profile_create(f"inside-{number}", **FAST, base_url=f"http://{host}/v1")
    assert refused_fields(base_url="http://10.2.0.1/v1") == {"base_url"}


def test_a_changed_address_or_provider_clears_the_keys_name(verified):
    made = model_profile_create("fast", **FAST, key="MAIN")
    assert model_profile_change(made.pk, by="system", model="small-2").key == "MAIN"
    assert model_profile_change(made.pk, by="system", base_url="https://models.example").key == ""
    model_profile_change(made.pk, by="system", key="OTHER")
    assert model_profile_change(made.pk, by="system", provider="openai_responses").key == ""
    model_profile_change(made.pk, by="system", key="OTHER")
    sent_again = model_profile_change(made.pk, by="system", base_url="https://another.example", key="OTHER")
    assert sent_again.key == "", "the same name that comes along was not chosen for the new address"
    assert model_profile_change(made.pk, by="system", base_url="", key="MAIN").key == "MAIN"


def test_a_purpose_has_one_profile(verified):
    first = model_profile_create("first", **FAST, purposes=list(PURPOSES))
    second = model_profile_create("second", **FAST, purposes=["editing"])
    first.refresh_from_db()
    assert first.purposes == ["creation", "device_agent", "judging"]
    model_profile_change(first.pk, by="system", purposes=["editing"])
    second.refresh_from_db()
    assert second.purposes == []
    assert choose_profiles(read_profiles(), "editing")[0].name == "first"


def test_fallbacks_come_in_their_order_and_are_kept_from_deletion(verified):
    for name in ("one", "two"):
        model_profile_create(name, **FAST)
    made = model_profile_create("main", **FAST, fallbacks=["two", "one"], purposes=["creation"])
    assert [profile.name for profile in choose_profiles(read_profiles(), "creation")] == ["main", "two", "one"]
    with pytest.raises(model_profiles.ModelProfileInUse):
        model_profile_delete(ModelProfile.objects.get(name="one").pk, by="system")
    model_profile_delete(made.pk, by="system")
    model_profile_delete(ModelProfile.objects.get(name="one").pk, by="system")


def test_names_are_taken_once_in_whatever_case():
    model_profile_create("fast", **FAST)
    with pytest.raises(model_profiles.ModelProfileExists):
        model_profile_create("FAST", **FAST)


def test_an_installation_has_no_more_than_it_may(monkeypatch):
    monkeypatch.setattr(model_profiles, "PROFILES", 1)
    model_profile_create("fast", **FAST)
    with pytest.raises(model_profiles.TooManyModelProfiles):
        model_profile_create("slow", **FAST)


@pytest.mark.parametrize(
    "does", [lambda: model_profile_change(7, by="system", model="m"), lambda: model_profile_delete(7, by="system")]
)
def test_what_is_not_there_is_said(does):
    with pytest.raises(model_profiles.NoSuchModelProfile):
        does()


def test_without_a_profile_the_error_says_what_to_configure():
    with pytest.raises(NoModelProfile, match="LLM_BASE_URL and LLM_MODEL"):
        choose_profiles(read_profiles(), "creation")


def test_variables_make_a_profile_for_all_that_has_none(settings, monkeypatch):
    settings.LLM_MODEL, settings.LLM_BASE_URL = "local-model", "http://127.0.0.1:8080/v1"
    settings.MODEL_HOSTS = hosts_of("NOTHING", settings.LLM_BASE_URL)
    monkeypatch.setenv("LLM_API_KEY", "a-key-of-the-environment-1")
    model_profile_create("fast", **FAST, purposes=["editing"])
    own = choose_profiles(read_profiles(), "creation")[0]
    assert (own.name, own.model, own.purposes) == ("environment", "local-model", ("creation", "device_agent", "judging"))
    assert own.read_key() == "a-key-of-the-environment-1"
    assert "a-key-of" not in repr(own)
    assert choose_profiles(read_profiles(), "editing")[0].name == "fast"
    assert not own.sees
    settings.LLM_SEES = True
    assert choose_profiles(read_profiles(), "creation")[0].sees


def test_a_row_without_an_address_has_its_providers():
    model_profile_create("fast", **FAST)
    assert read_profiles()["fast"].base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(("said", "sees"), [("1", "True"), ("", "False")])
def test_a_variable_says_whether_the_model_of_the_environment_sees(said, sees):
    asked = [sys.executable, "-c", "from project import settings; print(settings.LLM_SEES)"]
    told = subprocess.run(asked, env={**os.environ, "LLM_SEES": said}, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == sees
