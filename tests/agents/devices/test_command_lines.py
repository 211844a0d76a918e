"""Lines of a command against real shells: what is split is what they would split, and the rest is refused."""

import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.devices.command_lines import (
    RUN_BY_RUNNERS,
    NotPlain,
    commands_in_line,
    run_by_a_shell,
    shell_arguments,
    shell_line_of,
    split_line,
)

SHELLS = [found for name in ("sh", "bash", "dash") if (found := shutil.which(name))]
PIECES = [*"ab \t\n'\"\\$*?[]~`#(){},!=;&|<>-:.%^@+/", "{a,b}", "{}", "\\;", "$a", "$(", "x=", "# ", "~/", "''", '""', "\\\n"]


def words_of(shell: str, line: str, place) -> list[str]:
    """What a shell hands to a program as its arguments."""
    script = f"set -- {line}\nfor word; do printf '%s\\0' \"$word\"; done"
    done = subprocess.run([shell, "-c", script], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("a\\\nb")
@example('"a\\$b"')
@example("a #b")
@example("x=~")
def test_a_line_that_is_split_is_split_as_every_shell_would(tmp_path_factory, line):
    try:
        words = split_line(f"a {line}")
    except NotPlain:
        return
    place = tmp_path_factory.mktemp("empty")
    assert [words_of(shell, f"a {line}", place) for shell in SHELLS] == [words] * len(SHELLS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("make test", ["make", "test"]),
        ("  make test\n", ["make", "test"]),
        ("echo 'a > b | c' \"it's 5$\"", ["echo", "a > b | c", "it's 5$"]),
        ("git show HEAD~1 a#b foo$ --x={} hi!", ["git", "show", "HEAD~1", "a#b", "foo$", "--x={}", "hi!"]),
        (r"find . -name \*.py -exec echo {} \;", ["find", ".", "-name", "*.py", "-exec", "echo", "{}", ";"]),
        ("echo {model} 'FOO=1' a=b", ["echo", "{model}", "FOO=1", "a=b"]),
        ("", []),
    ],
)
def test_a_line_of_plain_words_is_split(line, words):
    assert split_line(line) == words


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("echo x > f", "`>`"), ("sort < f", "`<`"), ("ls | wc", "`|`"), ("a && b", "`&`"), ("a; b", "`;`"),
        ("echo $HOME", "`$`"), ("echo ${a}", "`$`"), ("ls *.py", "`*`"), ("ls a?", "`?`"), ("ls [ab]", "`[`"), ("ls ~", "`~`"),
        ("a --to=~/x", "`~`"),
        ("echo `id`", "a backquote"), ("make\nmake install", "a line end"), ("make # all", "`#`"), ("(make)", "`(`"),
        ("cp a.{py,txt} b", "`{py,txt}`"), ("echo {1..3}", "`{1..3}`"), ('echo "$HOME"', "`$` in double quotes"),
        ('echo "`id`"', "a backquote"), (r'echo "\$HOME"', "a backslash in double quotes"), ("cd src", "`cd`"),
        ("FOO=1 make", "`FOO=`"), ("export A", "`export`"), ("! make", "`!`"), ("if true", "`if`"),
        ("make \\\n test", "a backslash before a line end"),
    ],
)  # fmt: skip
def test_what_a_shell_would_understand_otherwise_is_refused_by_name(line, named):
    with pytest.raises(NotPlain) as refused:
        split_line(line)
    assert str(refused.value) == f"{named} means something to a shell, and no shell reads a command that is given as a text"
    assert refused.value.is_shells


def test_a_quote_that_is_never_closed_is_nothing_that_a_shell_could_read():
    with pytest.raises(NotPlain, match="cannot be split into words: no closing quotation") as refused:
        split_line("echo 'a")
    assert not refused.value.is_shells


def test_a_line_for_a_shell_is_known_again_by_its_argument_list():
    assert shell_line_of(shell_arguments("a > b")) == "a > b"
    assert [shell_line_of(argv) for argv in (["sh", "-c"], ["sh", "-c", " "], ["sh", "-c", "a", "b"], ["bash", "-c", "a"])] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["sh", "-c", "rm x"], "rm x"),
        (["/bin/bash", "-euo", "pipefail", "-c", "rm x"], "rm x"),
        (["/bin/bash", "-e", "-c", "rm x", "name"], "rm x"),
        (["dash", "-ec", "rm x"], "rm x"),
        (["sh", "script.sh"], None),
        (["python", "-c", "x"], None),
        (["sh", "-x", "-e"], None),
        (["sh", "-c"], None),
        (["env", "A=1", "sh", "-c", "rm x"], "rm x"),
        (["/usr/bin/env", "-u", "B", "-C", "y", "A=1", "timeout", "-s", "KILL", "5", "bash", "-c", "rm x"], "rm x"),
        (["env", "rm", "x"], None),
        (["env"], None),
        (["timeout", "5"], None),
    ],
)
def test_what_a_shell_runs_is_known_whatever_its_name(argv, line):
    assert run_by_a_shell(argv) == line


def test_the_commands_of_a_shells_line_are_looked_at_one_by_one():
    assert commands_in_line("cd x && rm -rf y; (ls | wc)\n`id`") == ["cd x", "rm -rf y", "ls", "wc", "id"]


@pytest.mark.parametrize(
    "line",
    [
        "! rm -r x", "A=1 rm -r x", "A='1 2' B=3 rm -r x", "if true; then rm -r x; fi", "while rm -r x; do ls; done",
        "{ rm -r x; }",
        "for f in *; do rm -r x; done", "( rm -r x )", "time rm -r x", "! time A=1 rm -r x", ">f rm -r x", "2>> f rm -r x",
        "env A=1 rm -r x", "/usr/bin/env -i rm -r x", "nohup nice -n 5 rm -r x", "timeout -k 1 --signal=KILL 5m rm -r x",
        "exec -a ls rm -r x", "command rm -r x", "sudo -u bob rm -r x", "ls | xargs -n 1 rm -r x", "sh -c 'rm -r x'",
        "A=1 bash -ec 'cd y; rm -r x'", """env sh -c "sh -c 'rm -r x'\"""", "'rm' -r x", r"r\m -r x", "env env env rm -r x",
    ],
)  # fmt: skip
def test_what_stands_before_a_command_does_not_hide_it(line):
    assert [each for each in commands_in_line(line) if each.startswith("rm -r x")]


@pytest.mark.parametrize("line", ["echo rm -r x", "env echo rm -r x", "git rm -r x", "A='rm -r x' ls", "timeout rm 5"])
def test_a_word_that_is_no_program_is_not_taken_for_a_command(line):
    assert not [each for each in commands_in_line(line) if each.startswith("rm")]


def test_of_commands_that_run_each_other_some_are_looked_at_and_the_innermost_is():
    found = commands_in_line("env " * 3_000 + "rm -r x")
    assert (len(found), found[-1]) == (RUN_BY_RUNNERS + 1, "rm -r x")


@given(st.lists(st.sampled_from([*PIECES, "env ", "sh -c ", "timeout ", "-n ", "! ", ">", "rm "]), max_size=20).map("".join))
def test_any_line_has_commands(line):
    assert all(len(each) <= len(line) for each in commands_in_line(line))
