"""What an argument list would run, as far as that can be known before it runs (docs/plans.md, "Policies"). Pure.

Shells, and programs that run the command behind their options, are looked into. The structure of a shell's line is as
tree-sitter reads it, the words are taken out of their quotes here. Whatever only the run tells, such as a value of a variable,
is said to be unknown together with the reason: whoever judges must not take it for harmless.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agents.devices.command_lines import BRACES, EXPANDED, RUN_BY_RUNNERS, SHELLS, commands_in_line, next_command, program_name

LINE_CHARACTERS = 8_000
"""Of a shell's line that is read; of a longer one it is only known that it is one."""
SIGNS_READ = 400
"""Signs and line ends of a line that is read: the time that its structure takes grows with their square."""
SIGN = re.compile(r"[^\w \t./:,@%+-]")
LINES_DEEP = 4
"""Lines that shells hand to shells."""
CACHED = 256
PLAIN_SHELLS = frozenset(["ash", "bash", "dash", "sh"])
"""Those whose lines are read; others have a grammar of their own."""
TAKES_CODE = {
    "node": ("-e", "-p", "--eval", "--print"), "perl": ("-e", "-E"), "php": ("-r",), "python": ("-c",), "ruby": ("-e",),
    "lua": ("-e",), "deno": ("eval",), "tclsh": (), "osascript": ("-e",), "R": ("-e",), "Rscript": ("-e",),
}  # fmt: skip
"""Programs that run code from an argument behind one of these options, or from standard input."""
RUNS_UNSEEN = frozenset([
    ".", "alias", "at", "awk", "batch", "chroot", "enable", "eval", "fc", "flock", "gawk", "gdb", "hash", "let", "mawk", "nawk",
    "nsenter", "parallel", "script", "sg", "source", "ssh", "strace", "su", "systemd-run", "tmux", "trap", "unshare", "watch",
])  # fmt: skip
"""Programs and words of a shell that make a command, or several, of what stands behind them."""
FIND_RUNS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
STRUCTURE = frozenset([
    "program", "list", "pipeline", "subshell", "compound_statement", "redirected_statement", "negated_command",
    "if_statement", "elif_clause", "else_clause", "while_statement", "for_statement", "do_group", "case_statement",
    "case_item", "function_definition", "command", "command_name", "declaration_command", "unset_command", "test_command",
    "variable_assignment", "variable_assignments", "variable_name", "special_variable_name", "word", "string",
    "string_content", "raw_string", "concatenation", "number", "simple_expansion", "command_substitution",
    "process_substitution", "file_redirect", "file_descriptor", "heredoc_redirect", "heredoc_start", "heredoc_body",
    "heredoc_content", "heredoc_end", "herestring_redirect", "comment", "test_operator", "unary_expression",
    "binary_expression", "parenthesized_expression", "negation_expression", "ansi_c_string", "translated_string",
    "expansion", "arithmetic_expansion", "brace_expression", "extglob_pattern", "regex",
])  # fmt: skip
"""Parts of a line whose commands are found by looking into them."""
COMMAND_LIKE = frozenset(["command", "declaration_command", "unset_command", "test_command"])
REDIRECTS = frozenset(["file_redirect", "heredoc_redirect", "herestring_redirect"])
WORDS = frozenset([
    "word", "string", "raw_string", "concatenation", "number", "simple_expansion", "expansion", "command_substitution",
    "process_substitution", "ansi_c_string", "translated_string", "arithmetic_expansion", "brace_expression",
])  # fmt: skip
EVALUATING = re.compile(rb"\$\{!|@[A-Za-z]\}|\$\(\([^)]*[A-Za-z_$`]|^\(\(")
"""Expansions that make code of a variable's value."""
GAP = re.compile(r"(?:\\\n)*[ \t](?:[ \t]|\\\n)*")
"""What stands between two words."""
BETWEEN = re.compile(rb"(?:(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*)?")
"""What stands between two parts of a line that tree-sitter tells of."""
POSITIONAL = re.compile(r"\$(?:([0-9])|\{([0-9]{1,3})\})")
SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""A value that a shell hands on as one word even outside quotes."""


class CommandWord(NamedTuple):
    """A word of a command. `text` is what is known of it from its beginning on, without quotes.

    `rest` is the unknown part as it is written, `why` the reason; both are empty where all is known.
    """

    text: str
    why: str = ""
    rest: str = ""


class SeenCommand(NamedTuple):
    """A command that would run, or something a line touches: its words, quoted as for a shell.

    The first `sure` characters of `text` are certain, all where `why` is empty; else `why` says what is not known. `words` are
    those that are known whole.
    """

    text: str
    sure: int = 0
    why: str = ""
    words: tuple[str, ...] = ()


def commands_seen_in(argv: Sequence[str]) -> tuple[SeenCommand, ...]:
    """All commands that running an argument list would run: itself first, then what it runs in turn."""
    return _seen(tuple(argv))


@lru_cache(CACHED)
def _seen(argv: tuple[str, ...]) -> tuple[SeenCommand, ...]:
    return tuple(_run([CommandWord(word) for word in argv], 0))


def _unknown(why: str) -> SeenCommand:
    """Something that could be any command."""
    return SeenCommand("", 0, why)


def _written(words: Sequence[CommandWord]) -> SeenCommand:
    """The words of one command as a text."""
    parts: list[str] = []
    sure, why = 0, ""
    for word in words:
        if word.why and not why:
            why, sure = word.why, len(" ".join(parts))
        parts.append(f"{word.text}{word.rest}" if word.why else shlex.quote(word.text))
    text = " ".join(parts)
    return SeenCommand(text, sure if why else len(text), why, tuple(word.text for word in words if not word.why))


def _run(words: Sequence[CommandWord], deep: int) -> Iterator[SeenCommand]:
    """A command and what it runs, one behind the other."""
    for _ in range(RUN_BY_RUNNERS):
        if not words:
            return
        program = words[0]
        if program.why:
            yield SeenCommand(_written(words).text, 0, program.why)
            return
        yield _written(words)
        name = program_name(program.text)
        if name != program.text:
            yield _written([CommandWord(name), *words[1:]])
        if name in SHELLS:
            yield from _shell(name, words, deep)
            return
        if why := _takes_code(name, words):
            yield _unknown(why)
            return
        if name == "find":
            yield from _found(words, deep)
            return
        at = next_command([word.text for word in words], 0)
        if at is None:
            return
        if why := _unread_options(name, words[1 : at + 1]):
            yield _unknown(why)
            return
        words = [*words[at:], CommandWord("", "xargs adds what it reads")] if name == "xargs" else words[at:]
    yield _unknown("commands are run by one another too often to be followed")


def _takes_code(name: str, words: Sequence[CommandWord]) -> str:
    """Why it cannot be known what a program runs; empty where it runs what it is named."""
    if name in RUNS_UNSEEN:
        return f"{name} makes commands of what it is given" if len(words) > 1 else ""
    program = name.rstrip("0123456789.") if name.startswith(("python", "ruby", "lua", "perl", "php", "tclsh")) else name
    options = TAKES_CODE.get("python" if program == "pypy" else program)
    if options is None:
        return ""
    given = [word.text for word in words[1:]]
    # A short option may stand among others, as in -Ic.
    short = [re.compile(rf"-[A-Za-z]*{option[1]}") for option in options if len(option) == 2]
    by_option = any(
        text.startswith(options) or (not text.startswith("--") and any(each.match(text) for each in short)) for text in given
    )
    if by_option or "-" in given or not [text for text in given if not text.startswith("-")]:
        return f"{name} is given code"
    return ""


def _unread_options(name: str, words: Sequence[CommandWord]) -> str:
    if unknown := next((word.why for word in words[:-1] if word.why), ""):
        return unknown
    texts = [word.text for word in words[:-1]]
    if name == "env" and any(re.match(r"-[A-Za-z0]*S|--split", text) for text in texts):
        return "env -S makes words of a text"
    if name in ("sudo", "doas") and any(re.match(r"-[A-Za-z]*[si]|--shell|--login", text) for text in texts):
        return f"{name} runs a shell"
    return ""


def _found(words: Sequence[CommandWord], deep: int) -> Iterator[SeenCommand]:
    """What `find` runs for each file."""
    starts = [at + 1 for at, word in enumerate(words) if word.text in FIND_RUNS]
    if any(word.why for word in words):
        yield _unknown("the words of find are not all known")
    for start in starts:
        ends = (at for at in range(start, len(words)) if words[at].text in (";", "+"))
        run = words[start : next(ends, len(words))]
        yield from _run([CommandWord("", "find puts a path there", "{}") if "{}" in word.text else word for word in run], deep)


# --- shells


def _shell(name: str, words: Sequence[CommandWord], deep: int) -> Iterator[SeenCommand]:
    """What a shell runs: the line behind -c, else a script that nobody has read."""
    given, is_line = _operands(words[1:])
    unknown = next((word.why for word in words[1 : len(words) - len(given) + 1] if word.why), "")
    if unknown or not is_line or not given:
        yield _unknown(unknown or f"{name} runs a script")
    elif deep >= LINES_DEEP:
        yield _unknown("shells run shells too often to be followed")
    else:
        if name not in PLAIN_SHELLS:
            yield _unknown(f"{name} reads lines in its own way")
        yield from _line(given[0].text, given[1:], deep + 1)


def _operands(words: Sequence[CommandWord]) -> tuple[Sequence[CommandWord], bool]:
    """What stands behind a shell's options, and whether the first of it is a line."""
    at, is_line = 0, False
    while at < len(words) and words[at].text[:1] in ("-", "+") and len(words[at].text) > 1:
        option = words[at].text
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
        else:
            is_line |= option[0] == "-" and "c" in option
            at += option[-1] in "oO"
    return words[at:], is_line


