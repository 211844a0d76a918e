"""What real shells run is compared with what was known of their lines: nothing runs that was neither seen nor doubted."""

import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest

from agents.tools.shell_reading import commands_seen_in

pytestmark = pytest.mark.attack
SHELLS = ("sh", "bash")
LINES = 400
SEEDS = (1, 2)
PIECES = [
    "rm", "rm", "r''m", "\\rm", '"rm"', "r\\\nm", "./rm", "a", "-r", "'a b'", '"a b"', '"a $X"', "$X", "${X}", "'", '"',
    ";", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "\n", "\n", "if", "then", "else", "fi", "while", "until", "do",
    "done", "!", ">", "<", ">>", ">f", "2>&1", "$(", ")", "`", "<<E", "\nE\n", "#", "\\\n", "\\", "$'rm'", "case", "x",
    "in", "x)", ";;", "esac", "for", "i", "[", "]", "[[", "]]", "env", "A=1", "time", "eval", "export", "exec", "command",
    "xargs", "sh -c", "'rm a'", "nohup", "f()", "f", "function", "~", "*", "?", "{rm,a}", "$((1))", "${X:-rm}", "coproc",
    "trap", "EXIT", "<(", "$1", '"$@"', "set --", "\t", "=", "alias", "cd", ".",
]  # fmt: skip
WEIGHTS = [8] * 11 + [1] * (len(PIECES) - 11)
STUB = '#!/bin/sh\nprintf %s "$(printf \'%s\\037\' "$0" "$@" && printf \'\\036\')" >> "$LOG"\n'
PROGRAMS = ("rm", "a", "x", "i", "f", "E", "A=1")


def a_line(dice: random.Random) -> str:
    pieces = dice.choices(PIECES, weights=WEIGHTS, k=dice.randint(1, 9))
    return "".join(piece + dice.choice(("", " ", " ", " ")) for piece in pieces)


class Shells:
    """Runs lines where every program only says how it was called."""

    def __init__(self, folder: Path):
        self.folder, self._lines = folder / "work", 0
        self.programs = folder / "bin"
        for each in (self.folder, self.programs):
            each.mkdir()
        for name in PROGRAMS:
            self._program(self.programs / name)
        for name in ("env", "nohup", "xargs", "sh", "time"):
            found = next((Path(place, name) for place in ("/usr/bin", "/bin") if Path(place, name).exists()), None)
            if found is not None:
                (self.programs / name).symlink_to(found)

    def _program(self, place: Path) -> None:
        place.write_text(STUB)
        place.chmod(0o755)

    def calls(self, shell: str, line: str) -> list[list[str]]:
        """The argument lists of the programs that a shell starts for a line."""
        self._lines += 1  # what an earlier line left in the background writes elsewhere
        log = self.programs.with_name(f"log{self._lines}")
        self._program(self.folder / "rm")
        surroundings = {"PATH": str(self.programs), "LOG": str(log), "X": "rm"}
        with subprocess.Popen(
            [f"/bin/{shell}", "-c", line], cwd=self.folder, env=surroundings, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        ) as started:  # fmt: skip
            try:
                started.wait(2)
            except subprocess.TimeoutExpired:  # a loop without an end: what it has called until now is enough
                os.killpg(started.pid, 9)
        told = log.read_text(errors="replace") if log.exists() else ""
        found = [call.split("\037")[:-1] for call in told.split("\036")[:-1]]
        return [[self._as_called(program), *words] for program, *words in found]

    def _as_called(self, program: str) -> str:
        return program.removeprefix(f"{self.programs}/").replace(f"{self.folder}/", "./")


def is_known(call: list[str], seen) -> bool:
    text = shlex.join(call)
    return any(text.startswith(one.text[: one.sure]) if one.why else text == one.text for one in seen)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_runs_that_was_neither_seen_nor_doubted(shell, seed, tmp_path):
    shells, dice = Shells(tmp_path), random.Random(seed)
    unseen, called = [], 0
    for _ in range(LINES // len(SEEDS)):
        line = a_line(dice)
        seen = commands_seen_in([shell, "-c", line])[1:]
        for call in shells.calls(shell, line):
            called += 1
            if not is_known(call, seen):
                unseen.append((line, call, seen))
    assert unseen == []
    assert called > LINES // len(SEEDS) / 5, "the lines run too little to tell anything"
