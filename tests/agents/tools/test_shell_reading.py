"""What an argument list would run, and what of it cannot be known."""

import pytest

from agents.patterns import may_fit
from agents.tools.shell_reading import LINE_CHARACTERS, SIGNS_READ, commands_seen_in


def run_by(*argv: str) -> list[str]:
    """The commands that are known whole, behind the argument list itself."""
    return [seen.text for seen in commands_seen_in(argv)[1:] if not seen.why]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a b; c", ["a b", "c"]),
        ("r''m -r 'a b'", ["rm -r 'a b'"]),
        ('"rm" \\-r', ["rm -r"]),
        ("A=1 rm x > 'y'", ["rm x", "> y"]),
        ("/bin/rm x", ["/bin/rm x", "rm x"]),
        ("env -i A=1 nice -n 5 rm x", ["env -i A=1 nice -n 5 rm x", "nice -n 5 rm x", "rm x"]),
        ("sh -ec 'rm x'", ["sh -ec 'rm x'", "rm x"]),
        ("{ a; } || (b &)", ["a", "b"]),
        ("# rm x", []),
        ("echo 'a; rm x'", ["echo 'a; rm x'"]),
    ],
)
def test_the_commands_of_a_line_are_its_own(line, commands):
    assert run_by("sh", "-c", line) == commands


@pytest.mark.parametrize(
    ("argv", "inner"),
    [
        (["bash", "-eo", "pipefail", "-c", "rm x"], "rm x"),
        (["sh", "-c", "-e", "rm x"], "rm x"),
        (["sh", "-c", 'rm "$1" ${2}', "name", "a b", "c"], "rm 'a b' c"),
        (["busybox", "rm", "x"], "rm x"),
        (["find", ".", "-exec", "rm", "-f", "x", ";"], "rm -f x"),
    ],
)
def test_a_line_is_found_behind_whatever_hands_it_on(argv, inner):
    assert inner in run_by(*argv)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["sh", "-c", "$X y"], "only the run tells what `$X` stands for"),
        (["sh", "-c", "rm*"], "only the run tells what `rm*` stands for"),
        (["sh", "-c", "eval x"], "eval makes commands of what it is given"),
        (["sh", "clean.sh"], "sh runs a script"),
        (["sh", "-s"], "sh runs a script"),
        (["sh", "-c", 'rm $1', "name", "a b"], "only the run tells what `$1` stands for"),
        (["python3.11", "-Ic", "x"], "python3.11 is given code"),
        (["env", "-S", "rm x"], "env -S makes words of a text"),
        (["zsh", "-c", "a"], "zsh reads lines in its own way"),
        (["sh", "-c", "if"], "the line cannot be read as a shell would read it"),
        (["sh", "-c", "a > b rm"], "words behind a redirection"),
        (["sh", "-c", "echo $((x))"], "`$((x))` may run what a variable holds"),
        (["sh", "-c", "a " * LINE_CHARACTERS], "too many to read"),
        (["sh", "-c", "a;" * SIGNS_READ + "a;"], "too many to read"),
        (["nice"] * 30, "too often to be followed"),
    ],
)  # fmt: skip
def test_what_only_the_run_tells_is_said_to_be_unknown(argv, why):
    assert any(why in seen.why for seen in commands_seen_in(argv))


@pytest.mark.parametrize("argv", [["make", "test"], ["python", "train.py", "-c"], ["sh", "-c", "cd x && make > log 2>&1"]])
def test_what_is_plain_is_known_whole(argv):
    assert not any(seen.why for seen in commands_seen_in(argv[:2] if argv[0] == "python" else argv))


@pytest.mark.parametrize(
    ("pattern", "beginning", "may"),
    [
        ("^rm ", "echo ", False), ("^rm ", "r", True), ("^rm ", "rm -r", True), ("^rm ", "rm ", True),
        ("^rms?x", "rm", True), ("rm", "echo", True), ("^rm|x", "echo", True), ("(?i)^rm", "RM", True),
        ("^(a|rm)", "echo", True), (r"\Arm\b", "echo", False), ("^", "echo", True),
    ],
)  # fmt: skip
def test_a_pattern_is_ruled_out_only_where_it_is_tied_to_another_beginning(pattern, beginning, may):
    assert may_fit(pattern, beginning) is may
