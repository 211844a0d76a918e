"""What tools take: every flaw of a call by its place, in words, as fast as most calls need it."""

import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator

from agents.tools import files
from agents.tools.catalogue import SCHEMAS, TOOLS, argument_flaws, unknown_tool_text


def test_every_tool_says_what_it_takes_and_nothing_else():
    assert set(TOOLS) == set(SCHEMAS) == {"command", "edit_file", "noop", "observe", "read_file", "write_file"}
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False


def test_an_unknown_tool_is_told_what_there_is_and_what_is_nearest():
    there = "there are command, edit_file, noop, observe, read_file, write_file"
    assert unknown_tool_text("raed_file") == f"there is no tool raed_file; {there}; did you mean read_file?"
    assert unknown_tool_text("http") == f"there is no tool http; {there}"
    assert unknown_tool_text("x" * 200) == f"there is no tool {'x' * 80}...; {there}"
    assert unknown_tool_text("noop") == ""


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("noop", {}, []),
        ("noop", {"result": [1, {"a": None}]}, []),
        ("noop", {"resutl": 1}, [(("resutl",), "noop takes no resutl; it takes result; did you mean result?")]),
        ("observe", {"path": "a"}, [(("path",), "observe takes no path; it takes nothing")]),
        ("command", {"argv": ["make"], "cwd": "/"}, [(("cwd",), "command takes no cwd; it takes argv")]),
        ("read_file", {"path": "a", "offset": 0, "limit": 5}, []),
        ("read_file", {"pth": "a"}, [
            (("pth",), "read_file takes no pth; it takes path, offset, limit; did you mean path?"),
            ((), "read_file needs path"),
        ]),
        ("read_file", {"path": 3}, [(("path",), "must be text, not the number 3; put it in quotes")]),
        ("read_file", {"path": ""}, [(("path",), "is empty")]),
        ("read_file", {"path": "x" * 4097}, [(("path",), "has 4,097 characters; 4,096 are allowed")]),
        ("read_file", {"path": None}, [(("path",), "must be text, not nothing; leave it out")]),
        ("read_file", {"path": "a", "offset": -1}, [(("offset",), "is -1; it must be at least 0")]),
        ("read_file", {"path": "a", "limit": 64_001}, [(("limit",), "is 64001; it must be at most 64,000")]),
        ("read_file", {"path": "a", "limit": "all"}, [(("limit",), "must be a whole number, not the text 'all'")]),
        ("read_file", {"path": "a", "limit": True}, [(("limit",), "must be a whole number, not true")]),
        ("write_file", {}, [((), "write_file needs path and content")]),
        ("command", {"argv": ["a", 5]}, [(("argv", 1), "5 is not of type 'string'")]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_said_with_its_place(tool, arguments, found):
    assert argument_flaws(tool, arguments) == found
    assert Draft202012Validator(SCHEMAS[tool]).is_valid(arguments) is not bool(found)


def test_a_tool_without_a_schema_takes_anything_and_one_with_another_schema_takes_that(monkeypatch):
    monkeypatch.setitem(TOOLS, "free", files.observe_device)
    assert (unknown_tool_text("free"), argument_flaws("free", {"any": object()})) == ("", [])
    monkeypatch.setitem(SCHEMAS, "free", {"type": "object", "properties": {"a": {"enum": [1, 2]}}})
    assert argument_flaws("free", {"a": 3, "b": 1}) == [(("a",), "3 is not one of [1, 2]")]
    monkeypatch.setitem(SCHEMAS, "free", {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert [path for path, _ in argument_flaws("free", {})] == [()]
    assert argument_flaws("free", {"b": 1}) == []


def test_calls_as_they_mostly_are_need_no_jsonschema():
    code = (
        "import sys, django; django.setup()\n"
        "from agents.tools.catalogue import argument_flaws\n"
        "assert not argument_flaws('noop', {'result': 1}) and not argument_flaws('write_file', {'path': 'a', 'content': 'b'})\n"
        "assert argument_flaws('read_file', {'path': 1, 'x': 2})\n"
        "print('jsonschema' in sys.modules)"
    )
    env = {"DJANGO_SETTINGS_MODULE": "project.settings", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr
