"""Secrets by reference: who may name them, where their values come from, and what a task gets that cannot have one."""

import json
import os

import pytest

from agents.devices.profiles.profile import DeviceRejected
from agents.masks import values
from agents.masks.masking import MARK
from agents.masks.values import (
    SecretMissing,
    environment_flaw,
    literal_secrets,
    mask_text,
    model_key,
    resolve_environment,
    secret_value,
)
from agents.models import Device, Output
from agents.services.devices import device_change, device_create
from constellations.models import Task
from tests.agents.conftest import Rest

VALUE = "vErY-sEcReT-4711"
OTHER = "oThEr-sEcReT-0815"
PRINT = 'import json, os; print(json.dumps({"token": os.environ.get("API_TOKEN", "none")}))'


@pytest.fixture(autouse=True)
def folder(settings, tmp_path, monkeypatch):
    """A secret in the environment, a folder for others, and a process that knows neither yet."""
    settings.SECRETS_DIR = tmp_path / "keys"
    settings.SECRETS_DIR.mkdir(mode=0o700)
    monkeypatch.setenv("ORRERY_SECRET_DEPLOY", VALUE)
    monkeypatch.setattr(values, "_KNOWN", values._Known())
    monkeypatch.setattr(values, "LOOK_S", 0.0)
    return settings.SECRETS_DIR


def write(folder, name: str, text: str = OTHER, mode: int = 0o600):
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


# Where values come from


def test_a_secret_is_in_the_servers_environment_or_in_a_file(folder, monkeypatch):
    write(folder, "MODEL", f"{OTHER}\n")
    assert resolve_environment({"A": {"secret": "DEPLOY"}, "B": {"secret": "MODEL"}, "C": "plain"}) == {
        "A": VALUE,
        "B": OTHER,
        "C": "plain",
    }
    monkeypatch.setenv("ORRERY_KEY_MODEL", VALUE)
    assert secret_value("MODEL") == VALUE


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o601])
def test_a_file_that_others_may_read_is_refused_with_what_to_do_and_masked_all_the_same(folder, mode):
    path = write(folder, "OPEN", mode=mode)
    with pytest.raises(SecretMissing, match=f"others may read .*OPEN .*mode {mode:o}.*chmod 600 {path}"):
        secret_value("OPEN")
    assert mask_text(OTHER) == MARK * len(OTHER)


def test_what_is_not_there_is_named_with_both_places(folder):
    with pytest.raises(
        SecretMissing, match=f"the secret NONE is not there: ORRERY_SECRET_NONE is not set and {folder} has no file"
    ):
        secret_value("NONE")


@pytest.mark.parametrize("name", ["KEY", "PREFIXES"])
def test_a_setting_is_no_secret_that_a_device_may_name(monkeypatch, name):
    monkeypatch.setenv(f"ORRERY_SECRET_{name}", "a-key-of-the-installation-itself")
    with pytest.raises(SecretMissing):
        secret_value(name)


@pytest.mark.parametrize(
    ("text", "why"), [("short", "5 characters"), ("password", "word of letters"), ("x" * 70_000, "65,536")]
)
def test_a_value_that_could_not_be_masked_is_refused(folder, text, why):
    write(folder, "BAD", text)
    with pytest.raises(SecretMissing, match=why):
        secret_value("BAD")


def test_a_folder_in_the_place_of_a_file_and_a_file_of_bytes_are_refused(folder):
    (folder / "DIR").mkdir()
    (folder / "BYTES").write_bytes(b"\xff" * 20)
    (folder / "BYTES").chmod(0o600)
    with pytest.raises(SecretMissing, match="DIR"):
        secret_value("DIR")
    with pytest.raises(SecretMissing, match="not UTF-8"):
        secret_value("BYTES")


def test_a_file_that_comes_later_is_masked_and_one_that_was_replaced_stays_so(folder):
    assert mask_text(OTHER) == OTHER
    path = write(folder, "MODEL")
    assert mask_text(OTHER) == MARK * len(OTHER)
    write(folder, "MODEL", "another-value-of-it")
    assert mask_text(f"{OTHER} another-value-of-it") == f"{MARK * 17} {MARK * 19}"
    path.unlink()
    assert mask_text(OTHER) == MARK * len(OTHER)


def test_the_installations_own_secrets_are_masked(settings, monkeypatch):
    settings.REDIS_URL = "redis://:rEdIs%2Dpassword@localhost:6379/0"
    monkeypatch.setenv("ORRERY_TOKEN", "a-token-of-another-form")
    settings.DATABASES["default"]["PASSWORD"] = "dAtAbAsE-password"
    try:
        for text in (settings.SECRET_KEY, "rEdIs-password", "a-token-of-another-form", "dAtAbAsE-password"):
            assert mask_text(f"x {text} y") == f"x {MARK * len(text)} y"
    finally:
        settings.DATABASES["default"]["PASSWORD"] = ""


# What a device's limits may say


@pytest.mark.parametrize(
    ("env", "flaw"),
    [
        ({"PATH_TO": "x", "N": "5", "TOKEN_LIMIT": "500", "MAX_TOKENS": "4,096", "USE_AUTH": "true"}, ""),
        ({"API_KEY": {"secret": "DEPLOY"}, "KEYBOARD": "german", "MONKEY": "banana-tree"}, ""),
        ({"API_KEY": "some-value"}, "API_KEY looks like a secret"), ({"GITHUB_PAT": "some-value"}, "GITHUB_PAT looks like"),
        ({"db_password": "hunter2"}, "db_password looks like"), ({"X": "ghp_0123456789abcdef0123"}, "X looks like a secret"),
        ({"URL": f"https://host/{VALUE}"}, "URL looks like a secret"), ({"U": "postgres://me:pass@host/db"}, "U looks like"),
        ({"A": {"secret": "no name"}}, "A names no secret"), ({"A": {"secret": 5}}, "A names no secret"),
        ({"A": {"secret": "DEPLOY", "more": 1}}, "A must be a text"), ({"A": 5}, "A must be a text"), 
        ({"A": "a\0b"}, "A must be"),
        ({"A=B": "x"}, "is no name of a variable"), ({"": "x"}, "is no name"), (["A"], "it is an object"),
        ({f"V{n}": "" for n in range(201)}, "at most 200 names"), ({"A": MARK * 8}, "A holds what is shown in the place"),
    ],
)  # fmt: skip
def test_what_an_environment_may_hold(env, flaw):
    found = environment_flaw(env)
    assert flaw in found
    assert bool(found) is bool(flaw)


@pytest.mark.django_db
def test_a_literal_secret_is_refused_with_the_way_out_and_not_repeated():
    with pytest.raises(DeviceRejected) as refused:
        device_create("d", by="system", limits={"env": {"API_KEY": "hunter2-hunter2"}})
    assert 'write {"secret": "API_KEY"}' in str(refused.value)
    assert "ORRERY_SECRET_API_KEY" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    made = device_create("d", by="system")
    with pytest.raises(DeviceRejected):
        device_change(made.pk, by="system", limits={"env": {"API_KEY": "hunter2-hunter2"}})


@pytest.mark.django_db
def test_over_rest_a_device_names_secrets(admin_user, viewer):
    limits = {"seconds": 5, "env": {"API_TOKEN": {"secret": "DEPLOY"}, "MODE": "quiet"}}
    made = Rest(admin_user).post("/api/devices/", {"name": "d", "limits": limits})
    assert (made.status_code, made.json()["limits"]) == (201, limits)
    seen = Rest(viewer).get("/api/devices/").json()["results"][0]["limits"]
    assert seen == {"seconds": 5, "env": {"API_TOKEN": {"secret": "DEPLOY"}, "MODE": MARK * 8}}
    refused = Rest(admin_user).post("/api/devices/", {"name": "e", "limits": {"env": {"API_TOKEN": "some-value"}}})
    assert (refused.status_code, refused.json()["code"]) == (400, "device_rejected")
    assert Rest(admin_user).post("/api/devices/", {"name": "e", "limits": {"env": "x"}}).status_code == 400


def test_what_older_rows_keep_as_text_is_named():
    rows = [
        ("old", {"env": {"TOKEN": "hunter2-hunter2", "MODE": "x"}}),
        ("new", {"env": {"TOKEN": {"secret": "A"}}}),
        ("none", {}),
    ]
    assert literal_secrets(rows) == ["old: TOKEN"]


# At work


def run(engine, argv=None, **limits) -> Task:
    device_create("d", by="system", limits=limits)
    engine.carry_out({"tasks": [{"task_id": "a", "command": argv or ["python", "-c", PRINT]}]})
    return Task.objects.get()


def test_a_command_gets_the_value_and_everybody_else_a_mask(engine, operator):
    task = run(engine, env={"API_TOKEN": {"secret": "DEPLOY"}})
    assert (task.state, task.result) == ("COMPLETED", {"token": VALUE})
    assert VALUE in Output.objects.get().text
    shown = Rest(operator).get(f"/api/tasks/{task.pk}/").json()
    assert shown["result"] == {"token": MARK * len(VALUE)}
    assert json.loads(shown["output"]["text"]) == {"token": MARK * len(VALUE)}
    assert Device.objects.get().limits == {"env": {"API_TOKEN": {"secret": "DEPLOY"}}}


def test_a_device_whose_limits_do_not_name_it_does_not_get_it(engine):
    assert run(engine).result == {"token": "none"}


