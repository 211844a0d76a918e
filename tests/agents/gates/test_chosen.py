"""Calls that a model chose: asked about, except for what is written to run unasked."""

import os

import pytest

from agents.devices.workspace.files import HELD_BYTES, identify_content
from agents.devices.workspace.places import resolve_path
from agents.gates.chosen import judge_chosen, why_different
from agents.gates.policies import Act, Judgement, Site
from agents.gates.unasked import DEFAULT, Unasked, read_unasked

HERE = Site("here", is_here=True, is_confined=True)
LEVEL = Unasked.of(
    read_unasked(
        {
            "commands": [
                ["pytest", "-q"], ["pytest", "-q", "tests/*"], ["python", "-m", "unittest", "..."], ["git", "diff", "..."],
                ["python", "*"], ["sh", "build.sh"], ["timeout", "9", "pytest"], ["python", "-c", "print(1)"],
            ],
            "tools": ["read_file", "write_file", "edit_file", "observe", "noop"],
        }
    )
)  # fmt: skip


def command(*argv: str) -> Act:
    return Act("command", {"argv": list(argv)})


def decision(act: Act, site: Site = HERE, level: Unasked = LEVEL) -> str:
    return judge_chosen(act, site, Judgement(), level).decision


@pytest.mark.parametrize("judgement", [Judgement("ask", True, "why"), Judgement("deny"), Judgement("ask")])
def test_what_a_policy_says_stays_what_it_is(judgement):
    assert judge_chosen(command("pytest", "-q"), HERE, judgement, LEVEL) is judgement


@pytest.mark.parametrize(
    "act", [command("true"), Act("read_file", {"path": "a"}), Act("noop", {}), Act("strange", {"x": 1}), Act("command", {})]
)
def test_where_nothing_is_written_everything_is_asked_about(act):
    judged = judge_chosen(act, HERE, Judgement(), Unasked())
    assert judged.decision == "ask"
    assert "model chose" in judged.note


@pytest.mark.parametrize(
    "argv",
    [
        ("pytest", "-q"), ("pytest", "-q", "tests/test_a.py"), ("pytest", "-q", "tests/test_a.py::test_b[1-2]"),
        ("python", "-m", "unittest"), ("python", "-m", "unittest", "a.b", "c"), ("git", "diff", "main"), ("python", "run.py"),
        ("sh", "build.sh"), ("timeout", "9", "pytest"), ("python", "-c", "print(1)"),
    ],
)  # fmt: skip
def test_an_argument_list_that_is_written_runs_unasked(argv):
    assert decision(command(*argv)) == "allow"


@pytest.mark.parametrize(
    "argv",
    [
        ("pytest",), ("pytest", "-q", "-p", "evil"), ("pytest", "-q", "tests/../../x"), ("./pytest", "-q"),
        ("/tmp/pytest", "-q"),
        ("pytest", "-q", "other/test_a.py"), ("python", "-m", "unittest", "-v"), ("python", "-m", "pdb", "x.py"),
        ("python", "-"), ("python", "-c", "print(2)"), ("python", "-cprint(2)"), ("python", "-Ic", "1"),
        ("python", "/etc/x.py"),
        ("python", "../x.py"), ("python", "run.py", "more"), ("python",), ("git", "diff", "--output=x"),
        ("git", "diff", "-O", "x"),
        ("git", "-c", "core.pager=x", "diff"), ("git", "diff", "@file"), ("git", "diff", "X=1"),
        ("git", "diff", "ext::sh -c x"),
        ("git", "diff", "https://x/y"), ("git", "diff", ":(attr:x)y"), ("git", "diff", "+x"), ("git", "diff", "$(x)"),
        ("git", "diff", "a;b"), ("git", "diff", ""), ("git", "diff", "a\nb"), ("git", "push"), ("sh", "-c", "pytest -q"),
        ("sh", "other.sh"), ("bash", "build.sh"), ("sh", "build.sh", "x"), ("env", "PATH=.", "pytest", "-q"),
        ("env", "pytest", "-q"), ("timeout", "9", "pytest", "-q"), ("nice", "pytest", "-q"), ("PYTEST", "-q"),
    ],
)  # fmt: skip
def test_an_argument_list_that_is_not_written_is_asked_about(argv):
    assert decision(command(*argv)) == "ask"


@pytest.mark.parametrize("argv", [["env", "X=1"], ["sh", "run.sh"], ["xargs", "rm"], ["python", "-m", "code"]])
def test_a_wildcard_that_a_row_has_got_past_the_reader_covers_nothing_that_runs_others(argv):
    level = Unasked(commands=frozenset({(argv[0], "...")}))
    assert decision(command(*argv), level=level) == "ask"


