"""The commands of `manage.py`: the list of profiles, a real call, and the scripted model as a program."""

import io
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from agents.masks import values
from agents.services.model_profiles import model_profile_create
from tests.agents.llm.conftest import PATIENCE_S

ROOT = Path(django_settings.BASE_DIR)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("models", *arguments, stdout=out)
    return out.getvalue()


def make_profile(provider, **more) -> None:
    profile = provider.profile
    model_profile_create(
        "tried", provider=profile.provider, model=profile.model, base_url=profile.base_url, by="system", **more
    )  # fmt: skip


@pytest.mark.django_db
def test_without_a_profile_the_list_says_where_to_read():
    assert "docs/models.md" in run()


@pytest.mark.django_db
def test_the_list_says_what_is_asked_where_and_by_which_key():
    model_profile_create("fast", provider="anthropic", model="small", key="MAIN", purposes=["editing"], by="system")
    assert run() == "fast: small by anthropic at https://api.anthropic.com (key ORRERY_KEY_MAIN; editing)\n"


@pytest.mark.django_db
def test_a_check_makes_one_call_and_says_what_it_cost(provider, monkeypatch):
    monkeypatch.setenv("ORRERY_KEY_TRIED", "not-a-real-key-18")
    monkeypatch.setattr(values, "_KNOWN", values._Known())  # as in a process that begins with the variable
    asked = provider({"when": {"last": "ready"}, "say": "ready, not-a-real-key-18", "tokens": {"input": 9, "output": 2}})
    make_profile(asked, key="TRIED")
    said = run("check", "tried")
    assert "tried: test-model answered" in said
    assert "(9 tokens in, 2 out)" in said
    assert "not-a-real-key-18" not in said, "what is printed is masked"
    assert len(asked.model.asked) == 1


@pytest.mark.django_db
def test_a_check_that_fails_says_the_fault_and_its_facts(provider):
    make_profile(provider({"fail": {"status": 429, "retry_after": 3}}))
    with pytest.raises(CommandError, match=r"model_rate_limited: .*status 429; try again after 3 s"):
        run("check", "tried")


@pytest.mark.django_db
def test_a_check_of_nothing_names_what_there_is():
    with pytest.raises(CommandError, match="there are: none"):
        run("check", "nobody")


def test_the_scripted_model_is_a_program_on_this_machine_only(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{say: hello}]\n")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    command = [sys.executable, "manage.py", "scripted_model", str(script), "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert f"http://127.0.0.1:{port}" in program.stdout.readline()
            body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
            assert b"hello" in post_patiently(f"http://127.0.0.1:{port}/v1/chat/completions", body)
        finally:
            program.terminate()
            program.wait(PATIENCE_S)


def post_patiently(address: str, body: bytes) -> bytes:
    patience = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(address, body, PATIENCE_S) as answer:
                return answer.read()
        except OSError:
            assert time.monotonic() < patience
            time.sleep(0.05)


def test_a_file_that_is_no_script_is_refused_at_its_key(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{sey: hello}]\n")
    with pytest.raises(CommandError, match=r"answers\[0\]: sey: known are"):
        call_command("scripted_model", str(script))
