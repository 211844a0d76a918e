"""What a call is, by its name and its command line."""

import pytest

from agents.progress.calls import is_infrastructure, is_look, kind_of_call, kind_of_status, run_programs
from agents.progress.settings import Settings

SETTINGS = Settings()


@pytest.mark.parametrize("line", ["pytest -q tests", "cd api && go test ./...", "npm run test", "cargo test", "make check"])
def test_a_test_is_known_by_its_command(line):
    assert kind_of_call("bash", line, SETTINGS) == "test"


def test_a_project_may_name_its_own_tests():
    settings = Settings.of({"test_commands": [r"^\./prove\b"]})
    assert kind_of_call("bash", "./prove all", settings) == "test"
    assert kind_of_call("bash", "pytest", settings) == "tool"


@pytest.mark.parametrize(("tool", "target"), [("poll", "job"), ("waitForJob", "7"), ("bash", "sleep 5"), ("mcp:poll_run", "")])
def test_waiting_is_known_by_its_name(tool, target):
    assert kind_of_call(tool, target, SETTINGS) == "poll"


@pytest.mark.parametrize(
    ("tool", "target", "looks"),
    [
        ("view", "a.py", True),
        ("mcp:notion_search", "q", True),
        ("bash", "git --no-pager diff", True),
        ("bash", "cd src && grep -rn x . | head", True),
        ("bash", "git add -A", False),
        ("bash", "cat a > b", False),
        ("bash", "rm a", False),
        ("edit", "a.py", False),
        ("mcp:create_issue", "", False),
    ],
)
def test_a_look_is_told_from_a_deed(tool, target, looks):
    assert is_look(tool, target, SETTINGS) is looks


def test_the_program_of_a_command_line_is_what_runs():
    assert run_programs("bash", "cd x && LANG=C sudo /usr/bin/ssh -v host", SETTINGS) == ("ssh",)
    assert run_programs("bash", "git -C . push", SETTINGS) == ("git push",)
    assert run_programs("edit", "ssh", SETTINGS) == ()
    assert run_programs("bash", "", SETTINGS) == ()


def test_faults_of_the_infrastructure_are_known_by_kind():
    assert [kind_of_status(status) for status in (429, 500, 503, 404, 200)] == [
        "rate_limit", "server_error", "server_error", "", "",
    ]  # fmt: skip
    assert is_infrastructure("connection_lost")
    assert not is_infrastructure("timeout")


@pytest.mark.parametrize(
    "overrides", [{"patience": 1}, {"stuck_threshold": -1}, {"stuck_threshold": "3"}, {"enable": 1}, {"poll_tools": "poll"}]
)
def test_a_setting_that_cannot_be_is_refused(overrides):
    with pytest.raises(ValueError, match=next(iter(overrides))):
        Settings.of(overrides)