@pytest.mark.parametrize(
    "asked", ["command", "com*", "*", ("git", "..."), ("git", "diff", "*"), ("git", "diff", "main")], ids=str
)
def test_what_one_level_asks_about_is_asked_about_whatever_another_lets(asked):
    assert decision(command("git", "diff", "main"), level=LEVEL.merge(Unasked(ask=frozenset({asked})))) == "ask"


def test_what_is_asked_about_is_so_behind_a_program_that_runs_it():
    level = LEVEL.merge(Unasked(ask=frozenset({("pytest", "...")})))
    assert decision(command("timeout", "9", "pytest"), level=level) == "ask"


def test_file_tools_run_unasked_in_a_confined_workspace_only():
    writing = Act("write_file", {"path": "a/b.py", "content": ""})
    assert decision(writing) == decision(Act("observe", {})) == "allow"
    assert decision(writing, Site("here", is_here=True)) == decision(writing, Site("far")) == "ask"
    assert decision(Act("noop", {}), Site("far")) == "allow"
    assert decision(writing, level=Unasked.of(DEFAULT)) == "allow"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/config"]
)
def test_a_path_that_leads_out_or_to_what_runs_is_asked_about(path):
    assert decision(Act("write_file", {"path": path, "content": ""})) == "ask"


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    return place


def act_in(workspace, tool, arguments) -> Act:
    return Act(
        tool, arguments, lambda path, is_word=False: resolve_path(workspace, path, is_word), "",
        lambda name: identify_content(workspace, name),
    )  # fmt: skip


def test_what_only_looks_needs_a_workspace_of_this_host_and_no_walls():
    for looking in (Act("observe", {}), Act("read_file", {"path": "a"})):
        assert decision(looking, Site("here", is_here=True)) == "allow"
        assert decision(looking, Site("far")) == "ask"
    assert decision(Act("read_file", {"path": "../a"}), Site("here", is_here=True)) == "ask"


def test_links_are_followed_before_anything_runs_unasked(workspace):
    (workspace / "out").symlink_to("/etc")
    (workspace / "run.py").symlink_to("/etc/passwd")
    os.link(workspace.parent / "twin" if (workspace.parent / "twin").write_text("x") else "", workspace / "hard")
    assert decision(act_in(workspace, "read_file", {"path": "out/passwd"})) == "ask"
    assert decision(act_in(workspace, "write_file", {"path": "hard", "content": ""})) == "ask"
    assert decision(act_in(workspace, "command", {"argv": ["python", "run.py"]})) == "ask"
    assert decision(act_in(workspace, "command", {"argv": ["python", "hard"]})) == "ask"
    assert decision(act_in(workspace, "command", {"argv": ["python", "fine.py"]})) == "allow"


@pytest.mark.parametrize(
    "argv",
    [["python", "run.py"], ["sh", "-c", "cd . && python run.py"], ["timeout", "9", "run.py"], ["x", "--file=run.py"]],
)
def test_an_approval_holds_a_command_to_the_files_that_it_names(workspace, argv):
    script = workspace / "run.py"
    script.write_text("print(1)")
    approved = act_in(workspace, "command", {"argv": argv}).action
    assert approved["files"]["run.py"].startswith("sha256 ")
    assert why_different(approved, act_in(workspace, "command", {"argv": argv}), is_edited=False) == ""
    script.write_text("print(2)")
    again = act_in(workspace, "command", {"argv": argv})
    assert why_different(approved, again, is_edited=False) == "run.py has been changed since"
    assert why_different(approved, again, is_edited=True) == "run.py has been changed since"


def test_an_approval_holds_a_command_to_files_that_come_and_go_and_to_links(workspace):
    argv = {"argv": ["python", "run.py"]}
    nothing = act_in(workspace, "command", argv).action
    assert "files" not in nothing
    (workspace / "run.py").write_text("print(1)")
    there = act_in(workspace, "command", argv)
    assert why_different(nothing, there, is_edited=False) == "run.py has been changed since"
    seen = there.action
    (workspace / "run.py").unlink()
    assert why_different(seen, act_in(workspace, "command", argv), is_edited=False) == "run.py has been changed since"
    (workspace / "run.py").symlink_to("/etc/passwd")
    assert why_different(seen, act_in(workspace, "command", argv), is_edited=False) == "run.py has been changed since"


def test_a_large_file_is_held_to_by_its_time_of_change(workspace):
    large = workspace / "model.bin"
    large.write_bytes(b"x" * (HELD_BYTES + 1))
    before = identify_content(workspace, "model.bin")
    large.write_bytes(b"y" * (HELD_BYTES + 1))
    os.utime(large, (1, 1))
    assert before.startswith("inode ")
    assert identify_content(workspace, "model.bin") != before


def test_folders_and_what_is_no_file_are_not_held_to(workspace):
    (workspace / "tests").mkdir()
    argv = ["pytest", "tests", "a b", "\x00", "x" * 5000, "/etc/passwd"]
    assert "files" not in act_in(workspace, "command", {"argv": argv}).action
