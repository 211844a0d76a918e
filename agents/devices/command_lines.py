"""Commands that are written as one line: split where a shell would do no more than that, refused where it would. Pure.

Nothing here runs a shell. `split_line` gives the words that a POSIX shell would hand to the program, or says what in the line
is the shell's own: redirections, pipes, variables, patterns, a word that only a shell knows. `shell_arguments` is for whoever
wants a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

BLANKS = " \t\r\n"
"""What stands around a line and says nothing."""
ALWAYS = "<>|&;()*?["
"""Characters that are a shell's own wherever they stand outside quotes."""
EXPANDED = re.compile(r"\$[A-Za-z0-9_{(@*#?$!-]")
"""A `$` that a shell replaces; any other one is just a character."""
QUOTED_BY_DOLLAR = re.compile(r"\$['\"]")
BRACES = re.compile(r"\{[^\s{}'\"\\]*(,|\.\.)[^\s{}'\"\\]*\}")
"""Alternatives or a range in braces, which some shells write out; others are just braces."""
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
OF_THE_SHELL = frozenset([
    "!", ".", ":", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "coproc", "declare", "dirs",
    "do", "done", "elif", "else", "esac", "eval", "exec", "exit", "export", "fg", "fi", "for", "function", "getopts", "hash",
    "if", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return", "select", "set",
    "shift", "shopt", "source", "then", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while", "{", "}",
])  # fmt: skip
"""First words that a shell does not look for among the programs."""