def _line(line: str, given: Sequence[CommandWord], deep: int) -> Iterator[SeenCommand]:
    """The commands of a shell's line; `given` are its $0, $1, ..."""
    if len(line) > LINE_CHARACTERS or sum(1 for _ in SIGN.finditer(line)) > SIGNS_READ:
        why = f"the line has more than {LINE_CHARACTERS:,} characters or {SIGNS_READ} signs, too many to read"
        yield from (SeenCommand(command, 0, why) for command in ["", *commands_in_line(line)])
        return
    source = line.encode("utf-8", "surrogatepass")
    from tree_sitter import Parser  # most processes never judge a line

    root = Parser(_language()).parse(source).root_node
    if root.has_error:
        why = "the line cannot be read as a shell would read it"
        yield from (SeenCommand(command, 0, why) for command in ["", *commands_in_line(line)])
        return
    if not _is_covered(root, source):
        yield _unknown("the line cannot be parted into words")
    todo = [root]
    while todo:
        node = todo.pop()
        todo.extend(reversed(node.children))
        if why := _doubt(node, source):
            yield _unknown(why)
        if node.type in COMMAND_LIKE:
            yield from _command(node, source, given, deep)
        elif node.type in ("file_redirect", "herestring_redirect"):
            yield _redirect(node, source, given)