def test_a_command_cannot_name_one_by_itself(engine):
    task = run(engine, ["python", "-c", "import json, os; print(json.dumps(dict(os.environ)))"])
    assert VALUE not in json.dumps(task.result)


def test_a_task_whose_secret_is_missing_fails_and_names_it(engine, operator):
    task = run(engine, env={"API_TOKEN": {"secret": "NOWHERE"}})
    assert (task.state, task.error_kind) == ("FAILED", "missing")
    assert task.error.startswith("the secret NOWHERE is not there: ORRERY_SECRET_NOWHERE is not set")
    assert "NOWHERE" in Rest(operator).get(f"/api/tasks/{task.pk}/").json()["error"]


def test_conditions_dependents_and_artifacts_read_the_value_itself(engine):
    device_create("d", by="system", limits={"env": {"API_TOKEN": {"secret": "DEPLOY"}}})
    keep = f'{PRINT}; open(os.environ["ORRERY_ARTIFACTS"] + "/token", "w").write(os.environ["API_TOKEN"])'
    read = (
        'import json, os; print(json.dumps(open(os.environ["ORRERY_ARTIFACTS"] + "/token").read() == os.environ["API_TOKEN"]))'
    )
    engine.carry_out(
        {
            "tasks": [{"task_id": "a", "command": ["python", "-c", keep]}, {"task_id": "b", "command": ["python", "-c", read]}],
            "dependencies": [{"from": "a", "to": "b", "condition": f"token == '{VALUE}'"}],
        }
    )
    assert Task.objects.get(task_id="b").result is True


def test_pieces_of_output_hide_what_begins_and_ends_in_other_pieces_and_rows(engine, operator):
    key = "ghp_0123456789abcdefghij0123456789"
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"
    stored = f"{'x' * 50}{VALUE}\n{key}\n{pem}and so on\n"
    task = run(engine)
    Output.objects.all().delete()
    for offset in range(0, len(stored), 7):
        Output.objects.create(attempt_id=task.attempts.get().pk, offset=offset, text=stored[offset : offset + 7])
    rest = Rest(operator)
    whole = rest.get(f"/api/tasks/{task.pk}/output/").json()["text"]
    assert (len(whole), VALUE in whole, MARK * len(key) in whole) == (len(stored), False, True)
    assert set(whole[50:].removesuffix("\nand so on\n")) == {MARK, "\n"}
    for offset in range(45, len(stored), 3):
        assert rest.get(f"/api/tasks/{task.pk}/output/", offset=offset).json()["text"] == whole[offset:]


def test_a_folder_that_cannot_be_used_is_found_by_the_check(folder, settings):
    from project.checks import check_secrets

    assert check_secrets() == []
    write(folder, "OPEN", mode=0o644)
    write(folder, "SHORT", "abc")
    assert [found.id for found in check_secrets()] == ["orrery.W024"] * 2
    for number in range(values.FILES):
        write(folder, f"F{number}", f"value-number-{number}-of-many")
    assert [found.id for found in check_secrets()] == ["orrery.E025", "orrery.W024", "orrery.W024"]
    settings.SECRETS_DIR = folder / "nowhere"
    assert [found.id for found in check_secrets()] == ["orrery.E023"]
    assert mask_text(os.environ["ORRERY_SECRET_DEPLOY"]) == MARK * len(VALUE)


# Keys of language models


def test_a_models_key_is_found_in_its_own_variables_and_the_folder_only(folder, monkeypatch):
    write(folder, "FILED")
    assert model_key("FILED") == OTHER
    with pytest.raises(SecretMissing, match="ORRERY_KEY_DEPLOY is not set"):
        model_key("DEPLOY")  # ORRERY_SECRET_DEPLOY is meant for commands
    monkeypatch.setenv("ORRERY_KEY_DEPLOY", OTHER)
    assert model_key("DEPLOY") == OTHER


def test_models_keys_are_masked_whatever_other_secrets_are_called(settings, monkeypatch):
    settings.SECRET_PREFIXES = ["OURS_"]
    monkeypatch.setenv("ORRERY_KEY_MAIN", "kEy-Of-A-pRoViDeR-1")
    monkeypatch.setenv("LLM_API_KEY", "kEy-Of-A-pRoViDeR-2")
    shown = mask_text("Incorrect API key provided: kEy-Of-A-pRoViDeR-1, kEy-Of-A-pRoViDeR-2")
    assert "kEy-Of" not in shown


@pytest.mark.parametrize("key", ["short", "onlyletters"])
def test_a_key_that_the_mask_cannot_hide_is_not_used(monkeypatch, key):
    monkeypatch.setenv("ORRERY_KEY_MAIN", key)
    with pytest.raises(SecretMissing, match="cannot be used"):
        model_key("MAIN")