SHELL = ("sh", "-c")
"""What runs a line as a shell understands it."""
SHELLS = frozenset(["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"])
RUNS_A_LINE = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
"""The option of a shell that makes its next word the line it runs."""
UNREAD = "means something to a shell, and no shell reads a command that is given as a text"
PARTS = re.compile(r"&&|\|\||[;&|\n(){}`]")
"""Where one command of a shell's line ends and another begins."""
WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\]|['"\\])+""", re.DOTALL)
"""A word of a line as it is written; of a quote that is never closed the words in it, one by one."""
QUOTING = re.compile(r"""['"]|\\(.)""", re.DOTALL)
BEFORE_A_COMMAND = frozenset(["!", "if", "then", "do", "else", "elif", "while", "until", "{", "("])
"""Words of a shell that a command may follow."""
REDIRECTION = re.compile(r"[0-9]*(?:<<?|>>?|<>)(.*)", re.DOTALL)
RUNNERS: dict[str, frozenset[str]] = {
    "builtin": frozenset(),
    "busybox": frozenset(),
    "command": frozenset(),
    "coproc": frozenset(),
    "doas": frozenset(["-u", "-C"]),
    "env": frozenset(["-u", "--unset", "-C", "--chdir"]),
    "exec": frozenset(["-a"]),
    "ionice": frozenset(["-c", "--class", "-n", "--classdata"]),
    "nice": frozenset(["-n", "--adjustment"]),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset(["-i", "--input", "-o", "--output", "-e", "--error"]),
    "sudo": frozenset(["-u", "--user", "-g", "--group", "-D", "--chdir", "-h", "--host", "-p", "--prompt"]),
    "time": frozenset(["-f", "--format", "-o", "--output"]),
    "timeout": frozenset(["-k", "--kill-after", "-s", "--signal"]),
    "xargs": frozenset(["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"]),
}
"""Programs that run the command behind their options, and those of their options whose value is a word of its own."""
RUNNERS_OPERANDS = {"timeout": 1}
"""Words that stand between the options and the command."""
RUN_BY_RUNNERS = 20
"""Commands in one another, each run by the one around it, that are looked at; of more these and the innermost."""


class NotPlain(ValueError):
    """A line that is not just words. `is_shells`: because of what only a shell understands, not because nobody can read it."""

    def __init__(self, message: str, is_shells: bool = False):
        super().__init__(message)
        self.is_shells = is_shells


def split_line(line: str) -> list[str]:
    """The words of a line which a shell would only split; raises NotPlain."""
    line = line.strip(BLANKS)
    for found in _what_a_shell_reads(line):
        raise NotPlain(f"{found} {UNREAD}", is_shells=True)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise NotPlain(f"cannot be split into words: {str(error).lower()}") from error
    if words and words[0] in OF_THE_SHELL:
        raise NotPlain(f"`{words[0]}` {UNREAD}", is_shells=True)
    return words


def is_split_into(line: str, words: Sequence[str]) -> bool:
    """Whether a shell would only split this line, into these words."""
    try:
        return split_line(line) == list(words)
    except NotPlain:
        return False


def shell_arguments(line: str) -> list[str]:
    """The argument list that has a shell run the line."""
    return [*SHELL, line]


def shell_line_of(argv: Sequence[str]) -> str | None:
    """The line that `shell_arguments` made this argument list of; None for every other list."""
    return argv[2] if len(argv) == 3 and tuple(argv[:2]) == SHELL and argv[2].strip(BLANKS) else None


def run_by_a_shell(argv: Sequence[str]) -> str | None:
    """The line that an argument list hands to a shell of whatever name, maybe by `env` or its like; None where it does not."""
    at: int | None = 0
    while at is not None and at < len(argv):
        if program_name(argv[at]) in SHELLS:
            line = _line_at(argv, at)
            return None if line is None else argv[line]
        at = next_command(argv, at)
    return None


def commands_in_line(line: str) -> list[str]:
    """The commands of a shell's line, roughly: what stands between `;`, `|`, `&&`, brackets and line ends, in quotes or not.

    With each goes what it runs in turn (`commands_run_by`).
    """
    return [command for each in PARTS.split(line) if (part := each.strip(BLANKS)) for command in commands_run_by(part)]


def commands_run_by(command: str) -> list[str]:
    """A command, and what it runs: behind words of the shell, assignments, `env` and its like, or given to another shell."""
    found: list[str] = []
    text: str | None = command
    while text is not None:
        found[RUN_BY_RUNNERS:] = [text]
        text = _add_what_runs(found, text)
    return found


def _add_what_runs(found: list[str], text: str) -> str | None:
    """Adds to `found` what a command runs, one behind the other; given back is a line in quotes that a shell is handed last."""
    first = WORD.search(text)
    program = _unquoted_word(first[0]) if first else ""
    # Of a program that has no command behind it only the first word is read.
    runs_others = first is not None and (program_name(program) in SHELLS or next_command([program], 0) is not None)
    spans = [word.span() for word in (WORD.finditer(text) if runs_others else islice(WORD.finditer(text), 1))]
    words = [_unquoted_word(text[start:end]) for start, end in spans]
    at = 0
    inner: int | None = 0
    while inner is not None and inner < len(words):
        at = inner
        if at:
            found[RUN_BY_RUNNERS:] = [text[spans[at][0] :]]
        line = _line_at(words, at)
        if line is not None and text[slice(*spans[line])] != words[line]:
            return _unquoted_word(text[spans[line][0] :])
        inner = next_command(words, at) if line is None else line
    if words and text[slice(*spans[at])] != words[at]:
        found.append(words[at] + text[spans[at][1] :])  # "rm" and r\m are rm
    return None


def _unquoted_word(word: str) -> str:
    return QUOTING.sub(lambda quoting: quoting[1] or "", word)


def program_name(program: str) -> str:
    return program.rpartition("/")[2]


def _line_at(words: Sequence[str], at: int) -> int | None:
    """Where the line is that the shell at `at` runs; None for what is no shell, or runs none."""
    if program_name(words[at]) not in SHELLS:
        return None
    return next((place + 1 for place in range(at + 1, len(words) - 1) if RUNS_A_LINE.fullmatch(words[place])), None)


def next_command(words: Sequence[str], at: int) -> int | None:
    """Where the command begins that follows the word at `at` or is run by it; None where that word is the program itself."""
    word = words[at]
    if word in BEFORE_A_COMMAND or ASSIGNMENT.match(word):
        return at + 1
    if redirection := REDIRECTION.fullmatch(word):
        return at + 1 if redirection[1] else at + 2
    name = program_name(word)
    if name not in RUNNERS:
        return None
    at += 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in RUNNERS[name] else 1
    while name == "env" and at < len(words) and ASSIGNMENT.match(words[at]):
        at += 1
    return at + RUNNERS_OPERANDS.get(name, 0)


def is_quoted(line: str, place: int) -> bool:
    """Whether the character at `place` stands in quotes or behind a backslash."""
    return next((bool(quote) for at, quote, _ in _characters(line) if at == place), True)


def _characters(line: str) -> Iterator[tuple[int, str, bool]]:
    """(its place, the quote it stands in, whether it begins a word) of each character that is no quote and not escaped."""
    quote, place, begins = "", 0, True
    while place < len(line):
        character = line[place]
        if character == quote or (not quote and character in "'\""):
            quote, begins = "" if quote else character, False
        else:
            yield place, quote, begins
            begins = not quote and character in " \t"
        place += 2 if character == "\\" and quote != "'" else 1


def _what_a_shell_reads(line: str) -> Iterator[str]:
    """What in a line a shell would not hand on as it stands."""
    if found := ASSIGNMENT.match(line):
        yield f"`{found[0]}`"
    for place, quote, begins in _characters(line):
        character = line[place]
        if character == "\\" and quote != "'":
            if (escaped := line[place + 1 : place + 2]) == "\n":
                yield "a backslash before a line end"
            elif quote and escaped in ("$", "`"):
                yield "a backslash in double quotes"
        elif quote == '"':
            if character == "`":
                yield "a backquote"
            elif EXPANDED.match(line, place):
                yield "`$` in double quotes"
        elif not quote and character not in " \t":
            yield from _unquoted(line, place, begins)


def _unquoted(line: str, place: int, starts_word: bool) -> Iterator[str]:
    """What a shell makes of a character outside quotes."""
    character = line[place]
    if character == "`":
        yield "a backquote"
    elif character in "\r\n":
        yield "a line end"
    elif (
        character in ALWAYS
        or (character == "#" and starts_word)
        or (character == "$" and (EXPANDED.match(line, place) or QUOTED_BY_DOLLAR.match(line, place)))
        or (character == "~" and (starts_word or line[place - 1] == "="))
    ):
        yield f"`{character}`"
    elif character == "{" and (found := BRACES.match(line, place)):
        yield f"`{found[0]}`"