@lru_cache(1)
def _language() -> Any:
    from tree_sitter import Language
    from tree_sitter_bash import language

    return Language(language())


def _is_covered(root: Any, source: bytes) -> bool:
    """Whether nothing but blanks stands between the parts that tree-sitter tells of."""
    end, todo = 0, [root]
    while todo:
        node = todo.pop()
        if node.children:
            todo.extend(reversed(node.children))
        elif not BETWEEN.fullmatch(source[end : node.start_byte]):
            return False
        else:
            end = node.end_byte
    return bool(BETWEEN.fullmatch(source[end:]))


def _doubt(node: Any, source: bytes) -> str:
    """Why a part of a line could run what does not stand there; empty where it does not."""
    if node.is_named and node.type not in STRUCTURE:
        return f"a shell's {node.type.replace('_', ' ')} is not looked into"
    text = source[node.start_byte : node.end_byte]
    if node.type in ("expansion", "arithmetic_expansion", "compound_statement") and EVALUATING.search(text):
        return f"`{text[:40].decode('utf-8', 'replace')}` may run what a variable holds"
    if node.type == "command_substitution" and text.startswith(b"`") and b"\\" in text:
        return "a backslash in backquotes"
    if node.type == "heredoc_body" and b"`" in text:
        return "a backquote in a document"
    if node.type in REDIRECTS and sum(child.type in WORDS for child in node.children) > 1 - (node.type == "heredoc_redirect"):
        return "words behind a redirection"
    return ""


def _command(node: Any, source: bytes, given: Sequence[CommandWord], deep: int) -> Iterator[SeenCommand]:
    """A command of a line, and what it runs."""
    words: list[CommandWord] = []
    end = -1
    for child in node.children:
        if child.type == "variable_assignment" and not words and node.type == "command":
            continue
        if child.type in REDIRECTS:
            end = -1
            continue
        if end >= 0 and not GAP.fullmatch(_text(source, end, child.start_byte)):
            yield _unknown("the line cannot be parted into words")
        words.append(_word(_text(source, child.start_byte, child.end_byte), given))
        end = child.end_byte
    if node.type == "command":
        yield from _run(words, deep)
    else:
        yield _written(words)


def _redirect(node: Any, source: bytes, given: Sequence[CommandWord]) -> SeenCommand:
    """A file that a line reads or writes, as `> file`."""
    parts = [child for child in node.children if child.type != "file_descriptor"]
    operator = _text(source, parts[0].start_byte, parts[0].end_byte)
    if len(parts) < 2:
        return _unknown("the line cannot be parted into words")
    found = _written([_word(_text(source, parts[1].start_byte, parts[1].end_byte), given)])
    shift = len(operator) + 1
    return SeenCommand(f"{operator} {found.text}", found.sure + shift, found.why, found.words)


def _text(source: bytes, start: int, end: int) -> str:
    return source[start:end].decode("utf-8", "surrogatepass")


def _word(written: str, given: Sequence[CommandWord]) -> CommandWord:
    """A word as a shell would hand it on."""
    known: list[str] = []
    quote, at = "", 0
    while at < len(written):
        character = written[at]
        if quote == "'" and character != "'":
            known.append(character)
            at += 1
        elif character in "'\"" and quote in ("", character):
            quote = "" if quote else character
            at += 1
        elif character == "\\":
            known.append(_escaped(written[at + 1 : at + 2], quote))
            at += 2
        elif (
            character == "$" and (found := POSITIONAL.match(written, at)) and (value := _value(found, given, quote)) is not None
        ):
            known.append(value)
            at = found.end()
        elif why := _replaced(written, at, quote):
            return CommandWord("".join(known), why, written[at:])
        else:
            known.append(character)
            at += 1
    return CommandWord("".join(known), "a quote is not closed" if quote else "")


def _escaped(character: str, quote: str) -> str:
    if character == "\n":
        return ""
    return f"\\{character}" if quote and character not in ("$", "`", '"', "\\") else character


def _value(found: re.Match[str], given: Sequence[CommandWord], quote: str) -> str | None:
    """What the shell was given for `$1` and its like; None where that would be parted or replaced again."""
    place = int(found[1] or found[2])
    if place >= len(given) or given[place].why:
        return None
    value = given[place].text
    return value if quote or SAFE.fullmatch(value) else None


def _replaced(written: str, at: int, quote: str) -> str:
    """Why a shell would put something else in the place of a character; empty where it does not."""
    character, rest = written[at], written[at:]
    if character == "`" or (character == "$" and EXPANDED.match(rest)):
        return f"only the run tells what `{rest[:40]}` stands for"
    if quote:
        return ""
    if character == "$" and rest[1:2] in ("'", '"'):
        return f"shells read `{rest[:40]}` in different ways"
    if (
        (character in "*?[" and written not in ("[", "[["))
        or (character == "~" and (at == 0 or written[at - 1] in "=:"))
        or BRACES.match(rest)
    ):
        return f"only the run tells what `{written[:40]}` stands for"
    return "the line cannot be parted into words" if character in " \t\n<>|&;()" else ""
